/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>
#include <time.h>

#include "fsal.h"

#include "buffer.h"
#include "call.h"
#include "clock.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "mount.h"
#include "object.h"
#include "op.h"
#include "read_cache.h"
#include "lane.h"

/* The size needs Fs; the version comes only with As, Ls and Xs beside it. */
#define REVALIDATED                                              \
	(CEPH_STATX_SIZE | CEPH_STATX_MTIME | CEPH_STATX_CTIME | \
	 CEPH_STATX_VERSION)

/* Buffers of a hit: 1 MiB in pages, and one for an unaligned offset. */
#define SEGMENTS 257

/* Not shorter than it is.  Two at once: one of them may be lost, no harm. */
static void read_cache_bypass_for(struct casync_cached_file *cached,
				  uint64_t for_ns)
{
	uint64_t until_ns = casync_clock_ns() + for_ns;

	if (until_ns >
	    __atomic_load_n(&cached->bypass_until_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&cached->bypass_until_ns, until_ns,
				 __ATOMIC_RELAXED);
}

static void read_cache_bypass(struct casync_cached_file *cached,
			      enum casync_cache_bypass why, uint64_t ms)
{
	casync_buffer_count(&casync_cache_counts.bypasses[why], 1);
	read_cache_bypass_for(cached, ms * CASYNC_NS_PER_MS);
}

/* Several threads may learn at once; it need not be exact. */
static uint64_t read_cache_learn(uint64_t *mean_ns, uint64_t sample_ns)
{
	uint64_t mean = __atomic_load_n(mean_ns, __ATOMIC_RELAXED);

	mean = mean - mean / 8 + sample_ns / 8;
	__atomic_store_n(mean_ns, mean, __ATOMIC_RELAXED);
	return mean;
}

/*
 * Only revalidations one after the other are learned from: whatever holds
 * libcephfs' lock for a while holds up all that are under way.
 */
static void read_cache_learn_revalidation(struct casync_cached_file *cached,
					  uint64_t began_ns, uint64_t now_ns)
{
	uint64_t read_ns = __atomic_load_n(&cached->read_ns, __ATOMIC_RELAXED);
	uint64_t took_ns = now_ns - began_ns;

	if (began_ns < __atomic_load_n(&cached->learned_ns, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&cached->learned_ns, now_ns, __ATOMIC_RELAXED);
	/* One that took very long must not count for many. */
	if (took_ns > 2 * read_ns)
		took_ns = 2 * read_ns;
	if (read_cache_learn(&cached->revalidation_ns, took_ns) <= read_ns)
		return;
	__atomic_store_n(&cached->revalidation_ns, 0, __ATOMIC_RELAXED);
	read_cache_bypass(cached, CASYNC_CACHE_BYPASS_COSTLY,
			  CASYNC_CACHE_COSTLY_BYPASS_MS);
}

static bool read_cache_applies(const struct casync_op *op)
{
	const struct casync_object *obj = op->obj;

	return casync_buffer_budget() != 0 && obj->cached != NULL &&
	       !casync_lane_on_completion_thread() &&
	       obj->id.snapid == CEPH_NOSNAP &&
	       casync_session_state(&casync_inode_mount(op->obj)->guard) ==
		       CASYNC_SESSION_SERVES &&
	       casync_clock_ns() >=
		       __atomic_load_n(&obj->cached->bypass_until_ns,
				       __ATOMIC_RELAXED);
}

static int read_cache_getattr(const struct casync_op *op,
			      struct ceph_statx *stx)
{
	uint64_t generation = casync_file_size_changes(&op->obj->size);
	int rc = ceph_ll_getattr(casync_inode_ceph(op->obj), op->obj->inode,
				 stx, REVALIDATED, 0,
				 casync_inode_root(op->obj));

	if (rc == 0 && stx->stx_size != casync_file_size_hint(&op->obj->size))
		casync_file_size_update(&op->obj->size, stx->stx_size,
					generation);
	return rc;
}

/* Ask for the file's version, if there is room to wait. */
static bool read_cache_revalidate(struct casync_op *op,
				  struct casync_call *slot,
				  struct ceph_statx *stx)
{
	uint64_t began_ns, now_ns, took_us;
	int rc;

	/* The slots are the file's and the mount's: an MDS that does not answer
	 * must not keep all workers. */
	if (!casync_call_try(slot, op->obj,
			     CASYNC_CALL_ATTR_SLOT | CASYNC_CALL_MOUNT_SLOT,
			     CASYNC_CACHE_REVALIDATIONS)) {
		casync_buffer_count(&casync_cache_counts.no_revalidation, 1);
		return false;
	}
	began_ns = casync_clock_ns();
	rc = read_cache_getattr(op, stx);
	now_ns = casync_clock_ns();
	took_us = (now_ns - began_ns) / CASYNC_NS_PER_US;
	op->revalidation_us = took_us < UINT32_MAX ? (uint32_t)took_us
						   : UINT32_MAX;
	read_cache_learn_revalidation(op->obj->cached, began_ns, now_ns);
	casync_call_drop_part(slot, CASYNC_CALL_ATTR_SLOT);
	return rc == 0 && (stx->stx_mask & REVALIDATED) == REVALIDATED;
}

static struct casync_cache_tag read_cache_tag(const struct casync_op *op,
					      const struct ceph_statx *stx)
{
	return (struct casync_cache_tag){
		.change = stx->stx_version,
		.size = stx->stx_size,
		.mtime_ns = casync_clock_timespec_ns(&stx->stx_mtime),
		.ctime_ns = casync_clock_timespec_ns(&stx->stx_ctime),
		.generation = casync_guard_generation(
			&casync_inode_mount(op->obj)->guard),
	};
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC: what we believe, and since when it is
 * larger than that; atomic.  Threads that come at once store the same. */
static uint64_t believed_ns, ahead_since_ns;

uint64_t casync_read_cache_now_ns(uint64_t wall_ns, uint64_t steady_ns)
{
	uint64_t offset_ns = wall_ns - steady_ns;
	uint64_t known_ns = __atomic_load_n(&believed_ns, __ATOMIC_RELAXED);
	uint64_t since_ns = __atomic_load_n(&ahead_since_ns, __ATOMIC_RELAXED);

	if (known_ns != 0 &&
	    offset_ns > known_ns + CASYNC_CACHE_STEP_MS * CASYNC_NS_PER_MS) {
		if (since_ns == 0)
			__atomic_store_n(&ahead_since_ns, steady_ns,
					 __ATOMIC_RELAXED);
		if (since_ns == 0 ||
		    casync_clock_since_ns(steady_ns, since_ns) <
			    CASYNC_CACHE_DOUBT_MS * CASYNC_NS_PER_MS)
			return steady_ns + known_ns;
	}
	if (since_ns != 0)
		__atomic_store_n(&ahead_since_ns, 0, __ATOMIC_RELAXED);
	if (offset_ns != known_ns)
		__atomic_store_n(&believed_ns, offset_ns, __ATOMIC_RELAXED);
	return wall_ns;
}

/* C1.  How long until the version has settled; at most the whole time. */
static uint64_t read_cache_settles_in_ns(const struct casync_cache_tag *tag)
{
	const uint64_t whole_ns = CASYNC_CACHE_SETTLE_MS * CASYNC_NS_PER_MS;
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = casync_read_cache_now_ns(casync_clock_timespec_ns(&now),
					  casync_clock_ns());
	if (now_ns < tag->ctime_ns)
		return whole_ns;
	now_ns -= tag->ctime_ns;
	return now_ns < whole_ns ? whole_ns - now_ns : 0;
}

/* Until then nothing is cached, and nothing can be found: do not ask the MDS
 * again and again for a file that somebody writes. */
static bool read_cache_settled(struct casync_cached_file *cached,
			       const struct casync_cache_tag *tag)
{
	uint64_t wait_ns = read_cache_settles_in_ns(tag);

	if (wait_ns == 0)
		return true;
	read_cache_bypass_for(cached, wait_ns);
	return false;
}

static void read_cache_release(void *buffer)
{
	casync_buffer_release(buffer);
}

/* Copy to the caller's buffers, from a position in them. */
static void read_cache_copy(const struct fsal_io_arg *arg, size_t at,
			    const char *data, size_t bytes)
{
	const struct iovec *iov = arg->iov;
	size_t take;

	for (; bytes != 0; iov++) {
		if (at >= iov->iov_len) {
			at -= iov->iov_len;
			continue;
		}
		take = iov->iov_len - at < bytes ? iov->iov_len - at : bytes;
		memcpy((char *)iov->iov_base + at, data, take);
		data += take;
		bytes -= take;
		at = 0;
	}
}

static void read_cache_answer(struct casync_op *op,
			      const struct casync_cache_segment *segments,
			      unsigned int count)
{
	unsigned int i;

	op->amount_bytes = 0;
	if (count == 1 && casync_ganesha_may_share(op->arg)) {
		op->amount_bytes = segments[0].bytes;
		/* The reply takes the caller's reference. */
		casync_ganesha_share(op->arg, segments[0].data,
				     segments[0].bytes, read_cache_release,
				     segments[0].buffer);
		return;
	}
	for (i = 0; i < count; i++) {
		if (!op->ahead)
			read_cache_copy(op->arg, op->amount_bytes,
					segments[i].data, segments[i].bytes);
		op->amount_bytes += segments[i].bytes;
		casync_buffer_release(segments[i].buffer);
	}
}

static bool read_cache_hit(struct casync_op *op,
			   const struct casync_cache_tag *tag)
{
	struct casync_cache_segment segments[SEGMENTS];
	unsigned int count;
	bool at_end;

	count = casync_cache_get(&op->obj->cached->file, tag, op->offset,
				 op->length_bytes, segments, SEGMENTS, &at_end);
	if (count == 0)
		return false;
	read_cache_answer(op, segments, count);
	/* The tag knows the end of the file, even if no page there is known. */
	op->end_of_file = op->offset + op->amount_bytes >= tag->size;
	return true;
}

/* Whole pages, up to the end of the file. */
static struct casync_range read_cache_pages(struct casync_range range,
					    uint64_t size)
{
	uint64_t begin = range.offset & ~(uint64_t)(CASYNC_CACHE_PAGE - 1);
	uint64_t end = range.offset + range.bytes + CASYNC_CACHE_PAGE - 1;

	end &= ~(uint64_t)(CASYNC_CACHE_PAGE - 1);
	if (end > size)
		end = size;
	return (struct casync_range){begin, (size_t)(end - begin)};
}

/* Not beyond the objects that the READ touches itself: another object may have
 * no answer, or an error. */
static struct casync_range read_cache_clip(const struct casync_op *op,
					   struct casync_range range,
					   struct casync_range own)
{
	uint64_t span =
		__atomic_load_n(&op->obj->object_span, __ATOMIC_RELAXED);
	uint64_t end = range.offset + range.bytes;
	uint64_t begin, last;

	if (span == 0)
		return range;
	begin = own.offset / span * span;
	last = (own.offset + own.bytes + span - 1) / span * span;
	if (begin < range.offset)
		begin = range.offset;
	if (last > end)
		last = end;
	return (struct casync_range){begin, (size_t)(last - begin)};
}

static bool read_cache_fetch(struct casync_op *op, struct casync_range range,
			     const struct casync_cache_tag *tag, uint64_t epoch)
{
	size_t pages = (range.bytes + CASYNC_CACHE_PAGE - 1) /
		       CASYNC_CACHE_PAGE * CASYNC_CACHE_PAGE;
	struct casync_cache_buffer *buf;
	struct casync_fill *fill;

	if (pages > CASYNC_CACHE_BUFFER_MAX)
		return false;
	buf = casync_evict_new_buffer(op->exp->export.export_id,
				      (uint32_t)pages);
	if (buf == NULL)
		return false;
	fill = gsh_malloc(sizeof(*fill));
	*fill = (struct casync_fill){
		.buffer = buf,
		.tag = *tag,
		.epoch = epoch,
		.wanted = {op->offset, op->ahead ? 0 : op->length_bytes},
		.shares = casync_ganesha_may_share(op->arg),
		.iov = {buf->data, range.bytes},
	};
	op->fill = fill;
	op->offset = range.offset;
	op->length_bytes = range.bytes;
	return true;
}

/* Have the READ fetch whole pages, and more if it is one of a stream. */
static void read_cache_plan_fill(struct casync_op *op, int stream,
				 const struct casync_cache_tag *tag,
				 uint64_t epoch)
{
	struct casync_range own = {op->offset, op->length_bytes};
	struct casync_range more;

	if (op->offset + op->length_bytes > tag->size)
		return;
	more = casync_read_ahead_plan(&op->obj->cached->ahead, stream,
				      own.offset, own.bytes);
	more = read_cache_pages(more, tag->size);
	own = read_cache_pages(own, tag->size);
	more = read_cache_clip(op, more, own);
	if (more.bytes > own.bytes &&
	    casync_inflight_grow(&op->exp->inflight, &op->entry,
				 more.bytes - own.bytes) &&
	    read_cache_fetch(op, more, tag, epoch))
		return;
	(void)read_cache_fetch(op, own, tag, epoch);
}

bool casync_read_cache_find(struct casync_op *op, struct casync_call *slot)
{
	struct casync_cached_file *cached = op->obj->cached;
	struct casync_cache_tag tag;
	struct ceph_statx stx;
	uint64_t epoch;
	int stream;

	if (!read_cache_applies(op))
		return false;
	stream = casync_read_ahead_note(&cached->ahead, op->offset,
					op->length_bytes);
	/* Before the revalidation: a write of ours between the two would put
	 * new data under an old tag. */
	epoch = casync_cache_epoch(&cached->file);
	if (!read_cache_revalidate(op, slot, &stx))
		return false;
	tag = read_cache_tag(op, &stx);
	if (read_cache_hit(op, &tag))
		return true;
	if (casync_cache_was_outdated(&cached->file))
		read_cache_bypass(cached, CASYNC_CACHE_BYPASS_FOREIGN,
				  CASYNC_CACHE_BYPASS_MS);
	else if (read_cache_settled(cached, &tag))
		read_cache_plan_fill(op, stream, &tag, epoch);
	return false;
}

/*
 * Is it all of the buffer, or all up to the end of the file?  A READ that ended
 * elsewhere saw another size than the revalidation.
 */
static bool read_cache_is_whole(const struct casync_op *op)
{
	const struct casync_fill *fill = op->fill;
	uint64_t reach = op->offset + op->amount_bytes;

	return reach == fill->tag.size ||
	       (op->amount_bytes == fill->buffer->length &&
		reach < fill->tag.size);
}

/* Of all that was fetched, what was asked for. */
static const char *read_cache_trim(struct casync_op *op)
{
	const struct casync_range *wanted = &op->fill->wanted;
	size_t before = wanted->offset - op->offset;

	op->offset = wanted->offset;
	if (op->amount_bytes <= before) {
		op->amount_bytes = 0;
		return op->fill->buffer->data;
	}
	op->amount_bytes -= before;
	if (op->amount_bytes > wanted->bytes) {
		op->amount_bytes = wanted->bytes;
		op->end_of_file = false;
	}
	return (const char *)op->fill->buffer->data + before;
}

static void read_cache_use(struct casync_op *op)
{
	const struct casync_fill *fill = op->fill;
	const char *data;

	if (op->amount_bytes > fill->wanted.bytes)
		casync_buffer_set_read_ahead(
			fill->buffer,
			(uint32_t)(op->amount_bytes - fill->wanted.bytes));
	if (read_cache_is_whole(op))
		(void)casync_cache_put(
			&op->obj->cached->file, &fill->tag, fill->epoch,
			op->offset, (uint32_t)op->amount_bytes, fill->buffer);
	data = read_cache_trim(op);
	if (op->amount_bytes == 0)
		return;
	if (fill->shares) {
		casync_buffer_hold(fill->buffer);
		casync_ganesha_share(op->arg, data, op->amount_bytes,
				     read_cache_release, fill->buffer);
	} else {
		read_cache_copy(op->arg, 0, data, op->amount_bytes);
	}
}

static void read_cache_end_fill(struct casync_op *op)
{
	if (!FSAL_IS_ERROR(op->status) && op->amount_bytes != 0)
		read_cache_use(op);
	casync_buffer_release(op->fill->buffer);
	gsh_free(op->fill);
	op->fill = NULL;
}

void casync_read_cache_end_read(struct casync_op *op)
{
	struct casync_cached_file *cached = op->obj->cached;

	if (op->parts.count == 0 || cached == NULL)
		return;
	read_cache_learn(
		&cached->read_ns,
		casync_clock_since_ns(casync_clock_age_ns(op->entry.since_ns),
				      op->revalidation_us * CASYNC_NS_PER_US));
	if (op->fill != NULL)
		read_cache_end_fill(op);
}

void casync_read_cache_free(struct casync_cached_file *cached)
{
	if (cached == NULL)
		return;
	casync_cache_forget(&cached->file);
	gsh_free(cached);
}

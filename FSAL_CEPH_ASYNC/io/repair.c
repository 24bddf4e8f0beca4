/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "fsal.h"

#include "call.h"
#include "clock.h"
#include "disown.h"
#include "errors.h"
#include "export.h"
#include "inode.h"
#include "object.h"
#include "op.h"
#include "repair.h"
#include "lane.h"

static void repair_count(struct casync_op *op, enum casync_metric counter)
{
	casync_metrics_count(casync_metrics_shard(&op->exp->metrics), counter,
			     1);
}

/* Work that remains for a read whose bytes are there. */
enum rest {
	NOTHING,
	ASK_SIZE, /* All bytes are there; is that the end of the file? */
};

/* A file's version.  The change attribute comes only with As, Ls and Xs. */
#define REPAIR_VERSION                                           \
	(CEPH_STATX_SIZE | CEPH_STATX_MTIME | CEPH_STATX_CTIME | \
	 CEPH_STATX_VERSION)

/* How often a READ is done again (repair.h), and from which time on a change of
 * another kind than a truncation does no harm. */
#define TRIES 10
#define TRIES_UNCHANGED 4

static int repair_ask(const struct casync_op *op, unsigned int want,
		      struct ceph_statx *stx)
{
	uint64_t generation = casync_file_size_changes(&op->obj->size);
	int rc = ceph_ll_getattr(casync_inode_ceph(op->obj), op->obj->inode,
				 stx, want, 0, casync_inode_root(op->obj));

	if (rc == 0)
		casync_file_size_update(&op->obj->size, stx->stx_size,
					generation);
	return rc;
}

static bool repair_is_unchanged(const struct casync_op *op,
				const struct ceph_statx *before)
{
	struct ceph_statx now;

	return repair_ask(op, REPAIR_VERSION, &now) == 0 &&
	       now.stx_version == before->stx_version &&
	       now.stx_size == before->stx_size &&
	       casync_clock_timespec_ns(&now.stx_ctime) ==
		       casync_clock_timespec_ns(&before->stx_ctime) &&
	       casync_clock_timespec_ns(&now.stx_mtime) ==
		       casync_clock_timespec_ns(&before->stx_mtime);
}

/* The READ was within the size that the file had BEFORE, and the counter was
 * COUNT then.  Was it never shorter? */
static bool repair_was_long_enough(const struct casync_op *op,
				   const struct ceph_statx *before,
				   uint64_t count, unsigned int tries)
{
	const struct casync_file_size *size = &op->obj->size;

	if (tries < TRIES_UNCHANGED &&
	    casync_file_size_truncated_recently(size))
		return repair_is_unchanged(op, before);
	return !casync_file_size_truncated_since(size, count);
}

static int64_t repair_read_again(struct casync_op *op, struct Fh *fh,
				 uint64_t offset, char *to, size_t length_bytes)
{
	struct ceph_statx before;
	unsigned int tries;
	uint64_t count;
	size_t length;
	int64_t rc;

	for (tries = 0; tries < TRIES; tries++) {
		count = casync_file_size_truncations(&op->obj->size);
		rc = repair_ask(op, REPAIR_VERSION, &before);
		if (rc < 0)
			return rc;
		if (before.stx_size <= offset)
			return 0;
		length = before.stx_size - offset < length_bytes
				 ? before.stx_size - offset
				 : length_bytes;
		rc = casync_disown_read(op, fh, (int64_t)offset, to, length);
		if (rc <= 0 || memchr(to, '\0', (size_t)rc) == NULL ||
		    repair_was_long_enough(op, &before, count, tries))
			return rc;
	}
	return -EAGAIN;
}

/* May zeros that a READ got stand for data?  Its range was within the known
 * size, unless it is past the end. */
static bool repair_is_doubtful(const struct casync_op *op)
{
	const struct casync_file_size *size = &op->obj->size;

	return op->obj->id.snapid == CEPH_NOSNAP &&
	       (op->past_end ||
		casync_file_size_truncated_since(size, op->truncations) ||
		casync_file_size_truncated_recently(size));
}

static int64_t repair_read(struct casync_op *op, struct Fh *fh, int64_t offset,
			   char *to, size_t length_bytes)
{
	int64_t rc = casync_disown_read(op, fh, offset, to, length_bytes);

	if (rc > 0 && memchr(to, '\0', (size_t)rc) != NULL &&
	    repair_is_doubtful(op))
		rc = repair_read_again(op, fh, (uint64_t)offset, to,
				       length_bytes);
	return rc;
}

/*
 * Read the missing bytes of a part with the blocking call, which handles holes.
 * It stays within one object, so libcephfs reports an error.
 *
 * Filling in zeros instead would be wrong if a writer extends the file
 * meanwhile: a reader of a growing log would see zeros that were never there.
 *
 * Returns the bytes that the part has now, or a negative errno.
 */
static int64_t repair_part(struct casync_op *op, const struct casync_part *part)
{
	size_t have = (size_t)part->result;
	const struct iovec *iov = part->io.iov;
	size_t skip = have;
	int64_t rc = 0;

	while (have < part->asked_bytes) {
		while (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			iov++;
		}
		rc = repair_read(op, part->io.fh, part->io.off + (int64_t)have,
				 (char *)iov->iov_base + skip,
				 iov->iov_len - skip);
		if (rc <= 0)
			break;
		have += (size_t)rc;
		skip += (size_t)rc;
	}
	return rc < 0 ? rc : (int64_t)have;
}

/*
 * Does the file end where the read ends?  All bytes are there.  So if the size
 * cannot be found, the answer is "no", and the client's next read finds out.
 */
static void repair_check_end_of_file(struct casync_op *op)
{
	struct ceph_statx stx;

	if (repair_ask(op, CEPH_STATX_SIZE, &stx) != 0)
		return;
	op->end_of_file = op->offset + op->amount_bytes >= stx.stx_size;
}

/*
 * libcephfs takes an object whose pool was deleted for a hole, and gives zeros
 * with success.  No answer of it tells the difference, so ask for the pool: it
 * looks into its OSD map, and waits for nobody.
 */
static bool repair_pool_is_gone(const struct casync_op *op)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(op->obj);
	struct ceph_file_layout layout = {0};

	(void)ceph_ll_file_layout(ceph, op->obj->inode, &layout);
	return ceph_get_pool_replication(ceph, (int)layout.fl_pg_pool) ==
	       -ENOENT;
}

/* Is what looks like a hole something else?  The OSDs remove the objects of a
 * snapshot some seconds after it.  0 or a negative errno. */
static int repair_check_hole(const struct casync_op *op)
{
	if (repair_pool_is_gone(op))
		return -EIO;
	return casync_inode_snapshot_is_gone(op->obj) ? -ESTALE : 0;
}

int64_t casync_repair_part(struct casync_op *op, const struct casync_part *part)
{
	int64_t have = repair_part(op, part);
	int rc = have > 0 ? repair_check_hole(op) : 0;

	return rc < 0 ? rc : have;
}

/* Do buffers of neighbouring parts adjoin?  Ganesha has one for each READ. */
static bool repair_adjoin(const struct casync_part *part)
{
	const struct casync_part *next = part + 1;

	return part->io.iovcnt == 1 && next->io.iovcnt == 1 &&
	       (char *)part->io.iov->iov_base + part->asked_bytes ==
		       next->io.iov->iov_base;
}

/*
 * Not a byte of `count` parts came: read them by one call, so that the OSDs are
 * asked at the same time.  Each part that it does not bring is read alone.
 *
 * Returns 0 or a negative errno.
 */
static int repair_read_joined(struct casync_op *op, struct casync_part *part,
			      unsigned int count)
{
	size_t length = 0, left, take;
	unsigned int i;
	int64_t rc;

	for (i = 0; i < count; i++)
		length += part[i].asked_bytes;
	rc = casync_disown_read(op, part->io.fh, part->io.off,
				part->io.iov->iov_base, length);
	if (rc < 0)
		return (int)rc;
	/* As in repair_read(): nothing of it is kept. */
	if (repair_is_doubtful(op))
		return 0;
	left = (size_t)rc;
	for (i = 0; i < count; i++) {
		take = left < part[i].asked_bytes ? left : part[i].asked_bytes;
		part[i].result = (int64_t)take;
		left -= take;
	}
	return 0;
}

/*
 * Such a call drops the error of an object, and gives zeros for it.  They are
 * right: the file was that long before the objects were found missing, so they
 * are holes, if nobody has shortened it, before the call or during it.
 */
static int repair_join_holes(struct casync_op *op)
{
	struct casync_part *parts = op->parts.at;
	unsigned int i, end;
	int rc = 0;

	/* With another count the parts were discarded, and are no holes. */
	if (op->past_end || repair_is_doubtful(op))
		return 0;
	for (i = 0; i < op->parts.count && rc == 0; i = end) {
		end = i + 1;
		if (parts[i].result != 0)
			continue;
		while (end < op->parts.count && parts[end].result == 0 &&
		       repair_adjoin(&parts[end - 1]))
			end++;
		if (end - i > 1)
			rc = repair_read_joined(op, &parts[i], end - i);
	}
	return rc;
}

static enum rest repair_fetch_parts(struct casync_op *op)
{
	unsigned int i;
	int64_t have;

	op->amount_bytes = 0;
	have = repair_join_holes(op);
	for (i = 0; i < op->parts.count; i++) {
		if (have >= 0)
			have = repair_part(op, &op->parts.at[i]);
		if (have < 0) {
			op->status = casync_errors_status(have);
			return NOTHING;
		}
		op->amount_bytes += (size_t)have;
		/* The blocking call stops short only at the end. */
		if ((size_t)have < op->parts.at[i].asked_bytes) {
			op->end_of_file = true;
			return NOTHING;
		}
	}
	return ASK_SIZE;
}

static enum rest repair_fetch(struct casync_op *op)
{
	enum rest rest = repair_fetch_parts(op);
	int rc;

	if (FSAL_IS_ERROR(op->status) || op->amount_bytes == 0)
		return rest;
	rc = repair_check_hole(op);
	if (rc == 0)
		return rest;
	op->status = casync_errors_status(rc);
	return NOTHING;
}

static void repair_run_ask_size(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);

	repair_check_end_of_file(op);
	casync_lane_release_share(casync_inode_lane(op->obj, CASYNC_LANE_LOOK),
				  &op->obj->look);
	casync_op_answer(op);
}

/*
 * End a read on a thread that may not wait.  A thread that may wait asks for
 * the size, if one is free, and closes a temporary fd.
 */
static void repair_end_or_ask_size(struct casync_op *op, enum rest rest)
{
	if (rest == ASK_SIZE) {
		op->work.run = repair_run_ask_size;
		if (casync_lane_try_shared(
			    casync_inode_lane(op->obj, CASYNC_LANE_LOOK),
			    &op->obj->look, &op->work))
			return;
	}
	casync_op_end_unblocked(op);
}

static void repair_run_fetch(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);
	enum rest rest = repair_fetch(op);

	casync_lane_release_share(casync_inode_lane(op->obj, CASYNC_LANE_DATA),
				  &op->obj->data);
	repair_end_or_ask_size(op, rest);
}

void casync_repair(struct casync_op *op)
{
	repair_count(op, CASYNC_C_SHORT_READS);
	casync_op_set_state(op, CASYNC_OP_BLOCKING);
	op->work.run = repair_run_fetch;
	casync_lane_submit_shared(casync_inode_lane(op->obj, CASYNC_LANE_DATA),
				  &op->obj->data, &op->work);
}

static void repair_run_blocking_read(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);

	bool asks = repair_fetch(op) == ASK_SIZE;
	bool ended = op->end_of_file;

	/* The counter may have been another file's: without a size, each READ
	 * of the file would come here. */
	if (asks || (!FSAL_IS_ERROR(op->status) &&
		     casync_file_size_is_truncated(&op->obj->size)))
		repair_check_end_of_file(op);
	op->end_of_file |= ended;
	casync_lane_release_share(casync_inode_lane(op->obj, CASYNC_LANE_LOOK),
				  &op->obj->look);
	casync_op_answer(op);
}

void casync_repair_whole(struct casync_op *op)
{
	/* Its parts have a result of 0: all bytes are missing. */
	repair_count(op, CASYNC_C_BLOCKING_READS);
	casync_op_set_state(op, CASYNC_OP_BLOCKING);
	op->work.run = repair_run_blocking_read;
	casync_lane_submit_shared(casync_inode_lane(op->obj, CASYNC_LANE_LOOK),
				  &op->obj->look, &op->work);
}

/* Workers of Ganesha's that may ask for one file's size.  They are few, because
 * the answer does not need the size. */
#define SIZE_ASKERS 4

/* A worker of Ganesha's that waited for the answer asks for the size itself,
 * unless too many others wait for attributes of the file. */
static void repair_ask_size(struct casync_op *op)
{
	struct casync_call slot;

	if (!casync_call_try(&slot, op->obj,
			     CASYNC_CALL_MOUNT_SLOT | CASYNC_CALL_ATTR_SLOT,
			     SIZE_ASKERS))
		return;
	repair_check_end_of_file(op);
	casync_call_drop(&slot);
}

void casync_repair_end_of_file(struct casync_op *op)
{
	repair_count(op, CASYNC_C_SIZE_CHECKS);
	if (casync_lane_on_completion_thread()) {
		repair_end_or_ask_size(op, ASK_SIZE);
		return;
	}
	repair_ask_size(op);
	casync_op_end_unblocked(op);
}

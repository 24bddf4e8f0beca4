/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READs through the read cache: which are answered from it, and which are not.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_proto_data.h"

#include "cache_rig.h"
#include "obj_ops.h"
#include "clock.h"
#include "read_cache.h"
#include "request.h"
#include "stub_mount.h"

/* As Ganesha's worker has it: the op_ctx is part of the request. */
static struct nfs_request nfs;

/* Buffers that a "Ganesha" has allocated, and what was given back. */
static int buffers_freed;

/* The counters of the store are the process'. */
static struct casync_cache_stats stats_before;

/* The means of READs and revalidations are of so long before. */
static void took_so_far(uint64_t read_ns, uint64_t revalidation_ns)
{
	rig.obj->cached->read_ns = read_ns;
	rig.obj->cached->revalidation_ns = revalidation_ns;
}

static int up(void **state)
{
	int rc = request_up(state);

	memset(&nfs, 0, sizeof(nfs));
	nfs.op_context = rig.request;
	nfs.op_context.req_type = NFS_REQUEST;
	op_ctx = &nfs.op_context;
	buffers_freed = 0;
	fake.version = 100;
	casync_cache_set_budget(64 * MIB);
	stats_before = rig_stats();
	/* The fake's READs are as quick as its revalidations. */
	took_so_far(1000 * CASYNC_NS_PER_S, 0);
	return rc;
}

static int down(void **state)
{
	int rc = request_down(state);

	in_blocking = NULL;
	return rc + rig_end(state);
}

#define READ_CASE(test) TEST_WITH(test, up, down)

/* Slots that were taken, and those in use while a READ is submitted and
 * answered. */
#define NOT_SEEN UINT32_MAX
static unsigned int slots_taken;
static uint32_t inside_submission, inside_answer;

static void free_buffer(void *buffer)
{
	buffers_freed++;
	free(buffer);
}

/* One buffer, of Ganesha's. */
static struct io *nfs_io(uint64_t offset, size_t length)
{
	struct io *io = new_io(offset, length);

	io->iov[0] = (struct iovec){malloc(length), length};
	io->arg.iov_count = 1;
	set_release(&io->arg, free_buffer, io->iov[0].iov_base);
	return io;
}

/* The reply was sent. */
static void free_nfs_io(struct io *io)
{
	release_reply(&io->arg);
	free_io(io);
}

static bool is_ganeshas(const struct io *io)
{
	return has_release(&io->arg, free_buffer);
}

static void check_reply(const struct io *io, size_t amount)
{
	const uint8_t *bytes = io->arg.iov[0].iov_base;
	size_t i;

	check_ok(io, amount);
	assert_int_equal(io->calls, 1);
	assert_in_range(io->arg.iov[0].iov_len, amount, UINT32_MAX);
	for (i = 0; i < amount; i++)
		assert_int_equal(bytes[i], fake_content(io->arg.offset + i));
}

static struct io *run_read(uint64_t offset, size_t length)
{
	struct io *io = nfs_io(offset, length);

	start_read(io);
	assert_true(rig_wait(&io->came));
	return io;
}

/* READs that libcephfs was asked for, either way. */
static unsigned int asked_to_read(void)
{
	return fake_call_count() + fake_blocking_count(FAKE_READ);
}

/* Read, and see what came.  Returns whether libcephfs was asked for it. */
static bool fetches(uint64_t offset, size_t length, size_t amount)
{
	unsigned int before = asked_to_read();
	struct io *io = run_read(offset, length);

	check_reply(io, amount);
	free_nfs_io(io);
	return asked_to_read() != before;
}

static bool fetches_page(void)
{
	return fetches(0, PAGE, PAGE);
}

static bool something_was_put(void)
{
	return rig_stats().counts.puts != stats_before.counts.puts;
}

static void check_bypasses(uint64_t foreign, uint64_t costly)
{
	const struct casync_cache_stats now = rig_stats();
	const uint64_t *since = stats_before.counts.bypasses;

	assert_int_equal(now.counts.bypasses[CASYNC_CACHE_BYPASS_FOREIGN] -
				 since[CASYNC_CACHE_BYPASS_FOREIGN],
			 foreign);
	assert_int_equal(now.counts.bypasses[CASYNC_CACHE_BYPASS_COSTLY] -
				 since[CASYNC_CACHE_BYPASS_COSTLY],
			 costly);
}

/* One object of 16 pages. */
static void large_object(void)
{
	fake_teardown();
	fake_setup(16 * PAGE, 16 * PAGE);
	fake.version = 100;
	casync_file_size_set(&rig.obj->size, fake.size_bytes);
	rig.obj->object_span = 16 * PAGE;
}

/* The next READ continues no stream. */
static void forget_streams(void)
{
	memset(&rig.obj->cached->ahead, 0, sizeof(rig.obj->cached->ahead));
}

static void fill(void)
{
	assert_true(fetches_page());
	assert_true(something_was_put());
	assert_false(fetches_page());
}

static void write_page(uint64_t offset)
{
	struct io *io = new_io(offset, PAGE);

	start_write(io, true);
	assert_true(rig_wait(&io->came));
	check_ok(io, PAGE);
	free_io(io);
}

static void set_ctime(int64_t seconds_from_now)
{
	clock_gettime(CLOCK_REALTIME, &fake.ctime);
	fake.ctime.tv_sec += seconds_from_now;
}

/* --- Hits */

READ_CASE(hit_asks_only_for_attributes)
{
	unsigned int asked;
	struct io *io;

	assert_true(fetches_page());
	asked = fake_blocking_count(FAKE_GETATTR);
	io = run_read(0, PAGE);
	check_reply(io, PAGE);
	assert_int_equal(fake_call_count(), 1);
	assert_int_equal(fake_blocking_count(FAKE_READ), 0);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), asked + 1);
	assert_true(io->in_caller);
	assert_false(io->arg.end_of_file);
	/* The reply has the cache's memory, and Ganesha's was freed. */
	assert_int_equal(is_ganeshas(io), !HAS_OWN_REPLY);
	assert_int_equal(io->arg.iov_count, 1);
	assert_int_equal(buffers_freed, HAS_OWN_REPLY ? 2 : 0);
	/* It waits for the answer once more. */
	sem_post(&io->came);
	settle(io);
	free_nfs_io(io);
}

/* What a reply holds stays as it is, though the file's pages go. */
READ_CASE(reply_outlives_the_pages)
{
	struct io *io;

	assert_true(fetches_page());
	io = run_read(0, PAGE);
	casync_cache_forget(&rig.obj->cached->file);
	casync_cache_set_budget(0);
	check_reply(io, PAGE);
	free_nfs_io(io);
}

READ_CASE(hit_at_the_end_of_the_file_says_so)
{
	uint64_t last = BUFFER_BYTES - PAGE;
	struct io *io;

	assert_true(fetches(last, PAGE, PAGE));
	io = run_read(last, PAGE);
	check_reply(io, PAGE);
	assert_true(io->arg.end_of_file);
	free_nfs_io(io);
	assert_int_equal(fake_call_count(), 1);
}

READ_CASE(several_buffers_are_copied)
{
	struct io *io;

	assert_true(fetches(0, PAGE, PAGE));
	forget_streams();
	assert_true(fetches(PAGE, PAGE, PAGE));
	io = run_read(100, 2 * PAGE - 200);
	check_reply(io, 2 * PAGE - 200);
	assert_true(is_ganeshas(io));
	free_nfs_io(io);
	assert_int_equal(fake_call_count(), 2);
}

/* krb5p encrypts the reply where it is. */
READ_CASE(secured_reply_is_a_copy)
{
	struct io *io;
	int i;

	nfs.svc.rq_msg.cb_cred.oa_flavor = RPCSEC_GSS;
	for (i = 0; i < 3; i++) {
		io = run_read(0, PAGE);
		check_reply(io, PAGE);
		assert_true(is_ganeshas(io));
		memset(io->arg.iov[0].iov_base, UNTOUCHED, PAGE);
		free_nfs_io(io);
	}
	assert_int_equal(fake_call_count(), 1);
}

READ_CASE(rdma_reply_is_a_copy)
{
	struct io *io;

	assert_true(fetches_page());
	set_rdma(&nfs.op_context);
	io = run_read(0, PAGE);
	check_reply(io, PAGE);
	assert_true(is_ganeshas(io));
	free_nfs_io(io);
	assert_int_equal(fake_call_count(), 1);
}

/* Ganesha sends it again from the same memory, and releases that again. */
READ_CASE(kept_reply_is_a_copy)
{
	struct io *io;
	int by_session;

	assert_true(fetches_page());
	for (by_session = 0; by_session < 2; by_session++) {
		set_kept(&nfs, by_session);
		io = run_read(0, PAGE);
		check_reply(io, PAGE);
		assert_true(is_ganeshas(io));
		free_nfs_io(io);
	}
	assert_int_equal(fake_call_count(), 1);
}

/* 9P's, in three pieces. */
READ_CASE(callers_own_buffers_are_filled)
{
	struct io *io;
	int i;

	nfs.op_context.req_type = _9P_REQUEST;
	for (i = 0; i < 2; i++) {
		io = new_io(0, PAGE);
		start_read(io);
		assert_true(rig_wait(&io->came));
		check_ok(io, PAGE);
		check_bytes_read(io, PAGE);
		free_io(io);
	}
	assert_int_equal(fake_call_count(), 1);
}

/* --- Fills */

READ_CASE(part_of_a_page_fetches_the_page)
{
	struct io *io;

	io = run_read(0, 1000);
	check_reply(io, 1000);
	assert_int_equal(fake.calls[0].length_bytes, PAGE);
	free_nfs_io(io);
	assert_false(fetches(1000, 3000, 3000));
}

READ_CASE(unaligned_read_fetches_its_pages)
{
	struct io *io;

	large_object();
	io = run_read(PAGE - 100, 1000);
	check_reply(io, 1000);
	assert_int_equal(is_ganeshas(io), !HAS_OWN_REPLY);
	free_nfs_io(io);
	assert_int_equal(fake.calls[0].length_bytes, 2 * PAGE);
	assert_false(fetches(0, PAGE, PAGE));
	assert_false(fetches(PAGE, PAGE, PAGE));
}

/* --- Streams */

/* The READ of a page that fetches others with it. */
static void fetches_more(unsigned int call, uint64_t page, uint64_t pages)
{
	struct io *io = run_read(page * PAGE, PAGE);

	check_reply(io, PAGE);
	assert_int_equal(is_ganeshas(io), !HAS_OWN_REPLY);
	free_nfs_io(io);
	assert_int_equal(fake.calls[call].length_bytes, pages * PAGE);
}

/* Pages read ahead since the test began; of these, asked for, or given up. */
static void check_ahead(uint64_t pages, uint64_t used, uint64_t wasted)
{
	const struct casync_cache_counts *before = &stats_before.counts;
	const struct casync_cache_counts now = rig_stats().counts;

	assert_int_equal(now.ahead_bytes - before->ahead_bytes, pages * PAGE);
	assert_int_equal(now.ahead_used_bytes - before->ahead_used_bytes,
			 used * PAGE);
	assert_int_equal(now.ahead_wasted_bytes - before->ahead_wasted_bytes,
			 wasted * PAGE);
}

READ_CASE(stream_fetches_more_than_it_asks_for)
{
	uint64_t at;

	large_object();
	assert_true(fetches(4 * PAGE, PAGE, PAGE));
	/* It has read two pages: up to the end of the 8 pages that this one
	 * is in. */
	fetches_more(1, 5, 3);
	check_ahead(2, 0, 0);
	for (at = 4; at < 8; at++)
		assert_false(fetches(at * PAGE, PAGE, PAGE));
	assert_int_equal(fake_call_count(), 2);
	check_ahead(2, 2, 0);
}

/* The pages after the sixth are in another object, which may not answer. */
READ_CASE(stream_fetches_from_its_own_object_only)
{
	large_object();
	rig.obj->object_span = 6 * PAGE;
	assert_true(fetches(3 * PAGE, PAGE, PAGE));
	fetches_more(1, 4, 2);
	check_ahead(1, 0, 0);
}

READ_CASE(what_nobody_asks_for_is_wasted)
{
	large_object();
	assert_true(fetches(4 * PAGE, PAGE, PAGE));
	fetches_more(1, 5, 3);
	/* Whoever asks a second time uses no more than there is. */
	assert_false(fetches(6 * PAGE, PAGE, PAGE));
	write_page(0);
	check_ahead(2, 1, 1);
}

READ_CASE(backward_stream_fetches_what_comes_before)
{
	uint64_t at;

	large_object();
	assert_true(fetches(7 * PAGE, PAGE, PAGE));
	fetches_more(1, 6, 7);
	for (at = 0; at < 8; at++)
		assert_false(fetches(at * PAGE, PAGE, PAGE));
}

READ_CASE(stream_ends_at_the_end_of_the_file)
{
	struct io *io;

	large_object();
	fake.size_bytes = 2 * PAGE + 100;
	casync_file_size_set(&rig.obj->size, fake.size_bytes);
	assert_true(fetches(0, PAGE, PAGE));
	io = run_read(PAGE, PAGE);
	check_reply(io, PAGE);
	assert_false(io->arg.end_of_file);
	free_nfs_io(io);
	assert_int_equal(fake.calls[1].length_bytes, PAGE + 100);
	io = run_read(2 * PAGE, PAGE);
	check_reply(io, 100);
	assert_true(io->arg.end_of_file);
	free_nfs_io(io);
	assert_int_equal(fake_call_count(), 2);
}

READ_CASE(full_export_reads_nothing_ahead)
{
	casync_inflight_limit(&rig.exp.inflight, 64, 4 * PAGE);
	assert_true(fetches(0, PAGE, PAGE));
	assert_true(fetches(PAGE, PAGE, PAGE));
	assert_int_equal(fake.calls[1].length_bytes, PAGE);
	assert_int_equal(rig.exp.inflight.bytes, 0);
}

/* Shorter than the revalidation said, before what was asked for. */
READ_CASE(file_that_ends_before_the_request)
{
	struct io *io;

	large_object();
	assert_true(fetches(4 * PAGE, PAGE, PAGE));
	fake.plan.result = 2 * PAGE;
	fake.size_bytes = 2 * PAGE;
	rig.obj->cached->revalidation_ns = 0;
	io = nfs_io(5 * PAGE, PAGE);
	start_read(io);
	assert_true(rig_wait(&io->came));
	check_ok(io, 0);
	free_nfs_io(io);
}

READ_CASE(short_last_page_is_kept)
{
	struct io *io;
	int i;

	fake.size_bytes = PAGE + 1234;
	casync_file_size_set(&rig.obj->size, fake.size_bytes);
	for (i = 0; i < 2; i++) {
		io = run_read(PAGE, PAGE);
		check_reply(io, 1234);
		assert_true(io->arg.end_of_file);
		free_nfs_io(io);
	}
	assert_int_equal(fake_call_count(), 1);
}

/* A page beyond what was asked for does not make it the end. */
READ_CASE(start_of_the_last_page_is_not_the_end)
{
	struct io *io;

	fake.size_bytes = 1234;
	casync_file_size_set(&rig.obj->size, fake.size_bytes);
	io = run_read(0, 1000);
	check_reply(io, 1000);
	assert_false(io->arg.end_of_file);
	free_nfs_io(io);
}

READ_CASE(hole_is_repaired_and_kept)
{
	fake_punch(0);
	assert_true(fetches_page());
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	assert_false(fetches_page());
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
}

READ_CASE(failed_read_is_not_kept)
{
	struct io *io;

	fake_special(0, (struct fake_plan){.result = -EIO});
	io = run_read(0, PAGE);
	check_error(io, ERR_FSAL_IO);
	assert_true(is_ganeshas(io));
	free_nfs_io(io);
	assert_false(something_was_put());
	assert_true(fetches_page());
}

READ_CASE(shorter_than_the_revalidation_said_is_not_kept)
{
	struct io *io;

	fake_special(0, (struct fake_plan){.when = FAKE_LATER,
					   .result = FAKE_TRUE_RESULT});
	io = nfs_io(0, PAGE);
	start_read(io);
	fake.size_bytes = 1000;
	fake_complete(0);
	assert_true(rig_wait(&io->came));
	check_reply(io, 1000);
	free_nfs_io(io);
	assert_false(something_was_put());
}

READ_CASE(no_budget_is_a_read_as_ever)
{
	struct io *io;

	casync_cache_set_budget(0);
	io = run_read(0, PAGE);
	check_reply(io, PAGE);
	assert_true(is_ganeshas(io));
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
	free_nfs_io(io);
	assert_true(fetches_page());
}

READ_CASE(no_room_for_a_buffer_is_a_read_as_ever)
{
	struct io *io;

	casync_cache_set_budget(PAGE);
	io = run_read(0, PAGE);
	check_reply(io, PAGE);
	assert_true(is_ganeshas(io));
	free_nfs_io(io);
}

READ_CASE(snapshots_are_not_cached)
{
	rig.obj->id.snapid = 5;
	assert_true(fetches_page());
	assert_true(fetches_page());
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
}

/* --- Changes */

READ_CASE(own_write_drops_the_pages)
{
	fill();
	write_page(0);
	assert_true(fetches_page());
}

/* The attributes say nothing of it yet. */
READ_CASE(own_write_under_way_keeps_reads_out)
{
	struct io *io = new_io(0, PAGE);

	fill();
	fake_special(1, (struct fake_plan){.when = FAKE_LATER,
					   .result = FAKE_TRUE_RESULT});
	start_write(io, true);
	assert_true(fetches_page());
	assert_true(fetches_page());
	fake_complete(1);
	assert_true(rig_wait(&io->came));
	assert_true(fetches_page());
	assert_false(fetches_page());
	free_io(io);
}

READ_CASE(failed_write_drops_the_pages)
{
	struct io *io = new_io(0, PAGE);

	fill();
	fake_special(1, (struct fake_plan){.result = -EIO});
	start_write(io, true);
	assert_true(rig_wait(&io->came));
	check_error(io, ERR_FSAL_IO);
	free_io(io);
	assert_true(fetches_page());
	/* And the file is cached again: its write has ended. */
	assert_false(fetches_page());
}

READ_CASE(read_begun_before_a_write_is_not_kept)
{
	struct io *io = nfs_io(0, PAGE);

	fake_special(0, (struct fake_plan){.when = FAKE_LATER,
					   .result = FAKE_TRUE_RESULT});
	start_read(io);
	write_page(PAGE);
	fake_complete(0);
	assert_true(rig_wait(&io->came));
	check_reply(io, PAGE);
	free_nfs_io(io);
	assert_false(something_was_put());
}

READ_CASE(foreign_change_drops_the_pages_and_bypasses)
{
	unsigned int asked;

	fill();
	fake.version++;
	assert_true(fetches_page());
	asked = fake_blocking_count(FAKE_GETATTR);
	assert_true(fetches_page());
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), asked);
	/* When the time is over, it is cached again. */
	rig.obj->cached->bypass_until_ns = 0;
	assert_true(fetches_page());
	assert_false(fetches_page());
	/* One, however many READs did without. */
	check_bypasses(1, 0);
}

READ_CASE(foreign_times_and_size_count)
{
	fill();
	fake.mtime.tv_nsec++;
	assert_true(fetches_page());
	rig.obj->cached->bypass_until_ns = 0;
	assert_true(fetches_page());
	fake.ctime.tv_nsec++;
	assert_true(fetches_page());
	rig.obj->cached->bypass_until_ns = 0;
	assert_true(fetches_page());
	fake.size_bytes--;
	assert_true(fetches_page());
}

READ_CASE(young_file_is_not_cached)
{
	set_ctime(-1);
	assert_true(fetches_page());
	assert_true(fetches_page());
	/* The MDS is left alone until it is old enough. */
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 1);
	assert_in_range(rig.obj->cached->bypass_until_ns, casync_clock_ns(),
			casync_clock_ns() + CASYNC_NS_PER_S);
	rig.obj->cached->bypass_until_ns = 0;
	check_bypasses(0, 0);
	set_ctime(-5);
	assert_true(fetches_page());
	assert_false(fetches_page());
}

READ_CASE(future_file_is_not_cached)
{
	set_ctime(3600);
	assert_true(fetches_page());
	assert_true(fetches_page());
	assert_in_range(rig.obj->cached->bypass_until_ns, casync_clock_ns(),
			casync_clock_ns() +
				CASYNC_CACHE_SETTLE_MS * CASYNC_NS_PER_MS);
	rig.obj->cached->bypass_until_ns = 0;
	assert_true(fetches_page());
	assert_false(something_was_put());
}

static void be_slow(enum fake_blocking which)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	if (which == FAKE_GETATTR)
		nanosleep(&pause, NULL);
}

/* One says little; what it says is true. */
READ_CASE(costly_revalidations_bypass)
{
	unsigned int asked;
	int many = 0;

	fill();
	took_so_far(CASYNC_NS_PER_MS, 0);
	in_blocking = be_slow;
	while (!fetches_page() && many < 100)
		many++;
	in_blocking = NULL;
	assert_in_range(many, 5, 6);
	asked = fake_blocking_count(FAKE_GETATTR);
	assert_true(fetches_page());
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), asked);
	assert_in_range(rig.obj->cached->bypass_until_ns, casync_clock_ns(),
			casync_clock_ns() + CASYNC_CACHE_COSTLY_BYPASS_MS *
						    CASYNC_NS_PER_MS);
	rig.obj->cached->bypass_until_ns = 0;
	assert_false(fetches_page());
	check_bypasses(0, 1);
}

/* What a READ takes is without its revalidation. */
READ_CASE(costly_revalidations_of_misses_bypass)
{
	int many = 0;

	took_so_far(CASYNC_NS_PER_MS, 0);
	in_blocking = be_slow;
	for (; rig.obj->cached->bypass_until_ns == 0 && many < 16; many++) {
		casync_cache_forget(&rig.obj->cached->file);
		forget_streams();
		assert_true(fetches_page());
	}
	in_blocking = NULL;
	check_bypasses(0, 1);
}

READ_CASE(revalidation_of_a_slow_machine_is_used)
{
	int i;

	fill();
	took_so_far(1000 * CASYNC_NS_PER_MS, 0);
	in_blocking = be_slow;
	for (i = 0; i < 20; i++)
		assert_false(fetches_page());
}

READ_CASE(time_of_a_read_is_learned)
{
	took_so_far(800, 0);
	fill();
	assert_true(rig.obj->cached->read_ns > 700);
	took_so_far(80000, 0);
	assert_false(fetches_page());
	assert_int_equal(rig.obj->cached->read_ns, 80000);
}

READ_CASE(failed_revalidation_is_a_read_as_ever)
{
	fill();
	fake.blocking_result[FAKE_GETATTR] = -EIO;
	assert_true(fetches_page());
	fake.blocking_result[FAKE_GETATTR] = 0;
	assert_false(fetches_page());
}

READ_CASE(lost_session_answers_nothing_from_the_cache)
{
	unsigned int asked;

	fill();
	stub_mount_set_phase(CASYNC_GUARD_LOST);
	asked = fake_blocking_count(FAKE_GETATTR);
	assert_true(fetches_page());
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), asked);
}

READ_CASE(pages_of_another_client_are_dropped)
{
	fill();
	stub_mount.guard.generation++;
	/* The object is of the new client already, and its fd. */
	rig.obj->generation++;
	rig.obj->read_fd.generation++;
	rig.state.fd.generation++;
	assert_true(fetches_page());
}

/* --- the slot of a READ */

bool __real_casync_budget_enter(struct casync_budget_slot *slot,
				enum casync_budget_who who, bool answered);
bool __wrap_casync_budget_enter(struct casync_budget_slot *slot,
				enum casync_budget_who who, bool answered);
bool __wrap_casync_budget_enter(struct casync_budget_slot *slot,
				enum casync_budget_who who, bool answered)
{
	slots_taken++;
	return __real_casync_budget_enter(slot, who, answered);
}

static uint32_t slots_inside(void)
{
	return __atomic_load_n(&stub_mount.callers.room.inside,
			       __ATOMIC_ACQUIRE);
}

static void note_submission(void)
{
	inside_submission = slots_inside();
}

static void note_answer(void)
{
	inside_answer = slots_inside();
}

/* From the revalidation to the end of the submission, and not in the answer. */
static void check_slots(uint32_t in_submission)
{
	struct io *io = nfs_io(0, PAGE);

	slots_taken = 0;
	inside_submission = inside_answer = NOT_SEEN;
	fake.submission = note_submission;
	io->in_done = note_answer;
	start_read(io);
	assert_true(rig_wait(&io->came));
	check_reply(io, PAGE);
	free_nfs_io(io);
	assert_int_equal(slots_taken, 1);
	assert_int_equal(inside_submission, in_submission);
	assert_int_equal(inside_answer, 0);
	assert_int_equal(slots_inside(), 0);
}

READ_CASE(read_takes_one_slot)
{
	/* It fills the cache. */
	check_slots(1);
	/* A hit. */
	check_slots(NOT_SEEN);
	/* Past the cache. */
	casync_cache_set_budget(0);
	check_slots(1);
}

static void *read_on_a_worker(void *io)
{
	op_ctx = &nfs.op_context;
	start_read(io);
	return NULL;
}

/* Another thread submits it, and no worker is kept.  That thread may answer it
 * as soon as it waits, and its file may be freed then: so the slot is left
 * before. */
READ_CASE(read_that_waits_for_others_keeps_no_slot)
{
	struct casync_lane *lane = &stub_mount.lanes[CASYNC_LANE_SUBMIT];
	struct casync_lane_share *reads = &rig.obj->reads;
	struct io *io = nfs_io(0, PAGE);
	unsigned int asked = fake_blocking_count(FAKE_GETATTR);
	pthread_t worker;
	unsigned int i;

	for (i = 0; i < CASYNC_LANE_SHARE; i++)
		assert_true(casync_lane_enter_share(reads));
	slots_taken = 0;
	pthread_mutex_lock(&lane->lock);
	assert_int_equal(pthread_create(&worker, NULL, read_on_a_worker, io),
			 0);
	RIG_UNTIL(fake_blocking_count(FAKE_GETATTR) == asked + 1 &&
		  slots_inside() == 0);
	assert_int_equal(reads->users, CASYNC_LANE_SHARE);
	pthread_mutex_unlock(&lane->lock);
	RIG_JOIN(worker, NULL);
	assert_int_equal(slots_taken, 1);
	assert_int_equal(reads->users, CASYNC_LANE_SHARE + 1);
	for (i = 0; i < CASYNC_LANE_SHARE; i++)
		casync_lane_release_share(lane, reads);
	assert_true(rig_wait(&io->came));
	check_reply(io, PAGE);
	free_nfs_io(io);
}

READ_CASE(full_limits_are_a_read_as_ever)
{
	unsigned int asked;

	fill();
	asked = fake_blocking_count(FAKE_GETATTR);
	rig.obj->getattr[0].inside = CASYNC_CACHE_REVALIDATIONS;
	assert_true(fetches_page());
	rig.obj->getattr[0].inside = 0;
	stub_mount.callers.room.inside = 75;
	assert_true(fetches_page());
	stub_mount.callers.room.inside = 0;
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), asked);
	/* The file's limit was left when the mount's was full. */
	assert_int_equal(rig.obj->getattr[0].inside, 0);
	assert_false(fetches_page());
	assert_int_equal(rig_stats().counts.no_revalidation -
				 stats_before.counts.no_revalidation,
			 2);
}

/* The gateway's clock is set by so many seconds, after so many more. */
static uint64_t wall_ns, steady_ns;

static uint64_t now_after(int64_t step_s, uint64_t pause_s)
{
	wall_ns +=
		(uint64_t)step_s * CASYNC_NS_PER_S + pause_s * CASYNC_NS_PER_S;
	steady_ns += pause_s * CASYNC_NS_PER_S;
	return casync_read_cache_now_ns(wall_ns, steady_ns);
}

READ_CASE(clock_that_is_set_is_not_believed_at_once)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	wall_ns = casync_clock_timespec_ns(&now);
	steady_ns = casync_clock_ns();
	assert_true(now_after(0, 1) == wall_ns);
	/* To the front, and back again. */
	assert_true(now_after(60, 1) == wall_ns - 60 * CASYNC_NS_PER_S);
	assert_true(now_after(0, 10) == wall_ns - 60 * CASYNC_NS_PER_S);
	assert_true(now_after(-60, 1) == wall_ns);
	assert_true(now_after(0, 300) == wall_ns);
	/* The doubt begins with each step. */
	assert_true(now_after(60, 100) == wall_ns - 60 * CASYNC_NS_PER_S);
	assert_true(now_after(0, 100) == wall_ns - 60 * CASYNC_NS_PER_S);
	assert_true(now_after(0, 21) == wall_ns);
	assert_true(now_after(0, 1) == wall_ns);
	/* To the back: more versions look young.  Back to the front is a step
	 * again. */
	assert_true(now_after(-60, 1) == wall_ns);
	assert_true(now_after(60, 1) == wall_ns - 60 * CASYNC_NS_PER_S);
	/* A thread that has read the clocks just before the one that saw the
	 * step. */
	assert_true(casync_read_cache_now_ns(wall_ns - 1, steady_ns - 1) ==
		    wall_ns - 1 - 60 * CASYNC_NS_PER_S);
	assert_true(now_after(0, 121) == wall_ns);
}

READ_CASE(young_file_stays_young_when_the_clock_is_set)
{
	struct timespec now;

	/* Until now it was a minute behind. */
	clock_gettime(CLOCK_REALTIME, &now);
	wall_ns = casync_clock_timespec_ns(&now) - 60 * CASYNC_NS_PER_S;
	steady_ns = casync_clock_ns();
	assert_true(now_after(0, 0) == wall_ns);
	set_ctime(-30);
	assert_true(fetches_page());
	assert_true(fetches_page());
	/* Two minutes later the clock is believed. */
	(void)now_after(60, 0);
	assert_true(now_after(0, 121) == wall_ns);
	rig.obj->cached->bypass_until_ns = 0;
	check_bypasses(0, 0);
	assert_true(fetches_page());
	assert_false(fetches_page());
}

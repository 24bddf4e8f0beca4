/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What a flush means for the writes of its file: it waits for those before it,
 * holds those that come meanwhile, and a new file's for as long as it takes;
 * and what overlaps reaches libcephfs in the order it came.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "obj_ops.h"
#include "request.h"
#include "watchdog.h"

static sem_t begun, let_through, flushed;
static int flush_rc;

/* A flush stops in libcephfs until it is let through. */
static void stop_flush(enum fake_blocking which)
{
	if (which != FAKE_SYNC_INODE)
		return;
	sem_post(&begun);
	(void)rig_wait(&let_through);
}

static int up(void **state)
{
	int rc = request_up(state);

	sem_init(&begun, 0, 0);
	sem_init(&let_through, 0, 0);
	sem_init(&flushed, 0, 0);
	in_blocking = stop_flush;
	fake.plan.when = FAKE_LATER;
	return rc;
}

static int down(void **state)
{
	int rc = request_down(state);

	sem_destroy(&begun);
	sem_destroy(&let_through);
	sem_destroy(&flushed);
	return rc;
}

#define HOLD_CASE(test) TEST_WITH(test, up, down)

static void done(struct casync_flush_waiter *waiter, int rc)
{
	(void)waiter;
	flush_rc = rc;
	sem_post(&flushed);
}

static struct casync_flush_waiter waiter = {.done = done};

static void flush(void)
{
	casync_flush_request(rig.obj, &waiter);
}

static struct io *write_at(uint64_t offset)
{
	struct io *io = new_io(offset, 100);

	start_write(io, true);
	return io;
}

static void pause_ms(unsigned int ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000,
				       .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

/* So many calls, and after a while no more. */
static void check_calls(unsigned int count)
{
	(void)RIG_COMES(fake_call_count() >= count);
	pause_ms(20);
	assert_int_equal(fake_call_count(), count);
}

static void answer(struct io *io, unsigned int call)
{
	fake_complete(call);
	assert_true(rig_wait(&io->came));
	sem_post(&io->came);
}

static void end_flush(void)
{
	sem_post(&let_through);
	assert_true(rig_wait(&flushed));
}

/* --- */

HOLD_CASE(flush_waits_for_the_writes_before_it)
{
	struct io *io = write_at(0);

	flush();
	pause_ms(20);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	answer(io, 0);
	end_flush();
	assert_int_equal(flush_rc, 0);
	settle(io);
	free_io(io);
}

HOLD_CASE(writes_that_come_meanwhile_do_not_hold_it_up)
{
	struct io *before = write_at(0);
	struct io *later;

	flush();
	later = write_at(OBJ);
	answer(before, 0);
	assert_true(rig_wait(&begun));
	check_calls(1);
	end_flush();
	check_calls(2);
	answer(later, 1);
	settle(later);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	free_io(before);
	free_io(later);
}

HOLD_CASE(reads_are_none_of_its_business)
{
	struct io *before = write_at(0);
	struct io *read = new_io(OBJ, 100);

	flush();
	start_read(read);
	check_calls(2);
	answer(read, 1);
	answer(before, 0);
	end_flush();
	settle(read);
	free_io(before);
	free_io(read);
}

/* Its MDS is away: the file's writers are not to suffer for as long. */
HOLD_CASE(flush_that_takes_long_lets_writes_go)
{
	struct io *io;

	flush();
	assert_true(rig_wait(&begun));
	io = write_at(0);
	check_calls(0);
	pause_ms(CASYNC_QUEUE_HOLD_MS + 300);
	check_calls(1);
	answer(io, 0);
	end_flush();
	settle(io);
	free_io(io);
}

/* Flush after flush, and each write gets its turn in between. */
HOLD_CASE(flushes_in_a_row_starve_no_write)
{
	static struct casync_flush_waiter next = {.done = done};
	struct io *io;

	flush();
	assert_true(rig_wait(&begun));
	io = write_at(0);
	casync_flush_request(rig.obj, &next);
	check_calls(0);
	end_flush();
	/* The second one waits for the write. */
	check_calls(1);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	answer(io, 0);
	end_flush();
	settle(io);
	free_io(io);
}

static void *set_attributes(void *unused)
{
	op_ctx = &rig.request;
	flush_rc = casync_flush_wait(rig.obj);
	sem_post(&flushed);
	return NULL;
}

/* SETATTR and COMMIT wait in their own worker. */
HOLD_CASE(who_waits_waits_for_the_writes_too)
{
	struct io *io = write_at(0);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, set_attributes, NULL),
			 0);
	pause_ms(20);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	answer(io, 0);
	end_flush();
	RIG_JOIN(thread, NULL);
	assert_int_equal(flush_rc, 0);
	settle(io);
	free_io(io);
}

/* --- a new file's first data */

HOLD_CASE(first_writes_wait_in_order_for_one_flush)
{
	struct io *older, *younger;

	casync_queue_mark_new(&rig.obj->queue);
	older = write_at(0);
	assert_true(rig_wait(&begun));
	younger = write_at(50);
	/* Longer than others are held. */
	pause_ms(CASYNC_QUEUE_HOLD_MS + 300);
	check_calls(0);
	sem_post(&let_through);
	check_calls(2);
	assert_int_equal(fake.calls[0].asked.off, 0);
	assert_int_equal(fake.calls[1].asked.off, 50);
	answer(older, 0);
	answer(younger, 1);
	settle(younger);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	free_io(older);
	free_io(younger);
}

/* One that began for somebody else does as well: it began after the create. */
HOLD_CASE(first_write_joins_a_flush_under_way)
{
	struct io *io;

	casync_queue_mark_new(&rig.obj->queue);
	flush();
	assert_true(rig_wait(&begun));
	io = write_at(0);
	check_calls(0);
	end_flush();
	check_calls(1);
	answer(io, 0);
	settle(io);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	free_io(io);
}

HOLD_CASE(failed_first_flush_fails_the_writes)
{
	struct io *first, *second, *third;

	casync_queue_mark_new(&rig.obj->queue);
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	first = write_at(0);
	second = write_at(50);
	assert_true(rig_wait(&begun));
	sem_post(&let_through);
	assert_true(rig_wait(&first->came));
	assert_true(rig_wait(&second->came));
	check_error(first, ERR_FSAL_IO);
	check_error(second, ERR_FSAL_IO);
	check_calls(0);
	/* The next one tries again. */
	fake.blocking_result[FAKE_SYNC_INODE] = 0;
	sem_post(&let_through);
	third = write_at(0);
	check_calls(1);
	answer(third, 0);
	settle(third);
	free_io(first);
	free_io(second);
	free_io(third);
}

#define WRITERS 8
#define NEW_FILES 300

static struct io *first_ios[WRITERS];
static pthread_barrier_t together;

static void *write_first(void *arg)
{
	struct io **io = arg;

	op_ctx = &rig.request;
	pthread_barrier_wait(&together);
	start_write(*io, true);
	return NULL;
}

/* The first writes of a new file come at once; none is left behind. */
HOLD_CASE(many_first_writes_at_once_are_all_answered)
{
	pthread_t threads[WRITERS];
	unsigned int i, file;

	in_blocking = NULL;
	fake.plan.when = FAKE_BEFORE_RETURN;
	pthread_barrier_init(&together, NULL, WRITERS);
	for (file = 0; file < NEW_FILES; file++) {
		casync_queue_mark_new(&rig.obj->queue);
		for (i = 0; i < WRITERS; i++) {
			first_ios[i] = new_io(i * 200, 100);
			assert_int_equal(pthread_create(&threads[i], NULL,
							write_first,
							&first_ios[i]),
					 0);
		}
		for (i = 0; i < WRITERS; i++) {
			RIG_JOIN(threads[i], NULL);
			assert_true(rig_wait(&first_ios[i]->came));
			check_ok(first_ios[i], 100);
		}
		fake_forget_calls();
		for (i = file == NEW_FILES - 1; i < WRITERS; i++)
			free_io(first_ios[i]);
	}
	sem_post(&first_ios[0]->came);
	settle(first_ios[0]);
	free_io(first_ios[0]);
	pthread_barrier_destroy(&together);
}

/* --- order */

static sem_t in_submission, submit;
static int submissions; /* atomic */

/* The first one stops where libcephfs would wait for capabilities. */
static void stop_first(void)
{
	if (__atomic_add_fetch(&submissions, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	sem_post(&in_submission);
	(void)rig_wait(&submit);
}

static void *write_older(void *io)
{
	op_ctx = &rig.request;
	start_write(io, true);
	return NULL;
}

HOLD_CASE(younger_write_waits_for_one_that_is_being_submitted)
{
	struct io *older = new_io(0, 100);
	struct io *younger, *apart;
	pthread_t thread;

	sem_init(&in_submission, 0, 0);
	sem_init(&submit, 0, 0);
	submissions = 0;
	fake.submission = stop_first;
	assert_int_equal(pthread_create(&thread, NULL, write_older, older), 0);
	assert_true(rig_wait(&in_submission));
	younger = write_at(50);
	check_calls(0);
	/* There is room for others. */
	apart = write_at(OBJ);
	check_calls(1);
	sem_post(&submit);
	check_calls(3);
	assert_int_equal(fake.calls[1].asked.off, 0);
	assert_int_equal(fake.calls[2].asked.off, 50);
	RIG_JOIN(thread, NULL);
	answer(apart, 0);
	answer(older, 1);
	answer(younger, 2);
	settle(younger);
	free_io(older);
	free_io(younger);
	free_io(apart);
	sem_destroy(&in_submission);
	sem_destroy(&submit);
}

/* --- writes that wait for a place in flight */

HOLD_CASE(writes_in_line_keep_their_order)
{
	struct io *other, *older, *younger;

	casync_inflight_limit(&rig.exp.inflight, 1, 1U << 30);
	other = write_at(OBJ);
	older = write_at(0);
	younger = write_at(50);
	check_calls(1);
	answer(other, 0);
	check_calls(2);
	assert_int_equal(fake.calls[1].asked.off, 0);
	answer(older, 1);
	check_calls(3);
	assert_int_equal(fake.calls[2].asked.off, 50);
	answer(younger, 2);
	settle(younger);
	check_ok(older, 100);
	check_ok(younger, 100);
	free_io(other);
	free_io(older);
	free_io(younger);
}

HOLD_CASE(write_that_gets_no_place_is_told_to_come_again)
{
	struct io *other, *refused, *read;
	struct casync_watched *watched;

	watched = rig_watch();
	rig.exp.keys.tuning.slow_op_warn = 0;
	casync_inflight_limit(&rig.exp.inflight, 1, 1U << 30);
	other = write_at(OBJ);
	refused = write_at(0);
	read = new_io(0, 100);
	start_read(read);
	pause_ms(CASYNC_MAX_WAIT_MS + 500);
	assert_true(rig_wait(&refused->came));
	assert_true(rig_wait(&read->came));
	check_error(refused, ERR_FSAL_DELAY);
	check_error(read, ERR_FSAL_DELAY);
	check_calls(1);
	answer(other, 0);
	settle(other);
	casync_watchdog_remove(watched);
	free_io(other);
	free_io(refused);
	free_io(read);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Attributes that are not waited for until they are journaled
 * (Stable_Metadata = mds). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fake_names.h"
#include "flush.h"
#include "rig.h"
#include "rig_lanes.h"

/* What libcephfs was asked, in one letter each. */
static char calls[256];

static struct casync_flush_waiter waiter;
static int answers; /* atomic */
static enum fake_blocking joins_in;
static bool joins;
static bool writes;
static bool tries;

static void note(char call)
{
	size_t length = strlen(calls);

	assert_true(length < sizeof(calls) - 1);
	calls[length] = call;
}

static void answered(struct casync_flush_waiter *unused, int rc)
{
	assert_int_equal(rc, 0);
	__atomic_add_fetch(&answers, 1, __ATOMIC_ACQ_REL);
}

static void hook(enum fake_blocking which)
{
	if (which == FAKE_OPEN)
		note('o');
	if (which == FAKE_SYNC_INODE)
		note('f');
	if (which == FAKE_SYNC_INODE && tries)
		assert_int_equal(casync_flush_try_send(rig.obj), -EAGAIN);
	if (which != joins_in)
		return;
	if (joins) {
		joins = false;
		casync_flush_request(rig.obj, &waiter);
	}
	if (writes) {
		writes = false;
		assert_true(casync_flush_before_data(rig.obj));
	}
}

static int answer_to_question;

int ceph_ll_getxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, void *value, size_t size,
		     const UserPerm *perms)
{
	(void)cmount;
	(void)value;
	(void)perms;
	assert_ptr_equal(in, rig.obj->inode);
	/* Libcephfs looks at the name alone whether to ask the MDS. */
	assert_string_equal(name, "ceph.caps");
	assert_true(size >= 64);
	note('q');
	return answer_to_question < 0 ? answer_to_question : 7;
}

static void names_hook(const char *call, const struct Inode *in)
{
	assert_string_equal(call, "setattr");
	assert_int_equal(fake_names.set_mask, 0);
	note('c');
}

static int up(void **state)
{
	rig_up(state);
	fake_names_setup();
	memset(calls, 0, sizeof(calls));
	waiter = (struct casync_flush_waiter){.done = answered};
	answers = 0;
	joins = false;
	writes = false;
	tries = false;
	answer_to_question = 0;
	joins_in = FAKE_OPEN;
	fake.hook = hook;
	fake_names.hook = names_hook;
	rig.obj->handle.type = REGULAR_FILE;
	return rig_lanes_up();
}

static int down(void **state)
{
	rig_lanes_down();
	return rig_down(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static void send_times(unsigned int times)
{
	while (times-- > 0)
		assert_int_equal(casync_flush_tell_mds(rig.obj), 0);
}

CASE(opens_and_does_not_flush)
{
	int open = fake.open_fhs;

	send_times(3);
	assert_string_equal(calls, "oqoqoq");
	assert_int_equal(fake.last_open_flags, O_RDONLY | O_DIRECTORY);
	assert_int_equal(fake.open_fhs, open);
}

/* It would take along what the flush is to wait for. */
CASE(nothing_is_sent_during_a_flush)
{
	tries = true;
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_string_equal(calls, "f");
}

/* What a RENAME has taken along is waited for by the next flush. */
CASE(the_next_flush_covers_what_was_tried)
{
	assert_int_equal(casync_flush_try_send(rig.obj), 0);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_string_equal(calls, "ocf");
}

/* An Inode that is kept can never be forgotten, nor its file's space freed. */
CASE(reference_of_the_open_is_dropped)
{
	int refs = fake.inode_refs;

	send_times(3);
	assert_int_equal(fake.inode_refs, refs);
}

CASE(another_libcephfs_is_not_trusted)
{
	fake.patch = 3;
	send_times(2);
	fake.patch = 5;
	send_times(1);
	assert_string_equal(calls, "fff");
}

CASE(delegated_file_is_flushed)
{
	rig.obj->delegations.count = 1;
	send_times(1);
	rig.obj->delegations.count = 0;
	assert_string_equal(calls, "f");
}

CASE(flushes_if_libcephfs_had_to_ask_the_mds)
{
	fake.blocking_result[FAKE_OPEN] = -ENOTDIR;
	send_times(1);
	assert_string_equal(calls, "of");
}

CASE(error_of_that_flush_is_the_answer)
{
	fake.blocking_result[FAKE_OPEN] = -ENOTDIR;
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	assert_int_equal(casync_flush_tell_mds(rig.obj), -EIO);
}

CASE(directory_is_flushed)
{
	rig.obj->handle.type = DIRECTORY;
	send_times(1);
	assert_string_equal(calls, "f");
}

/* The first after the bound waits for all before it, and they are forgotten. */
CASE(so_many_are_sent_and_no_more)
{
	char expected[sizeof(calls)] = "";
	unsigned int sent;

	for (sent = 0; sent < 2 * CASYNC_QUEUE_SENT_MAX; sent++)
		expected[sent] = "oq"[sent % 2];
	memcpy(expected + sent, "cfoq", 5);
	send_times(CASYNC_QUEUE_SENT_MAX + 2);
	assert_string_equal(calls, expected);
}

/* libcephfs would find nothing to send, and wait for nothing. */
CASE(flush_covers_what_was_sent)
{
	send_times(2);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_string_equal(calls, "oqoqcff");
}

CASE(failed_flush_covers_nothing)
{
	send_times(1);
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	assert_int_equal(casync_flush_wait(rig.obj), -EIO);
	fake.blocking_result[FAKE_SYNC_INODE] = 0;
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_string_equal(calls, "oqcfcf");
}

/* libcephfs would wait for nothing, so nobody may hear that it is journaled. */
CASE(ctime_that_cannot_be_set_is_an_error)
{
	send_times(1);
	fake_names.result = -EACCES;
	assert_int_equal(casync_flush_wait(rig.obj), -EACCES);
	fake_names.result = 0;
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_string_equal(calls, "oqccf");
}

/* A flush that is asked for meanwhile comes after, or each could take the
 * other's changes along. */
CASE(flush_waits_for_its_turn)
{
	joins = true;
	assert_int_equal(casync_flush_try_send(rig.obj), 0);
	RIG_UNTIL(NOW(answers) >= 1);
	rig_lanes_down();
	assert_string_equal(calls, "ocf");
}

static void *send_on_a_thread(void *unused)
{
	return casync_flush_tell_mds(rig.obj) == 0 ? NULL : rig.obj;
}

static bool somebody_waits(void)
{
	bool waits;

	pthread_mutex_lock(&rig.obj->queue.lock);
	waits = !glist_empty(&rig.obj->queue.waiters);
	pthread_mutex_unlock(&rig.obj->queue.lock);
	return waits;
}

CASE(send_beside_a_flush_joins_the_next)
{
	pthread_t sender;
	void *failed;

	rig_hold(FAKE_SYNC_INODE);
	casync_flush_request(rig.obj, &waiter);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	assert_int_equal(pthread_create(&sender, NULL, send_on_a_thread, NULL),
			 0);
	RIG_UNTIL(somebody_waits());
	sem_post(&rig_held.go);
	sem_post(&rig_held.go);
	RIG_JOIN(sender, &failed);
	assert_null(failed);
	RIG_UNTIL(NOW(answers) >= 1);
	rig_lanes_down();
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 0);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	sem_destroy(&rig_held.go);
}

/* What was dirty is dropped then, and libcephfs' flush succeeds. */
CASE(flush_of_a_lost_session_is_none)
{
	fake.blocking_result[FAKE_GETATTR] = -ESHUTDOWN;
	assert_int_equal(casync_flush_wait(rig.obj), -ESHUTDOWN);
	fake.blocking_result[FAKE_GETATTR] = -EPERM;
	assert_int_equal(casync_flush_wait(rig.obj), -ENOTCONN);
	/* This one tells nothing of the session. */
	fake.blocking_result[FAKE_GETATTR] = -ENOENT;
	assert_int_equal(casync_flush_wait(rig.obj), 0);
}

/* The first data of a new file need its create in the journal alone. */
CASE(first_data_do_not_wait_for_attributes)
{
	casync_queue_mark_new(&rig.obj->queue);
	writes = true;
	assert_int_equal(casync_flush_try_send(rig.obj), 0);
	rig_lanes_down();
	assert_string_equal(calls, "of");
	assert_false(casync_queue_is_unjournaled(&rig.obj->queue));
	assert_int_equal(rig_lanes_up(), 0);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_string_equal(calls, "ofcf");
}

/* --- the question that follows what was sent */

/* It is journaled then. */
CASE(mds_is_not_asked_about_what_was_flushed)
{
	rig.obj->handle.type = DIRECTORY;
	assert_int_equal(casync_flush_tell_mds(rig.obj), 0);
	assert_string_equal(calls, "f");
}

/* The change may be lost with it, so the client has to send it again. */
CASE(session_that_is_lost_behind_the_change_is_an_error)
{
	answer_to_question = -EPERM;
	assert_int_equal(casync_flush_tell_mds(rig.obj), -ENOTCONN);
	answer_to_question = -ESHUTDOWN;
	assert_int_equal(casync_flush_tell_mds(rig.obj), -ESHUTDOWN);
	/* Removed: nothing of it has to last. */
	answer_to_question = -ENOENT;
	assert_int_equal(casync_flush_tell_mds(rig.obj), 0);
	assert_string_equal(calls, "oqoqoq");
}

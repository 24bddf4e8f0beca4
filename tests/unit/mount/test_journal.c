/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"

#include "clock.h"
#include "errors.h"
#include "journal.h"
#include "rig.h"
#include "stub_mount.h"

#define DIRECTORY_INO 1099511627776U

static struct casync_journal *const journal = &stub_mount.journal;

static int up(void **state)
{
	int rc = rig_up(state);

	return rc != 0 ? rc : casync_lane_start_mount(stub_mount.lanes);
}

static void change(void)
{
	casync_journal_changed(&stub_mount, DIRECTORY_INO, false);
}

/* No change is pending: the thread has taken all. */
static bool is_taken(void)
{
	unsigned int i;

	for (i = 0; i < CASYNC_JOURNAL_DIRECTORIES; i++)
		if (__atomic_load_n(&journal->changed[i], __ATOMIC_SEQ_CST) !=
		    0)
			return false;
	return true;
}

static bool nobody_is_inside(void)
{
	return casync_guard_is_empty(&stub_mount.guard);
}

/* No lane has a thread any more. */
static bool is_over(void)
{
	struct casync_lane *lane;
	bool over = true;
	unsigned int i;

	for (i = 0; i < CASYNC_MOUNT_LANES; i++) {
		lane = &stub_mount.lanes[i];
		if (lane->name == NULL)
			continue;
		pthread_mutex_lock(&lane->lock);
		over = over && lane->alive == 0;
		pthread_mutex_unlock(&lane->lock);
	}
	return over;
}

static bool is_asked(void)
{
	return fake_blocking_count(FAKE_SYNC_INODE) != 0;
}

/* What the job has begun is done when its lane has ended. */
static void end(void)
{
	assert_true(casync_lane_stop_mount(stub_mount.lanes, RIG_TIMEOUT_S));
	assert_int_equal(fake.inode_refs, 0);
}

static int down(void **state)
{
	end();
	return rig_down(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static void check_session(enum casync_session_state expected)
{
	assert_int_equal(casync_session_state(&stub_mount.guard), expected);
}

CASE(nothing_is_asked_without_a_change)
{
	nanosleep(&(struct timespec){.tv_nsec = 2 * CASYNC_JOURNAL_MS *
						CASYNC_NS_PER_MS},
		  NULL);
	end();
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
}

CASE(change_is_asked_for_after_the_pause)
{
	uint64_t began_ns = casync_clock_ns();

	change();
	RIG_UNTIL(is_asked());
	assert_true(casync_clock_ns() - began_ns >=
		    CASYNC_JOURNAL_MS * CASYNC_NS_PER_MS);
	end();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	check_session(CASYNC_SESSION_SERVES);
}

/* Its first data wait for the same. */
CASE(new_file_is_asked_for_at_once)
{
	uint64_t began_ns;
	unsigned int tries;

	/* A machine that is busy for 20 ms proves nothing. */
	for (tries = 0; tries < 50; tries++) {
		began_ns = casync_clock_ns();
		casync_journal_changed(&stub_mount, DIRECTORY_INO, true);
		RIG_UNTIL(is_taken());
		if (casync_clock_ns() - began_ns <
		    CASYNC_JOURNAL_MS * CASYNC_NS_PER_MS)
			break;
	}
	assert_true(tries < 50);
	RIG_UNTIL(is_asked());
	RIG_UNTIL(nobody_is_inside());
}

/* Also while the thread waits for more names of a pause. */
CASE(new_file_ends_the_pause)
{
	uint64_t began_ns;
	unsigned int tries;

	for (tries = 0; tries < 50; tries++) {
		change();
		began_ns = casync_clock_ns();
		casync_journal_changed(&stub_mount, DIRECTORY_INO, true);
		RIG_UNTIL(is_taken());
		if (casync_clock_ns() - began_ns <
		    CASYNC_JOURNAL_MS * CASYNC_NS_PER_MS / 2)
			break;
	}
	assert_true(tries < 50);
	RIG_UNTIL(nobody_is_inside());
}

/* Many clients that make files share the questions. */
CASE(many_new_files_wait_for_each_other)
{
	uint64_t began_ns;
	unsigned int i;

	rig_hold(FAKE_SYNC_INODE);
	change();
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	for (i = 0; i <= CASYNC_JOURNAL_FEW; i++)
		casync_journal_changed(&stub_mount, DIRECTORY_INO, true);
	began_ns = casync_clock_ns();
	sem_post(&rig_held.go);
	RIG_UNTIL(NOW(rig_held.count) >= 2);
	assert_true(casync_clock_ns() - began_ns >=
		    CASYNC_JOURNAL_MS * CASYNC_NS_PER_MS);
	sem_post(&rig_held.go);
	RIG_UNTIL(nobody_is_inside());
	sem_destroy(&rig_held.go);
}

/* However many there are, and however long the MDS takes. */
CASE(changes_share_a_question)
{
	unsigned int i;

	rig_hold(FAKE_SYNC_INODE);
	change();
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	for (i = 0; i < 1000; i++)
		change();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	sem_post(&rig_held.go);
	RIG_UNTIL(NOW(rig_held.count) >= 2);
	sem_post(&rig_held.go);
	RIG_UNTIL(nobody_is_inside());
	end();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	sem_destroy(&rig_held.go);
}

/* Of the journal's thread, until it has ended. */
static uint64_t asked[2 * CASYNC_JOURNAL_DIRECTORIES];

static void note_and_wait_in_sync(enum fake_blocking which)
{
	int number = __atomic_load_n(&rig_held.count, __ATOMIC_ACQUIRE);

	if (which == FAKE_SYNC_INODE)
		asked[number] = fake.looked_up_ino;
	rig_wait_held(which);
}

/* While one question is under way, names are changed in so many others, with
 * inode numbers that are STEP apart.  So many questions follow, and no more. */
static void change_in_others(unsigned int directories, unsigned int step,
			     int questions)
{
	unsigned int i;

	memset(asked, 0, sizeof(asked));
	rig_hold(FAKE_SYNC_INODE);
	fake.hook = note_and_wait_in_sync;
	change();
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	for (i = 1; i <= directories; i++) {
		casync_journal_changed(&stub_mount, DIRECTORY_INO + step * i,
				       false);
		casync_journal_changed(&stub_mount, DIRECTORY_INO + step * i,
				       false);
	}
	for (i = 0; i < 2 * CASYNC_JOURNAL_DIRECTORIES; i++)
		sem_post(&rig_held.go);
	RIG_UNTIL(NOW(rig_held.count) >= 1 + questions);
	RIG_UNTIL(is_taken());
	RIG_UNTIL(nobody_is_inside());
	end();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1 + questions);
	sem_destroy(&rig_held.go);
}

static bool is_asked_about(uint64_t ino)
{
	unsigned int i;

	for (i = 0; i < 2 * CASYNC_JOURNAL_DIRECTORIES; i++)
		if (asked[i] == ino)
			return true;
	return false;
}

/* They may be of different ranks. */
CASE(each_directory_is_asked_about)
{
	change_in_others(3, 5, 3);
	assert_true(is_asked_about(DIRECTORY_INO + 5));
	assert_true(is_asked_about(DIRECTORY_INO + 10));
	assert_true(is_asked_about(DIRECTORY_INO + 15));
}

/* All of them would be kept in the same place. */
CASE(directories_of_one_place_are_asked_about)
{
	unsigned int i;

	change_in_others(CASYNC_JOURNAL_DIRECTORIES, CASYNC_JOURNAL_DIRECTORIES,
			 CASYNC_JOURNAL_DIRECTORIES);
	for (i = 1; i <= CASYNC_JOURNAL_DIRECTORIES; i++)
		assert_true(is_asked_about(DIRECTORY_INO +
					   CASYNC_JOURNAL_DIRECTORIES * i));
}

/* Names in two directories are changed during each of so many questions. */
static int busy_questions;

static void change_during_questions(enum fake_blocking which)
{
	int number = __atomic_load_n(&rig_held.count, __ATOMIC_ACQUIRE);

	if (which != FAKE_SYNC_INODE)
		return;
	asked[number] = fake.looked_up_ino;
	if (number < busy_questions) {
		casync_journal_changed(&stub_mount, DIRECTORY_INO + 2, false);
		casync_journal_changed(&stub_mount, DIRECTORY_INO + 5, false);
	}
	__atomic_add_fetch(&rig_held.count, 1, __ATOMIC_ACQ_REL);
}

static void change_during(int questions, int expected)
{
	memset(asked, 0, sizeof(asked));
	rig_held.count = 0;
	busy_questions = questions;
	fake.hook = change_during_questions;
	change();
	RIG_UNTIL(NOW(rig_held.count) >= expected);
	RIG_UNTIL(is_taken());
	RIG_UNTIL(nobody_is_inside());
	end();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), expected);
}

/* The first question, one of the next pass, and both of the one after it.
 * Else the second pass would have two. */
CASE(changed_again_waits_for_the_next_pass)
{
	change_during(2, 4);
}

/* One question a pass, and each directory has its turn. */
CASE(each_directory_has_its_turn)
{
	change_during(CASYNC_JOURNAL_DIRECTORIES + 1,
		      CASYNC_JOURNAL_DIRECTORIES + 3);
	asked[CASYNC_JOURNAL_DIRECTORIES + 1] = 0;
	asked[CASYNC_JOURNAL_DIRECTORIES + 2] = 0;
	assert_true(is_asked_about(DIRECTORY_INO + 2));
	assert_true(is_asked_about(DIRECTORY_INO + 5));
}

/* However many there are, a bounded number waits. */
CASE(directories_without_room_are_left_out)
{
	unsigned int i;

	change_in_others(CASYNC_JOURNAL_DIRECTORIES + 3, 5,
			 CASYNC_JOURNAL_DIRECTORIES);
	for (i = 1; i <= CASYNC_JOURNAL_DIRECTORIES; i++)
		assert_true(is_asked_about(DIRECTORY_INO + 5 * i));
}

static bool is_looked_up(void)
{
	return fake_blocking_count(FAKE_LOOKUP_VINO) == 1;
}

CASE(removed_directory_needs_no_journal)
{
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	change();
	/* What is taken is dropped if the end comes before the look-up. */
	RIG_UNTIL(is_looked_up());
	end();
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	check_session(CASYNC_SESSION_SERVES);
}

CASE(loss_is_noticed)
{
	fake.blocking_result[FAKE_SYNC_INODE] = -CASYNC_EBLOCKLISTED;
	change();
	RIG_UNTIL(is_asked());
	end();
	check_session(CASYNC_SESSION_LOST);
}

CASE(error_does_not_end_the_thread)
{
	fake.blocking_result[FAKE_LOOKUP_VINO] = -EIO;
	change();
	RIG_UNTIL(is_looked_up());
	RIG_UNTIL(nobody_is_inside());
	check_session(CASYNC_SESSION_SERVES);
	fake.blocking_result[FAKE_LOOKUP_VINO] = 0;
	change();
	RIG_UNTIL(is_asked());
}

CASE(nobody_is_asked_while_there_is_no_client)
{
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	change();
	RIG_UNTIL(is_taken());
	end();
	stub_mount_set_phase(CASYNC_GUARD_SERVES);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
}

/* At its end a change need not last more than before. */
CASE(end_does_not_wait_for_the_pause)
{
	change();
	end();
	assert_true(fake_blocking_count(FAKE_SYNC_INODE) <= 1);
}

/* The MDS is away, for good.  The last case: nobody can wait for the end of its
 * thread. */
CASE(question_that_does_not_return_is_left_behind)
{
	rig_hold(FAKE_SYNC_INODE);
	change();
	/* One of the two is asked about, the other would come next. */
	casync_journal_changed(&stub_mount, DIRECTORY_INO + 1, false);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	assert_false(casync_lane_stop_mount(stub_mount.lanes, 0));
	/* It returns all the same, and the thread ends. */
	change();
	sem_post(&rig_held.go);
	RIG_UNTIL(nobody_is_inside());
	RIG_UNTIL(is_over());
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	memset(stub_mount.lanes, 0, sizeof(stub_mount.lanes));
	sem_destroy(&rig_held.go);
}

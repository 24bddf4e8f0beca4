/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What a call holds: it is taken in one order and released in the other one, and
 * nothing of it is left behind.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "call_rig.h"
#include "clock.h"
#include "complete.h"
#include "errors.h"
#include "lane.h"
#include "read_cache.h"
#include "stub_mount.h"

/* --- slots of a mount */

CALL_CASE(full_mount_refuses)
{
	*mount_inside() = MOUNT_SLOTS - 1;
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	casync_call_drop(&call);
	*mount_inside() = MOUNT_SLOTS;
	rig.obj->answered_ns = 0;
	/* EAGAIN would be a conflict of locks. */
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), -ETIME);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	/* It got none: the next one counts. */
	*mount_inside() = 0;
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(*mount_inside(), 1);
	casync_call_drop(&call);
}

CALL_CASE(file_that_answers_gets_at_the_reserve)
{
	*mount_inside() = MOUNT_SLOTS;
	rig.obj->answered_ns = casync_clock_ns();
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS + 1);
	casync_call_drop(&call);
	/* Its last answer is too old. */
	rig.obj->answered_ns = casync_clock_ns() - 2 * CASYNC_NS_PER_S;
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), -ETIME);
	/* A request to it waits. */
	rig.obj->answered_ns = casync_clock_ns();
	rig.obj->callers.inside = 1;
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), -ETIME);
	rig.obj->callers.inside = 0;
	/* To be refused is no answer. */
	rig.obj->answered_ns = 0;
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), -ETIME);
	assert_int_equal(rig.obj->answered_ns, 0);
	*mount_inside() = 0;
}

/* A later part of the call is. */
CALL_CASE(to_be_refused_is_no_answer)
{
	struct casync_object *obj = rig.obj;

	obj->answered_ns = 0;
	obj->callers.answers = 0;
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	assert_int_equal(take(CASYNC_CALL_ASKS_MDS), -ETIME);
	assert_int_equal(obj->answered_ns, 0);
	assert_int_equal(obj->callers.answers, 0);
	assert_int_equal(*mount_inside(), 0);
	stub_mount_set_phase(CASYNC_GUARD_SERVES);
}

/* An operation that opens the file, and sets attributes too. */
CALL_CASE(thread_has_one_slot)
{
	struct casync_call inner, innermost;

	assert_int_equal(begin(CASYNC_CALL_ASKS_MDS).major, ERR_FSAL_NO_ERROR);
	*mount_inside() = MOUNT_SLOTS;
	assert_int_equal(casync_call_begin(&inner, &rig.obj->handle,
					   CASYNC_CALL_ASKS_MDS)
				 .major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(
		casync_call_take(&innermost, rig.obj, CASYNC_CALL_MOUNT_SLOT),
		0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	casync_call_drop(&innermost);
	(void)casync_call_end(&inner, good);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	(void)casync_call_end(&call, good);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS - 1);
	check_steps("MGGggm");
	*mount_inside() = 0;
}

/* Also if the outermost call ends before the ones within it. */
CALL_CASE(thread_has_one_age)
{
	const uint32_t *dated = stub_mount.callers.age.inside;
	struct casync_call inner;

	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(
		casync_call_take(&inner, rig.obj, CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(dated[0] + dated[1], 1);
	(void)casync_budget_look_at_age(&stub_mount.callers.age, 1);
	assert_int_equal(casync_budget_look_at_age(&stub_mount.callers.age, 31),
			 30);
	casync_call_drop(&call);
	assert_int_equal(dated[0] + dated[1], 1);
	casync_call_drop(&inner);
	assert_int_equal(dated[0] + dated[1], 0);
}

CALL_CASE(unlock_gets_a_slot_of_a_full_mount)
{
	struct casync_call inner;

	*mount_inside() = MOUNT_SLOTS;
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT_ALWAYS), 0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS + 1);
	assert_int_equal(
		casync_call_take(&inner, rig.obj, CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS + 1);
	casync_call_drop(&inner);
	casync_call_drop(&call);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	*mount_inside() = 0;
}

/* A client that is new and takes locks again may unlock; a lost one not. */
CALL_CASE(unlock_gets_a_client_that_restores)
{
	stub_mount_set_phase(CASYNC_GUARD_RESTORES);
	assert_int_equal(take(CASYNC_CALL_CLIENT), -ETIME);
	assert_int_equal(take(CASYNC_CALL_CLIENT_TO_UNLOCK), 0);
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	casync_call_drop(&call);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	assert_int_equal(take(CASYNC_CALL_CLIENT_TO_UNLOCK), -ETIME);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
}

CALL_CASE(keeper_gets_a_slot_of_a_full_mount)
{
	*mount_inside() = MOUNT_SLOTS;
	casync_call_take_mount_slot(&stub_mount);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS + 1);
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), 0);
	casync_call_drop(&call);
	casync_call_drop_mount_slot(&stub_mount);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	*mount_inside() = 0;
}

static void *take_on_completer(void *unused)
{
	struct casync_call own;
	int rc;

	casync_lane_mark_completion_thread();
	rc = casync_call_take(&own, rig.obj, CASYNC_CALL_MOUNT_SLOT);
	if (rc == 0)
		casync_call_drop(&own);
	/* The slots of optional calls are in use, too. */
	if (rc == 0 &&
	    !casync_call_try(&own, rig.obj, CASYNC_CALL_MOUNT_SLOT, 0))
		rc = -1;
	if (rc == 0)
		casync_call_drop(&own);
	return rc == 0 ? NULL : &stub_mount;
}

CALL_CASE(completion_threads_take_no_mount_slot)
{
	*mount_inside() = MOUNT_SLOTS;
	run(take_on_completer);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	*mount_inside() = 0;
}

static void *take_attr_slots_on_completer(void *unused)
{
	struct casync_room *room = &rig.obj->getattr[true];
	uint32_t *inside = &room->inside;
	struct casync_call own[CASYNC_COMPLETERS + 1];
	bool good_so_far = true;
	int i;

	casync_lane_mark_completion_thread();
	for (i = 0; i < CASYNC_COMPLETERS; i++)
		good_so_far &= casync_call_take(&own[i], rig.obj,
						CASYNC_CALL_ATTR_SLOT) == 0;
	good_so_far &= *inside == CASYNC_COMPLETERS;
	__atomic_store_n(&room->progress_ns, 0, __ATOMIC_RELEASE);
	good_so_far &= casync_call_take(&own[i], rig.obj,
					CASYNC_CALL_ATTR_SLOT) == -EAGAIN;
	while (i-- > 0)
		casync_call_drop(&own[i]);
	return good_so_far && *inside == 0 ? NULL : &stub_mount;
}

/* Workers that wait for attributes do not keep the answers. */
CALL_CASE(completion_threads_have_attr_slots_of_their_own)
{
	*attr_inside() = FILE_SLOTS;
	run(take_attr_slots_on_completer);
	assert_int_equal(*attr_inside(), FILE_SLOTS);
	*attr_inside() = 0;
}

/* --- order */

CALL_CASE(all_is_taken_in_order)
{
	assert_int_equal(take(ALL), 0);
	assert_int_equal(call.holds, ALL);
	check_steps(ALL_TAKEN);
	casync_call_drop(&call);
	check_steps(ALL_DROPPED);
	/* It holds nothing any more. */
	casync_call_drop(&call);
	check_steps("");
}

CALL_CASE(beginning_and_end_keep_the_order)
{
	assert_int_equal(begin(ALL).major, ERR_FSAL_NO_ERROR);
	check_steps(ALL_TAKEN);
	assert_int_equal(casync_call_end(&call, good).major, ERR_FSAL_NO_ERROR);
	check_steps(ALL_DROPPED);
}

struct part_of_call {
	const char *name;
	uint32_t needs;
	const char *taken, *dropped;
};

static const struct part_of_call parts_of_calls[] = {
	{"mount_slot_alone", CASYNC_CALL_MOUNT_SLOT, "M", "m"},
	{"mount_slot_always_alone", CASYNC_CALL_MOUNT_SLOT_ALWAYS, "M", "m"},
	{"client_alone", CASYNC_CALL_CLIENT, "G", "g"},
	{"client_to_unlock_alone", CASYNC_CALL_CLIENT_TO_UNLOCK, "G", "g"},
	{"attr_slot_alone", CASYNC_CALL_ATTR_SLOT, "A", "a"},
	{"change_slot_alone", CASYNC_CALL_SETATTR_SLOT, "C", "c"},
	{"statfs_slot_alone", CASYNC_CALL_STATFS_SLOT, "S", "s"},
	{"change_alone", CASYNC_CALL_ANNOUNCES, "W", "w"},
	{"what_asks_the_mds", CASYNC_CALL_ASKS_MDS, "MG", "gm"},
	{"nothing", 0, "", ""},
};

TEST_ROWS(check_part, parts_of_calls, call_up, call_down)
{
	const struct part_of_call *c = *state;

	assert_int_equal(take(c->needs), 0);
	check_steps(c->taken);
	casync_call_drop(&call);
	check_steps(c->dropped);
}

struct full_case {
	const char *name;
	uint32_t *(*inside)(void);
	uint32_t slots;
	int rc;
	const char *steps; /* of a call that needs all */
};

static const struct full_case full_cases[] = {
	{"full_mount_leaves_nothing", mount_inside, MOUNT_SLOTS, -ETIME, ""},
	{"full_attr_slots_leave_nothing", attr_inside, FILE_SLOTS, -EAGAIN,
	 "MGgm"},
	{"full_change_slots_leave_nothing", change_inside, FILE_SLOTS, -EAGAIN,
	 "MGAagm"},
	{"full_statfs_slots_leave_nothing", statfs_inside, STATFS_SLOTS,
	 -EAGAIN, "MGACcagm"},
};

TEST_ROWS(check_full, full_cases, call_up, call_down)
{
	const struct full_case *c = *state;
	fsal_status_t status;

	*c->inside() = c->slots - 1;
	assert_int_equal(take(ALL), 0);
	assert_int_equal(*c->inside(), c->slots);
	casync_call_drop(&call);
	check_steps(ALL_TAKEN ALL_DROPPED);
	*c->inside() = c->slots;
	stub_mount.callers.room.progress_ns = 0;
	rig.obj->answered_ns = 0;
	rig.obj->getattr[0].progress_ns = 0;
	rig.obj->change.progress_ns = 0;
	rig.exp.statfs.progress_ns = 0;
	assert_int_equal(take(ALL), c->rc);
	assert_int_equal(call.holds, 0);
	check_steps(c->steps);
	assert_int_equal(*c->inside(), c->slots);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	/* To the client it is a delay. */
	rig.obj->answered_ns = 0;
	rig.obj->getattr[0].progress_ns = 0;
	rig.obj->change.progress_ns = 0;
	status = begin(ALL);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(status.minor, -c->rc);
	*c->inside() = 0;
}

CALL_CASE(lost_client_leaves_nothing)
{
	lose_client();
	assert_int_equal(take(ALL), -ETIME);
	check_steps("Mm");
	/* No other one comes. */
	stub_mount.keeper.reconnect = 0;
	rig.obj->answered_ns = 0;
	assert_int_equal(take(ALL), -CASYNC_EBLOCKLISTED);
	check_steps("Mm");
}

CALL_CASE(file_that_is_gone_leaves_nothing)
{
	new_client();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(take(ALL), -ESTALE);
	/* The look-up takes an attr slot, as GETATTR does. */
	check_steps("MGAagm");
}

static void *wait_for_a_slot(void *unused)
{
	struct casync_call own;

	if (casync_call_take(&own, rig.obj, CASYNC_CALL_ATTR_SLOT) != 0)
		return &stub_mount;
	casync_call_drop(&own);
	return NULL;
}

CALL_CASE(slot_is_waited_for)
{
	struct casync_room *room = &rig.obj->getattr[0];
	pthread_t thread;
	void *failed;

	*attr_inside() = FILE_SLOTS;
	room->progress_ns = casync_clock_ns() + 60 * CASYNC_NS_PER_S;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_a_slot, NULL),
			 0);
	RIG_UNTIL(NOW(room->sleepers) >= 1);
	casync_room_leave(room, casync_clock_ns());
	RIG_JOIN(thread, &failed);
	assert_null(failed);
	assert_int_equal(*attr_inside(), FILE_SLOTS - 1);
	*attr_inside() = 0;
}

/* --- optional calls */

static bool try_both(uint32_t attr_slots)
{
	return casync_call_try(&call, rig.obj,
			       CASYNC_CALL_ATTR_SLOT | CASYNC_CALL_MOUNT_SLOT,
			       attr_slots);
}

CALL_CASE(optional_call_takes_both_slots)
{
	assert_true(try_both(1));
	assert_int_equal(*attr_inside(), 1);
	assert_int_equal(*mount_inside(), 1);
	casync_call_drop(&call);
	assert_int_equal(*attr_inside(), 0);
	assert_int_equal(*mount_inside(), 0);
}

CALL_CASE(optional_call_takes_only_what_it_needs)
{
	assert_true(casync_call_try(&call, rig.obj, CASYNC_CALL_ATTR_SLOT, 1));
	assert_int_equal(*mount_inside(), 0);
	assert_int_equal(*attr_inside(), 1);
	casync_call_drop(&call);
	assert_true(casync_call_try(&call, rig.obj, CASYNC_CALL_MOUNT_SLOT, 0));
	assert_int_equal(*mount_inside(), 1);
	assert_int_equal(*attr_inside(), 0);
	casync_call_drop(&call);
}

/* The other half stays for calls that are needed. */
CALL_CASE(optional_call_leaves_half_of_the_mount)
{
	*mount_inside() = MOUNT_SLOTS / 2;
	assert_false(try_both(1));
	assert_int_equal(call.holds, 0);
	assert_int_equal(*attr_inside(), 0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS / 2);
	*mount_inside() = MOUNT_SLOTS / 2 - 1;
	assert_true(try_both(1));
	casync_call_drop(&call);
	*mount_inside() = 0;
}

/* The thread keeps a worker already. */
CALL_CASE(optional_call_within_a_call_needs_no_slot)
{
	struct casync_call outer;

	assert_int_equal(
		casync_call_take(&outer, rig.obj, CASYNC_CALL_MOUNT_SLOT), 0);
	*mount_inside() = MOUNT_SLOTS;
	assert_true(try_both(1));
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	casync_call_drop(&call);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	casync_call_drop(&outer);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS - 1);
	*mount_inside() = 0;
}

CALL_CASE(optional_call_is_one_of_few)
{
	*attr_inside() = 3;
	assert_false(try_both(3));
	assert_int_equal(call.holds, 0);
	assert_int_equal(*mount_inside(), 0);
	assert_true(try_both(4));
	assert_int_equal(*attr_inside(), 4);
	casync_call_drop(&call);
	assert_int_equal(*attr_inside(), 3);
	*attr_inside() = 0;
}

CALL_CASE(optional_call_does_not_wait)
{
	uint64_t later_ns = casync_clock_ns() + 60 * CASYNC_NS_PER_S;

	rig.obj->getattr[0].progress_ns = later_ns;
	stub_mount.callers.room.progress_ns = later_ns;
	*mount_inside() = MOUNT_SLOTS;
	*attr_inside() = 1;
	assert_false(try_both(1));
	*attr_inside() = 0;
	assert_false(try_both(1));
	assert_true(casync_clock_ns() < later_ns);
	*mount_inside() = 0;
}

/* --- changes */

CALL_CASE(change_is_announced_to_the_read_cache)
{
	struct casync_cache_file *file = &rig.obj->cached->file;
	uint64_t epoch = casync_cache_epoch(file);

	assert_int_equal(take(CASYNC_CALL_ANNOUNCES), 0);
	assert_int_equal(writers(), 1);
	assert_true(casync_cache_epoch(file) != epoch);
	epoch = casync_cache_epoch(file);
	casync_call_drop(&call);
	assert_int_equal(writers(), 0);
	assert_true(casync_cache_epoch(file) != epoch);
}

CALL_CASE(change_of_another_file_is_announced)
{
	struct casync_call change;

	casync_call_announce(&change, &rig.obj->handle);
	assert_int_equal(writers(), 1);
	assert_int_equal(change.holds, CASYNC_CALL_ANNOUNCES);
	casync_call_drop(&change);
	assert_int_equal(writers(), 0);
}

CALL_CASE(directory_has_nothing_in_the_read_cache)
{
	struct casync_object dir = {.exp = &rig.exp};

	dir.handle.type = DIRECTORY;
	casync_call_announce(&call, &dir.handle);
	casync_call_drop(&call);
	check_steps("");
}

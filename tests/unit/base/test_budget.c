/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "nfs_core.h"

#include "unit.h"

#include "budget.h"
#include "clock.h"

/* --- the table */

struct decide_case {
	const char *name;
	struct casync_load load;
	struct casync_decision decision;
};

#define ANY UINT32_MAX /* as many as come */

/* With 200 workers, but for the last two. */
static const struct decide_case decide_cases[] = {
	{"first_call_may_have_all",
	 {.workers = 200, .waiting = 1, .first = true},
	 {150, 100, 75, 100, 0, false}},
	{"mount_that_does_not_answer_keeps_half",
	 {.workers = 200,
	  .all = 74,
	  .waiting = 1,
	  .mount_inside = 74,
	  .mount_proved = true,
	  .file_inside = 9,
	  .file_answers = 99},
	 {76, 100, 1, 100, 0, false}},
	{"then_it_is_full",
	 {.workers = 200,
	  .all = 75,
	  .waiting = 1,
	  .mount_inside = 75,
	  .mount_proved = true,
	  .file_inside = 9,
	  .file_answers = 99},
	 {75, 100, 1, 100, 0, false}},
	{"another_mount_finds_as_much",
	 {.workers = 200,
	  .all = 75,
	  .waiting = 1,
	  .mount_proved = true,
	  .file_answers = 99},
	 {75, 100, 37, 100, 0, false}},
	{"idle_mount_may_have_all_beside_39",
	 {.workers = 200, .all = 39, .waiting = 1},
	 {111, 100, 1, 100, 0, false}},
	{"idle_mount_has_4_beside_40",
	 {.workers = 200, .all = 40, .waiting = 1},
	 {4, 100, 1, 100, 0, true}},
	{"answer_to_the_keeper_brings_the_others",
	 {.workers = 200, .all = 40, .waiting = 1, .mount_proved = true},
	 {110, 100, 1, 100, 0, false}},
	{"idle_file_may_have_half_beside_8",
	 {.workers = 200, .all = 8, .waiting = 1},
	 {142, 100, 71, 100, 0, false}},
	{"idle_file_has_1_beside_9",
	 {.workers = 200, .all = 9, .waiting = 1},
	 {141, 100, 1, 100, 0, false}},
	{"each_answer_brings_a_file_one",
	 {.workers = 200, .all = 9, .waiting = 1, .file_answers = 5},
	 {141, 100, 6, 100, 0, false}},
	{"own_calls_of_a_file_are_no_load",
	 {.workers = 200,
	  .all = 37,
	  .waiting = 1,
	  .mount_inside = 37,
	  .file_inside = 37},
	 {113, 100, 38, 100, 0, false}},
	{"optional_call_leaves_half",
	 {.workers = 200,
	  .all = 75,
	  .waiting = 1,
	  .mount_proved = true,
	  .optional = true,
	  .file_answers = 3},
	 {38, 100, 4, 100, 0, false}},
	{"optional_call_leaves_the_last_one",
	 {.workers = 200,
	  .all = 150,
	  .waiting = 1,
	  .mount_proved = true,
	  .optional = true},
	 {0, 25 * 4, 1, 25, 0, false}},
	{"first_call_of_a_file_may_have_four_times",
	 {.workers = 200,
	  .all = 140,
	  .waiting = 1,
	  .mount_proved = true,
	  .first = true,
	  .file_answers = 99},
	 {40, 100, 5, 100, 0, false}},
	{"but_half_of_the_budget_at_most",
	 {.workers = 200,
	  .all = 113,
	  .waiting = 1,
	  .mount_proved = true,
	  .first = true,
	  .file_answers = 99},
	 {75, 100, 18, 100, 0, false}},
	{"and_not_before_the_keeper_has_an_answer",
	 {.workers = 200, .all = 140, .waiting = 1, .first = true},
	 {4, 100, 1, 100, 0, true}},
	{"file_that_answers_gets_at_the_reserve",
	 {.workers = 200,
	  .all = 174,
	  .waiting = 1,
	  .mount_proved = true,
	  .answered = true,
	  .first = true},
	 {ANY, 100, 1, 100, 0, false}},
	{"reserve_has_an_end",
	 {.workers = 200,
	  .all = 175,
	  .waiting = 1,
	  .mount_proved = true,
	  .answered = true,
	  .first = true},
	 {0, 100, 1, 100, 0, false}},
	{"mount_with_few_places_keeps_few_of_the_reserve",
	 {.workers = 200,
	  .all = 174,
	  .waiting = 1,
	  .answered = true,
	  .first = true},
	 {4, 25, 1, 100, 0, true}},
	{"all_that_are_kept_or_wait_are_no_crowd",
	 {.workers = 200, .all = 100, .waiting = 50},
	 {4, 100, 1, 100, 0, true}},
	{"one_more_is_a_crowd",
	 {.workers = 200, .all = 100, .waiting = 51},
	 {4, 25, 1, 25, 0, true}},
	{"crowd_has_patience_with_what_answers",
	 {.workers = 200,
	  .all = 99,
	  .waiting = 52,
	  .mount_proved = true,
	  .answered = true},
	 {51, 100, 1, 100, 1, false}},
	{"folder_that_is_alone_outlasts_a_pause",
	 {.workers = 200,
	  .all = 38,
	  .waiting = 1,
	  .mount_inside = 38,
	  .file_inside = 38,
	  .answered = true},
	 {112, 100, 37, 100, 51, false}},
	{"half_of_the_workers_stay_free_of_the_patient",
	 {.workers = 200,
	  .all = 60,
	  .waiting = 1,
	  .mount_inside = 60,
	  .mount_proved = true,
	  .file_inside = 38,
	  .file_answers = 99,
	  .answered = true},
	 {90, 100, 15, 100, 40, false}},
	{"file_that_was_idle_is_not_patient",
	 {.workers = 200,
	  .all = 60,
	  .waiting = 1,
	  .mount_inside = 60,
	  .mount_proved = true,
	  .file_inside = 1,
	  .answered = true},
	 {90, 100, 1, 100, 0, false}},
	{"few_workers_are_enough_for_one",
	 {.workers = 2, .waiting = 1, .first = true},
	 {2, 100, 1, 100, 0, false}},
	{"one_worker_may_wait_too",
	 {.workers = 1, .waiting = 1, .first = true},
	 {1, 100, 1, 100, 0, false}},
};

TEST_ROWS(check_decision, decide_cases, NULL, NULL)
{
	const struct decide_case *c = *state;
	struct casync_decision is = casync_budget_decide(&c->load);

	assert_int_equal(is.mount_room, c->decision.mount_room);
	assert_int_equal(is.mount_ms, c->decision.mount_ms);
	assert_int_equal(is.file_room, c->decision.file_room);
	assert_int_equal(is.file_ms, c->decision.file_ms);
	assert_int_equal(is.patient_room, c->decision.patient_room);
	assert_int_equal(is.asks_mds, c->decision.asks_mds);
}

/* --- the counts */

/* Where the clock stands still, or 0: places depend on the last 0.1 s. */
static uint64_t stands_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (stands_ns != 0 && clock == CLOCK_MONOTONIC) {
		now->tv_sec = (time_t)(stands_ns / CASYNC_NS_PER_S);
		now->tv_nsec = (long)(stands_ns % CASYNC_NS_PER_S);
	}
	return rc;
}

#define MOUNTS 20

static struct casync_budget_mount mounts[MOUNTS];

/* It has answered often, and a moment ago. */
static void make_busy(struct casync_budget_mount *mount)
{
	mount->room.answers = 1000;
	mount->room.progress_ns = casync_clock_ns();
}

static int workers_up(void **state)
{
	unsigned int i;

	memset(mounts, 0, sizeof(mounts));
	for (i = 0; i < MOUNTS; i++)
		make_busy(&mounts[i]);
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
	return 0;
}

#define WORKERS_CASE(test) TEST_WITH(test, workers_up, NULL)

/* Here patience ends at once, but for the long one, which does not end before a
 * place is free.  So it counts who waits, and no time. */
static const struct casync_room *hasty;

/* No time passes in these: so a slow machine changes nothing. */
static int stopped_up(void **state)
{
	stands_ns = casync_clock_ns();
	return workers_up(state);
}

static int stopped_down(void **state)
{
	hasty = NULL;
	stands_ns = 0;
	return 0;
}

#define STOPPED_CASE(test) TEST_WITH(test, stopped_up, stopped_down)

static uint32_t longest_patience_ms; /* atomic */

bool __real_casync_room_sleep(struct casync_room *room, uint32_t left,
			      uint32_t most, uint32_t patience_ms);
bool __wrap_casync_room_sleep(struct casync_room *room, uint32_t left,
			      uint32_t most, uint32_t patience_ms);
bool __wrap_casync_room_sleep(struct casync_room *room, uint32_t left,
			      uint32_t most, uint32_t patience_ms)
{
	if (room == hasty) {
		if (patience_ms > NOW(longest_patience_ms))
			__atomic_store_n(&longest_patience_ms, patience_ms,
					 __ATOMIC_RELEASE);
		if (patience_ms != CASYNC_BUDGET_LONG_MS)
			return false;
		patience_ms = RIG_TIMEOUT_S * 1000;
	}
	return __real_casync_room_sleep(room, left, most, patience_ms);
}

static void be_hasty(const struct casync_room *room)
{
	hasty = room;
	longest_patience_ms = 0;
}

/* Who asks for slots: it need not; needs one, for no file, for a file of its
 * own, or for one of its own that has answered lately. */
enum who { OPTIONAL, NEXT, FIRST, ANSWERED };

static bool enter(struct casync_budget_mount *mount, struct casync_room *file,
		  bool answered)
{
	struct casync_budget_slot slot = {.mount = mount, .file = file};

	return casync_budget_enter(&slot, CASYNC_BUDGET_NEEDED, answered);
}

static bool enter_optional(struct casync_budget_mount *mount,
			   struct casync_room *file)
{
	struct casync_budget_slot slot = {.mount = mount, .file = file};

	return casync_budget_enter(&slot, CASYNC_BUDGET_OPTIONAL, false);
}

static void leave(struct casync_budget_mount *mount, struct casync_room *file)
{
	const struct casync_budget_slot slot = {.mount = mount, .file = file};

	casync_budget_leave(&slot, casync_clock_ns());
}

static bool enter_as(struct casync_budget_mount *mount,
		     struct casync_room *file, enum who who)
{
	struct casync_room own = {0};

	if (who == OPTIONAL)
		return enter_optional(mount, NULL);
	if (who != NEXT)
		file = &own;
	return enter(mount, file, who == ANSWERED);
}

/* Enter without a pause: all patience has ended.  What was in use counts as in
 * use still. */
static bool enter_now(struct casync_budget_mount *mount,
		      struct casync_room *file, enum who who)
{
	struct casync_room *room = &mount->room;
	uint64_t now_ns = casync_clock_ns();
	uint32_t answers = room->answers;
	bool was_idle = room->inside == 0 &&
			now_ns - room->progress_ns >=
				CASYNC_ROOM_IDLE_MS * CASYNC_NS_PER_MS;
	bool entered;

	if (!was_idle)
		room->progress_ns = 0;
	if (file != NULL && file->inside != 0)
		file->progress_ns = 0;
	entered = enter_as(mount, file, who);
	if (!was_idle) {
		room->progress_ns = now_ns;
		room->answers = answers;
	}
	if (file != NULL)
		file->progress_ns = now_ns;
	return entered;
}

/* As many as get in without a pause. */
static unsigned int fill(struct casync_budget_mount *mount, enum who who)
{
	unsigned int count = 0;

	while (enter_now(mount, NULL, who))
		count++;
	return count;
}

static void empty(struct casync_budget_mount *mount, unsigned int count)
{
	while (count-- != 0)
		leave(mount, NULL);
}

static void empty_all(void)
{
	unsigned int i;

	for (i = 0; i < MOUNTS; i++)
		empty(&mounts[i], mounts[i].room.inside);
}

/* Requests to mounts that do not answer come in turn. */
static void fill_in_turn(unsigned int dead, unsigned int *counts)
{
	unsigned int i, before, all = 0;

	memset(counts, 0, dead * sizeof(*counts));
	do {
		before = all;
		for (i = 0; i < dead; i++) {
			unsigned int more = enter_now(&mounts[i], NULL, NEXT);

			counts[i] += more;
			all += more;
		}
	} while (all != before);
}

STOPPED_CASE(dead_mounts_leave_as_much_to_another)
{
	unsigned int counts[MOUNTS], dead, i, all;

	for (dead = 1; dead < MOUNTS; dead++) {
		fill_in_turn(dead, counts);
		for (i = 0, all = 0; i < dead; i++)
			all += counts[i];
		assert_true(all >= 75 && all <= 150 - counts[dead - 1]);
		assert_true(fill(&mounts[dead], NEXT) != 0);
		empty_all();
	}
	assert_int_equal(fill(&mounts[0], NEXT), 75);
	empty(&mounts[0], 75);
}

/* Whoever comes first, nobody gets at the last quarter. */
STOPPED_CASE(mounts_filled_one_after_the_other_keep_to_the_budget)
{
	unsigned int counts[MOUNTS], i, all = 0;

	for (i = 0; i < MOUNTS; i++)
		all += counts[i] = fill(&mounts[i], NEXT);
	assert_int_equal(counts[0], 75);
	assert_int_equal(counts[1], 38);
	assert_int_equal(all, 150);
	for (i = 0; i < MOUNTS; i++)
		empty(&mounts[i], counts[i]);
}

STOPPED_CASE(optional_calls_leave_room_for_needed_ones)
{
	assert_int_equal(fill(&mounts[0], OPTIONAL), 50);
	assert_int_equal(fill(&mounts[0], NEXT), 25);
	empty(&mounts[0], 75);
}

STOPPED_CASE(forced_entry_counts)
{
	struct casync_budget_slot slot = {.mount = &mounts[0]};
	unsigned int i;

	for (i = 0; i < 160; i++)
		assert_true(casync_budget_enter(&slot, CASYNC_BUDGET_ALWAYS,
						false));
	assert_int_equal(fill(&mounts[1], NEXT), 0);
	empty(&mounts[0], 160);
	assert_int_equal(fill(&mounts[1], NEXT), 75);
	empty(&mounts[1], 75);
}

STOPPED_CASE(files_leave_room_for_another_file)
{
	struct casync_room files[61] = {0};
	unsigned int i, before, all = 0;

	do {
		before = all;
		for (i = 0; i < 60; i++)
			all += enter_now(&mounts[0], &files[i], NEXT);
	} while (all != before);
	assert_true(all >= 60 && all <= 74);
	assert_true(enter_now(&mounts[0], &files[60], NEXT));
	empty(&mounts[0], all + 1);
}

/* Each file takes as many as it may. */
static unsigned int fill_by_files(struct casync_budget_mount *mount,
				  struct casync_room *files, unsigned int count)
{
	unsigned int i, all = 0;

	for (i = 0; i < count; i++) {
		while (enter_now(mount, &files[i], NEXT))
			all++;
	}
	return all;
}

/* Eight mounts that were idle, 60 files that were idle, and one more file. */
STOPPED_CASE(what_was_idle_keeps_few_places)
{
	static struct casync_room away[8][100], files[61];
	unsigned int i, all;

	memset(away, 0, sizeof(away));
	memset(files, 0, sizeof(files));
	memset(mounts, 0, 8 * sizeof(mounts[0]));
	for (i = 0, all = 0; i < 8; i++)
		all += fill_by_files(&mounts[i], away[i], 100);
	/* A quarter of the budget, and four for each of the others. */
	assert_int_equal(all, 40 + 7 * 4);
	assert_int_equal(fill_by_files(&mounts[8], files, 60), 60);
	assert_int_equal(fill_by_files(&mounts[8], &files[60], 1), 1);
	empty_all();
}

/* A mount's answers may come from libcephfs' memory, so they bring it none. */
STOPPED_CASE(each_answer_brings_a_file_a_place)
{
	struct casync_room file = {0};
	unsigned int all;

	memset(&mounts[1], 0, sizeof(mounts[1]));
	all = fill(&mounts[0], NEXT);
	assert_int_equal(fill(&mounts[1], NEXT), 4);
	empty(&mounts[1], 1);
	assert_int_equal(fill_by_files(&mounts[1], &file, 1), 1);
	leave(&mounts[1], &file);
	assert_int_equal(file.inside, 0);
	assert_int_equal(file.answers, 1);
	assert_int_equal(fill(&mounts[1], NEXT), 1);
	/* To be refused is no answer. */
	assert_false(enter_now(&mounts[1], &file, NEXT));
	assert_int_equal(file.inside, 0);
	assert_int_equal(file.answers, 1);
	empty(&mounts[1], 4);
	casync_budget_prove(&mounts[1]);
	assert_int_equal(fill_by_files(&mounts[1], &file, 1), 2);
	empty(&mounts[1], 2);
	empty(&mounts[0], all);
}

/* Ganesha has no more workers than that. */
STOPPED_CASE(answers_of_a_file_have_a_bound)
{
	struct casync_room file = {0};
	unsigned int i;

	for (i = 0; i < 300; i++) {
		assert_true(enter(&mounts[0], &file, true));
		leave(&mounts[0], &file);
	}
	assert_int_equal(file.answers, 200);
}

/* It has to be idle for 0.1 s to lose it. */
STOPPED_CASE(proof_holds_while_the_mount_is_in_use)
{
	unsigned int all;

	memset(&mounts[1], 0, sizeof(mounts[1]));
	all = fill(&mounts[0], NEXT);
	assert_int_equal(fill(&mounts[1], NEXT), 4);
	casync_budget_prove(&mounts[1]);
	assert_int_equal(fill(&mounts[1], NEXT), 38 - 4);
	empty(&mounts[1], 38);
	mounts[1].room.progress_ns = casync_clock_ns();
	assert_int_equal(fill(&mounts[1], NEXT), 38);
	empty(&mounts[1], 38);
	mounts[1].room.progress_ns = 0;
	assert_int_equal(fill(&mounts[1], FIRST), 4);
	empty(&mounts[1], 4);
	empty(&mounts[0], all);
}

/* FULL turns this worker away: the patience that it had. */
static uint32_t turned_away_after_ms(struct casync_budget_mount *full)
{
	uint32_t patience_ms;

	be_hasty(&full->room);
	assert_false(enter(full, NULL, false));
	patience_ms = longest_patience_ms;
	be_hasty(NULL);
	return patience_ms;
}

/* 75 + 38 + 19 + 9 + 4 + 2 + 1 are 148 of 150. */
STOPPED_CASE(crowd_has_little_patience_with_the_unproved)
{
	struct casync_budget_mount *idle = &mounts[7];
	unsigned int i, all = 0;

	memset(idle, 0, sizeof(*idle));
	all += fill(&mounts[0], NEXT);
	assert_int_equal(fill(idle, NEXT), 4);
	assert_int_equal(turned_away_after_ms(idle), CASYNC_BUDGET_SHORT_MS);
	empty(idle, 4);
	idle->room.progress_ns = 0;
	for (i = 1; i < 7; i++)
		all += fill(&mounts[i], NEXT);
	all += fill(idle, NEXT);
	all += fill(&mounts[0], ANSWERED);
	assert_true(all >= 150);
	assert_int_equal(turned_away_after_ms(idle), CASYNC_BUDGET_CROWDED_MS);
	casync_budget_prove(idle);
	assert_int_equal(turned_away_after_ms(idle), CASYNC_BUDGET_SHORT_MS);
	empty_all();
}

static void *enter_mount(void *mount)
{
	return enter(mount, NULL, false) ? mount : NULL;
}

/* The MDS answers at the moment when the first one waits. */
STOPPED_CASE(who_waits_gets_in_when_the_mds_answers)
{
	struct casync_budget_mount *idle = &mounts[1];
	pthread_t waiter;
	void *entered;

	memset(idle, 0, sizeof(*idle));
	assert_false(casync_budget_wants_proof(idle));
	/* Alone, it may not have one more without the proof. */
	assert_int_equal(fill(idle, NEXT), 40);
	assert_true(casync_budget_wants_proof(idle));
	empty(idle, 40);
	idle->room.answers = 0;
	idle->room.progress_ns = 0;
	assert_int_equal(fill(&mounts[0], NEXT), 75);
	assert_false(casync_budget_wants_proof(&mounts[0]));
	assert_int_equal(fill(idle, NEXT), 4);
	assert_true(casync_budget_wants_proof(idle));
	/* It waits for 0.1 s, and this thread may have no CPU for so long. */
	idle->room.progress_ns = casync_clock_ns() + 60 * CASYNC_NS_PER_S;
	assert_int_equal(pthread_create(&waiter, NULL, enter_mount, idle), 0);
	RIG_UNTIL(NOW(idle->room.sleepers) != 0);
	casync_budget_prove(idle);
	RIG_JOIN(waiter, &entered);
	assert_non_null(entered);
	assert_false(casync_budget_wants_proof(idle));
	assert_int_equal(fill(idle, NEXT), 38 - 5);
	empty(idle, 38);
	empty(&mounts[0], 75);
}

/* But for half of the budget, and if the MDS has answered. */
STOPPED_CASE(first_of_a_file_need_not_leave_as_much)
{
	unsigned int all;

	assert_int_equal(fill(&mounts[0], NEXT), 75);
	assert_int_equal(fill(&mounts[1], NEXT), 38);
	all = fill(&mounts[1], FIRST);
	assert_int_equal(all, 22);
	empty(&mounts[1], all);
	mounts[1].room.answers = 0;
	assert_int_equal(fill(&mounts[1], FIRST), 0);
	empty(&mounts[1], 38);
	empty(&mounts[0], 75);
}

/* Half of the last quarter. */
STOPPED_CASE(reserve_has_a_bound)
{
	unsigned int i, all = 0;

	for (i = 0; i < MOUNTS; i++)
		all += fill(&mounts[i], NEXT);
	all += fill(&mounts[0], ANSWERED);
	assert_int_equal(all, 175);
	assert_int_equal(fill(&mounts[0], NEXT), 0);
	empty_all();
}

static unsigned int refused; /* atomic */

static void *come_and_leave(void *file)
{
	if (!enter(&mounts[0], file, true)) {
		__atomic_add_fetch(&refused, 1, __ATOMIC_ACQ_REL);
		return NULL;
	}
	leave(&mounts[0], file);
	return file;
}

/* The file has 38 places and goes on after 0.3 s.  A quarter of the workers
 * wait for that, if the budget has room for them. */
STOPPED_CASE(folder_outlasts_a_short_pause)
{
	const unsigned int patient = casync_budget_quarter();
	struct casync_room folder = {0};
	pthread_t threads[60];
	unsigned int i, inside, entered = 0;
	void *did;

	/* All was idle. */
	memset(&mounts[0], 0, sizeof(mounts[0]));
	inside = fill_by_files(&mounts[0], &folder, 1);
	assert_int_equal(inside, 38);
	be_hasty(&folder);
	/* One that has not answered lately does not wait for so long. */
	assert_false(enter(&mounts[0], &folder, false));
	assert_int_equal(longest_patience_ms, CASYNC_BUDGET_SHORT_MS);
	refused = 0;
	for (i = 0; i < 60; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						come_and_leave, &folder),
				 0);
	RIG_UNTIL(NOW(refused) == 60 - patient &&
		  NOW(folder.sleepers) == patient);
	for (i = 0; i < inside; i++)
		leave(&mounts[0], &folder);
	for (i = 0; i < 60; i++) {
		RIG_JOIN(threads[i], &did);
		entered += did != NULL;
	}
	assert_int_equal(entered, patient);
}

/* Others are at work, and it has a call that is not answered. */
STOPPED_CASE(file_that_was_idle_is_not_patient)
{
	struct casync_room file = {0};
	unsigned int others = 9;

	while (others-- != 0)
		assert_true(enter(&mounts[1], NULL, false));
	assert_true(enter(&mounts[0], &file, true));
	be_hasty(&file);
	assert_false(enter(&mounts[0], &file, true));
	assert_int_equal(longest_patience_ms, CASYNC_BUDGET_SHORT_MS);
	assert_false(enter_optional(&mounts[0], &file));
	leave(&mounts[0], &file);
	assert_true(enter_optional(&mounts[0], &file));
	leave(&mounts[0], &file);
	assert_int_equal(file.inside, 0);
	empty(&mounts[1], 9);
}

WORKERS_CASE(few_workers_are_enough_for_one)
{
	nfs_param.core_param.rpc.ioq_thrd_max = 2;
	assert_int_equal(fill(&mounts[0], NEXT), 1);
	empty(&mounts[0], 1);
}

static void end(const struct casync_budget_slot *slot)
{
	casync_budget_leave(slot, casync_clock_ns());
}

/* Looks at 1 s, 2 s, and so on. */
WORKERS_CASE(oldest_call_has_an_age)
{
	struct casync_budget_slot first = {.mount = &mounts[0]}, second = first,
				  third = first;
	struct casync_budget_age *age = &mounts[0].age;
	uint64_t now_ns = CASYNC_NS_PER_S;

	assert_int_equal(casync_budget_look_at_age(age, now_ns), 0);
	assert_true(casync_budget_enter(&first, CASYNC_BUDGET_NEEDED, false));
	assert_int_equal(casync_budget_look_at_age(age, 2 * now_ns), 0);
	assert_true(casync_budget_enter(&second, CASYNC_BUDGET_NEEDED, false));
	assert_int_equal(casync_budget_look_at_age(age, 5 * now_ns),
			 3 * CASYNC_NS_PER_S);
	/* Calls that come and go do not make it younger. */
	assert_true(casync_budget_enter(&third, CASYNC_BUDGET_NEEDED, false));
	end(&third);
	assert_int_equal(casync_budget_look_at_age(age, 60 * now_ns),
			 58 * CASYNC_NS_PER_S);
	/* The second one counts from the look after the first one's end. */
	end(&first);
	assert_int_equal(casync_budget_look_at_age(age, 61 * now_ns), 0);
	assert_int_equal(casync_budget_look_at_age(age, 65 * now_ns),
			 4 * CASYNC_NS_PER_S);
	end(&second);
	assert_int_equal(casync_budget_look_at_age(age, 66 * now_ns), 0);
	assert_int_equal(casync_budget_look_at_age(age, 67 * now_ns), 0);
	assert_int_equal(age->inside[0] + age->inside[1], 0);
}

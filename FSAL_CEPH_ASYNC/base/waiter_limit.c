/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <limits.h>

#include "nfs_core.h"

#include "check.h"
#include "waiter_limit.h"
#include "clock.h"
#include "futex.h"

/* The limits of a mount and of a file within it have one kind, with the
 * completer's patience of 0.1 s: a worker that waits for a place does nothing
 * else either. */
#define MOUNT_KIND CASYNC_WAITER_COMPLETER

/* The first places of a mount and of a file that were idle, and the parts of
 * the budget from which on they count. */
#define MOUNT_FIRST 4
#define MOUNT_PART 4
#define FILE_FIRST 1
#define FILE_PART 16

/* Patience with what has not shown that it answers, when less than a quarter of
 * the workers is left. */
#define CROWDED_MS 25

/* Workers inside the limits of all mounts, those that wait for a place there or
 * in a file's limit, and those of them with a worker's patience; atomic. */
static uint32_t all_inside, waiting, patient;

static const uint64_t patience_ns[CASYNC_WAITER_KINDS] = {
	[CASYNC_WAITER_WORKER] =
		CASYNC_WAITER_LIMIT_WORKER_MS * CASYNC_NS_PER_MS,
	[CASYNC_WAITER_COMPLETER] =
		CASYNC_WAITER_LIMIT_COMPLETER_MS * CASYNC_NS_PER_MS,
};

/* Nobody was inside.  Time without waiters is not a lack of progress. */
static void waiter_limit_begin(struct casync_waiter_limit *limit)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t then_ns = __atomic_exchange_n(&limit->progress_ns, now_ns,
					       __ATOMIC_SEQ_CST);

	/* A thread that left, or the keeper, may have stored a later time. */
	if (casync_clock_since_ns(now_ns, then_ns) >=
	    patience_ns[CASYNC_WAITER_COMPLETER])
		__atomic_store_n(&limit->credit, 0, __ATOMIC_RELAXED);
}

bool casync_waiter_limit_try(struct casync_waiter_limit *limit,
			     enum casync_waiter_kind kind, uint32_t room)
{
	uint32_t *word = &limit->kinds[kind].inside;
	uint32_t inside = __atomic_load_n(word, __ATOMIC_SEQ_CST);

	while (inside < room) {
		if (!__atomic_compare_exchange_n(word, &inside, inside + 1,
						 false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		if (inside == 0)
			waiter_limit_begin(limit);
		return true;
	}
	return false;
}

/* Wait for a thread to leave after LEFT was read.  False after LONGEST_NS. */
static bool waiter_limit_wait(struct casync_waiter_limit *limit,
			      enum casync_waiter_kind kind, uint32_t left,
			      uint64_t longest_ns)
{
	uint32_t *left_word = &limit->kinds[kind].left;
	uint32_t *sleepers = &limit->kinds[kind].sleepers;
	uint64_t now_ns = casync_clock_ns();
	uint64_t give_up_ns = longest_ns + __atomic_load_n(&limit->progress_ns,
							   __ATOMIC_SEQ_CST);

	if (now_ns >= give_up_ns)
		return false;
	__atomic_add_fetch(sleepers, 1, __ATOMIC_SEQ_CST);
	casync_futex_wait(left_word, left, give_up_ns - now_ns);
	CASYNC_CHECK_DOWN(sleepers, __ATOMIC_SEQ_CST);
	return true;
}

static uint32_t waiter_limit_left(const struct casync_waiter_limit *limit,
				  enum casync_waiter_kind kind)
{
	return __atomic_load_n(&limit->kinds[kind].left, __ATOMIC_SEQ_CST);
}

bool casync_waiter_limit_enter(struct casync_waiter_limit *limit,
			       enum casync_waiter_kind kind, uint32_t room)
{
	uint32_t left;

	do {
		left = waiter_limit_left(limit, kind);
		if (casync_waiter_limit_try(limit, kind, room))
			return true;
	} while (waiter_limit_wait(limit, kind, left, patience_ns[kind]));
	return false;
}

void casync_waiter_limit_cancel(struct casync_waiter_limit *limit,
				enum casync_waiter_kind kind)
{
	CASYNC_CHECK_DOWN(&limit->kinds[kind].inside, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&limit->kinds[kind].left, 1, __ATOMIC_SEQ_CST);
	/* One for this place, one for what an answer adds to the window. */
	if (__atomic_load_n(&limit->kinds[kind].sleepers, __ATOMIC_SEQ_CST) !=
	    0)
		casync_futex_wake(&limit->kinds[kind].left, 2);
}

void casync_waiter_limit_leave(struct casync_waiter_limit *limit,
			       enum casync_waiter_kind kind)
{
	__atomic_store_n(&limit->progress_ns, casync_clock_ns(),
			 __ATOMIC_SEQ_CST);
	casync_waiter_limit_cancel(limit, kind);
}

static uint32_t waiter_limit_workers(void)
{
	return nfs_param.core_param.rpc.ioq_thrd_max;
}

uint32_t casync_waiter_limit_workers(void)
{
	return waiter_limit_workers() / 4 + 1;
}

/* --- the limit of a mount */

uint32_t casync_waiter_limit_budget(void)
{
	return waiter_limit_workers() - waiter_limit_workers() / 4;
}

/* Has a mount a window when ALL workers are inside the limits? */
static bool waiter_limit_bounds_mounts(uint32_t all)
{
	/* The folder that has all to itself may keep a quarter. */
	return all >= casync_waiter_limit_budget() / MOUNT_PART + MOUNT_FIRST;
}

static bool waiter_limit_is_proved(const struct casync_waiter_limit *mount)
{
	return __atomic_load_n(&mount->credit, __ATOMIC_RELAXED) != 0;
}

/* The places of a mount, if its MDS has not answered the keeper. */
static uint32_t
waiter_limit_mount_window(const struct casync_waiter_limit *mount)
{
	uint32_t all = __atomic_load_n(&all_inside, __ATOMIC_RELAXED);
	bool few = waiter_limit_bounds_mounts(all) &&
		   !waiter_limit_is_proved(mount);

	return few ? MOUNT_FIRST : UINT32_MAX;
}

/* The places of a file.  Its own calls do not count: so a folder that is alone
 * outlasts a pause of the MDS. */
static uint32_t waiter_limit_file_window(const struct casync_waiter_limit *file)
{
	uint32_t all = __atomic_load_n(&all_inside, __ATOMIC_RELAXED);
	uint32_t own = __atomic_load_n(&file->kinds[MOUNT_KIND].inside,
				       __ATOMIC_RELAXED);

	return all >= own + casync_waiter_limit_budget() / FILE_PART
		       ? FILE_FIRST + __atomic_load_n(&file->credit,
						      __ATOMIC_RELAXED)
		       : UINT32_MAX;
}

bool casync_waiter_limit_wants_proof(const struct casync_waiter_limit *mount)
{
	/* The next call is not counted yet. */
	return waiter_limit_bounds_mounts(
		       __atomic_load_n(&all_inside, __ATOMIC_RELAXED) + 1) &&
	       !waiter_limit_is_proved(mount);
}

void casync_waiter_limit_await_proof(struct casync_waiter_limit *mount)
{
	__atomic_store_n(&mount->progress_ns, casync_clock_ns(),
			 __ATOMIC_SEQ_CST);
}

void casync_waiter_limit_prove(struct casync_waiter_limit *mount)
{
	__atomic_store_n(&mount->credit, 1, __ATOMIC_RELAXED);
	casync_waiter_limit_await_proof(mount);
	__atomic_add_fetch(&mount->kinds[MOUNT_KIND].left, 1, __ATOMIC_SEQ_CST);
	casync_futex_wake(&mount->kinds[MOUNT_KIND].left, INT_MAX);
}

static uint32_t waiter_limit_least(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

uint32_t casync_waiter_limit_file_room(const struct casync_waiter_limit *limit,
				       const struct casync_waiter_limit *mount)
{
	uint32_t taken = __atomic_load_n(&all_inside, __ATOMIC_RELAXED) +
			 __atomic_load_n(&mount->kinds[MOUNT_KIND].inside,
					 __ATOMIC_RELAXED);
	const uint32_t budget = casync_waiter_limit_budget();

	return waiter_limit_least(taken + 2 < budget ? (budget - taken) / 2 : 1,
				  waiter_limit_file_window(limit));
}

/* A folder with many changes in flight outlasts a short pause of the MDS so.
 * Half of the workers stay free: they are for what waits for less long.  A file
 * with a window has not answered since others are at work. */
static bool waiter_limit_become_patient(const struct casync_waiter_limit *file)
{
	uint32_t count, all;

	if (waiter_limit_file_window(file) <=
	    __atomic_load_n(&file->kinds[MOUNT_KIND].inside, __ATOMIC_RELAXED))
		return false;
	count = __atomic_add_fetch(&patient, 1, __ATOMIC_SEQ_CST);
	all = __atomic_load_n(&all_inside, __ATOMIC_RELAXED);
	if (count <= casync_waiter_limit_workers() &&
	    count + all <= waiter_limit_workers() / 2)
		return true;
	CASYNC_CHECK_DOWN(&patient, __ATOMIC_SEQ_CST);
	return false;
}

/* Count one more, but not above MOST.  @return How many there were, or MOST. */
static uint32_t waiter_limit_count_one(uint32_t most)
{
	uint32_t all = __atomic_load_n(&all_inside, __ATOMIC_SEQ_CST);

	while (all < most) {
		if (__atomic_compare_exchange_n(&all_inside, &all, all + 1,
						false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			return all;
	}
	return most;
}

/* Enter the limit of a mount, counted in all already. */
static bool waiter_limit_enter_counted(struct casync_waiter_limit *limit,
				       uint32_t room)
{
	if (casync_waiter_limit_try(
		    limit, MOUNT_KIND,
		    waiter_limit_least(room, waiter_limit_mount_window(limit))))
		return true;
	CASYNC_CHECK_DOWN(&all_inside, __ATOMIC_SEQ_CST);
	return false;
}

bool casync_waiter_limit_try_mount(struct casync_waiter_limit *limit,
				   enum casync_caller who)
{
	const uint32_t budget = casync_waiter_limit_budget();
	uint32_t left = budget - waiter_limit_count_one(budget);

	if (left == 0)
		return false;
	if (who == CASYNC_CALLER_OPTIONAL)
		left = (left + 1) / 2;
	else if (who == CASYNC_CALLER_FIRST && left < budget / 2 &&
		 waiter_limit_is_proved(limit))
		left = waiter_limit_least(4 * left, budget / 2);
	return waiter_limit_enter_counted(limit, left);
}

bool casync_waiter_limit_try_reserve(struct casync_waiter_limit *limit)
{
	const uint32_t most =
		waiter_limit_workers() - waiter_limit_workers() / 8;

	return waiter_limit_count_one(most) != most &&
	       waiter_limit_enter_counted(limit, UINT32_MAX);
}

/* A worker that waits for a place is kept, too.  A dead mount's many requests
 * wait together, so eight mounts would keep all workers in turn for 0.1 s each.
 */
static bool waiter_limit_wait_for_place(struct casync_waiter_limit *limit,
					uint32_t left, bool answers,
					enum casync_waiter_kind patience)
{
	uint32_t all = __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED) +
		       __atomic_load_n(&all_inside, __ATOMIC_RELAXED);
	bool crowded = all > casync_waiter_limit_budget();
	bool again = waiter_limit_wait(limit, MOUNT_KIND, left,
				       crowded && !answers
					       ? CROWDED_MS * CASYNC_NS_PER_MS
					       : patience_ns[patience]);

	CASYNC_CHECK_DOWN(&waiting, __ATOMIC_RELAXED);
	return again;
}

/* The limit of a file in MOUNT.  The file has answered a moment ago, or not. */
static bool waiter_limit_enter_file(struct casync_waiter_limit *file,
				    const struct casync_waiter_limit *mount,
				    bool answers)
{
	enum casync_waiter_kind patience = CASYNC_WAITER_COMPLETER;
	uint32_t left;
	bool entered;

	do {
		left = waiter_limit_left(file, MOUNT_KIND);
		entered = casync_waiter_limit_try(
			file, MOUNT_KIND,
			casync_waiter_limit_file_room(file, mount));
		if (!entered && answers &&
		    patience == CASYNC_WAITER_COMPLETER &&
		    waiter_limit_become_patient(file))
			patience = CASYNC_WAITER_WORKER;
	} while (!entered &&
		 waiter_limit_wait_for_place(file, left, answers, patience));
	if (patience == CASYNC_WAITER_WORKER)
		CASYNC_CHECK_DOWN(&patient, __ATOMIC_SEQ_CST);
	return entered;
}

bool casync_waiter_limit_enter_mount(struct casync_waiter_limit *mount,
				     enum casync_caller who)
{
	uint32_t left;

	do {
		left = waiter_limit_left(mount, MOUNT_KIND);
		if (casync_waiter_limit_try_mount(mount, who))
			return true;
	} while (waiter_limit_wait_for_place(
		mount, left, waiter_limit_is_proved(mount), MOUNT_KIND));
	return false;
}

static enum casync_caller
waiter_limit_caller(const struct casync_waiter_limit *file)
{
	const uint32_t *inside = &file->kinds[MOUNT_KIND].inside;
	bool other = __atomic_load_n(inside, __ATOMIC_RELAXED) != 0;

	return other ? CASYNC_CALLER_NEXT : CASYNC_CALLER_FIRST;
}

bool casync_waiter_limit_enter_both(struct casync_waiter_limit *file,
				    struct casync_waiter_limit *mount,
				    bool answers)
{
	enum casync_caller who = waiter_limit_caller(file);

	if (!waiter_limit_enter_file(file, mount, answers))
		return false;
	if ((answers && who == CASYNC_CALLER_FIRST &&
	     (casync_waiter_limit_try_mount(mount, who) ||
	      casync_waiter_limit_try_reserve(mount))) ||
	    casync_waiter_limit_enter_mount(mount, who))
		return true;
	casync_waiter_limit_cancel(file, MOUNT_KIND);
	return false;
}

bool casync_waiter_limit_try_both(struct casync_waiter_limit *file,
				  struct casync_waiter_limit *mount)
{
	bool first = waiter_limit_caller(file) == CASYNC_CALLER_FIRST;

	if (!casync_waiter_limit_try(file, MOUNT_KIND,
				     waiter_limit_file_window(file)))
		return false;
	if (casync_waiter_limit_try_mount(mount, CASYNC_CALLER_OPTIONAL) ||
	    (first && casync_waiter_limit_wants_proof(mount) &&
	     casync_waiter_limit_enter_mount(mount, CASYNC_CALLER_FIRST)))
		return true;
	casync_waiter_limit_cancel(file, MOUNT_KIND);
	return false;
}

void casync_waiter_limit_force_mount(struct casync_waiter_limit *limit)
{
	__atomic_add_fetch(&all_inside, 1, __ATOMIC_SEQ_CST);
	(void)casync_waiter_limit_try(limit, MOUNT_KIND, UINT32_MAX);
}

void casync_waiter_limit_leave_mount(struct casync_waiter_limit *limit,
				     struct casync_waiter_limit *file)
{
	if (file != NULL) {
		__atomic_add_fetch(&file->credit, 1, __ATOMIC_RELAXED);
		casync_waiter_limit_leave(file, MOUNT_KIND);
	}
	CASYNC_CHECK_DOWN(&all_inside, __ATOMIC_SEQ_CST);
	casync_waiter_limit_leave(limit, MOUNT_KIND);
}

void casync_waiter_limit_cancel_mount(struct casync_waiter_limit *limit,
				      struct casync_waiter_limit *file)
{
	if (file != NULL)
		casync_waiter_limit_cancel(file, MOUNT_KIND);
	CASYNC_CHECK_DOWN(&all_inside, __ATOMIC_SEQ_CST);
	casync_waiter_limit_cancel(limit, MOUNT_KIND);
}

/* --- the age of a mount's calls */

uint32_t casync_waiter_limit_enter_age(struct casync_waiter_age *age)
{
	uint32_t young = __atomic_load_n(&age->young, __ATOMIC_RELAXED);

	/* A look between the two makes it look older than it is, by less than
	 * the time between two looks. */
	__atomic_add_fetch(&age->inside[young], 1, __ATOMIC_RELAXED);
	return young;
}

void casync_waiter_limit_leave_age(struct casync_waiter_age *age,
				   uint32_t generation)
{
	CASYNC_CHECK_DOWN(&age->inside[generation], __ATOMIC_RELAXED);
}

uint64_t casync_waiter_limit_look_at_age(struct casync_waiter_age *age,
					 uint64_t now_ns)
{
	uint32_t young = __atomic_load_n(&age->young, __ATOMIC_RELAXED);

	if (__atomic_load_n(&age->inside[1 - young], __ATOMIC_RELAXED) != 0)
		return now_ns - age->since_ns;
	__atomic_store_n(&age->young, 1 - young, __ATOMIC_RELAXED);
	age->since_ns = now_ns;
	return 0;
}

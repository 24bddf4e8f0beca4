/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "nfs_core.h"

#include "budget.h"
#include "check.h"
#include "clock.h"

/* --- the table of budget.h, row by row */

#define MOUNT_FIRST 4
#define FILE_FIRST 1

/* ONE minus OTHER, and at least 0. */
static uint32_t budget_less(uint32_t one, uint32_t other)
{
	return one > other ? one - other : 0;
}

static uint32_t budget_of(const struct casync_load *load)
{
	return load->workers - load->workers / 4;
}

static uint32_t budget_of_mount(const struct casync_load *load)
{
	const uint32_t budget = budget_of(load);
	uint32_t left = budget_less(budget, load->all);

	if (load->optional)
		return (left + 1) / 2;
	if (load->first && load->answered)
		return load->all < load->workers - load->workers / 8
			       ? UINT32_MAX
			       : 0;
	if (load->first && load->mount_proved)
		return MAX(left, MIN(4 * left, budget / 2));
	return left;
}

static uint32_t budget_of_file(const struct casync_load *load)
{
	uint32_t left =
		budget_less(budget_of(load), load->all + load->mount_inside);

	if (load->optional)
		return UINT32_MAX;
	return left > 2 ? left / 2 : 1;
}

/* The places of a file that was idle.  Its own calls are no load: so a folder
 * that is alone outlasts a pause of the MDS. */
static uint32_t budget_window(const struct casync_load *load)
{
	return load->all >= load->file_inside + budget_of(load) / 16
		       ? FILE_FIRST + load->file_answers
		       : UINT32_MAX;
}

static uint32_t budget_patient_room(const struct casync_load *load)
{
	if (!load->answered || load->file_inside >= budget_window(load))
		return 0;
	return MIN(load->workers / 4 + 1,
		   budget_less(load->workers / 2, load->all));
}

static uint32_t budget_patience_ms(const struct casync_load *load, bool trusted)
{
	bool crowded = load->waiting + load->all > budget_of(load);

	return crowded && !trusted ? CASYNC_BUDGET_CROWDED_MS
				   : CASYNC_BUDGET_SHORT_MS;
}

static bool budget_asks_mds(const struct casync_load *load)
{
	return !load->mount_proved &&
	       load->all + 1 >= budget_of(load) / 4 + MOUNT_FIRST;
}

struct casync_decision casync_budget_decide(const struct casync_load *load)
{
	bool few = budget_asks_mds(load);

	return (struct casync_decision){
		.mount_room = MIN(budget_of_mount(load),
				  few ? MOUNT_FIRST : UINT32_MAX),
		.mount_ms = budget_patience_ms(load, load->mount_proved),
		.file_room = MIN(budget_of_file(load), budget_window(load)),
		.file_ms = budget_patience_ms(load, load->answered),
		.patient_room = budget_patient_room(load),
		.asks_mds = few,
	};
}

/* --- the counts */

/* Workers in all mounts' slots, and those that wait for CASYNC_BUDGET_LONG_MS.
 * Nobody waits for a place in these two. */
static struct casync_room all, patient;

/* Workers that wait for a place; atomic. */
static uint32_t waiting;

struct caller {
	const struct casync_budget_slot *slot;
	struct casync_load load;
	struct casync_decision decision;
};

static uint32_t budget_read(const uint32_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static uint32_t budget_workers(void)
{
	return nfs_param.core_param.rpc.ioq_thrd_max;
}

uint32_t casync_budget_quarter(void)
{
	return budget_workers() / 4 + 1;
}

static void budget_decide_now(struct caller *caller)
{
	const struct casync_room *mount = &caller->slot->mount->room;
	const struct casync_room *file = caller->slot->file;
	struct casync_load *load = &caller->load;

	load->workers = budget_workers();
	load->all = budget_read(&all.inside);
	load->waiting = budget_read(&waiting) + 1;
	load->mount_inside = budget_read(&mount->inside);
	load->mount_proved = budget_read(&mount->answers) != 0;
	if (file != NULL) {
		load->file_inside = budget_read(&file->inside);
		load->file_answers = budget_read(&file->answers);
	}
	caller->decision = casync_budget_decide(load);
}

/* MOST: as many as there were at the decision, or as many as it allows.  So a
 * thread that leaves since then is seen, whatever was full. */
static bool budget_sleep(struct casync_room *room, uint32_t left, uint32_t most,
			 uint32_t patience_ms)
{
	bool again;

	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
	again = casync_room_sleep(room, left, most, patience_ms);
	CASYNC_CHECK_DOWN(&waiting, __ATOMIC_RELAXED);
	return again;
}

static bool budget_enter_file(struct caller *caller)
{
	const struct casync_decision *decision = &caller->decision;
	struct casync_room *file = caller->slot->file;
	bool entered, is_patient = false;
	uint32_t left;

	do {
		left = casync_room_left(file);
		budget_decide_now(caller);
		entered = casync_room_try(file, decision->file_room);
		if (!entered && !is_patient)
			is_patient = casync_room_try(&patient,
						     decision->patient_room);
	} while (
		!entered && !caller->load.optional &&
		budget_sleep(file, left,
			     MAX(caller->load.file_inside, decision->file_room),
			     is_patient ? CASYNC_BUDGET_LONG_MS
					: decision->file_ms));
	if (is_patient)
		casync_room_leave(&patient, 0);
	return entered;
}

/* By the last decision.  If more have come since then, it is made anew. */
static bool budget_try_mount(struct caller *caller, struct casync_room *mount)
{
	while (caller->load.mount_inside < caller->decision.mount_room) {
		if (!casync_room_try(&all, caller->load.all + 1)) {
			budget_decide_now(caller);
			continue;
		}
		if (casync_room_try(mount, caller->decision.mount_room))
			return true;
		casync_room_leave(&all, 0);
		break;
	}
	return false;
}

static bool budget_enter_mount(struct caller *caller)
{
	const struct casync_decision *decision = &caller->decision;
	struct casync_room *mount = &caller->slot->mount->room;
	struct casync_load *load = &caller->load;
	uint32_t left;
	bool again;

	if (budget_try_mount(caller, mount))
		return true;
	do {
		left = casync_room_left(mount);
		budget_decide_now(caller);
		if (budget_try_mount(caller, mount))
			return true;
		again = load->optional ? load->first && decision->asks_mds
				       : budget_sleep(mount, left,
						      MAX(load->mount_inside,
							  decision->mount_room),
						      decision->mount_ms);
		load->optional = false;
	} while (again);
	return false;
}

static bool budget_enter(struct caller *caller)
{
	struct casync_room *file = caller->slot->file;

	if (file == NULL)
		budget_decide_now(caller);
	else if (!budget_enter_file(caller))
		return false;
	if (budget_enter_mount(caller))
		return true;
	if (file != NULL)
		casync_room_leave(file, 0);
	return false;
}

static bool budget_enter_always(const struct casync_budget_slot *slot)
{
	return casync_room_try(&all, UINT32_MAX) &&
	       casync_room_try(&slot->mount->room, UINT32_MAX) &&
	       (slot->file == NULL || casync_room_try(slot->file, UINT32_MAX));
}

bool casync_budget_enter(struct casync_budget_slot *slot,
			 enum casync_budget_who who, bool answered)
{
	struct casync_budget_age *age = &slot->mount->age;
	struct caller caller = {
		.slot = slot,
		.load.answered = answered && who != CASYNC_BUDGET_OPTIONAL,
		.load.first = slot->file != NULL &&
			      budget_read(&slot->file->inside) == 0,
		.load.optional = who == CASYNC_BUDGET_OPTIONAL,
	};

	if (!(who == CASYNC_BUDGET_ALWAYS ? budget_enter_always(slot)
					  : budget_enter(&caller)))
		return false;
	/* A look between the two makes the call look older than it is, by less
	 * than the time between two looks. */
	slot->generation = budget_read(&age->young);
	__atomic_add_fetch(&age->inside[slot->generation], 1, __ATOMIC_RELAXED);
	return true;
}

/* More answers than workers make no difference. */
static void budget_count_answer(struct casync_room *file)
{
	if (budget_read(&file->answers) < budget_workers())
		__atomic_add_fetch(&file->answers, 1, __ATOMIC_RELAXED);
}

void casync_budget_leave(const struct casync_budget_slot *slot,
			 uint64_t answered_ns)
{
	CASYNC_CHECK_DOWN(&slot->mount->age.inside[slot->generation],
			  __ATOMIC_RELAXED);
	if (slot->file != NULL) {
		if (answered_ns != 0)
			budget_count_answer(slot->file);
		casync_room_leave(slot->file, answered_ns);
	}
	casync_room_leave(&all, 0);
	casync_room_leave(&slot->mount->room, answered_ns);
}

/* --- the proof of a mount */

bool casync_budget_wants_proof(const struct casync_budget_mount *mount)
{
	const struct casync_load load = {
		.workers = budget_workers(),
		.all = budget_read(&all.inside),
		.mount_proved = budget_read(&mount->room.answers) != 0,
	};

	return budget_asks_mds(&load);
}

void casync_budget_await_proof(struct casync_budget_mount *mount)
{
	__atomic_store_n(&mount->room.progress_ns, casync_clock_ns(),
			 __ATOMIC_RELAXED);
}

void casync_budget_prove(struct casync_budget_mount *mount)
{
	__atomic_store_n(&mount->room.answers, 1, __ATOMIC_RELAXED);
	casync_budget_await_proof(mount);
	casync_room_wake_all(&mount->room);
}

/* --- the age of a mount's calls */

uint64_t casync_budget_look_at_age(struct casync_budget_age *age,
				   uint64_t now_ns)
{
	uint32_t young = budget_read(&age->young);

	if (budget_read(&age->inside[1 - young]) != 0)
		return now_ns - age->since_ns;
	__atomic_store_n(&age->young, 1 - young, __ATOMIC_RELAXED);
	age->since_ns = now_ns;
	return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "call_rig.h"
#include "clock.h"
#include "object_table.h"
#include "read_cache.h"
#include "stub_mount.h"

static const char old_inode, new_inode;

struct casync_call call;

/* --- what call.c takes and releases: a capital, and a small letter */

static char steps[64];

/* Threads of a case run at once: their steps are not looked at. */
static _Thread_local bool noted;

static void note(char step)
{
	size_t length = strlen(steps);

	assert_true(length < sizeof(steps) - 1);
	steps[length] = step;
}

/* The budget has rooms, too, but they come and go with the slot. */
static void note_room(const struct casync_room *room, bool leaves)
{
	char letter;

	if (room == &rig.obj->getattr[0])
		letter = 'A';
	else if (room == &rig.obj->change)
		letter = 'C';
	else if (room == &rig.exp.statfs)
		letter = 'S';
	else
		return;
	if (noted)
		note((char)(leaves ? tolower(letter) : letter));
}

bool __real_casync_room_enter(struct casync_room *room, uint32_t most,
			      uint32_t patience_ms);
bool __wrap_casync_room_enter(struct casync_room *room, uint32_t most,
			      uint32_t patience_ms);
void __real_casync_room_leave(struct casync_room *room, uint64_t answered_ns);
void __wrap_casync_room_leave(struct casync_room *room, uint64_t answered_ns);
bool __real_casync_budget_enter(struct casync_budget_slot *slot,
				enum casync_budget_who who, bool answered);
bool __wrap_casync_budget_enter(struct casync_budget_slot *slot,
				enum casync_budget_who who, bool answered);
void __real_casync_budget_leave(const struct casync_budget_slot *slot,
				uint64_t answered_ns);
void __wrap_casync_budget_leave(const struct casync_budget_slot *slot,
				uint64_t answered_ns);
bool __real_casync_guard_enter(struct casync_guard *guard);
bool __wrap_casync_guard_enter(struct casync_guard *guard);
bool __real_casync_guard_enter_up_to(struct casync_guard *guard,
				     enum casync_guard_phase phase);
bool __wrap_casync_guard_enter_up_to(struct casync_guard *guard,
				     enum casync_guard_phase phase);
void __real_casync_guard_leave(struct casync_guard *guard);
void __wrap_casync_guard_leave(struct casync_guard *guard);
void __real_casync_cache_begin_write(struct casync_cache_file *file);
void __wrap_casync_cache_begin_write(struct casync_cache_file *file);
void __real_casync_cache_end_write(struct casync_cache_file *file);
void __wrap_casync_cache_end_write(struct casync_cache_file *file);

bool __wrap_casync_room_enter(struct casync_room *room, uint32_t most,
			      uint32_t patience_ms)
{
	bool entered = __real_casync_room_enter(room, most, patience_ms);

	if (entered)
		note_room(room, false);
	return entered;
}

void __wrap_casync_room_leave(struct casync_room *room, uint64_t answered_ns)
{
	note_room(room, true);
	__real_casync_room_leave(room, answered_ns);
}

bool __wrap_casync_budget_enter(struct casync_budget_slot *slot,
				enum casync_budget_who who, bool answered)
{
	bool entered = __real_casync_budget_enter(slot, who, answered);

	if (noted && entered)
		note('M');
	return entered;
}

void __wrap_casync_budget_leave(const struct casync_budget_slot *slot,
				uint64_t answered_ns)
{
	if (noted)
		note('m');
	__real_casync_budget_leave(slot, answered_ns);
}

bool __wrap_casync_guard_enter(struct casync_guard *guard)
{
	bool entered = __real_casync_guard_enter(guard);

	if (noted && entered)
		note('G');
	return entered;
}

bool __wrap_casync_guard_enter_up_to(struct casync_guard *guard,
				     enum casync_guard_phase phase)
{
	bool entered = __real_casync_guard_enter_up_to(guard, phase);

	if (noted && entered)
		note('G');
	return entered;
}

void __wrap_casync_guard_leave(struct casync_guard *guard)
{
	if (noted)
		note('g');
	__real_casync_guard_leave(guard);
}

void __wrap_casync_cache_begin_write(struct casync_cache_file *file)
{
	if (noted)
		note('W');
	__real_casync_cache_begin_write(file);
}

void __wrap_casync_cache_end_write(struct casync_cache_file *file)
{
	if (noted)
		note('w');
	__real_casync_cache_end_write(file);
}

void check_steps(const char *expected)
{
	assert_string_equal(steps, expected);
	memset(steps, 0, sizeof(steps));
}

uint32_t *mount_inside(void)
{
	return &stub_mount.callers.room.inside;
}

uint32_t *attr_inside(void)
{
	return &rig.obj->getattr[0].inside;
}

uint32_t *change_inside(void)
{
	return &rig.obj->change.inside;
}

uint32_t *statfs_inside(void)
{
	return &rig.exp.statfs.inside;
}

uint32_t writers(void)
{
	return __atomic_load_n(&rig.obj->cached->file.writers,
			       __ATOMIC_ACQUIRE);
}

static struct casync_object_table *table(void)
{
	return &stub_mount.upcalls.table;
}

int call_up(void **state)
{
	struct casync_keeper *keeper = &stub_mount.keeper;
	int rc = rig_up(state);

	memset(&call, 0, sizeof(call));
	memset(steps, 0, sizeof(steps));
	noted = true;
	rig.obj->inode = (struct Inode *)&old_inode;
	(void)casync_object_table_enter(table(), rig.obj);
	fake.inode = (struct Inode *)&new_inode;
	pthread_mutex_init(&keeper->thread.lock, NULL);
	casync_clock_cond_init(&keeper->thread.wake);
	keeper->thread.call = (struct casync_deadline_call *)&stub_mount;
	keeper->reconnect = 1;
	return rc;
}

int call_down(void **state)
{
	const uint32_t *dated = stub_mount.callers.age.inside;
	bool left = *mount_inside() != 0 || *attr_inside() != 0 ||
		    *change_inside() != 0 || *statfs_inside() != 0 ||
		    writers() != 0 || dated[0] != 0 || dated[1] != 0;

	noted = false;
	(void)casync_object_table_leave(table(), rig.obj);
	pthread_cond_destroy(&stub_mount.keeper.thread.wake);
	pthread_mutex_destroy(&stub_mount.keeper.thread.lock);
	return rig_down(state) != 0 || left ? -1 : 0;
}

void new_client(void)
{
	casync_guard_renew(&stub_mount.guard);
}

void lose_client(void)
{
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
}

int take(uint32_t needs)
{
	return casync_call_take(&call, rig.obj, needs);
}

fsal_status_t begin(uint32_t needs)
{
	return casync_call_begin(&call, &rig.obj->handle, needs);
}

void run(void *(*thread_main)(void *unused))
{
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	RIG_JOIN(thread, &failed);
	assert_null(failed);
}

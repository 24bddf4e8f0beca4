/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <limits.h>

#include "check.h"
#include "clock.h"
#include "futex.h"
#include "room.h"

/* Nobody was inside.  Time without waiters is not a lack of progress. */
static void room_begin(struct casync_room *room)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t then_ns =
		__atomic_load_n(&room->progress_ns, __ATOMIC_RELAXED);

	__atomic_store_n(&room->progress_ns, now_ns, __ATOMIC_RELAXED);
	/* A thread that left, or the keeper, may have stored a later time. */
	if (casync_clock_since_ns(now_ns, then_ns) >=
	    CASYNC_ROOM_IDLE_MS * CASYNC_NS_PER_MS)
		__atomic_store_n(&room->answers, 0, __ATOMIC_RELAXED);
}

bool casync_room_try(struct casync_room *room, uint32_t most)
{
	uint32_t inside = __atomic_load_n(&room->inside, __ATOMIC_SEQ_CST);

	while (inside < most) {
		if (!__atomic_compare_exchange_n(
			    &room->inside, &inside, inside + 1, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		if (inside == 0)
			room_begin(room);
		return true;
	}
	return false;
}

bool casync_room_sleep(struct casync_room *room, uint32_t left, uint32_t most,
		       uint32_t patience_ms)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t give_up_ns =
		patience_ms * CASYNC_NS_PER_MS +
		__atomic_load_n(&room->progress_ns, __ATOMIC_RELAXED);

	if (now_ns >= give_up_ns)
		return false;
	/* Before the last look: who leaves after it sees the sleeper. */
	__atomic_add_fetch(&room->sleepers, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&room->inside, __ATOMIC_SEQ_CST) >= most)
		casync_futex_wait(&room->left, left, give_up_ns - now_ns);
	CASYNC_CHECK_DOWN(&room->sleepers, __ATOMIC_SEQ_CST);
	return true;
}

bool casync_room_enter(struct casync_room *room, uint32_t most,
		       uint32_t patience_ms)
{
	uint32_t left;

	do {
		left = casync_room_left(room);
		if (casync_room_try(room, most))
			return true;
	} while (casync_room_sleep(room, left, most, patience_ms));
	return false;
}

static void room_wake(struct casync_room *room, int count)
{
	__atomic_add_fetch(&room->left, 1, __ATOMIC_SEQ_CST);
	casync_futex_wake(&room->left, count);
}

void casync_room_wake_all(struct casync_room *room)
{
	room_wake(room, INT_MAX);
}

void casync_room_leave(struct casync_room *room, uint64_t answered_ns)
{
	if (answered_ns != 0)
		__atomic_store_n(&room->progress_ns, answered_ns,
				 __ATOMIC_RELAXED);
	CASYNC_CHECK_DOWN(&room->inside, __ATOMIC_SEQ_CST);
	/* One for this place, one for what an answer adds to the window. */
	if (__atomic_load_n(&room->sleepers, __ATOMIC_SEQ_CST) != 0)
		room_wake(room, 2);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "clock.h"
#include "inflight.h"

#define MAX_OPS 3
#define MAX_BYTES 1000

static struct casync_inflight set;
static struct casync_inflight_entry entries[8];

static int up(void **state)
{
	memset(entries, 0, sizeof(entries));
	casync_inflight_init(&set, MAX_OPS, MAX_BYTES);
	return 0;
}

static int down(void **state)
{
	casync_inflight_destroy(&set);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static void enter(unsigned int i, uint64_t bytes)
{
	assert_int_equal(casync_inflight_enter(&set, &entries[i], bytes), 0);
}

static void leave(unsigned int i)
{
	casync_inflight_leave(&set, &entries[i]);
}

/* Somebody who asks to be let in, on a thread of his own. */
struct guest {
	pthread_t thread;
	struct casync_inflight_entry entry;
	uint64_t bytes;
	bool stays; /* else leaves as soon as he is in */
	int rc;
	sem_t called;
	uint64_t waited_ns;
};

static void wake(struct casync_inflight_entry *entry)
{
	sem_post(&container_of(entry, struct guest, entry)->called);
}

static void *visit(void *arg)
{
	struct guest *guest = arg;
	uint64_t start_ns = casync_clock_ns();

	sem_init(&guest->called, 0, 0);
	guest->entry.called = wake;
	guest->rc = casync_inflight_enter(&set, &guest->entry, guest->bytes);
	if (guest->rc == -EINPROGRESS) {
		guest->rc = rig_wait(&guest->called) ? guest->entry.refused
						     : -ETIME;
		if (guest->rc != 0)
			casync_inflight_leave(&set, &guest->entry);
	}
	sem_destroy(&guest->called);
	guest->waited_ns = casync_clock_ns() - start_ns;
	if (guest->rc == 0 && !guest->stays)
		casync_inflight_leave(&set, &guest->entry);
	return NULL;
}

static void send(struct guest *guest)
{
	assert_int_equal(pthread_create(&guest->thread, NULL, visit, guest), 0);
}

static unsigned int waiting(void)
{
	unsigned int count;

	pthread_mutex_lock(&set.lock);
	count = set.waiting;
	pthread_mutex_unlock(&set.lock);
	return count;
}

CASE(entries_are_counted_and_listed_in_order)
{
	enter(0, 10);
	enter(1, 20);
	assert_int_equal(set.ops, 2);
	assert_int_equal(set.bytes, 30);
	assert_ptr_equal(glist_first_entry(&set.entries,
					   struct casync_inflight_entry, link),
			 &entries[0]);
	assert_true(entries[0].since_ns <= entries[1].since_ns);
	assert_int_not_equal(entries[0].since_ns, 0);
	leave(0);
	assert_int_equal(set.bytes, 20);
	leave(1);
	assert_int_equal(set.ops, 0);
	assert_int_equal(set.bytes, 0);
	assert_true(glist_empty(&set.entries));
}

CASE(entry_is_fresh_when_used_again)
{
	entries[0].reported = true;
	enter(0, 1);
	assert_false(entries[0].reported);
	leave(0);
}

CASE(full_by_ops_lets_in_when_one_leaves)
{
	struct guest guest = {.bytes = 1};
	unsigned int i;

	for (i = 0; i < MAX_OPS; i++)
		enter(i, 1);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	assert_int_equal(set.ops, MAX_OPS);
	leave(1);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, 0);
	leave(0);
	leave(2);
	assert_int_equal(set.ops, 0);
}

CASE(full_by_bytes_lets_in_when_they_leave)
{
	struct guest guest = {.bytes = 401};

	enter(0, 600);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	leave(0);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, 0);
	assert_int_equal(set.bytes, 0);
}

CASE(bytes_up_to_limit_enter_at_once)
{
	enter(0, 600);
	enter(1, 400);
	assert_int_equal(set.bytes, MAX_BYTES);
	leave(0);
	leave(1);
}

CASE(larger_than_limit_enters_empty_set)
{
	enter(0, MAX_BYTES * 10);
	assert_int_equal(set.bytes, MAX_BYTES * 10);
	leave(0);
}

CASE(larger_than_limit_waits_until_alone)
{
	struct guest guest = {.bytes = MAX_BYTES * 10};

	enter(0, 1);
	enter(1, 1);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	leave(0);
	RIG_UNTIL(waiting() == 1);
	leave(1);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, 0);
}

/* As if it had come so long ago. */
static void age_first(uint64_t ms)
{
	struct casync_inflight_entry *first;

	pthread_mutex_lock(&set.lock);
	first = glist_first_entry(&set.queue, struct casync_inflight_entry,
				  link);
	assert_non_null(first);
	/* NOLINTNEXTLINE(*.NullDereference): assert_non_null returns not. */
	first->queued_ns -= ms * CASYNC_NS_PER_MS;
	pthread_mutex_unlock(&set.lock);
}

CASE(wait_for_room_is_bounded)
{
	struct guest guest = {.bytes = MAX_BYTES};

	enter(0, MAX_BYTES);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	age_first(CASYNC_MAX_WAIT_MS - 1000);
	casync_inflight_expire(&set);
	RIG_UNTIL(waiting() == 1);
	age_first(1000);
	casync_inflight_expire(&set);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, -EAGAIN);
	assert_true(guest.entry.waited_ns >=
		    CASYNC_MAX_WAIT_MS * CASYNC_NS_PER_MS);
	/* Nothing of it stays behind. */
	assert_int_equal(set.ops, 1);
	assert_int_equal(set.waiting, 0);
	assert_int_equal(set.queue_bytes, 0);
	leave(0);
}

static unsigned int calls;

static void count_call(struct casync_inflight_entry *entry)
{
	calls++;
	assert_int_equal(entry->refused, 0);
	casync_inflight_leave(&set, entry);
}

/* They wait, and no thread does. */
CASE(one_more_than_may_wait_is_turned_away_at_once)
{
	static struct casync_inflight_entry waiting[CASYNC_MAX_WAITING];
	unsigned int i;

	memset(waiting, 0, sizeof(waiting));
	calls = 0;
	enter(0, MAX_BYTES);
	for (i = 0; i < CASYNC_MAX_WAITING; i++) {
		waiting[i].called = count_call;
		assert_int_equal(casync_inflight_enter(&set, &waiting[i], 1),
				 -EINPROGRESS);
	}
	assert_int_equal(casync_inflight_enter(&set, &entries[1], 1), -EAGAIN);
	assert_int_equal(calls, 0);
	leave(0);
	assert_int_equal(calls, CASYNC_MAX_WAITING);
	assert_int_equal(set.ops, 0);
}

/* --- all sets together */

static void no_limit_of_all(void)
{
	casync_inflight_limit_all(UINT64_MAX, UINT64_MAX);
}

CASE(all_together_have_a_limit)
{
	struct casync_inflight other;

	casync_inflight_init(&other, 1000, UINT64_MAX);
	casync_inflight_limit_all(1000, 10 * CASYNC_ASSURED_BYTES);
	assert_int_equal(casync_inflight_enter(&other, &entries[0],
					       10 * CASYNC_ASSURED_BYTES),
			 0);
	assert_int_equal(casync_inflight_enter(&other, &entries[1],
					       CASYNC_ASSURED_BYTES),
			 -EAGAIN);
	/* This one has nothing yet: it is not to suffer from the other. */
	enter(2, MAX_BYTES);
	casync_inflight_leave(&other, &entries[0]);
	assert_int_equal(casync_inflight_enter(&other, &entries[1],
					       CASYNC_ASSURED_BYTES),
			 0);
	casync_inflight_leave(&other, &entries[1]);
	leave(2);
	casync_inflight_destroy(&other);
	no_limit_of_all();
}

/* So many exports, each with as much as it can get. */
CASE(what_is_assured_is_all_there_is_beyond_the_limit)
{
	static struct casync_inflight_entry many[8 * CASYNC_ASSURED_OPS];
	struct casync_inflight sets[4];
	unsigned int i, in = 0;

	casync_inflight_limit_all(100, UINT64_MAX);
	for (i = 0; i < 4; i++)
		casync_inflight_init(&sets[i], 1 << 20, UINT64_MAX);
	for (i = 0; i < 8 * CASYNC_ASSURED_OPS; i++) {
		if (casync_inflight_enter(&sets[i % 4], &many[i], 1) == 0)
			in++;
		else
			many[i].bytes = 0;
	}
	assert_int_equal(in, 4 * CASYNC_ASSURED_OPS);
	for (i = 0; i < 8 * CASYNC_ASSURED_OPS; i++) {
		if (many[i].bytes != 0)
			casync_inflight_leave(&sets[i % 4], &many[i]);
	}
	for (i = 0; i < 4; i++)
		casync_inflight_destroy(&sets[i]);
	no_limit_of_all();
}

/* What waits counts, and is given back when it is refused. */
CASE(what_waits_counts_too)
{
	struct guest guest = {.bytes = 10};

	enter(0, MAX_BYTES);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	casync_inflight_limit_all(2, UINT64_MAX);
	set.ops += CASYNC_ASSURED_OPS;
	assert_int_equal(casync_inflight_enter(&set, &entries[1], 1), -EAGAIN);
	set.ops -= CASYNC_ASSURED_OPS;
	age_first(CASYNC_MAX_WAIT_MS);
	casync_inflight_expire(&set);
	RIG_JOIN(guest.thread, NULL);
	leave(0);
	enter(1, 1);
	enter(2, 1);
	leave(1);
	leave(2);
	no_limit_of_all();
}

CASE(closed_set_refuses)
{
	assert_int_equal(casync_inflight_drain(&set, 0), 0);
	assert_int_equal(casync_inflight_enter(&set, &entries[0], 1),
			 -ECANCELED);
	assert_int_equal(set.ops, 0);
}

CASE(closing_wakes_those_who_wait)
{
	struct guest guest = {.bytes = 1};

	enter(0, MAX_BYTES);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	/* And itself, until it has heard of it. */
	assert_true(casync_inflight_drain(&set, 0) >= 1);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, -ECANCELED);
	assert_int_equal(casync_inflight_drain(&set, 0), 1);
	leave(0);
	assert_int_equal(casync_inflight_drain(&set, 0), 0);
}

CASE(drain_times_out_with_what_is_left)
{
	uint64_t start_ns = casync_clock_ns();
	uint64_t took_ns;

	enter(0, 1);
	enter(1, 1);
	assert_int_equal(casync_inflight_drain(&set, 50), 2);
	took_ns = casync_clock_ns() - start_ns;
	assert_true(took_ns >= 50 * CASYNC_NS_PER_MS);
	assert_true(took_ns <= 5000 * CASYNC_NS_PER_MS);
	leave(0);
	leave(1);
	assert_int_equal(casync_inflight_drain(&set, 0), 0);
}

struct drainer {
	pthread_t thread;
	uint64_t left;
};

static void *drain(void *arg)
{
	struct drainer *drainer = arg;

	drainer->left = casync_inflight_drain(&set, 10000);
	return NULL;
}

static bool is_closed(void)
{
	bool closed;

	pthread_mutex_lock(&set.lock);
	closed = set.closed;
	pthread_mutex_unlock(&set.lock);
	return closed;
}

CASE(drain_waits_for_last_to_leave)
{
	struct drainer drainer = {.left = 99};

	enter(0, 1);
	enter(1, 1);
	assert_int_equal(pthread_create(&drainer.thread, NULL, drain, &drainer),
			 0);
	RIG_UNTIL(is_closed());
	leave(0);
	leave(1);
	RIG_JOIN(drainer.thread, NULL);
	assert_int_equal(drainer.left, 0);
}

#define RACERS 4
#define ROUNDS 2000

static void *race(void *arg)
{
	struct guest *guest = arg;
	int i;

	for (i = 0; i < ROUNDS && guest->rc == 0; i++)
		(void)visit(guest);
	return NULL;
}

CASE(many_come_and_go_and_nothing_is_left)
{
	struct guest racers[RACERS] = {0};
	unsigned int i;

	for (i = 0; i < RACERS; i++) {
		racers[i].bytes = 200 + 150 * i;
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race,
						&racers[i]),
				 0);
	}
	for (i = 0; i < RACERS; i++)
		RIG_JOIN(racers[i].thread, NULL);
	for (i = 0; i < RACERS; i++)
		assert_int_equal(racers[i].rc, 0);
	assert_int_equal(set.ops, 0);
	assert_int_equal(set.bytes, 0);
	assert_int_equal(set.waiting, 0);
}

/* Room for a small one is not given past a large one that was there first. */
CASE(nobody_overtakes)
{
	struct guest large = {.bytes = 900, .stays = true};
	struct guest small = {.bytes = 1, .stays = true};

	enter(0, 200);
	enter(1, 1);
	send(&large);
	RIG_UNTIL(waiting() == 1);
	send(&small);
	RIG_UNTIL(waiting() == 2);
	leave(1);
	RIG_UNTIL(waiting() == 2);
	leave(0);
	RIG_JOIN(large.thread, NULL);
	RIG_JOIN(small.thread, NULL);
	assert_int_equal(large.rc, 0);
	assert_int_equal(small.rc, 0);
	assert_true(large.entry.since_ns <= small.entry.since_ns);
	casync_inflight_leave(&set, &large.entry);
	casync_inflight_leave(&set, &small.entry);
	assert_int_equal(set.ops, 0);
	assert_int_equal(set.bytes, 0);
}

/* Who gives up does not stand in the way of who came behind him. */
CASE(giving_up_lets_the_next_one_in)
{
	struct guest large = {.bytes = 900};
	struct guest small = {.bytes = 1};

	enter(0, 200);
	send(&large);
	RIG_UNTIL(waiting() == 1);
	send(&small);
	RIG_UNTIL(waiting() == 2);
	age_first(CASYNC_MAX_WAIT_MS);
	casync_inflight_expire(&set);
	RIG_JOIN(large.thread, NULL);
	RIG_JOIN(small.thread, NULL);
	assert_int_equal(large.rc, -EAGAIN);
	assert_int_equal(small.rc, 0);
	assert_true(small.waited_ns < CASYNC_MAX_WAIT_MS * CASYNC_NS_PER_MS);
	leave(0);
}

static void note(struct casync_inflight_entry *entry, void *arg)
{
	struct casync_inflight_entry ***next = arg;

	*(*next)++ = entry;
}

CASE(overdue_entries_are_visited_once_and_all_any_time)
{
	struct casync_inflight_entry *seen[8];
	struct casync_inflight_entry **next = seen;
	uint64_t between_ns;
	unsigned int i;

	enter(0, 1);
	enter(1, 1);
	between_ns = casync_clock_ns() + 1;
	while (casync_clock_ns() <= between_ns)
		;
	enter(2, 1);
	casync_inflight_visit_overdue(&set, between_ns, note, &next);
	assert_int_equal(next - seen, 2);
	assert_ptr_equal(seen[0], &entries[0]);
	assert_ptr_equal(seen[1], &entries[1]);
	casync_inflight_visit_overdue(&set, between_ns, note, &next);
	assert_int_equal(next - seen, 2);

	next = seen;
	casync_inflight_visit_all(&set, note, &next);
	assert_int_equal(next - seen, 3);
	for (i = 0; i < 3; i++) {
		assert_ptr_equal(seen[i], &entries[i]);
		leave(i);
	}
	assert_true(glist_empty(&set.overdue));
	assert_int_equal(set.ops, 0);
}

/* --- limits that change */

CASE(lower_limit_leaves_what_is_in_and_holds_for_the_next)
{
	struct guest guest = {.bytes = 1};

	enter(0, 1);
	enter(1, 1);
	enter(2, 1);
	casync_inflight_limit(&set, 1, MAX_BYTES);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	leave(0);
	leave(1);
	RIG_UNTIL(waiting() == 1);
	leave(2);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, 0);
	assert_int_equal(set.ops, 0);
}

CASE(higher_limit_wakes_those_who_wait)
{
	struct guest guests[3] = {{.bytes = 1}, {.bytes = 1}, {.bytes = 1}};
	unsigned int i;

	casync_inflight_limit(&set, 1, MAX_BYTES);
	enter(0, 1);
	for (i = 0; i < 3; i++) {
		guests[i].stays = true;
		send(&guests[i]);
		RIG_UNTIL(waiting() == i + 1);
	}
	casync_inflight_limit(&set, 3, MAX_BYTES);
	RIG_UNTIL(waiting() == 1);
	casync_inflight_limit(&set, 1000, MAX_BYTES);
	for (i = 0; i < 3; i++) {
		RIG_JOIN(guests[i].thread, NULL);
		assert_int_equal(guests[i].rc, 0);
		assert_true(guests[i].waited_ns <
			    CASYNC_MAX_WAIT_MS * CASYNC_NS_PER_MS);
		casync_inflight_leave(&set, &guests[i].entry);
	}
	leave(0);
	assert_int_equal(set.ops, 0);
}

CASE(limit_of_bytes_changes_too)
{
	struct guest guest = {.bytes = MAX_BYTES};

	enter(0, MAX_BYTES);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	casync_inflight_limit(&set, MAX_OPS, 2 * MAX_BYTES);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(guest.rc, 0);
	leave(0);
}

/* For read-ahead, which may delay nobody. */
CASE(entry_grows_into_half_of_the_room)
{
	struct guest guest = {.bytes = MAX_BYTES};

	enter(0, 1);
	assert_true(casync_inflight_grow(&set, &entries[0], MAX_BYTES / 2 - 1));
	assert_false(casync_inflight_grow(&set, &entries[0], 1));
	assert_int_equal(set.bytes, MAX_BYTES / 2);
	casync_inflight_limit(&set, MAX_OPS, 4 * MAX_BYTES);
	casync_inflight_limit_all(UINT64_MAX, MAX_BYTES);
	assert_false(casync_inflight_grow(&set, &entries[0], 1));
	casync_inflight_limit_all(UINT64_MAX, UINT64_MAX);
	casync_inflight_limit(&set, 1, 4 * MAX_BYTES);
	send(&guest);
	RIG_UNTIL(waiting() == 1);
	assert_false(casync_inflight_grow(&set, &entries[0], 1));
	leave(0);
	RIG_JOIN(guest.thread, NULL);
	assert_int_equal(set.bytes, 0);
}

static void *turn_limits(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < 2000; i++)
		casync_inflight_limit(&set, i % 7 + 1, MAX_BYTES >> i % 9);
	casync_inflight_limit(&set, MAX_OPS, MAX_BYTES);
	return NULL;
}

static void *come_and_go(void *arg)
{
	struct guest guest = {.rc = 0};
	unsigned int i;

	(void)arg;
	for (i = 0; i < 5000; i++) {
		guest.bytes = i % 200;
		(void)visit(&guest);
		if (guest.rc != 0)
			return "turned away";
	}
	return NULL;
}

CASE(limits_change_while_many_come_and_go)
{
	pthread_t threads[5];
	unsigned int i;
	void *wrong;

	for (i = 0; i < 5; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL,
				       i == 0 ? turn_limits : come_and_go,
				       NULL),
			0);
	for (i = 0; i < 5; i++) {
		RIG_JOIN(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(set.ops, 0);
	assert_int_equal(set.waiting, 0);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "guard.h"

#define THREADS 4
#define CLOSINGS 100
#define TURNS 16 /* on one CPU */

static struct casync_guard guard;

/* Whoever enters or leaves asks on which CPU it is, just before it counts. */
static void (*before_count)(void);
static bool cpu_is_fixed;
static int fixed_cpu;

int __real_sched_getcpu(void);
int __wrap_sched_getcpu(void);

int __wrap_sched_getcpu(void)
{
	void (*before)(void) = before_count;

	if (before != NULL) {
		before_count = NULL;
		before();
	}
	return cpu_is_fixed ? fixed_cpu : __real_sched_getcpu();
}

static int up(void **state)
{
	before_count = NULL;
	cpu_is_fixed = false;
	memset(&guard, 0, sizeof(guard));
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

/* --- who may enter when */

struct phase_case {
	const char *name;
	enum casync_guard_phase phase;
	bool request_enters;
	bool unlock_enters;
	bool release_enters;
};

static const struct phase_case phase_cases[] = {
	{"all_enter_while_it_serves", CASYNC_GUARD_SERVES, true, true, true},
	{"all_enter_a_lost_session_that_nobody_replaces", CASYNC_GUARD_LOST,
	 true, true, true},
	{"unlocks_enter_while_it_restores", CASYNC_GUARD_RESTORES, false, true,
	 true},
	{"releases_alone_enter_while_it_leaves", CASYNC_GUARD_LEAVES, false,
	 false, true},
	{"nobody_enters_once_it_is_closed", CASYNC_GUARD_CLOSED, false, false,
	 false},
	{"nobody_enters_once_it_is_given_up", CASYNC_GUARD_GIVEN_UP, false,
	 false, false},
	{"nobody_enters_a_session_that_is_left", CASYNC_GUARD_LEFT, false,
	 false, false},
};

static void set_phase(enum casync_guard_phase phase)
{
	__atomic_store_n(&guard.phase, (uint32_t)phase, __ATOMIC_SEQ_CST);
}

/* Who was refused is not inside. */
static void check_entry(enum casync_guard_phase up_to, bool enters)
{
	assert_int_equal(casync_guard_enter_up_to(&guard, up_to), enters);
	assert_int_equal(casync_guard_is_empty(&guard), !enters);
	if (enters)
		casync_guard_leave(&guard);
	assert_true(casync_guard_is_empty(&guard));
}

TEST_ROWS(check_phase, phase_cases, up, NULL)
{
	const struct phase_case *c = *state;

	set_phase(c->phase);
	assert_int_equal(casync_guard_phase(&guard), c->phase);
	assert_int_equal(casync_guard_enter(&guard), c->request_enters);
	if (c->request_enters)
		casync_guard_leave(&guard);
	check_entry(CASYNC_GUARD_LOST, c->request_enters);
	check_entry(CASYNC_GUARD_RESTORES, c->unlock_enters);
	check_entry(CASYNC_GUARD_LEAVES, c->release_enters);
}

/* --- who may change it */

CASE(phase_changes_from_what_it_was_thought_to_be)
{
	assert_true(casync_guard_change(&guard, CASYNC_GUARD_SERVES,
					CASYNC_GUARD_LEAVES));
	/* Another thread saw the same loss. */
	assert_false(casync_guard_change(&guard, CASYNC_GUARD_SERVES,
					 CASYNC_GUARD_LEAVES));
	assert_false(casync_guard_change(&guard, CASYNC_GUARD_SERVES,
					 CASYNC_GUARD_LOST));
	assert_int_equal(casync_guard_phase(&guard), CASYNC_GUARD_LEAVES);
}

/* A Debug build aborts, in a process of its own. */
static void check_aborts(enum casync_guard_phase from,
			 enum casync_guard_phase to)
{
#ifdef CASYNC_DEBUG
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		(void)close(STDERR_FILENO);
		(void)casync_guard_change(&guard, from, to);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#else
	(void)from;
	(void)to;
#endif
}

static const struct change_case {
	const char *name;
	const char *next; /* by the table of guard.h */
	enum casync_guard_phase from;
} changes[] = {
	{"it_serves_until_the_loss_or_the_end", ".x.x..x", CASYNC_GUARD_SERVES},
	{"lost_session_comes_back_or_is_replaced", "x..x...",
	 CASYNC_GUARD_LOST},
	{"new_client_serves_or_is_lost_or_left", "x..x..x",
	 CASYNC_GUARD_RESTORES},
	{"old_client_is_left", ".x..xx.", CASYNC_GUARD_LEAVES},
	{"closed_guard_gets_a_client", "..xx.x.", CASYNC_GUARD_CLOSED},
	{"nothing_comes_after_giving_up", ".......", CASYNC_GUARD_GIVEN_UP},
	{"nothing_comes_after_the_end", ".......", CASYNC_GUARD_LEFT},
};

TEST_ROWS(check_changes, changes, up, NULL)
{
	const struct change_case *c = *state;
	uint32_t to;

	for (to = 0; to <= CASYNC_GUARD_LEFT; to++) {
		set_phase(c->from);
		if (c->next[to] == 'x')
			assert_true(casync_guard_change(&guard, c->from, to));
		else
			check_aborts(c->from, to);
	}
}

CASE(new_guard_serves_and_is_empty)
{
	assert_int_equal(casync_guard_phase(&guard), CASYNC_GUARD_SERVES);
	assert_true(casync_guard_is_empty(&guard));
	assert_int_equal(casync_guard_generation(&guard), 0);
}

CASE(it_is_empty_when_the_last_one_has_left)
{
	unsigned int i;

	for (i = 0; i < 5; i++)
		assert_true(casync_guard_enter(&guard));
	for (i = 0; i < 5; i++) {
		assert_false(casync_guard_is_empty(&guard));
		casync_guard_leave(&guard);
	}
	assert_true(casync_guard_is_empty(&guard));
}

CASE(closing_turns_nobody_out)
{
	assert_true(casync_guard_enter(&guard));
	set_phase(CASYNC_GUARD_CLOSED);
	assert_false(casync_guard_enter(&guard));
	assert_false(casync_guard_enter_up_to(&guard, CASYNC_GUARD_LEAVES));
	assert_false(casync_guard_is_empty(&guard));
	casync_guard_leave(&guard);
	assert_true(casync_guard_is_empty(&guard));
	set_phase(CASYNC_GUARD_SERVES);
	assert_true(casync_guard_enter(&guard));
	casync_guard_leave(&guard);
}

CASE(each_client_has_a_generation)
{
	casync_guard_renew(&guard);
	casync_guard_renew(&guard);
	assert_int_equal(casync_guard_generation(&guard), 2);
	/* Its phase stays. */
	assert_int_equal(casync_guard_phase(&guard), CASYNC_GUARD_SERVES);
}

/* --- one closes just before another counts */

static bool was_empty;

static void close_it(void)
{
	set_phase(CASYNC_GUARD_CLOSED);
	was_empty = casync_guard_is_empty(&guard);
}

/* Who closed has found nobody, and nobody may get in. */
CASE(closer_that_came_first_wins)
{
	was_empty = false;
	before_count = close_it;
	assert_false(casync_guard_enter(&guard));
	assert_true(was_empty);
	assert_true(casync_guard_is_empty(&guard));
	set_phase(CASYNC_GUARD_LEAVES);
	was_empty = false;
	before_count = close_it;
	assert_false(casync_guard_enter_up_to(&guard, CASYNC_GUARD_LEAVES));
	assert_true(was_empty);
	assert_true(casync_guard_is_empty(&guard));
}

/* Who leaves is inside until it has counted. */
CASE(closer_waits_for_who_is_about_to_leave)
{
	assert_true(casync_guard_enter(&guard));
	was_empty = true;
	before_count = close_it;
	casync_guard_leave(&guard);
	assert_false(was_empty);
	assert_true(casync_guard_is_empty(&guard));
}

/* More than there are shards, and none at all. */
CASE(any_cpu_will_do)
{
	static const int cpus[] = {0, 15, 16, 17, 1023, -1};
	const size_t count = sizeof(cpus) / sizeof(cpus[0]);
	size_t i;

	cpu_is_fixed = true;
	for (i = 0; i < count; i++) {
		fixed_cpu = cpus[i];
		assert_true(casync_guard_enter(&guard));
		assert_false(casync_guard_is_empty(&guard));
		fixed_cpu = cpus[(i + 1) % count];
		casync_guard_leave(&guard);
		assert_true(casync_guard_is_empty(&guard));
	}
}

/* --- on two CPUs */

/* The nth CPU that this process may use; false: there are fewer. */
static bool go_to_cpu(unsigned int n)
{
	cpu_set_t all, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		return false;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || n-- != 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return sched_setaffinity(0, sizeof(one), &one) == 0;
	}
	return false;
}

static void *leave_on_second_cpu(void *arg)
{
	(void)arg;
	(void)go_to_cpu(1);
	casync_guard_leave(&guard);
	return NULL;
}

static void *enter_on_first_cpu(void *arg)
{
	(void)arg;
	(void)go_to_cpu(0);
	return casync_guard_enter(&guard) ? &guard : NULL;
}

CASE(one_enters_here_and_leaves_there)
{
	pthread_t thread;
	void *entered;

	assert_int_equal(
		pthread_create(&thread, NULL, enter_on_first_cpu, NULL), 0);
	RIG_JOIN(thread, &entered);
	assert_non_null(entered);
	assert_false(casync_guard_is_empty(&guard));
	assert_int_equal(
		pthread_create(&thread, NULL, leave_on_second_cpu, NULL), 0);
	RIG_JOIN(thread, NULL);
	assert_true(casync_guard_is_empty(&guard));
}

/* --- while another thread closes it */

/* What the guard keeps in place: only the closer changes it, plainly.  Whoever
 * is inside sees it unchanged; a sanitizer sees a race if not. */
static uint64_t client;
static bool over;	/* atomic */
static int wrong;	/* atomic */
static uint64_t visits; /* atomic */

/* A visit is handed to the next thread, which ends it: as an op is. */
struct visit {
	bool open; /* atomic */
	uint64_t seen;
};

static struct visit visitors[THREADS];

static void end_visit(struct visit *visit)
{
	if (!__atomic_load_n(&visit->open, __ATOMIC_ACQUIRE))
		return;
	if (client != visit->seen)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&visit->open, false, __ATOMIC_RELEASE);
	casync_guard_leave(&guard);
}

static void *come_and_go(void *arg)
{
	unsigned int self = (unsigned int)(uintptr_t)arg;
	struct visit *own = &visitors[self];
	struct visit *others = &visitors[(self + 1) % THREADS];
	unsigned int turn;

	for (turn = self * TURNS; !__atomic_load_n(&over, __ATOMIC_ACQUIRE);
	     turn++) {
		if (turn % TURNS == 0)
			(void)go_to_cpu(turn / TURNS % 2);
		if (!__atomic_load_n(&own->open, __ATOMIC_ACQUIRE) &&
		    casync_guard_enter(&guard)) {
			own->seen = client;
			__atomic_add_fetch(&visits, 1, __ATOMIC_RELAXED);
			__atomic_store_n(&own->open, true, __ATOMIC_RELEASE);
		}
		end_visit(others);
		if (casync_guard_enter_up_to(&guard, CASYNC_GUARD_LEAVES)) {
			if (client > UINT64_MAX / 2)
				__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
			casync_guard_leave(&guard);
		}
		sched_yield();
	}
	return NULL;
}

static void change_client(void)
{
	set_phase(CASYNC_GUARD_CLOSED);
	RIG_UNTIL(casync_guard_is_empty(&guard));
	/* For a moment there is none. */
	client = UINT64_MAX;
	sched_yield();
	client = casync_guard_generation(&guard) + 1;
	casync_guard_renew(&guard);
	set_phase(CASYNC_GUARD_SERVES);
}

CASE(nobody_is_inside_while_the_client_changes)
{
	pthread_t threads[THREADS];
	uint64_t before;
	unsigned int i;

	over = false;
	wrong = 0;
	client = 0;
	visits = 0;
	memset(visitors, 0, sizeof(visitors));
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go,
						(void *)(uintptr_t)i),
				 0);
	for (i = 0; i < CLOSINGS; i++) {
		/* Somebody enters between two closings, for certain. */
		before = NOW(visits);
		RIG_UNTIL(NOW(visits) != before);
		change_client();
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	for (i = 0; i < THREADS; i++)
		end_visit(&visitors[i]);
	assert_int_equal(wrong, 0);
	assert_int_equal(casync_guard_generation(&guard), CLOSINGS);
	assert_true(casync_guard_is_empty(&guard));
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"

#include "fd.h"
#include "lock_records.h"
#include "object.h"
#include "rig.h"
#include "stub_mount.h"

#define FILES 3
#define OWNERS 3
#define FDS 3
#define TEXT 8192
#define WORD 64 /* more than any has */

static struct casync_export exp;
static struct casync_object objs[FILES];
static struct casync_fd fds[FILES][FDS];
static char owners[OWNERS];

/* What the taker was asked, "+" to take and "-" to give back. */
static char asked[TEXT];
/* What it answers; asked for each record that is to be taken. */
static int (*answer)(struct casync_object *obj,
		     const struct casync_lock_record *record);
static char losses[TEXT];
/* Calls for an fd without records: the fd may be freed. */
static int too_late;

static int up(void **state)
{
	unsigned int i;

	stub_reset();
	stub_mount_reset();
	memset(&exp, 0, sizeof(exp));
	memset(objs, 0, sizeof(objs));
	memset(fds, 0, sizeof(fds));
	exp.mount = &stub_mount;
	for (i = 0; i < FILES; i++) {
		objs[i].exp = &exp;
		casync_lock_records_init(&objs[i].locks);
	}
	asked[0] = '\0';
	losses[0] = '\0';
	answer = NULL;
	too_late = 0;
	return 0;
}

static int down(void **state)
{
	unsigned int i;

	for (i = 0; i < FILES; i++)
		casync_lock_records_forget(&objs[i].locks);
	return too_late == 0 ? 0 : -1;
}

#define CASE(test) TEST_WITH(test, up, down)

/* --- in words: owner, fd, kind (r, w, u), range */

/* "a1w0+10": owner a locks 10 bytes from 0 for writing, through fd 1; a length
 * of 0 is to the end.  "u": unlocks. */
static void do_one(struct casync_object *obj, const char *word)
{
	fsal_lock_param_t lock = {.lock_type = FSAL_LOCK_W};
	unsigned long start, length;
	char owner, fd, kind;

	assert_int_equal(sscanf(word, "%c%c%c%lu+%lu", &owner, &fd, &kind,
				&start, &length),
			 5);
	lock.lock_start = start;
	lock.lock_length = length;
	if (kind == 'r')
		lock.lock_type = FSAL_LOCK_R;
	if (kind == 'u')
		casync_lock_records_unlocked(&obj->locks, NULL,
					     &owners[owner - 'a'], &lock);
	else
		casync_lock_records_locked(
			&obj->locks, &fds[obj - objs][fd - '0'],
			&owners[owner - 'a'], &lock,
			casync_guard_generation(&stub_mount.guard));
}

static void do_all(struct casync_object *obj, const char *words)
{
	for (; words != NULL && *words != '\0'; words = strchr(words, ' ')) {
		words += *words == ' ';
		do_one(obj, words);
	}
}

static void add_word(char *text, const char *sign,
		     const struct casync_object *obj,
		     const struct casync_lock_record *record)
{
	size_t length = strlen(text);
	char *end = text + length;

	/* Of the many rounds nobody reads all. */
	if (length > TEXT - WORD)
		return;
	end += snprintf(end, TEXT - length, "%s%s%c%c%c%lu-",
			length == 0 ? "" : " ", sign,
			(char)('a' + ((char *)record->owner - owners)),
			(char)('0' + (record->fd - fds[obj - objs])),
			record->exclusive ? 'w' : 'r', record->first);
	if (record->last != UINT64_MAX)
		(void)snprintf(end, TEXT - (size_t)(end - text), "%lu",
			       record->last);
}

/* By owner, then by range: the order in the list means nothing. */
static bool comes_before(const struct casync_lock_record *one,
			 const struct casync_lock_record *other)
{
	if (other == NULL || one->owner != other->owner)
		return other == NULL ||
		       (char *)one->owner < (char *)other->owner;
	return one->first < other->first;
}

static const struct casync_lock_record *
next_record(struct casync_object *obj, const struct casync_lock_record *after)
{
	const struct casync_lock_record *record, *next = NULL;
	struct glist_head *node;

	glist_for_each(node, &obj->locks.list) {
		record = glist_entry(node, struct casync_lock_record, link);
		if ((after == NULL || comes_before(after, record)) &&
		    comes_before(record, next))
			next = record;
	}
	return next;
}

static void check_held(struct casync_object *obj, const char *expected)
{
	const struct casync_lock_record *record = NULL;
	char held[TEXT] = "";

	while ((record = next_record(obj, record)) != NULL)
		add_word(held, "", obj, record);
	assert_string_equal(held, expected);
	/* Only files with records are looked at. */
	assert_int_equal(obj->locks.linked, *expected != '\0');
}

/* --- ranges */

struct range_case {
	const char *name;
	const char *done;
	const char *held;
};

static const struct range_case range_cases[] = {
	{"lock_is_recorded", "a0w5+10", "a0w5-14"},
	{"lock_to_the_end_is_recorded", "a0r5+0", "a0r5-"},
	{"lock_past_the_last_offset_ends_there", "a0w5+18446744073709551615",
	 "a0w5-"},
	{"unlock_takes_it_all", "a0w5+10 a0u5+10", ""},
	{"unlock_of_more_takes_it_all", "a0w5+10 a0u0+0", ""},
	{"unlock_of_something_else_takes_nothing", "a0w5+10 a0u0+5 a0u15+9",
	 "a0w5-14"},
	{"unlock_cuts_the_front", "a0w5+10 a0u0+8", "a0w8-14"},
	{"unlock_cuts_the_end", "a0w5+10 a0u12+0", "a0w5-11"},
	{"unlock_splits", "a0w5+10 a0u8+2", "a0w5-7 a0w10-14"},
	{"unlock_splits_what_goes_to_the_end", "a0w5+0 a0u8+2",
	 "a0w5-7 a0w10-"},
	{"unlock_of_the_first_byte", "a0w0+10 a0u0+1", "a0w1-9"},
	{"unlock_goes_through_several", "a0w0+10 a0w20+10 a0w40+10 a0u5+40",
	 "a0w0-4 a0w45-49"},
	{"neighbours_are_joined", "a0w0+10 a0w10+10", "a0w0-19"},
	{"neighbour_before_is_joined", "a0w10+10 a0w0+10", "a0w0-19"},
	{"lock_in_a_gap_joins_both_sides", "a0w0+10 a0w20+10 a0w10+10",
	 "a0w0-29"},
	{"neighbour_to_the_end_is_joined", "a0w10+0 a0w0+10", "a0w0-"},
	{"byte_after_byte_is_one", "a0w0+1 a0w1+1 a0w2+1 a0w3+1", "a0w0-3"},
	{"overlap_is_one", "a0w0+10 a0w5+10", "a0w0-14"},
	{"the_same_again_is_one", "a0w5+10 a0w5+10", "a0w5-14"},
	{"gap_of_a_byte_stays", "a0w0+10 a0w11+10", "a0w0-9 a0w11-20"},
	{"write_lock_replaces_a_read_lock", "a0r5+10 a0w5+10", "a0w5-14"},
	{"write_lock_replaces_the_middle", "a0r0+30 a0w10+10",
	 "a0r0-9 a0w10-19 a0r20-29"},
	{"read_lock_replaces_the_middle", "a0w0+0 a0r10+10",
	 "a0w0-9 a0r10-19 a0w20-"},
	{"read_and_write_are_not_joined", "a0r0+10 a0w10+10",
	 "a0r0-9 a0w10-19"},
	{"owners_are_apart", "a0r0+10 b0r0+10 b0r10+10", "a0r0-9 b0r0-19"},
	{"unlock_is_of_one_owner", "a0r0+10 b0r0+10 a0u0+0", "b0r0-9"},
	{"write_lock_is_of_one_owner", "a0r0+10 b0w5+10", "a0r0-9 b0w5-14"},
	{"fds_are_not_joined", "a0w0+10 a1w10+10", "a0w0-9 a1w10-19"},
	{"owner_locks_through_another_fd", "a0w0+10 a1w5+2",
	 "a0w0-4 a1w5-6 a0w7-9"},
	{"unlock_is_of_all_fds", "a0w0+10 a1w10+10 a2u5+10", "a0w0-4 a1w15-19"},
};

TEST_ROWS(check_range, range_cases, up, down)
{
	const struct range_case *c = *state;

	do_all(&objs[0], c->done);
	check_held(&objs[0], c->held);
	check_held(&objs[1], "");
}

CASE(closed_fd_takes_its_records_along)
{
	do_all(&objs[0], "a0w0+10 b0r20+10 b1r30+10");
	do_all(&objs[1], "a0w0+10");
	casync_lock_records_forget_fd(&fds[0][0]);
	check_held(&objs[0], "b1r30-39");
	check_held(&objs[1], "a0w0-9");
	casync_lock_records_forget_fd(&fds[0][0]);
	casync_lock_records_forget_fd(&fds[0][1]);
	casync_lock_records_forget_fd(&fds[0][2]);
	check_held(&objs[0], "");
}

CASE(freed_object_takes_its_records_along)
{
	do_all(&objs[0], "a0w0+10 b1r20+10");
	do_all(&objs[1], "a0w0+10");
	casync_lock_records_forget(&objs[0].locks);
	check_held(&objs[0], "");
	check_held(&objs[1], "a0w0-9");
	/* Nothing of the object is left in them. */
	assert_null(fds[0][0].locks_of);
	assert_null(fds[0][1].locks_of);
}

/* --- taking them again */

static int take(struct casync_object *obj,
		const struct casync_lock_record *record, bool unlock)
{
	if (record->fd->locks_of == NULL)
		too_late++;
	add_word(asked, unlock ? "-" : "+", obj, record);
	return unlock || answer == NULL ? 0 : answer(obj, record);
}

static const char *lose(struct casync_object *obj, struct casync_fd *fd)
{
	size_t length = strlen(losses);

	if (fd->locks_of == NULL)
		too_late++;
	(void)snprintf(losses + length, TEXT - length, "%s%c%c",
		       length == 0 ? "" : " ", (char)('A' + (obj - objs)),
		       (char)('0' + (fd - fds[obj - objs])));
	return "its holder";
}

/* --- the log may hang: the lock of the records is free meanwhile */

void __wrap_stub_log_line(log_levels_t level, const char *text);

static int lines, lines_under_the_lock;
static sem_t looked;

static void *look_at_records(void *unused)
{
	const fsal_lock_param_t all = {.lock_start = 0};

	(void)casync_lock_records_have(&objs[0].locks, owners, &all);
	sem_post(&looked);
	return unused;
}

void __wrap_stub_log_line(log_levels_t level, const char *text)
{
	pthread_t thread;

	(void)level;
	lines++;
	assert_non_null(strstr(text, "a lock is lost"));
	assert_non_null(strstr(text, "its holder"));
	sem_init(&looked, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, look_at_records, NULL),
			 0);
	if (!rig_wait(&looked)) {
		lines_under_the_lock++;
		pthread_detach(thread);
		return;
	}
	RIG_JOIN(thread, NULL);
	sem_destroy(&looked);
}

static int take_all(uint64_t taken, uint64_t gone)
{
	uint64_t was_taken = 12345, is_gone = 12345;
	int rc = casync_lock_records_reclaim(&stub_mount, take, lose,
					     &was_taken, &is_gone);

	assert_int_equal(was_taken, taken);
	assert_int_equal(is_gone, gone);
	return rc;
}

static void new_client(void)
{
	casync_guard_renew(&stub_mount.guard);
	asked[0] = '\0';
	losses[0] = '\0';
}

CASE(all_are_taken_once)
{
	do_all(&objs[0], "a0w0+10 b1r20+0");
	do_all(&objs[2], "a0r5+1");
	new_client();
	assert_int_equal(take_all(3, 0), 0);
	assert_string_equal(asked, "+a0w0-9 +b1r20- +a0r5-5");
	assert_string_equal(losses, "");
	/* For each client once. */
	asked[0] = '\0';
	assert_int_equal(take_all(0, 0), 0);
	assert_string_equal(asked, "");
	new_client();
	assert_int_equal(take_all(3, 0), 0);
	check_held(&objs[0], "a0w0-9 b1r20-");
	check_held(&objs[2], "a0r5-5");
}

CASE(nothing_is_taken_of_another_mount)
{
	static struct casync_mount other;
	static struct casync_export other_exp = {.mount = &other};

	objs[1].exp = &other_exp;
	do_all(&objs[0], "a0w0+10");
	do_all(&objs[1], "a0w0+10");
	new_client();
	assert_int_equal(take_all(1, 0), 0);
	casync_guard_renew(&other.guard);
	asked[0] = '\0';
	assert_int_equal(take_all(0, 0), 0);
	assert_string_equal(asked, "");
}

CASE(lock_of_this_client_is_not_taken)
{
	do_all(&objs[0], "a0w0+10");
	assert_int_equal(take_all(0, 0), 0);
	assert_string_equal(asked, "");
}

/* Another client holds byte 25. */
static int byte_25_is_taken(struct casync_object *obj,
			    const struct casync_lock_record *record)
{
	(void)obj;
	return record->first <= 25 && record->last >= 25 ? -EAGAIN : 0;
}

CASE(fd_that_lost_one_loses_all)
{
	do_all(&objs[0], "a0w0+10 a0w40+10 a0w20+10 b2r60+10");
	do_all(&objs[1], "a0w0+10");
	new_client();
	answer = byte_25_is_taken;
	lines = 0;
	assert_int_equal(take_all(2, 3), 0);
	assert_string_equal(losses, "A0");
	assert_int_equal(lines, 1);
	assert_int_equal(lines_under_the_lock, 0);
	/* What it has taken before and after goes back, and only that. */
	assert_string_equal(asked, "+a0w0-9 +a0w40-49 +a0w20-29 +b2r60-69 "
				   "-a0w0-9 -a0w40-49 +a0w0-9");
	check_held(&objs[0], "b2r60-69");
	check_held(&objs[1], "a0w0-9");
	assert_null(fds[0][0].locks_of);
}

static int nothing_is_free(struct casync_object *obj,
			   const struct casync_lock_record *record)
{
	(void)obj;
	(void)record;
	return -EAGAIN;
}

/* When its records are dropped, it may be closed and freed. */
CASE(fd_that_lost_several_is_left_alone_after)
{
	do_all(&objs[0], "a0w20+10 a0w40+10 b0r20+10 b0r60+10 a1w80+10");
	new_client();
	answer = byte_25_is_taken;
	assert_int_equal(take_all(1, 4), 0);
	assert_int_equal(too_late, 0);
	check_held(&objs[0], "a1w80-89");
	assert_string_equal(asked, "+a0w20-29 +a0w40-49 +b0r20-29 +b0r60-69 "
				   "+a1w80-89 -a0w40-49 -b0r60-69");
}

CASE(all_may_be_lost)
{
	do_all(&objs[0], "a0w20+10 a0w40+10 b1r20+10");
	do_all(&objs[1], "a0w20+10");
	new_client();
	answer = nothing_is_free;
	assert_int_equal(take_all(0, 4), 0);
	check_held(&objs[0], "");
	check_held(&objs[1], "");
}

/* --- while clients unlock */

static const char *unlocks; /* by clients, in the next call */

static int unlock_meanwhile(struct casync_object *obj,
			    const struct casync_lock_record *record)
{
	const char *words = unlocks;

	unlocks = NULL;
	do_all(obj, words);
	return byte_25_is_taken(obj, record);
}

CASE(unlock_meanwhile_begins_the_file_anew)
{
	do_all(&objs[0], "a0w0+10 b1w40+10");
	new_client();
	answer = unlock_meanwhile;
	unlocks = "a0u5+0";
	assert_int_equal(take_all(2, 0), 0);
	assert_string_equal(asked, "+a0w0-9 +b1w40-49 -a0w0-9 -b1w40-49 "
				   "+b1w40-49 +a0w0-4");
	check_held(&objs[0], "a0w0-4 b1w40-49");
}

CASE(unlock_of_nothing_begins_nothing)
{
	do_all(&objs[0], "a0w0+10 b1w40+10");
	new_client();
	answer = unlock_meanwhile;
	unlocks = "c0u0+0 a0u20+10";
	assert_int_equal(take_all(2, 0), 0);
	assert_string_equal(asked, "+a0w0-9 +b1w40-49");
}

CASE(unlock_meanwhile_of_the_last_one_leaves_nothing)
{
	do_all(&objs[0], "a0w0+10");
	new_client();
	answer = unlock_meanwhile;
	unlocks = "a0u0+0";
	assert_int_equal(take_all(0, 0), 0);
	assert_string_equal(asked, "+a0w0-9 -a0w0-9");
	check_held(&objs[0], "");
}

/* In one round: a lock is lost, and another owner unlocks. */
CASE(lost_fd_is_left_alone_in_the_next_round)
{
	do_all(&objs[0], "a0w20+10 a0w40+10 b1w60+10");
	new_client();
	answer = unlock_meanwhile;
	unlocks = "b1u65+0";
	assert_int_equal(take_all(1, 2), 0);
	assert_string_equal(losses, "A0");
	assert_string_equal(asked, "+a0w20-29 +a0w40-49 +b1w60-69 -a0w40-49 "
				   "-a0w40-49 -b1w60-69 "
				   "+a0w20-29 +a0w40-49 +b1w60-64 -a0w40-49");
	check_held(&objs[0], "b1w60-64");
}

/* Then nothing is lost: nobody would end the loss. */
CASE(unlock_of_the_lost_one_meanwhile_is_no_loss)
{
	do_all(&objs[0], "a0w20+10");
	new_client();
	answer = unlock_meanwhile;
	unlocks = "a0u0+0";
	assert_int_equal(take_all(0, 0), 0);
	assert_string_equal(losses, "");
	check_held(&objs[0], "");
}

static unsigned int rounds;

/* A client that unlocks each other byte, one in each round. */
static int unlock_each_round(struct casync_object *obj,
			     const struct casync_lock_record *record)
{
	fsal_lock_param_t byte = {.lock_start = 2 * rounds + 1,
				  .lock_length = 1};

	if (obj == &objs[0] && record->first == 0) {
		rounds++;
		casync_lock_records_unlocked(&obj->locks, NULL, &owners[0],
					     &byte);
	}
	return 0;
}

CASE(client_that_goes_on_unlocking_loses_them)
{
	do_all(&objs[0], "a0w0+1000 b1w5000+1");
	do_all(&objs[1], "a0w0+1");
	new_client();
	rounds = 0;
	answer = unlock_each_round;
	/* 100 bytes that are apart, the rest of the range, and b's. */
	assert_int_equal(take_all(1, 102), 0);
	assert_int_equal(rounds, 100);
	check_held(&objs[0], "");
	check_held(&objs[1], "a0w0-0");
	assert_int_equal(too_late, 0);
	/* Of each fd once. */
	assert_true(strcmp(losses, "A0 A1") == 0 ||
		    strcmp(losses, "A1 A0") == 0);
	assert_int_equal(take_all(0, 0), 0);
}

/* --- the session is lost again */

static int session_error; /* for file B */

static int session_is_lost(struct casync_object *obj,
			   const struct casync_lock_record *record)
{
	(void)record;
	return obj == &objs[1] ? session_error : 0;
}

CASE(loss_of_the_session_ends_it)
{
	do_all(&objs[0], "a0w0+10");
	do_all(&objs[1], "a0w0+10");
	do_all(&objs[2], "a0w0+10");
	new_client();
	answer = session_is_lost;
	session_error = -ENOTCONN;
	assert_int_equal(take_all(1, 0), -ENOTCONN);
	assert_string_equal(asked, "+a0w0-9 +a0w0-9");
	assert_string_equal(losses, "");
	check_held(&objs[1], "a0w0-9");
	assert_false(objs[1].locks.busy);
	/* The same client: what it has taken it has. */
	session_error = 0;
	asked[0] = '\0';
	assert_int_equal(take_all(2, 0), 0);
	/* The next one has nothing. */
	new_client();
	assert_int_equal(take_all(3, 0), 0);
}

/* --- a close while its file is at work */

static pthread_t closer;
static sem_t begun;
static int closed; /* atomic */
static int closed_in_between;

static void *close_fd(void *fd)
{
	sem_post(&begun);
	casync_lock_records_forget_fd(fd);
	__atomic_store_n(&closed, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int close_meanwhile(struct casync_object *obj,
			   const struct casync_lock_record *record)
{
	const struct timespec a_while = {.tv_nsec = 20000000};

	(void)obj;
	if (record->first != 0)
		return 0;
	/* Not an assert_: those jump. */
	if (pthread_create(&closer, NULL, close_fd, record->fd) != 0 ||
	    !rig_wait(&begun))
		closed_in_between = -1;
	nanosleep(&a_while, NULL);
	closed_in_between += __atomic_load_n(&closed, __ATOMIC_ACQUIRE);
	return 0;
}

CASE(close_waits_for_the_file)
{
	do_all(&objs[0], "a0w0+10 a0w20+10 b1w40+10");
	new_client();
	sem_init(&begun, 0, 0);
	closed = 0;
	closed_in_between = 0;
	answer = close_meanwhile;
	assert_int_equal(take_all(3, 0), 0);
	RIG_JOIN(closer, NULL);
	assert_int_equal(closed_in_between, 0);
	check_held(&objs[0], "b1w40-49");
	sem_destroy(&begun);
}

static int close_other_meanwhile(struct casync_object *obj,
				 const struct casync_lock_record *record)
{
	if (obj == &objs[0] && record->first == 0)
		casync_lock_records_forget_fd(&fds[1][0]);
	return 0;
}

CASE(close_does_not_wait_for_another_file)
{
	do_all(&objs[0], "a0w0+10");
	do_all(&objs[1], "a0w20+10");
	new_client();
	answer = close_other_meanwhile;
	assert_int_equal(take_all(1, 0), 0);
	check_held(&objs[1], "");
}

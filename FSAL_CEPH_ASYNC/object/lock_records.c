/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "fsal.h"

#include "check.h"
#include "clock.h"
#include "export.h"
#include "fd.h"
#include "inode.h"
#include "lock_records.h"
#include "mount.h"
#include "object.h"

/* Guards all records.  A leaf; not held across calls of libcephfs. */
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t taken_cond = PTHREAD_COND_INITIALIZER;
static GLIST_HEAD(files); /* with records */

/* Rounds for one file whose client goes on unlocking: the end of a loop that
 * the client decides, and not a tuned number. */
#define ROUNDS_MAX 100

void casync_lock_records_init(struct casync_lock_records *records)
{
	glist_init(&records->list);
}

static uint64_t lock_records_last(const fsal_lock_param_t *lock)
{
	if (lock->lock_length == 0 ||
	    lock->lock_length > UINT64_MAX - lock->lock_start)
		return UINT64_MAX;
	return lock->lock_start + lock->lock_length - 1;
}

static void lock_records_add_locked(struct casync_lock_records *records,
				    const struct casync_lock_record *like,
				    uint64_t first, uint64_t last)
{
	struct casync_lock_record *record = gsh_malloc(sizeof(*record));

	CASYNC_CHECK_HELD(&records_lock);
	*record = *like;
	record->first = first;
	record->last = last;
	glist_add_tail(&records->list, &record->link);
	__atomic_store_n(&record->fd->locks_of, records, __ATOMIC_RELEASE);
	if (!records->linked)
		glist_add_tail(&files, &records->link);
	__atomic_store_n(&records->linked, true, __ATOMIC_RELAXED);
}

static void lock_records_drop_locked(struct casync_lock_record *record)
{
	CASYNC_CHECK_HELD(&records_lock);
	glist_del(&record->link);
	gsh_free(record);
}

static void
lock_records_unlink_if_empty_locked(struct casync_lock_records *records)
{
	if (!records->linked || !glist_empty(&records->list))
		return;
	glist_del(&records->link);
	__atomic_store_n(&records->linked, false, __ATOMIC_RELAXED);
}

/* Take a range out of an owner's records.  True: there was something. */
static bool lock_records_remove_locked(struct casync_lock_records *records,
				       const void *owner, uint64_t first,
				       uint64_t last)
{
	struct casync_lock_record *record;
	struct glist_head *node, *next;
	bool cut = false;

	glist_for_each_safe(node, next, &records->list) {
		record = glist_entry(node, struct casync_lock_record, link);
		if (record->owner != owner || record->last < first ||
		    record->first > last)
			continue;
		/* The rest of the record goes to the end of the list: it does
		 * not overlap the range, and is passed by. */
		if (record->first < first)
			lock_records_add_locked(records, record, record->first,
						first - 1);
		if (record->last > last)
			lock_records_add_locked(records, record, last + 1,
						record->last);
		next = node->next;
		lock_records_drop_locked(record);
		cut = true;
	}
	return cut;
}

/* A neighbour of the same kind becomes part of it: who locks byte after byte
 * has one record. */
static void lock_records_merge_locked(struct casync_lock_records *records,
				      struct casync_lock_record *with)
{
	struct casync_lock_record *record;
	struct glist_head *node, *next;

	glist_for_each_safe(node, next, &records->list) {
		record = glist_entry(node, struct casync_lock_record, link);
		if (record->owner != with->owner || record->fd != with->fd ||
		    record->exclusive != with->exclusive)
			continue;
		if (with->first != 0 && record->last == with->first - 1)
			with->first = record->first;
		else if (record->first != 0 && record->first - 1 == with->last)
			with->last = record->last;
		else
			continue;
		lock_records_drop_locked(record);
	}
}

void casync_lock_records_locked(struct casync_lock_records *records,
				struct casync_fd *fd, void *owner,
				const fsal_lock_param_t *lock,
				uint32_t generation)
{
	struct casync_lock_record record = {
		.fd = fd,
		.owner = owner,
		.first = lock->lock_start,
		.last = lock_records_last(lock),
		.exclusive = lock->lock_type != FSAL_LOCK_R,
	};

	pthread_mutex_lock(&records_lock);
	(void)lock_records_remove_locked(records, owner, record.first,
					 record.last);
	lock_records_merge_locked(records, &record);
	lock_records_add_locked(records, &record, record.first, record.last);
	records->generation = generation;
	pthread_mutex_unlock(&records_lock);
}

bool casync_lock_records_have(struct casync_lock_records *records,
			      const void *owner, const fsal_lock_param_t *lock)
{
	uint64_t last = lock_records_last(lock);
	const struct casync_lock_record *record;
	struct glist_head *node;
	bool have = false;

	pthread_mutex_lock(&records_lock);
	glist_for_each(node, &records->list) {
		record = glist_entry(node, struct casync_lock_record, link);
		have = have || (record->owner == owner &&
				record->last >= lock->lock_start &&
				record->first <= last);
	}
	pthread_mutex_unlock(&records_lock);
	return have;
}

void casync_lock_records_unlocked(struct casync_lock_records *records,
				  struct state_t *state, void *owner,
				  const fsal_lock_param_t *lock)
{
	pthread_mutex_lock(&records_lock);
	if (lock_records_remove_locked(records, owner, lock->lock_start,
				       lock_records_last(lock)))
		records->changes++;
	lock_records_unlink_if_empty_locked(records);
	/* A loss that was found before ends here; without records none is
	 * found. */
	if (casync_fd_lost_lock(state) && lock->lock_start == 0 &&
	    lock->lock_length == 0)
		__atomic_store_n(&casync_fd_of_state(state)->lock_lost, false,
				 __ATOMIC_RELEASE);
	pthread_mutex_unlock(&records_lock);
}

static uint64_t lock_records_drop_fd_locked(struct casync_lock_records *records,
					    struct casync_fd *fd)
{
	struct casync_lock_record *record;
	struct glist_head *node, *next;
	uint64_t dropped = 0;

	glist_for_each_safe(node, next, &records->list) {
		record = glist_entry(node, struct casync_lock_record, link);
		if (record->fd != fd)
			continue;
		lock_records_drop_locked(record);
		dropped++;
	}
	__atomic_store_n(&fd->locks_of, NULL, __ATOMIC_RELEASE);
	lock_records_unlink_if_empty_locked(records);
	return dropped;
}

void casync_lock_records_forget_fd(struct casync_fd *fd)
{
	/* Most fds never had a lock. */
	if (__atomic_load_n(&fd->locks_of, __ATOMIC_ACQUIRE) == NULL)
		return;
	pthread_mutex_lock(&records_lock);
	while (fd->locks_of != NULL && fd->locks_of->busy)
		pthread_cond_wait(&taken_cond, &records_lock);
	if (fd->locks_of != NULL)
		(void)lock_records_drop_fd_locked(fd->locks_of, fd);
	pthread_mutex_unlock(&records_lock);
}

void casync_lock_records_forget(struct casync_lock_records *records)
{
	struct casync_lock_record *record;

	pthread_mutex_lock(&records_lock);
	while (records->busy)
		pthread_cond_wait(&taken_cond, &records_lock);
	while ((record = glist_first_entry(&records->list,
					   struct casync_lock_record, link)) !=
	       NULL)
		(void)lock_records_drop_fd_locked(records, record->fd);
	pthread_mutex_unlock(&records_lock);
}

void casync_lock_records_written(struct casync_lock_records *records)
{
	struct timespec now;
	uint64_t now_ns, seen_ns;

	if (!__atomic_load_n(&records->linked, __ATOMIC_RELAXED))
		return;
	seen_ns = __atomic_load_n(&records->written_ns, __ATOMIC_RELAXED);
	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = casync_clock_timespec_ns(&now);
	/* Another thread may have been faster, with a later time.  A time that
	 * is much later is from before the clock was set back. */
	while ((seen_ns <= now_ns || seen_ns - now_ns > CASYNC_NS_PER_S) &&
	       !__atomic_compare_exchange_n(&records->written_ns, &seen_ns,
					    now_ns, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		; /* seen_ns is fresh */
}

/* A file that was not looked at since that client, or whose locks were not
 * taken by it.  Until the keeper is done with it, no fd of it is closed. */
static struct casync_object *lock_records_begin(struct casync_mount *mount,
						uint32_t generation,
						bool to_look_at)
{
	struct casync_object *obj, *found = NULL;
	struct glist_head *node;
	uint32_t *last;

	pthread_mutex_lock(&records_lock);
	glist_for_each(node, &files) {
		obj = container_of(node, struct casync_object, locks.link);
		last = to_look_at ? &obj->locks.seen_generation
				  : &obj->locks.generation;
		if (casync_inode_mount(obj) != mount || *last == generation)
			continue;
		found = obj;
		obj->locks.busy = true;
		if (to_look_at)
			*last = generation;
		break;
	}
	pthread_mutex_unlock(&records_lock);
	return found;
}

/* The keeper is done with a file.  It moves to the end of the list.  The search
 * begins at the head, so it does not walk over files that are done. */
static void lock_records_end(struct casync_object *obj)
{
	pthread_mutex_lock(&records_lock);
	if (obj->locks.linked) {
		glist_del(&obj->locks.link);
		glist_add_tail(&files, &obj->locks.link);
	}
	obj->locks.busy = false;
	pthread_cond_broadcast(&taken_cond);
	pthread_mutex_unlock(&records_lock);
}

void casync_lock_records_visit(struct casync_mount *mount,
			       void (*visit)(struct casync_object *obj))
{
	/* The next one: at first an object has seen generation 0. */
	uint32_t generation = casync_guard_generation(&mount->guard) + 1;
	struct casync_object *obj;

	while ((obj = lock_records_begin(mount, generation, true)) != NULL) {
		visit(obj);
		lock_records_end(obj);
	}
}

/* --- taking them again */

/* The locks of one file after the other. */
struct round {
	uint32_t generation; /* of the client that takes them */
	casync_lock_taker *take;
	casync_lock_loser *lost;
	uint64_t *taken, *gone;
	struct casync_object *obj;
	/* A copy.  Without an owner: lost.  Without an fd: dropped. */
	struct casync_lock_record *records, *end;
	uint32_t changes;
};

static void lock_records_copy(struct round *round)
{
	struct casync_lock_records *of = &round->obj->locks;
	struct casync_lock_record *record;
	struct glist_head *node;
	size_t count;

	pthread_mutex_lock(&records_lock);
	count = glist_length(&of->list);
	round->records = gsh_calloc(count + 1, sizeof(*round->records));
	round->end = round->records + count;
	round->changes = of->changes;
	node = of->list.next;
	for (record = round->records; record < round->end; record++) {
		*record = *glist_entry(node, struct casync_lock_record, link);
		node = node->next;
	}
	pthread_mutex_unlock(&records_lock);
}

/* Returns the first error that is no loss.  Of a record that is lost the owner
 * becomes NULL. */
static int lock_records_take_round(struct round *round)
{
	struct casync_lock_record *record;
	int rc;

	for (record = round->records; record < round->end; record++) {
		rc = round->take(round->obj, record, false);
		if (rc == -EAGAIN)
			record->owner = NULL;
		else if (rc < 0)
			return rc;
	}
	return 0;
}

/* Give back what was taken: of an fd, or of all. */
static void lock_records_undo(const struct round *round,
			      const struct casync_fd *fd)
{
	const struct casync_lock_record *record;

	for (record = round->records; record < round->end; record++) {
		if (record->owner != NULL && record->fd != NULL &&
		    (fd == NULL || record->fd == fd))
			(void)round->take(round->obj, record, true);
	}
}

/* Not under the lock of the records: the log may hang. */
static void lock_records_say_lost(const struct casync_object *obj,
				  const char *holder)
{
	LogWarn(COMPONENT_FSAL,
		"export %" PRIu16 ": inode 0x%" PRIx64
		": a lock is lost: another client got it or has changed the file, or the file is gone; %s",
		obj->exp->export.export_id, obj->id.ino, holder);
}

/*
 * The fd loses its locks, unless a client has unlocked something meanwhile: it
 * may have been the lost one.  An UNLOCK that comes after this ends the loss.
 * Without records the fd may be closed and freed.
 */
static bool lock_records_lose_fd(struct round *round, struct casync_fd *fd,
				 bool anyway)
{
	struct casync_lock_records *of = &round->obj->locks;
	struct casync_lock_record *record;
	const char *holder = NULL;
	bool loses;

	pthread_mutex_lock(&records_lock);
	loses = anyway || of->changes == round->changes;
	if (loses) {
		holder = round->lost(round->obj, fd);
		*round->gone += lock_records_drop_fd_locked(of, fd);
	}
	pthread_mutex_unlock(&records_lock);
	if (!loses)
		return false;
	lock_records_say_lost(round->obj, holder);
	for (record = round->records; record < round->end; record++) {
		if (record->fd == fd)
			record->fd = NULL;
	}
	return true;
}

/* An fd that has lost one lock has lost all.  False: a client has unlocked
 * something meanwhile. */
static bool lock_records_drop_lost(struct round *round)
{
	struct casync_lock_record *record;

	for (record = round->records; record < round->end; record++) {
		if (record->owner != NULL || record->fd == NULL)
			continue;
		lock_records_undo(round, record->fd);
		if (!lock_records_lose_fd(round, record->fd, false))
			return false;
	}
	return true;
}

/* False: a client has unlocked something meanwhile. */
static bool lock_records_commit(struct round *round)
{
	bool settled;

	pthread_mutex_lock(&records_lock);
	settled = round->obj->locks.changes == round->changes;
	if (settled)
		round->obj->locks.generation = round->generation;
	pthread_mutex_unlock(&records_lock);
	return settled;
}

/* A client that unlocks faster than its locks can be taken loses them. */
static void lock_records_lose_all(struct round *round)
{
	struct casync_lock_record *record;

	for (record = round->records; record < round->end; record++) {
		if (record->fd != NULL)
			(void)lock_records_lose_fd(round, record->fd, true);
	}
}

static int lock_records_take_file(struct round *round)
{
	unsigned int rounds;
	uint64_t gone;
	int rc;

	for (rounds = 0; rounds < ROUNDS_MAX; rounds++) {
		rc = lock_records_take_round(round);
		if (rc < 0)
			return rc;
		gone = *round->gone;
		if (lock_records_drop_lost(round) &&
		    lock_records_commit(round)) {
			*round->taken +=
				(uint64_t)(round->end - round->records) -
				(*round->gone - gone);
			return 0;
		}
		/* Begin again with what is held now. */
		lock_records_undo(round, NULL);
		gsh_free(round->records);
		lock_records_copy(round);
	}
	lock_records_lose_all(round);
	return 0;
}

int casync_lock_records_reclaim(struct casync_mount *mount,
				casync_lock_taker *take,
				casync_lock_loser *lost, uint64_t *taken,
				uint64_t *gone)
{
	struct round round = {
		.generation = casync_guard_generation(&mount->guard),
		.take = take,
		.lost = lost,
		.taken = taken,
		.gone = gone,
	};
	int rc = 0;

	*taken = 0;
	*gone = 0;
	while (rc == 0 && (round.obj = lock_records_begin(
				   mount, round.generation, false)) != NULL) {
		lock_records_copy(&round);
		rc = lock_records_take_file(&round);
		gsh_free(round.records);
		lock_records_end(round.obj);
	}
	return rc;
}

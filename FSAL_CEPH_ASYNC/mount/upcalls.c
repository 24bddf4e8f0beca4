/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "fsal_up.h"

#include "check.h"
#include "export.h"
#include "file_size.h"
#include "filehandle.h"
#include "hash.h"
#include "upcalls.h"

enum event_kind {
	RELEASE,
	REMOVED, /* to be released as soon as nobody uses it */
	INVALIDATE,
	INVALIDATE_DIRECTORY,
	ALL,	  /* the queue was full */
	ALL_ANEW, /* a new client is in place of the old one */
};

/* A removed file that Ganesha's cache does not have is looked for once more. */
#define REMOVED_TRIES 1

static __thread bool in_upcall;

void casync_upcalls_enter(void)
{
	in_upcall = true;
}

void casync_upcalls_exit(void)
{
	in_upcall = false;
}

bool casync_upcalls_on_thread(void)
{
	return in_upcall;
}

void casync_upcalls_init(struct casync_upcalls *upcalls)
{
	pthread_mutex_init(&upcalls->lock, NULL);
	pthread_cond_init(&upcalls->idle, NULL);
	glist_init(&upcalls->exports);
	upcalls->events =
		gsh_calloc(CASYNC_UPCALLS_MAX, sizeof(*upcalls->events));
	casync_object_table_init(&upcalls->table);
}

void casync_upcalls_destroy(struct casync_upcalls *upcalls)
{
	pthread_mutex_lock(&upcalls->lock);
	while (upcalls->running)
		pthread_cond_wait(&upcalls->idle, &upcalls->lock);
	pthread_mutex_unlock(&upcalls->lock);
	casync_object_table_destroy(&upcalls->table);
	gsh_free(upcalls->events);
	pthread_cond_destroy(&upcalls->idle);
	pthread_mutex_destroy(&upcalls->lock);
}

static void upcalls_invalidate(const struct fsal_up_vector *up, void *key,
			       uint32_t flags)
{
	struct gsh_buffdesc handle = {.addr = key, .len = CASYNC_KEY_BYTES};

	(void)up->invalidate(up, &handle, flags);
}

static void upcalls_invalidate_one_of_all(void *up, const void *key)
{
	uint8_t copy[CASYNC_KEY_BYTES];

	memcpy(copy, key, sizeof(copy));
	upcalls_invalidate(up, copy, FSAL_UP_INVALIDATE_CACHE);
}

static void upcalls_invalidate_all(struct casync_upcalls *upcalls,
				   struct casync_export *exp)
{
	casync_object_table_visit(&upcalls->table, exp,
				  upcalls_invalidate_one_of_all,
				  (void *)exp->export.up_ops);
}

static void upcalls_count(struct casync_export *exp, enum casync_metric counter)
{
	casync_metrics_count(casync_metrics_shard(&exp->metrics), counter, 1);
}

/* It fails if the object is in use, or if this export's cache does not have it.
 * Only the first case is counted. */
static void upcalls_count_release(struct casync_export *exp,
				  fsal_status_t status)
{
	if (!FSAL_IS_ERROR(status))
		upcalls_count(exp, CASYNC_C_CAPS_RELEASED);
	else if (status.major == ERR_FSAL_STILL_IN_USE)
		upcalls_count(exp, CASYNC_C_CAPS_KEPT);
}

/* Drop the listings that read ahead; entries of them hold inodes too. */
static void upcalls_drop_listings(struct casync_export *exp)
{
	struct casync_guard *guard = &exp->mount->guard;

	if (!casync_guard_enter_up_to(guard, CASYNC_GUARD_LEAVES))
		return;
	casync_dir_cache_drop(&exp->dir_cache, exp->mount->client->ceph,
			      casync_guard_generation(guard));
	casync_guard_leave(guard);
}

/* A file that somebody else has removed is a stray of the MDS as long as this
 * client has its inode, and its space is not given back. */
static void upcalls_note_removed(struct casync_upcall *event,
				 fsal_status_t status)
{
	if (!FSAL_IS_ERROR(status))
		event->released = true;
	else if (status.major == ERR_FSAL_STILL_IN_USE)
		event->in_use = true;
}

static void upcalls_deliver(struct casync_export *exp, void *arg)
{
	struct casync_upcalls *upcalls = &exp->mount->upcalls;
	const struct fsal_up_vector *up = exp->export.up_ops;
	struct casync_upcall *event = arg;
	struct casync_fileid id = {
		.ino = event->ino,
		.snapid = event->snapid,
		.fscid = upcalls->fscid,
	};
	uint8_t key[CASYNC_KEY_BYTES];
	struct gsh_buffdesc handle = {.addr = key, .len = sizeof(key)};

	casync_filehandle_key(&id, exp->export.export_id, key);
	/* MDCACHE is stacked on this export only after create_export. */
	up_ready_wait((struct fsal_up_vector *)up);
	casync_upcalls_enter();
	switch ((enum event_kind)event->kind) {
	case RELEASE:
		upcalls_drop_listings(exp);
		upcalls_count_release(exp, up->try_release(up, &handle, 0));
		break;
	case REMOVED:
		upcalls_drop_listings(exp);
		upcalls_note_removed(event, up->try_release(up, &handle, 0));
		break;
	case INVALIDATE:
		upcalls_invalidate(up, key, FSAL_UP_INVALIDATE_CACHE);
		upcalls_count(exp, CASYNC_C_INVALIDATIONS);
		break;
	case INVALIDATE_DIRECTORY:
		upcalls_invalidate(up, key,
				   FSAL_UP_INVALIDATE_DIR_POPULATED |
					   FSAL_UP_INVALIDATE_DIR_CHUNKS);
		upcalls_count(exp, CASYNC_C_INVALIDATIONS);
		break;
	case ALL:
		LogWarn(COMPONENT_FSAL,
			"export %" PRIu16
			": too many changes by other clients to queue; all cached objects are invalidated",
			exp->export.export_id);
		/* fall through */
	case ALL_ANEW:
		upcalls_invalidate_all(upcalls, exp);
		upcalls_count(exp, CASYNC_C_INVALIDATIONS);
		break;
	}
	casync_upcalls_exit();
}

/* While a visit runs, its export stays in the list. */
static void upcalls_visit_locked(struct casync_upcalls *upcalls,
				 void (*visit)(struct casync_export *exp,
					       void *arg),
				 void *arg)
{
	struct casync_upcalls_entry *entry;
	struct casync_export *exp;
	struct glist_head *node, *next;

	glist_for_each_safe(node, next, &upcalls->exports) {
		entry = glist_entry(node, struct casync_upcalls_entry, link);
		exp = container_of(entry, struct casync_export, upcalls);
		entry->busy++;
		pthread_mutex_unlock(&upcalls->lock);
		visit(exp, arg);
		pthread_mutex_lock(&upcalls->lock);
		CASYNC_CHECK(entry->busy != 0);
		entry->busy--;
		next = node->next;
		if (!entry->listed && entry->busy == 0)
			glist_del(node);
		pthread_cond_broadcast(&upcalls->idle);
	}
}

void casync_upcalls_visit_exports(struct casync_upcalls *upcalls,
				  void (*visit)(struct casync_export *exp,
						void *arg))
{
	pthread_mutex_lock(&upcalls->lock);
	upcalls_visit_locked(upcalls, visit, NULL);
	pthread_mutex_unlock(&upcalls->lock);
}

static bool upcalls_next_locked(struct casync_upcalls *upcalls,
				struct casync_upcall *event)
{
	if (upcalls->overflown) {
		/* It is later than the queued events, and covers them. */
		*event = (struct casync_upcall){
			.kind = upcalls->renewed ? ALL_ANEW : ALL};
		upcalls->overflown = false;
		upcalls->renewed = false;
		upcalls->first = 0;
		upcalls->event_count = 0;
		return true;
	}
	if (upcalls->event_count == 0)
		return false;
	*event = upcalls->events[upcalls->first++];
	/* Begin at the start again: the ring then uses little memory. */
	CASYNC_CHECK(upcalls->event_count > 0);
	if (--upcalls->event_count == 0)
		upcalls->first = 0;
	upcalls->first %= CASYNC_UPCALLS_MAX;
	return true;
}

/* Somebody uses it still, or it was not in Ganesha's cache yet. */
static void upcalls_keep_removed_locked(struct casync_upcalls *upcalls,
					const struct casync_upcall *event)
{
	const struct casync_upcall *kept;
	uint32_t i;

	if (event->kind != REMOVED ||
	    (!event->in_use &&
	     (event->released || event->tries == REMOVED_TRIES)))
		return;
	for (i = 0; i < upcalls->removed_count; i++) {
		kept = &upcalls->removed[i];
		if (kept->ino == event->ino && kept->snapid == event->snapid)
			return;
	}
	if (i == CASYNC_UPCALLS_REMOVED_MAX)
		return;
	upcalls->removed[i] = (struct casync_upcall){
		.ino = event->ino,
		.snapid = event->snapid,
		.kind = REMOVED,
		.tries = event->in_use ? 0 : event->tries + 1,
	};
	upcalls->removed_count++;
}

static void upcalls_run(struct casync_work *work)
{
	struct casync_upcalls *upcalls =
		container_of(work, struct casync_upcalls, work);
	struct casync_upcall event;

	pthread_mutex_lock(&upcalls->lock);
	while (upcalls_next_locked(upcalls, &event)) {
		upcalls_visit_locked(upcalls, upcalls_deliver, &event);
		upcalls_keep_removed_locked(upcalls, &event);
	}
	upcalls->running = false;
	pthread_cond_broadcast(&upcalls->idle);
	pthread_mutex_unlock(&upcalls->lock);
}

/* False: the event is dropped. */
static bool upcalls_put_locked(struct casync_upcalls *upcalls,
			       const struct casync_upcall *event)
{
	enum event_kind kind = event->kind;
	uint32_t last;

	if ((kind == RELEASE || kind == REMOVED) &&
	    upcalls->event_count >= CASYNC_UPCALLS_RELEASES_MAX)
		return false;
	if (kind == ALL_ANEW || upcalls->event_count == CASYNC_UPCALLS_MAX) {
		upcalls->overflown = true;
		upcalls->renewed |= kind == ALL_ANEW;
		return true;
	}
	last = (upcalls->first + upcalls->event_count++) % CASYNC_UPCALLS_MAX;
	upcalls->events[last] = *event;
	return true;
}

/* True: the caller starts the job, without the lock. */
static bool upcalls_queue_locked(struct casync_upcalls *upcalls,
				 const struct casync_upcall *event)
{
	bool start = upcalls_put_locked(upcalls, event) && !upcalls->running;

	upcalls->running |= start;
	return start;
}

static void upcalls_queue(struct casync_upcalls *upcalls, enum event_kind kind,
			  vinodeno_t vino)
{
	const struct casync_upcall event = {
		.ino = vino.ino.val,
		.snapid = vino.snapid.val,
		.kind = kind,
	};
	bool start;

	pthread_mutex_lock(&upcalls->lock);
	start = upcalls_queue_locked(upcalls, &event);
	pthread_mutex_unlock(&upcalls->lock);
	if (start)
		casync_lane_submit(casync_lane_of_process(CASYNC_LANE_UPCALL),
				   &upcalls->work);
}

void casync_upcalls_removed(struct casync_upcalls *upcalls, uint64_t ino,
			    uint64_t snapid)
{
	const struct casync_upcall event = {
		.ino = ino,
		.snapid = snapid,
		.kind = REMOVED,
		.in_use = true,
	};

	pthread_mutex_lock(&upcalls->lock);
	upcalls_keep_removed_locked(upcalls, &event);
	pthread_mutex_unlock(&upcalls->lock);
}

void casync_upcalls_try_removed(struct casync_upcalls *upcalls)
{
	bool start = false;
	uint32_t i;

	pthread_mutex_lock(&upcalls->lock);
	for (i = 0; i < upcalls->removed_count; i++)
		start |= upcalls_queue_locked(upcalls, &upcalls->removed[i]);
	upcalls->removed_count = 0;
	pthread_mutex_unlock(&upcalls->lock);
	if (start)
		casync_lane_submit(casync_lane_of_process(CASYNC_LANE_UPCALL),
				   &upcalls->work);
}

void casync_upcalls_invalidate_all(struct casync_upcalls *upcalls)
{
	upcalls_queue(upcalls, ALL_ANEW, (vinodeno_t){.ino.val = 0});
}

static size_t upcalls_truncations_index(uint64_t ino, uint64_t snapid)
{
	return casync_hash_u64(ino + snapid) >> 48;
}

_Static_assert(CASYNC_UPCALLS_TRUNCATIONS == 1 << (64 - 48),
	       "upcalls_truncations_index()");

uint64_t *casync_upcalls_truncations(struct casync_upcalls *upcalls,
				     uint64_t ino, uint64_t snapid)
{
	return &upcalls->truncations[upcalls_truncations_index(ino, snapid)];
}

static void upcalls_inode_released(void *handle, vinodeno_t vino)
{
	upcalls_queue(handle, RELEASE, vino);
}

static void upcalls_inode_invalid(void *handle, vinodeno_t vino, int64_t off,
				  int64_t len)
{
	struct casync_upcalls *upcalls = handle;
	size_t index = upcalls_truncations_index(vino.ino.val, vino.snapid.val);

	(void)off;
	/* A range: the file was shortened, and what was past its new end is
	 * gone.  No range: a capability is.  READs in flight look at the
	 * counter: they must know at once, not when the queue is worked off. */
	if (len > 0)
		__atomic_add_fetch(&upcalls->truncations[index],
				   CASYNC_TRUNCATION_TOLD, __ATOMIC_RELEASE);
	upcalls_queue(upcalls, INVALIDATE, vino);
}

static void upcalls_dentry_invalid(void *handle, vinodeno_t dir,
				   vinodeno_t vino, const char *name,
				   size_t len)
{
	(void)name;
	(void)len;
	upcalls_queue(handle, INVALIDATE_DIRECTORY, dir);
	/* libcephfs says which inode only if the name is gone, not if it does
	 * not know it any more.  A name that was moved costs a look-up. */
	if (vino.ino.val != 0)
		upcalls_queue(handle, REMOVED, vino);
}

/* Modes are masked before they reach libcephfs. */
static mode_t upcalls_no_umask(void *handle)
{
	(void)handle;
	return 0;
}

int casync_upcalls_register(struct casync_upcalls *upcalls,
			    struct ceph_mount_info *ceph)
{
	struct ceph_client_callback_args args = {
		.handle = upcalls,
		.ino_cb = upcalls_inode_invalid,
		.dentry_cb = upcalls_dentry_invalid,
		.umask_cb = upcalls_no_umask,
		.ino_release_cb = upcalls_inode_released,
	};

	upcalls->work.run = upcalls_run;
	return ceph_ll_register_callbacks2(ceph, &args);
}

void casync_upcalls_join(struct casync_upcalls *upcalls,
			 struct casync_export *exp)
{
	pthread_mutex_lock(&upcalls->lock);
	glist_add_tail(&upcalls->exports, &exp->upcalls.link);
	exp->upcalls.listed = true;
	pthread_mutex_unlock(&upcalls->lock);
}

uint16_t casync_upcalls_oldest_export(struct casync_upcalls *upcalls,
				      uint16_t otherwise)
{
	struct casync_upcalls_entry *entry;
	uint16_t oldest = otherwise;
	struct glist_head *node;

	pthread_mutex_lock(&upcalls->lock);
	glist_for_each(node, &upcalls->exports) {
		entry = glist_entry(node, struct casync_upcalls_entry, link);
		if (!entry->listed)
			continue;
		oldest = container_of(entry, struct casync_export, upcalls)
				 ->export.export_id;
		break;
	}
	pthread_mutex_unlock(&upcalls->lock);
	return oldest;
}

void casync_upcalls_leave(struct casync_upcalls *upcalls,
			  struct casync_export *exp)
{
	struct casync_upcalls_entry *entry = &exp->upcalls;

	pthread_mutex_lock(&upcalls->lock);
	if (entry->listed) {
		entry->listed = false;
		if (entry->busy == 0)
			glist_del(&entry->link);
	}
	/* Not in an upcall of its own: it would wait for itself. */
	while (entry->busy != 0 && !in_upcall)
		pthread_cond_wait(&upcalls->idle, &upcalls->lock);
	pthread_mutex_unlock(&upcalls->lock);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "fsal_up.h"

#include "export.h"
#include "filehandle.h"
#include "upcalls.h"

enum event_kind { RELEASE, INVALIDATE, INVALIDATE_DIRECTORY, RECALL };

struct event {
	struct glist_head link;
	enum event_kind kind;
	uint64_t ino;
	uint64_t snapid;
	const struct casync_export *only; /* NULL: for all; not followed */
};

static __thread bool in_upcall;

bool casync_upcalls_on_thread(void)
{
	return in_upcall;
}

void casync_upcalls_init(struct casync_upcalls *upcalls)
{
	pthread_mutex_init(&upcalls->lock, NULL);
	pthread_cond_init(&upcalls->idle, NULL);
	glist_init(&upcalls->exports);
	glist_init(&upcalls->events);
}

void casync_upcalls_destroy(struct casync_upcalls *upcalls)
{
	pthread_mutex_lock(&upcalls->lock);
	while (upcalls->running)
		pthread_cond_wait(&upcalls->idle, &upcalls->lock);
	pthread_mutex_unlock(&upcalls->lock);
	pthread_cond_destroy(&upcalls->idle);
	pthread_mutex_destroy(&upcalls->lock);
}

static void tell(const struct casync_upcalls *upcalls,
		 struct casync_export *exp, const struct event *event)
{
	const struct fsal_up_vector *up = exp->export.up_ops;
	struct casync_fileid id = {
		.ino = event->ino,
		.snapid = event->snapid,
		.fscid = upcalls->fscid,
	};
	uint8_t key[CASYNC_KEY_BYTES];
	struct gsh_buffdesc handle = {.addr = key, .len = sizeof(key)};

	casync_key_encode(&id, exp->export.export_id, key);
	/* MDCACHE is on top of us only after create_export has returned. */
	up_ready_wait((struct fsal_up_vector *)up);
	in_upcall = true;
	switch (event->kind) {
	case RELEASE:
		/* What is read ahead holds inodes, too. */
		casync_listings_drop(&exp->listings, exp->ceph);
		/* Fails where somebody uses the object; fine. */
		(void)up->try_release(up, &handle, 0);
		break;
	case INVALIDATE:
		(void)up->invalidate(up, &handle, FSAL_UP_INVALIDATE_CACHE);
		break;
	case INVALIDATE_DIRECTORY:
		(void)up->invalidate(up, &handle,
				     FSAL_UP_INVALIDATE_DIR_POPULATED |
					     FSAL_UP_INVALIDATE_DIR_CHUNKS);
		break;
	case RECALL:
		break; /* recall() */
	}
	in_upcall = false;
}

/* A recall names the object as a client does, by its handle. */
static void recall(const struct casync_upcalls *upcalls,
		   struct casync_export *exp, const struct event *event)
{
	const struct fsal_up_vector *up = exp->export.up_ops;
	struct casync_fileid id = {
		.ino = event->ino,
		.snapid = event->snapid,
		.fscid = upcalls->fscid,
	};
	uint8_t wire[CASYNC_WIRE_BYTES];
	struct gsh_buffdesc handle = {.addr = wire, .len = sizeof(wire)};

	casync_wire_encode(&id, wire);
	up_ready_wait((struct fsal_up_vector *)up);
	in_upcall = true;
	(void)up->delegrecall(up, &handle);
	in_upcall = false;
}

/* While an upcall is on its way its export stays in the list. */
static void tell_all_locked(struct casync_upcalls *upcalls,
			    const struct event *event)
{
	struct casync_upcalls_entry *entry;
	struct casync_export *exp;
	struct glist_head *node, *next;

	glist_for_each_safe(node, next, &upcalls->exports) {
		entry = glist_entry(node, struct casync_upcalls_entry, link);
		exp = container_of(entry, struct casync_export, upcalls);
		if (event->only != NULL && event->only != exp)
			continue;
		entry->busy++;
		pthread_mutex_unlock(&upcalls->lock);
		if (event->kind == RECALL)
			recall(upcalls, exp, event);
		else
			tell(upcalls, exp, event);
		pthread_mutex_lock(&upcalls->lock);
		entry->busy--;
		next = node->next;
		if (!entry->listed && entry->busy == 0)
			glist_del(node);
		pthread_cond_broadcast(&upcalls->idle);
	}
}

static void carry(struct casync_work *work)
{
	struct casync_upcalls *upcalls =
		container_of(work, struct casync_upcalls, work);
	struct glist_head batch, *node, *next;
	struct event *event;

	pthread_mutex_lock(&upcalls->lock);
	while (!glist_empty(&upcalls->events)) {
		glist_init(&batch);
		glist_splice_tail(&batch, &upcalls->events);
		glist_for_each_safe(node, next, &batch) {
			event = glist_entry(node, struct event, link);
			upcalls->event_count--;
			tell_all_locked(upcalls, event);
			gsh_free(event);
		}
	}
	upcalls->running = false;
	pthread_cond_broadcast(&upcalls->idle);
	pthread_mutex_unlock(&upcalls->lock);
}

static void queue(struct casync_upcalls *upcalls, const struct event *what)
{
	struct event *event;
	bool start;

	pthread_mutex_lock(&upcalls->lock);
	if (what->kind == RELEASE) {
		upcalls->released++;
		if (upcalls->event_count >= CASYNC_UPCALLS_RELEASES_MAX) {
			pthread_mutex_unlock(&upcalls->lock);
			return;
		}
	} else if (what->kind != RECALL) {
		upcalls->invalidated++;
	}
	event = gsh_calloc(1, sizeof(*event));
	*event = *what;
	glist_add_tail(&upcalls->events, &event->link);
	upcalls->event_count++;
	start = !upcalls->running;
	upcalls->running = true;
	pthread_mutex_unlock(&upcalls->lock);

	if (start)
		casync_work_submit(&upcalls->work);
}

static void queue_inode(struct casync_upcalls *upcalls, enum event_kind kind,
			vinodeno_t vino)
{
	const struct event event = {
		.kind = kind,
		.ino = vino.ino.val,
		.snapid = vino.snapid.val,
	};

	queue(upcalls, &event);
}

void casync_upcalls_recall(struct casync_upcalls *upcalls,
			   struct casync_export *exp, uint64_t ino,
			   uint64_t snapid)
{
	const struct event event = {
		.kind = RECALL,
		.ino = ino,
		.snapid = snapid,
		.only = exp,
	};

	queue(upcalls, &event);
}

static void inode_released(void *handle, vinodeno_t vino)
{
	queue_inode(handle, RELEASE, vino);
}

static void inode_invalid(void *handle, vinodeno_t vino, int64_t off,
			  int64_t len)
{
	(void)off;
	(void)len;
	queue_inode(handle, INVALIDATE, vino);
}

static void dentry_invalid(void *handle, vinodeno_t dir, vinodeno_t vino,
			   const char *name, size_t len)
{
	(void)vino;
	(void)name;
	(void)len;
	queue_inode(handle, INVALIDATE_DIRECTORY, dir);
}

/* Modes have been masked before they get there. */
static mode_t no_umask(void *handle)
{
	(void)handle;
	return 0;
}

int casync_upcalls_register(struct casync_upcalls *upcalls,
			    struct ceph_mount_info *ceph)
{
	struct ceph_client_callback_args args = {
		.handle = upcalls,
		.ino_cb = inode_invalid,
		.dentry_cb = dentry_invalid,
		.umask_cb = no_umask,
		.ino_release_cb = inode_released,
	};

	upcalls->work.run = carry;
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
	/* Not in an upcall of its own: whoever waits there waits for ever. */
	while (entry->busy != 0 && !in_upcall)
		pthread_cond_wait(&upcalls->idle, &upcalls->lock);
	pthread_mutex_unlock(&upcalls->lock);
}

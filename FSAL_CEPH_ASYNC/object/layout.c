/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fsal.h"

#include "check.h"
#include "clock.h"
#include "config_keys.h"
#include "inflight.h"
#include "inode.h"
#include "layout.h"
#include "mount.h"
#include "text.h"
#include "object.h"

#define FILE_LAYOUT "ceph.file.layout"
#define DIR_LAYOUT "ceph.dir.layout"

/* CEPH_INO_ROOT of Ceph's ceph_fs.h, which libcephfs-dev leaves out. */
#define ROOT_INO 1

/* Longest value, with the names of a pool and of a namespace in it. */
#define LAYOUT_BYTES 1024

/* The layout that the MDS gives a file if no folder has one. */
#define PRESET "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool="

/* The current texts, or older ones that running creates still use. */
struct casync_layout_texts {
	unsigned int users;	   /* under the layout's lock */
	char wanted[LAYOUT_BYTES]; /* value of ceph.file.layout */
	char preset[LAYOUT_BYTES]; /* the default layout of a file */
};

static bool layout_is_wanted(const struct casync_export_keys *keys)
{
	return keys->tuning.object_size != 0 ||
	       (keys->data_pool != NULL && keys->data_pool[0] != '\0');
}

/* The pool by its number: in this value the MDS (20.2.4) takes no name with a
 * '-' in it.  A negative number: no pool is wanted. */
static void layout_write_wanted(const struct casync_export_keys *keys,
				int64_t pool_id, char *value, size_t size)
{
	const struct casync_tuning *tuning = &keys->tuning;
	int used = 0;

	if (tuning->object_size != 0)
		used = snprintf(value, size,
				"stripe_unit=%" PRIu32 " stripe_count=%" PRIu32
				" object_size=%" PRIu32,
				tuning->stripe_unit, tuning->stripe_count,
				tuning->object_size);
	if (pool_id >= 0)
		(void)snprintf(value + used, size - (size_t)used,
			       "%spool=%" PRIi64, used != 0 ? " " : "",
			       pool_id);
}

static int layout_failed(const struct casync_layout *layout, int rc,
			 const char *what, const char *value)
{
	LogCrit(COMPONENT_FSAL, "export %" PRIu16 ": %s '%s': %s",
		layout->export_id, what, value,
		rc == -ENOENT ? "Ceph has no pool of that name"
			      : strerror(-rc));
	return rc;
}

static int layout_write_preset(const struct casync_layout *layout,
			       const struct casync_mount *mount, char *value,
			       size_t size)
{
	int rc;

	memcpy(value, PRESET, sizeof(PRESET));
	rc = ceph_get_default_data_pool_name(mount->client->ceph,
					     value + sizeof(PRESET) - 1,
					     size - sizeof(PRESET));
	if (rc < 0)
		return layout_failed(layout, rc,
				     "reading the default data pool of",
				     mount->identity.path);
	/* libcephfs gives the length, and no NUL. */
	value[sizeof(PRESET) - 1 + (size_t)rc] = '\0';
	return 0;
}

bool casync_layout_is_same(const struct casync_export_keys *a,
			   const struct casync_export_keys *b)
{
	return a->tuning.object_size == b->tuning.object_size &&
	       a->tuning.stripe_unit == b->tuning.stripe_unit &&
	       a->tuning.stripe_count == b->tuning.stripe_count &&
	       casync_text_same(a->data_pool, b->data_pool);
}

int casync_layout_prepare(const struct casync_layout *layout,
			  const struct casync_mount *mount,
			  const struct casync_export_keys *keys,
			  struct casync_layout_texts **texts)
{
	const char *pool = keys->data_pool;
	struct casync_layout_texts *made;
	int64_t pool_id = -1;
	int rc;

	*texts = NULL;
	if (!layout_is_wanted(keys))
		return 0;
	if (pool != NULL && pool[0] != '\0') {
		rc = ceph_get_pool_id(mount->client->ceph, pool);
		if (rc < 0)
			return layout_failed(layout, rc, "Data_Pool", pool);
		pool_id = rc;
	}

	made = gsh_calloc(1, sizeof(*made));
	made->users = 1;
	rc = layout_write_preset(layout, mount, made->preset,
				 sizeof(made->preset));
	if (rc < 0) {
		gsh_free(made);
		return rc;
	}
	layout_write_wanted(keys, pool_id, made->wanted, sizeof(made->wanted));
	*texts = made;
	return 0;
}

void casync_layout_init(struct casync_layout *layout, uint16_t export_id)
{
	layout->export_id = export_id;
	pthread_mutex_init(&layout->lock, NULL);
	layout->texts = NULL;
}

void casync_layout_destroy(struct casync_layout *layout)
{
	gsh_free(layout->texts);
	pthread_mutex_destroy(&layout->lock);
}

static struct casync_layout_texts *layout_get(struct casync_layout *layout)
{
	struct casync_layout_texts *texts;

	if (__atomic_load_n(&layout->texts, __ATOMIC_RELAXED) == NULL)
		return NULL;
	pthread_mutex_lock(&layout->lock);
	texts = layout->texts;
	if (texts != NULL)
		texts->users++;
	pthread_mutex_unlock(&layout->lock);
	return texts;
}

static void layout_put(struct casync_layout *layout,
		       struct casync_layout_texts *texts)
{
	bool last = false;

	if (texts == NULL)
		return;
	pthread_mutex_lock(&layout->lock);
	CASYNC_CHECK(texts->users > 0);
	last = --texts->users == 0;
	pthread_mutex_unlock(&layout->lock);
	if (last)
		gsh_free(texts);
}

void casync_layout_replace(struct casync_layout *layout,
			   struct casync_layout_texts *texts)
{
	struct casync_layout_texts *old;

	pthread_mutex_lock(&layout->lock);
	old = layout->texts;
	__atomic_store_n(&layout->texts, texts, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&layout->lock);
	layout_put(layout, old);
}

/*
 * Does the folder or a parent have a layout?  The MDS has just used it for the
 * file.  A folder's layout that equals the default is visible on that folder
 * only.  libcephfs answers all of this from memory.
 */
static bool layout_is_inherited(const struct casync_object *dir,
				const struct casync_object *file,
				const struct casync_layout_texts *texts)
{
	char value[LAYOUT_BYTES];
	int rc;

	rc = ceph_ll_getxattr(casync_inode_ceph(file), file->inode, FILE_LAYOUT,
			      value, sizeof(value) - 1,
			      casync_inode_root(file));
	if (rc < 0)
		return false;
	value[rc] = '\0';
	if (strcmp(value, texts->preset) != 0)
		return true;
	/* The root always has one. */
	if (dir == NULL || dir->id.ino == ROOT_INO)
		return false;
	return ceph_ll_getxattr(casync_inode_ceph(dir), dir->inode, DIR_LAYOUT,
				value, sizeof(value),
				casync_inode_root(dir)) >= 0;
}

/* A reason that says what to do. */
static const char *layout_reason(int rc)
{
	switch (-rc) {
	case EPERM:
	case EACCES:
		return "User_Id lacks the MDS capability p (ceph fs authorize ... rwp)";
	case EINVAL:
		return "the pool does not belong to this file system (ceph fs add_data_pool), or the MDS refuses the sizes";
	default:
		return strerror(-rc);
	}
}

static void layout_log_failure(const struct casync_layout *layout,
			       const char *wanted, int rc)
{
	static uint64_t line_ns; /* of all exports */

	if (!casync_clock_once_a_minute(&line_ns))
		return;
	LogCrit(COMPONENT_FSAL,
		"export %" PRIu16
		": files cannot be created: layout '%s' is refused: %s",
		layout->export_id, wanted, layout_reason(rc));
}

static int layout_set(const struct casync_layout *layout,
		      const struct casync_object *file,
		      const struct casync_layout_texts *texts)
{
	int rc = ceph_ll_setxattr(casync_inode_ceph(file), file->inode,
				  FILE_LAYOUT, texts->wanted,
				  strlen(texts->wanted), 0,
				  casync_inode_root(file));

	if (rc < 0)
		layout_log_failure(layout, texts->wanted, rc);
	return rc;
}

int casync_layout_apply(struct casync_layout *layout,
			const struct casync_object *dir,
			const struct casync_object *file, bool *changed)
{
	struct casync_layout_texts *texts = layout_get(layout);
	int rc = 0;

	*changed = false;
	if (texts == NULL)
		return 0;
	if (!layout_is_inherited(dir, file, texts)) {
		rc = layout_set(layout, file, texts);
		*changed = rc >= 0;
	}
	layout_put(layout, texts);
	return rc;
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "check.h"
#include "dir_cache.h"

void casync_dir_cache_init(struct casync_dir_cache *listings)
{
	pthread_mutex_init(&listings->lock, NULL);
	listings->count = 0;
}

void casync_dir_cache_destroy(struct casync_dir_cache *listings)
{
	pthread_mutex_destroy(&listings->lock);
}

struct casync_listing_stamp casync_dir_cache_stamp(const struct ceph_statx *stx)
{
	const unsigned int needed = CEPH_STATX_CTIME | CEPH_STATX_VERSION;

	return (struct casync_listing_stamp){
		.ctime = stx->stx_ctime,
		.version = stx->stx_version,
		.known = (stx->stx_mask & needed) == needed,
	};
}

static bool dir_cache_same_stamp(const struct casync_listing_stamp *one,
				 const struct casync_listing_stamp *other)
{
	return one->known && other->known && one->version == other->version &&
	       one->ctime.tv_sec == other->ctime.tv_sec &&
	       one->ctime.tv_nsec == other->ctime.tv_nsec;
}

static bool dir_cache_matches(const struct casync_listing *kept,
			      const struct casync_listing *wanted)
{
	return kept->generation == wanted->generation &&
	       (kept->position == wanted->position ||
		kept->before == wanted->position) &&
	       kept->id.ino == wanted->id.ino &&
	       kept->id.snapid == wanted->id.snapid &&
	       kept->uid == wanted->uid && kept->gid == wanted->gid &&
	       kept->groups == wanted->groups &&
	       dir_cache_same_stamp(&kept->stamp, &wanted->stamp);
}

static struct casync_listing
dir_cache_remove_locked(struct casync_dir_cache *listings, unsigned int index)
{
	struct casync_listing listing = listings->kept[index];

	CASYNC_CHECK(listings->count != 0);
	listings->count--;
	memmove(&listings->kept[index], &listings->kept[index + 1],
		(listings->count - index) * sizeof(listing));
	return listing;
}

bool casync_dir_cache_take(struct casync_dir_cache *listings,
			   struct casync_listing *wanted)
{
	unsigned int i;

	wanted->dirp = NULL;
	pthread_mutex_lock(&listings->lock);
	for (i = 0; i < listings->count && wanted->dirp == NULL; i++) {
		if (dir_cache_matches(&listings->kept[i], wanted))
			*wanted = dir_cache_remove_locked(listings, i);
	}
	pthread_mutex_unlock(&listings->lock);
	return wanted->dirp != NULL;
}

void casync_dir_cache_keep(struct casync_dir_cache *listings,
			   const struct casync_listing *listing,
			   struct casync_listing *displaced)
{
	*displaced = (struct casync_listing){.dirp = NULL};
	pthread_mutex_lock(&listings->lock);
	if (listings->count == CASYNC_DIR_CACHE_KEPT)
		*displaced = dir_cache_remove_locked(listings, 0);
	if (displaced->generation != listing->generation)
		displaced->dirp = NULL;
	listings->kept[listings->count++] = *listing;
	pthread_mutex_unlock(&listings->lock);
}

void casync_dir_cache_drop(struct casync_dir_cache *listings,
			   struct ceph_mount_info *ceph, uint32_t generation)
{
	struct casync_listing dropped[CASYNC_DIR_CACHE_KEPT];
	unsigned int count, i;

	pthread_mutex_lock(&listings->lock);
	count = listings->count;
	memcpy(dropped, listings->kept, count * sizeof(dropped[0]));
	listings->count = 0;
	pthread_mutex_unlock(&listings->lock);

	for (i = 0; i < count; i++)
		if (dropped[i].generation == generation)
			ceph_ll_releasedir(ceph, dropped[i].dirp);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file export.h
 * @brief An EXPORT of this FSAL: its mount, its settings, its I/O in flight.
 */
#ifndef CASYNC_EXPORT_H
#define CASYNC_EXPORT_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "config_keys.h"
#include "inflight.h"
#include "layout.h"
#include "dir_cache.h"
#include "metrics.h"
#include "mount.h"
#include "pool.h"
#include "room.h"

struct casync_published;
struct casync_watched;

struct casync_export {
	struct fsal_export export;  /**< Ganesha's part. */
	struct casync_mount *mount; /**< Held until release. */
	/** Credentials to open files: Ganesha has checked access, and the
	 * creator of a file of mode 0444 must be able to write to it. */
	UserPerm *root_perms;
	uint64_t root_ino;		 /**< Of the folder that is exported. */
	struct casync_export_keys keys;	 /**< As configured. */
	struct casync_inflight inflight; /**< Ops let in, not done. */
	struct casync_pool *pool;	 /**< Memory of ops. */
	struct casync_dir_cache dir_cache;  /**< Unfinished listings. */
	struct casync_layout layout;	    /**< Of new files. */
	struct casync_room statfs;	    /**< Waiters for a monitor. */
	unsigned int next_files;	    /**< Being fetched; atomic. */
	struct casync_metrics metrics;	    /**< Its counters. */
	uint64_t await_not_before_ns;	    /**< Atomic; complete.c's. */
	uint64_t refused_line_ns;	    /**< Atomic; handle_ops.c's. */
	struct casync_watched *watched;	    /**< Or NULL. */
	struct casync_published *published; /**< Or NULL. */
	struct casync_work teardown;	    /**< Frees it on a worker. */
	struct casync_upcalls_entry upcalls;
	bool recalls_joined;	   /**< delegations.c's, under its lock. */
	unsigned int recalls_busy; /**< Recalls that run; as before. */
	/** The drain has timed out: no thread waits for the requests in
	 * flight any more, and the memory they use is never freed.  Atomic. */
	bool abandoned;
};

/** The export that has this part of Ganesha's. */
static inline struct casync_export *
casync_export_of(struct fsal_export *exp_hdl)
{
	return container_of(exp_hdl, struct casync_export, export);
}

/** The export the current request (op_ctx) works on. */
static inline struct casync_export *casync_export_current(void)
{
	return casync_export_of(op_ctx->fsal_export);
}

/** The libcephfs handle.  The caller is in the mount's guard. */
static inline struct ceph_mount_info *
casync_export_ceph(const struct casync_export *exp)
{
	return exp->mount->client->ceph;
}

/** m_ops.create_export. */
fsal_status_t casync_export_create(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   const struct fsal_up_vector *up_ops);

#endif /* CASYNC_EXPORT_H */

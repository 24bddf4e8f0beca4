/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file export.h
 * @brief An EXPORT of this FSAL: its mount, its settings, its I/O in flight.
 */
#ifndef CASYNC_EXPORT_H
#define CASYNC_EXPORT_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "waiter_limit.h"
#include "config_keys.h"
#include "inflight.h"
#include "layout.h"
#include "dir_cache.h"
#include "metrics.h"
#include "mount.h"
#include "pool.h"
#include "publish.h"
#include "recalls.h"
#include "session.h"
#include "watchdog.h"
#include "workers.h"

struct casync_export {
	struct fsal_export export; /**< Ganesha's part. */
	/** Its clients (owner.h), held until release; the first has names. */
	union {
		struct casync_mount *mount;
		struct casync_mount *mounts[CASYNC_CLIENTS_MAX];
	};
	/** casync_mount_session() of each. */
	union {
		struct casync_session *session;
		struct casync_session *sessions[CASYNC_CLIENTS_MAX];
	};
	unsigned int client_count; /**< 0 is 1: no mount yet. */
	bool delegations;	   /**< Does libcephfs grant them? */
	/** Credentials to open files: Ganesha has checked access, and the
	 * creator of a file of mode 0444 must be able to write to it. */
	UserPerm *root_perms;
	struct casync_export_keys keys;	   /**< As configured. */
	struct casync_inflight inflight;   /**< Ops let in, not done. */
	struct casync_pool pool;	   /**< Memory of ops. */
	struct casync_dir_cache dir_cache; /**< Unfinished listings. */
	struct casync_layout layout;	   /**< Of new files. */
	struct casync_waiter_limit statfs; /**< Waiters for a monitor. */
	struct casync_metrics metrics;	   /**< Its counters. */
	uint64_t await_not_before_ns;	   /**< Atomic; await.c's. */
	uint64_t refused_line_ns;	   /**< Atomic; handle_ops.c's. */
	struct casync_watched watched;
	struct casync_published published;
	struct casync_upcalls_entry upcalls[CASYNC_CLIENTS_MAX];
	struct casync_recalls_entry recalls;
	/** The drain has timed out: no thread waits for the requests in
	 * flight any more, and the memory they use is never freed.  Atomic. */
	bool abandoned;
	struct casync_work teardown; /**< Frees the export on a worker. */
};

/** The export the current request (op_ctx) works on. */
static inline struct casync_export *casync_export_current(void)
{
	return container_of(op_ctx->fsal_export, struct casync_export, export);
}

/** The libcephfs handle of the names.  The caller is in that mount's guard. */
static inline struct ceph_mount_info *
casync_export_ceph(const struct casync_export *exp)
{
	return casync_mount_ceph(exp->mount);
}

/**
 * When the last of its clients was mounted: CLOCK_REALTIME in nanoseconds.
 * What depends on it is the same for all of its files.
 */
static inline uint64_t casync_export_time_ns(const struct casync_export *exp)
{
	uint64_t last_ns = casync_mount_time_ns(exp->mount);
	unsigned int i;

	for (i = 1; i < exp->client_count; i++) {
		uint64_t time_ns = casync_mount_time_ns(exp->mounts[i]);

		if (time_ns > last_ns)
			last_ns = time_ns;
	}
	return last_ns;
}

/** m_ops.create_export. */
fsal_status_t casync_export_create(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   const struct fsal_up_vector *up_ops);

#endif /* CASYNC_EXPORT_H */

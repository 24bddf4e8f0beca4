/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file rig.h
 * @brief An export, a file on it and a request's op_ctx, for the data path.
 */
#ifndef RIG_H
#define RIG_H

#include <semaphore.h>

#include "fsal.h"
#include "export_mgr.h"

#include "unit.h"

#include "export.h"
#include "fake_libcephfs.h"
#include "fd.h"
#include "object.h"
#include "stub_ganesha.h"

struct rig {
	struct gsh_export gsh_export;
	struct casync_export exp;
	struct casync_object *obj;
	struct casync_state state;
	struct req_op_context request; /**< op_ctx of the test thread. */
	uint64_t truncations; /**< The file's truncations (file_size.h). */
	/** Calls of casync_privileges_drop(). */
	int privileges_dropped;
	int drop_privileges_rc; /**< What it returns. */
};

extern struct rig rig;

/** cmocka setup: a file of four objects of RIG_OBJECT bytes, all there. */
#define RIG_OBJECT 4096U
#define RIG_OBJECTS 4U
int rig_up(void **state);

/** cmocka teardown.  It fails if somebody is in the mount's guard. */
int rig_down(void **state);

/** libcephfs tells that somebody has shortened the file. */
void rig_shorten(void);

/** We have set the size; we have written up to there. */
void rig_set_size(uint64_t size_bytes);
void rig_grow(uint64_t end_bytes);

/** Have the watchdog watch the export.  @return Its entry. */
struct casync_watched *rig_watch(void);

/** Close an fd and be done with it. */
void rig_close(struct casync_fd *fd);

/** A further file of the export, with the same contents.  To use it, or to free
 * it, make it rig.obj. */
struct casync_object *rig_new_object(void);

/** Free the file's object, as the last request on it may.  Its memory is
 * overwritten before. */
void rig_free_object(void);

/** Calls of libcephfs that wait until the test lets them go. */
struct rig_held {
	enum fake_blocking kind;
	int count; /**< Atomic: how many have come. */
	sem_t go;  /**< Lets one of them go; destroyed by the test. */
};

extern struct rig_held rig_held;

/** Hold each call of @p kind from here on. */
void rig_hold(enum fake_blocking kind);

/** Wait, if the call is of that kind: what rig_hold() sets as fake.hook. */
void rig_wait_held(enum fake_blocking which);

#endif /* RIG_H */

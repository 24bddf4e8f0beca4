/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file call_rig.h
 * @brief What the tests of the call share: the rig, whose call writes down each
 * step.
 *
 * The linker leads call.c to functions that note a step (CMakeLists.txt).  The
 * keeper is real, without its thread.
 */
#ifndef CALL_RIG_H
#define CALL_RIG_H

#include <stdint.h>

#include "call.h"
#include "rig.h"

/** With the 200 workers of the stub: a mount's, a file's, an export's. */
#define MOUNT_SLOTS 150
#define FILE_SLOTS 51
#define STATFS_SLOTS 8

#define ALL                                                   \
	(CASYNC_CALL_ASKS_MDS | CASYNC_CALL_ATTR_SLOT |       \
	 CASYNC_CALL_SETATTR_SLOT | CASYNC_CALL_STATFS_SLOT | \
	 CASYNC_CALL_ANNOUNCES)

/** Its steps.  A capital is a step that takes, a small letter one that
 * releases: the mount's slot, the guard, the attr slot, the change slot, the
 * statfs slot, the announcement of a write. */
#define ALL_TAKEN "MGACSW"
#define ALL_DROPPED "wscagm"

/** What the call of a case is on. */
extern struct casync_call call;

/** cmocka setup: a file of the present client. */
int call_up(void **state);

/** cmocka teardown.  It fails if a slot or an announcement is left. */
int call_down(void **state);

#define CALL_CASE(test) TEST_WITH(test, call_up, call_down)

/** The steps of the test's thread since the last time. */
void check_steps(const char *expected);

/* Threads that have a slot. */
uint32_t *mount_inside(void);
uint32_t *attr_inside(void);
uint32_t *change_inside(void);
uint32_t *statfs_inside(void);

/** Changes that are announced to the read cache. */
uint32_t writers(void);

/** Another client has taken the place of the first one. */
void new_client(void);

/** The session is lost, and the keeper is at work. */
void lose_client(void);

/** The call, on the rig's file. */
int take(uint32_t needs);
fsal_status_t begin(uint32_t needs);

/** Have a thread do something; it returns NULL if that went well. */
void run(void *(*thread_main)(void *unused));

static const fsal_status_t good = {ERR_FSAL_NO_ERROR, 0};

#endif /* CALL_RIG_H */

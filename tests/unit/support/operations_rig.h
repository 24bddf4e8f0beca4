/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file operations_rig.h
 * @brief The operations as Ganesha calls them, with a libcephfs of our own.
 *
 * The operations and the call are real, and so is the keeper, without its
 * thread.  Each call of libcephfs for an operation is seen here: was the client
 * in place, and what did the request hold?
 */
#ifndef OPERATIONS_RIG_H
#define OPERATIONS_RIG_H

#include <stdint.h>

#include "call.h"
#include "fake_names.h"
#include "request.h"

/** What the calls of libcephfs for an operation have shown.  The look-up of
 * an object's Inode after a change of the client is not counted. */
struct seen {
	unsigned int calls;
	uint32_t always; /**< CASYNC_CALL_* that each call has found held. */
	uint32_t ever;	 /**< Those that some call has found held. */
	bool old_inode;	 /**< A call was on the Inode of a lost client. */
	bool renewing;	 /**< An Inode is being looked up. */
};

extern struct seen seen;

/** Two directories besides the rig's file. */
extern struct casync_object dirs[2];
#define FILE_HDL (&rig.obj->handle)
#define DIR_HDL(i) (&dirs[i].handle)

/** cmocka setup: the rig's file, two directories, and a keeper. */
int operations_up(void **state);

/** cmocka teardown. */
int operations_down(void **state);

#define OPERATION_CASE(test) TEST_WITH(test, operations_up, operations_down)

/** Another client has taken the place of the first one: no Inode is of it. */
void new_client(void);

/** All Inodes are of the present client. */
void use_objects(void);

/** No object counts as one that answers (call.h). */
void forget_answers(void);

/** The session is lost, and the keeper is at work. */
void lose_client(void);

/** What each call of libcephfs for an operation returns, if negative. */
void set_result(int rc);

/** Forget what was seen. */
void forget_seen(void);

/** Nothing is held, and the requester's credentials are freed. */
void check_nothing_held(void);

/** Threads that have a slot of the mount. */
uint32_t *mount_inside(void);

#endif /* OPERATIONS_RIG_H */

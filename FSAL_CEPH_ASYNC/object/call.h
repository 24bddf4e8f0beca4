/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file call.h
 * @brief One request: what it holds from Ganesha's call to its answer.
 *
 * Each operation begins with casync_call_begin() and returns what
 * casync_call_end() makes of its status.  READ and WRITE keep the call in
 * their op, and end it with the answer.  No other file enters the guard, a
 * limit of workers or the announcement of a change for a request.
 *
 *	what is held		what it is for
 *	CASYNC_CALL_MOUNT_SLOT	An MDS that does not answer keeps the threads
 *				that ask it.  The mount's slots bound these
 *				threads.
 *	CASYNC_CALL_CLIENT	The libcephfs client stays in place (guard.h),
 *				and the object's Inode is one of it (inode.h).
 *	CASYNC_CALL_ATTR_SLOT	Another client may keep a file's capabilities.
 *				Threads that ask for attributes wait for them.
 *				The file's slots bound these threads.
 *	CASYNC_CALL_SETATTR_SLOT  The file's slots for threads that change
 *				attributes, flush, or punch holes.
 *	CASYNC_CALL_STATFS_SLOT	The export's slots for threads that ask a
 *				monitor for space.
 *	CASYNC_CALL_ANNOUNCES	The file's change is announced to the read cache
 *				(rule C4 of read_cache.h).
 *
 * A call takes them in this order, and releases them in the other one.  Nothing
 * waits for the guard.  A slot is waited for: 1 s without progress for a
 * file's, 0.1 s for a mount's.  Then the NFS client is asked to retry.  So a
 * step of a call may take a slot in any order: no wait lasts.
 *
 * All mounts together may keep three quarters of Ganesha's workers.  Each may
 * keep as many as are left of these: budget.h has the table.  The rest of the
 * workers goes on: for other file systems, and for NFSv4 leases.  READs and
 * WRITEs take a slot of the mount while their file is looked up or opened, and
 * while a worker submits them (submit.c).
 *
 * A call may begin within another one of the same thread: OPEN sets attributes
 * so.  The thread has one slot of the mount then.  Completion threads take
 * none.
 */
#ifndef CASYNC_CALL_H
#define CASYNC_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "fsal_api.h"

struct casync_fd;
struct casync_mount;
struct casync_object;

enum {
	CASYNC_CALL_MOUNT_SLOT = 1 << 0,
	/** A slot of the mount, although all may be in use.  It is for UNLOCK,
	 * which Ganesha repeats without a pause if it fails. */
	CASYNC_CALL_MOUNT_SLOT_ALWAYS = 1 << 1,
	CASYNC_CALL_CLIENT = 1 << 2,
	/** The client, although it may still take locks again.  For UNLOCK. */
	CASYNC_CALL_CLIENT_TO_UNLOCK = 1 << 3,
	CASYNC_CALL_ATTR_SLOT = 1 << 4,
	CASYNC_CALL_SETATTR_SLOT = 1 << 5,
	CASYNC_CALL_STATFS_SLOT = 1 << 6,
	CASYNC_CALL_ANNOUNCES = 1 << 7,
	/** For an operation that asks the MDS. */
	CASYNC_CALL_ASKS_MDS = CASYNC_CALL_MOUNT_SLOT | CASYNC_CALL_CLIENT,
};

/** Zero is a call that holds nothing. */
struct casync_call {
	struct casync_object *obj;
	uint32_t holds; /**< CASYNC_CALL_*. */
};

/**
 * Begin a request on an object.  It may ask the MDS for the Inode.
 *
 * @param[out] call   For casync_call_end().
 * @param[in]  needs  CASYNC_CALL_*.
 *
 * @return Success: casync_call_end() must be called.  Otherwise the answer to
 *         the client, and nothing is held.
 */
fsal_status_t casync_call_begin(struct casync_call *call,
				struct fsal_obj_handle *obj_hdl,
				uint32_t needs);

/**
 * May a client give this as the name of an entry?
 *
 * Ganesha checks the names of NFSv4 (RFC 8881, section 14.5), but not those of
 * NFSv3.  libcephfs and the MDS take a name for a path: "../x" would leave the
 * export, and "" is the directory itself, for which MDCACHE would wait for a
 * lock that it holds.
 *
 * @return 0 or -EACCES.
 */
int casync_call_check_name(const char *name);

/** Begin a request on a name in a directory, after casync_call_check_name(). */
fsal_status_t casync_call_begin_entry(struct casync_call *call,
				      struct fsal_obj_handle *dir_hdl,
				      const char *name, uint32_t needs);

/**
 * Use another object in a call that holds the client: its Inode becomes one of
 * the current client.
 *
 * @return 0 or a negative errno.
 */
int casync_call_renew_inode(struct casync_object *obj);

/**
 * Use an fd in a call that holds the client: its Fh becomes one of the current
 * client.  I/O has been started on the fd, or it is a state's.
 *
 * @return 0 or a negative errno.
 */
int casync_call_use_fd(struct casync_object *obj, struct casync_fd *fd);

/**
 * Release all that a call holds.  READ and WRITE may do it on another thread:
 * they hold no slot then.
 *
 * @param[in] status  Of the operation; its minor is libcephfs' errno.
 *
 * @return The answer to the client: if the session is lost, the client is asked
 *         to retry (keeper.h).
 */
fsal_status_t casync_call_end(struct casync_call *call, fsal_status_t status);

/**
 * Take something for a step of a request, and answer nothing.
 *
 * @return 0: casync_call_drop() must be called, by this thread.  -EAGAIN,
 *         -ETIME: no slot was free in time, or the client is being replaced.
 *         Another negative errno: it is lost, or the file is gone.
 */
int casync_call_take(struct casync_call *call, struct casync_object *obj,
		     uint32_t needs);

/**
 * Take slots for a step that is optional, without waiting.  Only the first call
 * of a file waits while the keeper asks the MDS (budget.h), 0.1 s at most.
 *
 * Of the mount's slots only half may be in use then: the others stay for calls
 * that are needed.
 *
 * @param[in] attr_slots  How many of the file's ATTR_SLOTs may be in use.
 *
 * @return false: they are not free.
 */
bool casync_call_try(struct casync_call *call, struct casync_object *obj,
		     uint32_t needs, uint32_t attr_slots);

/** Announce the change of another file than the call's (CASYNC_CALL_ANNOUNCES).
 * casync_call_drop() must be called. */
void casync_call_announce(struct casync_call *call,
			  struct fsal_obj_handle *obj_hdl);

/** Announce the change of the call's own file, later than its begin. */
void casync_call_announce_own(struct casync_call *call);

/** Release what casync_call_take() or casync_call_try() has taken. */
void casync_call_drop(struct casync_call *call);

/** Release it after a call that Ceph has not answered: its end is no proof that
 * Ceph answers. */
void casync_call_drop_unanswered(struct casync_call *call);

/** Release CASYNC_CALL_* of it, and keep the others. */
void casync_call_drop_part(struct casync_call *call, uint32_t parts);

/** Longest repetition in a minute of requests that their client would not
 * repeat.  Far below the 60 s after which Linux sends them again. */
#define CASYNC_CALL_REPEAT_MS 2000
/** Pause between two tries. */
#define CASYNC_CALL_REPEAT_PAUSE_MS 50
/** Most workers that repeat at once: of the 200 that Ganesha has by default
 * (RPC_Ioq_ThrdMax). */
#define CASYNC_CALL_REPEATERS 8

/**
 * Is a request to be repeated that has ended in a delay?
 *
 * Linux repeats what is answered with NFS3ERR_JUKEBOX, but not a GETACL or
 * SETACL: there its program gets errno 528 (nfs3acl.c of 7.2), also from a mere
 * open() that creates a file.  So such a request waits for a moment, in no slot
 * and outside of the guard, but MDCACHE may hold the lock of the object's
 * attributes.  After that it is not answered, and Linux sends it again after 60
 * s.
 *
 * @param[in,out] status  How the request has ended.  ERR_FSAL_NOT_OPENED makes
 *			  Ganesha give no answer (nfs_RetryableError()).
 *
 * @return true: a pause has passed, repeat it.
 */
bool casync_call_is_to_repeat(fsal_status_t *status);

/** Begin a request that has no object yet: a mount's slot and its client. */
fsal_status_t casync_call_begin_mount(struct casync_mount *mount);
fsal_status_t casync_call_end_mount(struct casync_mount *mount,
				    fsal_status_t status);

/** Take a slot of the mount in any case, for the keeper: a refusal would be a
 * lost lock.  casync_call_drop_mount_slot() must be called. */
void casync_call_take_mount_slot(struct casync_mount *mount);
void casync_call_drop_mount_slot(struct casync_mount *mount);

/**
 * Keep the client in place to release an Inode or to close an Fh.
 *
 * @return false: the client is about to end, and what it has open ends with it.
 *         Otherwise casync_call_leave() must be called.
 */
bool casync_call_begin_release(struct casync_mount *mount);

/** As casync_call_begin_release(), to add or reload an export.  @return false:
 * the session is lost, the administrator must ask again. */
bool casync_call_begin_setup(struct casync_mount *mount);

/** Keep the client in place for a job, beyond the end of this thread's call.
 * It never fails: the thread keeps it in place now. */
void casync_call_stay(struct casync_mount *mount);

/** End what casync_call_begin_release(), casync_call_begin_setup() or
 * casync_call_stay() began. */
void casync_call_leave(struct casync_mount *mount);

#endif /* CASYNC_CALL_H */

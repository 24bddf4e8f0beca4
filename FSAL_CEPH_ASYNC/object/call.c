/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "nfs_core.h"

#include "budget.h"
#include "call.h"
#include "check.h"
#include "clock.h"
#include "complete.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "keeper.h"
#include "mount.h"
#include "object.h"
#include "lane.h"
#include "read_cache.h"

/* Ganesha's workers that may wait for the monitors, for each export: the
 * answer is the same for all of them, so more would only wait. */
#define STATFS_SLOTS 8

/* A file answers if Ceph has answered for it within this time. */
#define ANSWERED_MS 1000

/* The slot of this thread, and its calls that share it.  They are of one mount.
 */
static _Thread_local struct casync_budget_slot slot;
static _Thread_local unsigned int slot_users;

/* --- the slot of a mount and a file */

static bool call_needs_slot(void)
{
	return slot_users == 0 && !casync_lane_on_completion_thread();
}

/* Has Ceph answered for this file a moment ago? */
static bool call_is_answered(const struct casync_object *obj)
{
	uint64_t answered_ns =
		__atomic_load_n(&obj->answered_ns, __ATOMIC_RELAXED);

	return answered_ns != 0 && casync_clock_age_ns(answered_ns) <
					   ANSWERED_MS * CASYNC_NS_PER_MS;
}

/* OBJ may be NULL. */
static bool call_enter_slot(struct casync_mount *mount,
			    struct casync_object *obj,
			    enum casync_budget_who who)
{
	if (who != CASYNC_BUDGET_ALWAYS &&
	    casync_budget_wants_proof(&mount->callers))
		casync_keeper_ask_mds(mount);
	slot.mount = &mount->callers;
	slot.file = obj != NULL ? &obj->callers : NULL;
	return casync_budget_enter(&slot, who,
				   who == CASYNC_BUDGET_NEEDED && obj != NULL &&
					   call_is_answered(obj));
}

static bool call_take_slot(struct casync_mount *mount,
			   struct casync_object *obj,
			   enum casync_budget_who who)
{
	if (call_needs_slot() && !call_enter_slot(mount, obj, who))
		return false;
	slot_users++;
	return true;
}

static bool call_take_slot_of(struct casync_object *obj,
			      enum casync_budget_who who)
{
	return call_take_slot(casync_inode_mount(obj), obj, who);
}

/* The last call of a thread to drop its slot leaves the limits.  To be refused
 * is no answer of Ceph. */
static void call_drop_slot(struct casync_object *obj, bool answered)
{
	uint64_t answered_ns = answered ? casync_clock_ns() : 0;

	if (answered && obj != NULL)
		__atomic_store_n(&obj->answered_ns, answered_ns,
				 __ATOMIC_RELAXED);
	CASYNC_CHECK(slot_users != 0);
	slot_users--;
	if (call_needs_slot())
		casync_budget_leave(&slot, answered_ns);
}

void casync_call_take_mount_slot(struct casync_mount *mount)
{
	(void)call_take_slot(mount, NULL, CASYNC_BUDGET_ALWAYS);
}

void casync_call_drop_mount_slot(struct casync_mount *mount)
{
	(void)mount;
	call_drop_slot(NULL, true);
}

/* --- rooms of a file and of an export */

/* NULL: WHAT is no place in a room. */
static struct casync_room *call_room(struct casync_object *obj, uint32_t what)
{
	switch (what) {
	case CASYNC_CALL_ATTR_SLOT:
		return &obj->getattr[casync_lane_on_completion_thread()];
	case CASYNC_CALL_SETATTR_SLOT:
		return &obj->change;
	case CASYNC_CALL_STATFS_SLOT:
		return &obj->exp->statfs;
	default:
		return NULL;
	}
}

static bool call_enter_room(struct casync_object *obj, uint32_t what)
{
	struct casync_room *room = call_room(obj, what);

	if (what == CASYNC_CALL_STATFS_SLOT)
		return casync_room_enter(room, STATFS_SLOTS,
					 CASYNC_BUDGET_LONG_MS);
	if (room == &obj->getattr[true])
		return casync_room_enter(room, CASYNC_COMPLETERS,
					 CASYNC_BUDGET_SHORT_MS);
	return casync_room_enter(room, casync_budget_quarter(),
				 CASYNC_BUDGET_LONG_MS);
}

static void call_leave_room(struct casync_object *obj, uint32_t what,
			    bool answered)
{
	casync_room_leave(call_room(obj, what),
			  answered ? casync_clock_ns() : 0);
}

/* --- the client, and the object's Inode */

/* The look-up asks the MDS, so it takes slots as GETATTR does.  -ETIME is a
 * delay; EAGAIN is a conflict of locks, and EBUSY a lack of descriptors. */
static int call_look_up(struct casync_object *obj, uint32_t generation)
{
	bool asked;
	int rc = -ETIME;

	if (!call_take_slot_of(obj, CASYNC_BUDGET_NEEDED))
		return rc;
	asked = call_enter_room(obj, CASYNC_CALL_ATTR_SLOT);
	if (asked) {
		rc = casync_inode_renew(obj, generation);
		call_leave_room(obj, CASYNC_CALL_ATTR_SLOT, true);
	}
	call_drop_slot(obj, asked);
	return rc;
}

int casync_call_renew_inode(struct casync_object *obj)
{
	uint32_t generation =
		casync_guard_generation(&casync_inode_mount(obj)->guard);

	if (__atomic_load_n(&obj->generation, __ATOMIC_ACQUIRE) == generation)
		return 0;
	return call_look_up(obj, generation);
}

int casync_call_use_fd(struct casync_object *obj, struct casync_fd *fd)
{
	int rc;

	if (casync_fd_fh(fd) == NULL || !casync_inode_fd_is_lost(obj, fd))
		return 0;
	if (!call_take_slot_of(obj, CASYNC_BUDGET_NEEDED))
		return -ETIME;
	rc = casync_inode_reopen(obj, fd);
	call_drop_slot(obj, true);
	return rc;
}

/* A delay while a client is made.  By the time this is answered the client may
 * serve, and EBLOCKLISTED would be noted as its loss. */
static int call_without_client(struct casync_mount *mount)
{
	return casync_session_comes_back(mount) ||
			       casync_guard_phase(&mount->guard) ==
				       CASYNC_GUARD_LEFT
		       ? -ETIME
		       : -CASYNC_EBLOCKLISTED;
}

/* An error of this client shows its loss, or comes while it is lost.  Once the
 * guard is left, another client may serve: the same error would be noted as the
 * loss of that one, or believed as its answer. */
static int call_note_loss(struct casync_mount *mount, int rc)
{
	if (!casync_session_error(-rc))
		return casync_guard_phase(&mount->guard) > CASYNC_GUARD_LOST
			       ? call_without_client(mount)
			       : rc;
	casync_session_note_error(mount, -rc);
	return call_without_client(mount);
}

static int call_enter_client(struct casync_object *obj,
			     enum casync_guard_phase up_to)
{
	struct casync_mount *mount = casync_inode_mount(obj);
	int rc;

	if (!casync_guard_enter_up_to(&mount->guard, up_to))
		return call_without_client(mount);
	rc = casync_call_renew_inode(obj);
	if (rc < 0) {
		rc = call_note_loss(mount, rc);
		casync_guard_leave(&mount->guard);
	}
	return rc;
}

/* --- all of them */

#define ALL_PARTS UINT32_MAX

static int call_take_one(struct casync_object *obj, uint32_t what)
{
	switch (what) {
	case CASYNC_CALL_MOUNT_SLOT:
		return call_take_slot_of(obj, CASYNC_BUDGET_NEEDED) ? 0
								    : -ETIME;
	case CASYNC_CALL_MOUNT_SLOT_ALWAYS:
		(void)call_take_slot_of(obj, CASYNC_BUDGET_ALWAYS);
		return 0;
	case CASYNC_CALL_CLIENT:
		return call_enter_client(obj, CASYNC_GUARD_LOST);
	case CASYNC_CALL_CLIENT_TO_UNLOCK:
		return call_enter_client(obj, CASYNC_GUARD_RESTORES);
	case CASYNC_CALL_ANNOUNCES:
		if (obj->cached != NULL)
			casync_cache_begin_write(&obj->cached->file);
		return 0;
	default:
		return call_enter_room(obj, what) ? 0 : -EAGAIN;
	}
}

static void call_drop_one(struct casync_object *obj, uint32_t what,
			  bool answered)
{
	switch (what) {
	case CASYNC_CALL_MOUNT_SLOT:
	case CASYNC_CALL_MOUNT_SLOT_ALWAYS:
		call_drop_slot(obj, answered);
		break;
	case CASYNC_CALL_CLIENT:
	case CASYNC_CALL_CLIENT_TO_UNLOCK:
		casync_guard_leave(&casync_inode_mount(obj)->guard);
		break;
	case CASYNC_CALL_ANNOUNCES:
		if (obj->cached != NULL)
			casync_cache_end_write(&obj->cached->file);
		break;
	default:
		call_leave_room(obj, what, answered);
		break;
	}
}

static void call_drop(struct casync_call *call, uint32_t parts, bool answered)
{
	uint32_t what;

	for (what = CASYNC_CALL_ANNOUNCES; what != 0; what >>= 1) {
		if ((call->holds & parts & what) != 0)
			call_drop_one(call->obj, what, answered);
	}
	call->holds &= ~parts;
}

int casync_call_take(struct casync_call *call, struct casync_object *obj,
		     uint32_t needs)
{
	uint32_t what;
	int rc;

	*call = (struct casync_call){.obj = obj};
	for (what = 1; what <= needs; what <<= 1) {
		if ((needs & what) == 0)
			continue;
		rc = call_take_one(obj, what);
		if (rc < 0) {
			call_drop(call, ALL_PARTS, false);
			return rc;
		}
		call->holds |= what;
	}
	return 0;
}

void casync_call_drop(struct casync_call *call)
{
	call_drop(call, ALL_PARTS, true);
}

void casync_call_drop_unanswered(struct casync_call *call)
{
	call_drop(call, ALL_PARTS, false);
}

void casync_call_drop_part(struct casync_call *call, uint32_t parts)
{
	call_drop(call, parts, true);
}

void casync_call_announce(struct casync_call *call,
			  struct fsal_obj_handle *obj_hdl)
{
	/* It never fails. */
	(void)casync_call_take(call, casync_object_of(obj_hdl),
			       CASYNC_CALL_ANNOUNCES);
}

void casync_call_announce_own(struct casync_call *call)
{
	(void)call_take_one(call->obj, CASYNC_CALL_ANNOUNCES);
	call->holds |= CASYNC_CALL_ANNOUNCES;
}

bool casync_call_try(struct casync_call *call, struct casync_object *obj,
		     uint32_t needs, uint32_t attr_slots)
{
	*call = (struct casync_call){.obj = obj};
	if ((needs & CASYNC_CALL_ATTR_SLOT) != 0 &&
	    !casync_room_try(call_room(obj, CASYNC_CALL_ATTR_SLOT), attr_slots))
		return false;
	call->holds = needs & CASYNC_CALL_ATTR_SLOT;
	if ((needs & CASYNC_CALL_MOUNT_SLOT) != 0 &&
	    !call_take_slot_of(obj, CASYNC_BUDGET_OPTIONAL)) {
		call_drop(call, ALL_PARTS, false);
		return false;
	}
	call->holds = needs;
	return true;
}

/* --- the answer */

static fsal_status_t call_answer(const struct casync_object *obj,
				 fsal_status_t status)
{
	return casync_session_answer(
		casync_inode_mount(obj), status,
		__atomic_load_n(&obj->locks.linked, __ATOMIC_RELAXED));
}

fsal_status_t casync_call_begin(struct casync_call *call,
				struct fsal_obj_handle *obj_hdl, uint32_t needs)
{
	struct casync_object *obj = casync_object_of(obj_hdl);

	return call_answer(
		obj, casync_errors_status(casync_call_take(call, obj, needs)));
}

/* "." and ".." are names: Ganesha asks for them. */
int casync_call_check_name(const char *name)
{
	/* EACCES is the answer of Linux' server. */
	return name[0] != '\0' && strchr(name, '/') == NULL ? 0 : -EACCES;
}

fsal_status_t casync_call_begin_entry(struct casync_call *call,
				      struct fsal_obj_handle *dir_hdl,
				      const char *name, uint32_t needs)
{
	int rc = casync_call_check_name(name);

	if (rc < 0)
		return casync_errors_status(rc);
	return casync_call_begin(call, dir_hdl, needs);
}

fsal_status_t casync_call_end(struct casync_call *call, fsal_status_t status)
{
	bool answered = status.minor != ETIME;

	/* Before the client may be replaced. */
	status = call_answer(call->obj, status);
	call_drop(call, ALL_PARTS, answered);
	return status;
}

#define MINUTE_NS (60000 * CASYNC_NS_PER_MS)

static uint32_t repeaters;	 /* atomic */
static uint64_t repeat_until_ns; /* atomic */

/* The time is for all requests together.  MDCACHE's lock lets them come one by
 * one; each would wait the whole time otherwise. */
static bool call_is_time_to_repeat(void)
{
	uint64_t until_ns = __atomic_load_n(&repeat_until_ns, __ATOMIC_RELAXED);
	uint64_t now_ns = casync_clock_ns();

	if (until_ns == 0 || now_ns >= until_ns + MINUTE_NS) {
		until_ns = now_ns + CASYNC_CALL_REPEAT_MS * CASYNC_NS_PER_MS;
		__atomic_store_n(&repeat_until_ns, until_ns, __ATOMIC_RELAXED);
	}
	return now_ns < until_ns;
}

bool casync_call_is_to_repeat(fsal_status_t *status)
{
	const struct timespec pause = {.tv_nsec = CASYNC_CALL_REPEAT_PAUSE_MS *
						  CASYNC_NS_PER_MS};
	bool wait;

	if (status->major != ERR_FSAL_DELAY || !casync_ganesha_is_nfsacl())
		return false;
	wait = __atomic_add_fetch(&repeaters, 1, __ATOMIC_RELAXED) <=
		       CASYNC_CALL_REPEATERS &&
	       call_is_time_to_repeat();
	if (wait)
		nanosleep(&pause, NULL);
	else
		*status = fsalstat(ERR_FSAL_NOT_OPENED, status->minor);
	CASYNC_CHECK_DOWN(&repeaters, __ATOMIC_RELAXED);
	return wait;
}

/* --- without an object */

fsal_status_t casync_call_begin_mount(struct casync_mount *mount)
{
	if (!call_take_slot(mount, NULL, CASYNC_BUDGET_NEEDED))
		return casync_errors_status(-ETIME);
	if (casync_guard_enter(&mount->guard))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	call_drop_slot(NULL, false);
	return casync_errors_status(call_without_client(mount));
}

fsal_status_t casync_call_end_mount(struct casync_mount *mount,
				    fsal_status_t status)
{
	status = casync_session_answer(mount, status, false);
	casync_guard_leave(&mount->guard);
	casync_call_drop_mount_slot(mount);
	return status;
}

bool casync_call_begin_release(struct casync_mount *mount)
{
	return casync_guard_enter_up_to(&mount->guard, CASYNC_GUARD_LEAVES);
}

bool casync_call_begin_setup(struct casync_mount *mount)
{
	return casync_guard_enter(&mount->guard);
}

void casync_call_stay(struct casync_mount *mount)
{
	(void)casync_guard_enter_up_to(&mount->guard, CASYNC_GUARD_LEFT);
}

void casync_call_leave(struct casync_mount *mount)
{
	casync_guard_leave(&mount->guard);
}

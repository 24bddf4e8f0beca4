/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * DEALLOCATE, ALLOCATE, SEEK and IO_ADVISE.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "errors.h"
#include "inode.h"
#include "object.h"
#include "obj_ops.h"
#include "privileges.h"

/* Objects that one call of libcephfs punches, and the smallest object size. */
#define PUNCH_OBJECTS 64
#define LEAST_SPAN (UINT64_C(64) << 10)

/* Objects of a hole that are read back at most, and how much of each. */
#define LOOK_OBJECTS 1024
#define LOOK_BYTES (64U << 10)

/* A hole within a file. */
struct hole {
	struct casync_object *obj;
	uint64_t begin;
	uint64_t end;
	uint64_t span; /* Bytes of the file in one object; not 0. */
};

/*
 * Have the MDS journal the size before a hole takes the end of the file.  When
 * a client is lost, the MDS finds the size by the objects (docs/durability.md),
 * and the hole removes them.  Another client may have told the MDS of the size:
 * ours has nothing to send then, and would wait for nothing.  So it gets a new
 * ctime.  The journal has changes in their order.
 */
static int space_journal_size(struct casync_object *obj)
{
	struct ceph_statx nothing = {0};
	int rc = ceph_ll_setattr(casync_inode_ceph(obj), obj->inode, &nothing,
				 0, casync_inode_root(obj));

	return rc < 0 ? rc : casync_flush_wait(obj);
}

/* Keep a hole within the file: it is empty if it begins past the end. */
static int space_clip(struct hole *hole)
{
	struct casync_object *obj = hole->obj;
	struct ceph_statx stx;
	int rc = ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
				 CEPH_STATX_SIZE, 0, casync_inode_root(obj));

	if (rc < 0)
		return rc;
	if (hole->end < stx.stx_size)
		return 0;
	hole->end = stx.stx_size;
	/* A WRITE that comes meanwhile makes the file longer behind the hole.
	 */
	return hole->begin < hole->end ? space_journal_size(obj) : 0;
}

/* Where the next piece of `step` bytes begins, or the hole ends. */
static uint64_t space_next(const struct hole *hole, uint64_t offset,
			   uint64_t step)
{
	uint64_t next = offset - offset % step + step;

	return next < hole->end ? next : hole->end;
}

/* With KEEP_SIZE alone the call changes nothing, but a full pool refuses it. */
static int space_has_room(const struct hole *hole, struct Fh *fh)
{
	int rc = ceph_ll_fallocate(casync_inode_ceph(hole->obj), fh,
				   FALLOC_FL_KEEP_SIZE, 0, 1);

	return rc == -ENOSPC ? rc : 0;
}

/*
 * Punch a hole in steps.  libcephfs sends an OSD operation for each object in
 * the range, all at once and with client_lock held, also for objects past the
 * end of the file.  For 2^62 bytes it would use all memory.
 *
 * While the pool is full, such an operation waits for the next OSD map, and
 * then libcephfs cancels it.  The pool is full in that map, too, so the look
 * behind the call sees it.
 */
static int space_punch(const struct hole *hole, struct Fh *fh)
{
	uint64_t offset, next;
	int rc = space_has_room(hole, fh);

	for (offset = hole->begin; offset < hole->end && rc == 0;
	     offset = next) {
		next = space_next(hole, offset, PUNCH_OBJECTS * hole->span);
		rc = ceph_ll_fallocate(
			casync_inode_ceph(hole->obj), fh,
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(int64_t)offset, (int64_t)(next - offset));
		if (rc == 0)
			rc = space_has_room(hole, fh);
	}
	return rc;
}

/* --- has it been punched? */

/* It stays within one object: otherwise libcephfs drops errors here, too. */
static int space_look_at(const struct hole *hole, struct Fh *fh,
			 uint64_t offset, char *bytes)
{
	uint64_t length = space_next(hole, offset, hole->span) - offset;
	int rc = ceph_ll_read(casync_inode_ceph(hole->obj), fh, (int64_t)offset,
			      length < LOOK_BYTES ? length : LOOK_BYTES, bytes);

	if (rc <= 0)
		return rc;
	/* All are zero if the first one is, and each equals the next one. */
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)rc - 1) == 0
		       ? 0
		       : -EAGAIN;
}

/*
 * libcephfs says that it has punched, whatever the OSDs have answered
 * (Client::_fallocate(), Ceph 20.2.4).  So read the begin of the hole in each
 * object: an OSD that refuses us refuses this too.  Of a very large hole read
 * every second object, or every third and so on.  Bytes that are not zero may
 * be those of a WRITE that came meanwhile: then the client asks again.
 */
static int space_look(const struct hole *hole, struct Fh *fh)
{
	uint64_t most = LOOK_OBJECTS * hole->span;
	uint64_t step = ((hole->end - hole->begin) / most + 1) * hole->span;
	uint64_t offset;
	char *bytes;
	int rc;

	/* The operations of a lost session were cancelled.  And an OSD that
	 * stands still may not answer a READ of such a session for long. */
	rc = casync_flush_check_session(hole->obj);
	if (rc < 0)
		return rc;
	bytes = gsh_malloc(LOOK_BYTES);
	for (offset = hole->begin; offset < hole->end && rc == 0;
	     offset = space_next(hole, offset, step))
		rc = space_look_at(hole, fh, offset, bytes);
	gsh_free(bytes);
	return rc;
}

/* The Fh that has punched may be one that can only write.  Not twice the same:
 * who waits for the end of I/O on it would wait for ever. */
static fsal_status_t space_look_by(const struct hole *hole,
				   const struct casync_borrowed *punched,
				   struct state_t *state)
{
	struct casync_borrowed look;
	fsal_status_t status;

	if (casync_fd_of(punched->fsal_fd)->fh_access & FSAL_O_READ)
		return casync_errors_status(
			space_look(hole, casync_borrow_fh(punched)));
	status = casync_borrow(&look, hole->obj, state, FSAL_O_READ, false,
			       true);
	if (FSAL_IS_ERROR(status))
		return status;
	status =
		casync_errors_status(space_look(hole, casync_borrow_fh(&look)));
	casync_borrow_return(&look);
	return status;
}

static fsal_status_t space_make_hole(struct hole *hole,
				     const struct casync_borrowed *fd,
				     struct state_t *state)
{
	int rc = casync_privileges_drop(hole->obj);

	if (rc == 0)
		rc = space_clip(hole);
	if (rc < 0 || hole->begin >= hole->end)
		return casync_errors_status(rc);
	rc = space_punch(hole, casync_borrow_fh(fd));
	if (rc < 0)
		return casync_errors_status(rc);
	return space_look_by(hole, fd, state);
}

static fsal_status_t space_deallocate(struct casync_object *obj,
				      struct state_t *state, uint64_t offset,
				      uint64_t length)
{
	struct hole hole = {obj, offset, offset + length, LEAST_SPAN};
	struct casync_borrowed fd;
	struct casync_call change;
	fsal_status_t status;
	uint64_t span;
	int rc;

	status = casync_borrow(&fd, obj, state, FSAL_O_WRITE, false, false);
	if (FSAL_IS_ERROR(status))
		return status;
	/* The open has learned it. */
	span = __atomic_load_n(&obj->object_span, __ATOMIC_RELAXED);
	if (span != 0)
		hole.span = span;
	rc = casync_call_take(&change, obj,
			      CASYNC_CALL_SETATTR_SLOT | CASYNC_CALL_ANNOUNCES);
	status = casync_errors_status(rc);
	if (rc == 0) {
		status = space_make_hole(&hole, &fd, state);
		casync_call_drop(&change);
	}
	casync_borrow_return(&fd);
	return status;
}

/*
 * DEALLOCATE punches a hole.  ALLOCATE is refused: CephFS reserves no space,
 * and libcephfs refuses it too (EOPNOTSUPP).  No line is logged, because
 * clients try it on every new file.
 */
fsal_status_t casync_fallocate(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, uint64_t offset,
			       uint64_t length, bool allocate)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_call call;
	fsal_status_t status;

	if (allocate)
		return fsalstat(ERR_FSAL_NOTSUPP, EOPNOTSUPP);
	if (offset > INT64_MAX || length > INT64_MAX - offset)
		return fsalstat(ERR_FSAL_FBIG, EFBIG);

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	casync_delegations_return_recalled(&obj->delegations, false);
	return casync_call_end(&call,
			       space_deallocate(obj, state, offset, length));
}

/*
 * SEEK.  CephFS keeps no map of a file's holes, and asking for each object of a
 * large file would cost a round trip each.  So the whole file is data, and the
 * hole is at its end.  RFC 7862 (15.11.3) allows this answer.
 */
fsal_status_t casync_seek2(struct fsal_obj_handle *obj_hdl,
			   struct state_t *state, struct io_info *info)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	uint64_t offset = info->io_content.hole.di_offset;
	bool hole = info->io_content.what == NFS4_CONTENT_HOLE;
	struct casync_call call;
	struct ceph_statx stx;
	fsal_status_t status;
	int rc;

	(void)state;
	if (!hole && info->io_content.what != NFS4_CONTENT_DATA)
		return fsalstat(ERR_FSAL_UNION_NOTSUPP, 0);

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
			     CEPH_STATX_SIZE, 0, casync_inode_root(obj));
	status = casync_call_end(&call, casync_errors_status(rc));
	if (FSAL_IS_ERROR(status))
		return status;
	if (offset >= stx.stx_size)
		return fsalstat(ERR_FSAL_NXIO, ENXIO);

	if (hole)
		info->io_content.hole.di_offset = stx.stx_size;
	info->io_eof = hole;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/*
 * IO_ADVISE is refused, although CephFS could ignore a hint.  Ganesha 9.14
 * stores an accepted hint in state_data.io_advise.  This is a member of the
 * union that also has the open's list of locks: nfs4_op_io_advise() overwrites
 * the list's head, and the next CLOSE ends the process.
 */
fsal_status_t casync_io_advise(struct fsal_obj_handle *obj_hdl,
			       struct io_hints *hints)
{
	(void)obj_hdl;
	(void)hints;
	return fsalstat(ERR_FSAL_NOTSUPP, 0);
}

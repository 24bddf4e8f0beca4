/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * DEALLOCATE, ALLOCATE, SEEK and IO_ADVISE.
 */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "errors.h"
#include "getset.h"
#include "inode.h"
#include "object.h"
#include "obj_ops.h"

/* Objects that one call of libcephfs punches, and the smallest object size. */
#define PUNCH_OBJECTS 64
#define LEAST_SPAN (UINT64_C(64) << 10)

/*
 * Have the MDS journal the size before a hole takes the end of the file.  When a
 * client is lost, the MDS finds the size by the objects (docs/durability.md), and
 * the hole removes them.  Another client may have told the MDS of the size: ours
 * has nothing to send then, and would wait for nothing.  So it gets a new ctime.
 * The journal has changes in their order.
 */
static int space_journal_size(struct casync_object *obj)
{
	struct ceph_statx nothing = {0};
	int rc = ceph_ll_setattr(casync_inode_ceph(obj), obj->inode, &nothing,
				 0, casync_inode_root(obj));

	return rc < 0 ? rc : casync_flush_wait(obj);
}

/*
 * Punch a hole within the file, in steps.  libcephfs sends an OSD operation for
 * each object in the range, all at once and with client_lock held, also for
 * objects past the end of the file.  For 2^62 bytes it would use all memory.
 */
static int space_punch(struct casync_object *obj, struct Fh *fh,
		       uint64_t offset, uint64_t length)
{
	uint64_t span = __atomic_load_n(&obj->object_span, __ATOMIC_RELAXED);
	uint64_t step = PUNCH_OBJECTS * (span != 0 ? span : LEAST_SPAN);
	struct ceph_statx stx;
	uint64_t end, next;
	int rc;

	rc = ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
			     CEPH_STATX_SIZE, 0, casync_inode_root(obj));
	if (rc < 0 || offset >= stx.stx_size)
		return rc;
	end = length < stx.stx_size - offset ? offset + length : stx.stx_size;
	/* A WRITE that comes meanwhile makes the file longer behind the hole. */
	if (end == stx.stx_size)
		rc = space_journal_size(obj);
	for (; offset < end && rc == 0; offset = next) {
		next = offset - offset % step + step;
		if (next > end)
			next = end;
		rc = ceph_ll_fallocate(
			casync_inode_ceph(obj), fh,
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(int64_t)offset, (int64_t)(next - offset));
	}
	return rc;
}

static fsal_status_t space_deallocate(struct casync_object *obj,
				      struct state_t *state, uint64_t offset,
				      uint64_t length)
{
	struct casync_borrowed fd;
	struct casync_call change;
	fsal_status_t status;
	int rc;

	status = casync_borrow(&fd, obj, state, FSAL_O_WRITE, false, false);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = casync_call_take(&change, obj,
			      CASYNC_CALL_CHANGE_SLOT | CASYNC_CALL_CHANGE);
	if (rc == 0) {
		rc = casync_getset_written(obj);
		if (rc == 0)
			rc = space_punch(obj, casync_borrow_fh(&fd), offset,
					 length);
		casync_call_drop(&change);
	}
	casync_borrow_return(&fd);
	return casync_errors_status(rc);
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

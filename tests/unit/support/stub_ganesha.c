/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"
#include "export_mgr.h"
#include "nfs_core.h"

#include "export.h"
#include "fd.h"
#include "ganesha_unit.h"
#include "object.h"
#include "stub_ganesha.h"
#include "stub_log.h"

struct stub stub;

__thread struct req_op_context *op_ctx;

nfs_parameter_t nfs_param;
bool admin_shutdown;

/* A test that counts them has its own. */
__attribute__((weak)) void reaper_wake(void)
{
}

/* Logging: warnings are counted, the last one kept. */
static pthread_mutex_t warning_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutexattr_t default_mutex_attr;

static void add(int *counter, int by)
{
	__atomic_add_fetch(counter, by, __ATOMIC_ACQ_REL);
}

void stub_reset(void)
{
	int i;

	memset(&stub, 0, sizeof(stub));
	memset(&nfs_param, 0, sizeof(nfs_param));
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
	for (i = 0; i < COMPONENT_COUNT; i++)
		component_log_level[i] = NIV_WARN;
	pthread_mutexattr_init(&default_mutex_attr);
}

int stub_ios_completed(void)
{
	return __atomic_load_n(&stub.ios_completed, __ATOMIC_ACQUIRE);
}

void stub_log_line(log_levels_t level, const char *text)
{
	if (level > NIV_WARN)
		return;
	add(&stub.warnings, 1);
	pthread_mutex_lock(&warning_lock);
	(void)snprintf(stub.last_warning, sizeof(stub.last_warning), "%s",
		       text);
	pthread_mutex_unlock(&warning_lock);
}

bool stub_warned(const char *text)
{
	bool warned;

	pthread_mutex_lock(&warning_lock);
	warned = strstr(stub.last_warning, text) != NULL;
	pthread_mutex_unlock(&warning_lock);
	return warned;
}

void SetNameFunction(const char *nom)
{
	(void)nom;
}

const char *msg_fsal_err(fsal_errors_t fsal_err)
{
	(void)fsal_err;
	return "stub";
}

/*
 * Ganesha's table, as far as it is needed.  EBADF and ENOTCONN get Ganesha's
 * answers, so that a test that expects ours proves who gave it.
 */
fsal_errors_t posix2fsal_error(int posix_errorcode)
{
	switch (posix_errorcode) {
	case EEXIST:
		return ERR_FSAL_EXIST;
	case EINVAL:
		return ERR_FSAL_INVAL;
	case EISDIR:
		return ERR_FSAL_ISDIR;
	case ENOTDIR:
		return ERR_FSAL_NOTDIR;
	case ENOTEMPTY:
		return ERR_FSAL_NOTEMPTY;
	case ENAMETOOLONG:
		return ERR_FSAL_NAMETOOLONG;
	case EXDEV:
		return ERR_FSAL_XDEV;
	case EBADF:
		return ERR_FSAL_NOT_OPENED;
	case EIO:
		return ERR_FSAL_IO;
	case EAGAIN:
	case EBUSY:
		return ERR_FSAL_DELAY;
	case EACCES:
		return ERR_FSAL_ACCESS;
	case EPERM:
		return ERR_FSAL_PERM;
	case ENOMEM:
		return ERR_FSAL_NOMEM;
	case ENOSPC:
		return ERR_FSAL_NOSPC;
	default:
		return ERR_FSAL_SERVERFAULT;
	}
}

void fsal2posix_openflags(fsal_openflags_t fsal_flags, int *p_posix_flags)
{
	static const int modes[] = {0, O_RDONLY, O_WRONLY, O_RDWR};

	*p_posix_flags = modes[fsal_flags & FSAL_O_RDWR];
	if (fsal_flags & FSAL_O_TRUNC)
		*p_posix_flags |= O_TRUNC;
}

void _get_gsh_export_ref(struct gsh_export *a_export, char *file, int line,
			 char *function)
{
	(void)a_export;
	(void)file;
	(void)line;
	(void)function;
	add(&stub.export_refs, 1);
}

void init_op_context(struct req_op_context *ctx, struct gsh_export *exp,
		     struct fsal_export *fsal_exp MORE_OF_CONTEXT_INIT,
		     sockaddr_t *caller_data, uint32_t nfs_vers,
		     uint32_t nfs_minorvers, enum request_type req_type)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->caller_addr = caller_data;
	ctx->nfs_vers = nfs_vers;
	ctx->nfs_minorvers = nfs_minorvers;
	ctx->req_type = req_type;
	ctx->ctx_export = exp;
	ctx->fsal_export = fsal_exp;
	ctx->saved_op_ctx = op_ctx;
	op_ctx = ctx;
	add(&stub.op_contexts, 1);
}

void release_op_context(void)
{
	struct req_op_context *ctx = op_ctx;

	if (ctx->ctx_export != NULL)
		add(&stub.export_refs, -1);
	if (stub.on_release != NULL)
		stub.on_release();
	op_ctx = ctx->saved_op_ctx;
	ctx->ctx_export = NULL;
	ctx->fsal_export = NULL;
	ctx->saved_op_ctx = NULL;
	add(&stub.op_contexts, -1);
}

fsal_status_t check_share_conflict(struct fsal_share *share,
				   fsal_openflags_t openflags, bool bypass)
{
	(void)share;
	(void)openflags;
	(void)bypass;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

void update_share_counters(struct fsal_share *share,
			   fsal_openflags_t old_openflags,
			   fsal_openflags_t new_openflags)
{
	(void)share;
	add(&stub.reservations, (int)(new_openflags != FSAL_O_CLOSED) -
					(int)(old_openflags != FSAL_O_CLOSED));
	add(&stub.reservation_changes, 1);
}

static struct fsal_fd *choose_fd(struct fsal_fd *global, struct fsal_fd *temp,
				 struct state_t *state)
{
	if (stub.io_fd != NULL)
		return stub.io_fd;
	if (state != NULL)
		return &casync_fd_of_state(state)->fsal_fd;
	temp->close_on_complete = stub.global_fd_busy;
	return stub.global_fd_busy ? temp : global;
}

/* Stands for each fd's work_mutex. */
static pthread_mutex_t fd_work = PTHREAD_MUTEX_INITIALIZER;

/* Reservation, fd, io_work: in the order of Ganesha's. */
fsal_status_t fsal_start_io(struct fsal_fd **out_fd,
			    struct fsal_obj_handle *obj_hdl,
			    struct fsal_fd *obj_fd, struct fsal_fd *tmp_fd,
			    struct state_t *state, fsal_openflags_t openflags,
			    bool open_for_locks, bool *reusing_open_state_fd,
			    bool bypass, struct fsal_share *share)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_fd *fd;
	int rc = 0;

	(void)reusing_open_state_fd;
	*out_fd = NULL;
	__atomic_store_n(&stub.openflags, openflags, __ATOMIC_RELAXED);
	__atomic_store_n(&stub.for_locks, open_for_locks, __ATOMIC_RELAXED);
	__atomic_store_n(&stub.bypass, bypass, __ATOMIC_RELAXED);
	if (FSAL_IS_ERROR(stub.start_status))
		return stub.start_status;

	fd = casync_fd_of(choose_fd(obj_fd, tmp_fd, state));
	pthread_mutex_lock(&fd_work);
	if (fd->fh == NULL) {
		rc = ceph_ll_open(NULL, obj->inode, (int)openflags, &fd->fh,
				  NULL);
		/* As casync_fd_opened(). */
		fd->generation =
			casync_guard_generation(&obj->exp->mount->guard);
	}
	if (rc == 0)
		fd->fsal_fd.openflags = openflags;
	pthread_mutex_unlock(&fd_work);
	if (rc != 0)
		return posix2fsal_status(-rc);

	/* Without one casync_ganesha_start_io() has taken it. */
	if (state == NULL && share != NULL)
		update_share_counters_locked(obj_hdl, share, FSAL_O_CLOSED,
					     openflags);
	__atomic_add_fetch(&fd->fsal_fd.io_work, 1, __ATOMIC_ACQ_REL);
	add(&stub.ios_started, 1);
	*out_fd = &fd->fsal_fd;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t fsal_complete_io(struct fsal_obj_handle *obj_hdl,
			       struct fsal_fd *fsal_fd)
{
	struct casync_fd *fd = casync_fd_of(fsal_fd);

	(void)obj_hdl;
	if (op_ctx == NULL)
		add(&stub.ios_without_op_ctx, 1);
	__atomic_sub_fetch(&fsal_fd->io_work, 1, __ATOMIC_ACQ_REL);
	if (fsal_fd->close_on_complete) {
		(void)ceph_ll_close(NULL, fd->fh);
		fd->fh = NULL;
	}
	if (stub.on_complete_io != NULL)
		stub.on_complete_io();
	add(&stub.ios_completed, 1);
	return stub.complete_status;
}

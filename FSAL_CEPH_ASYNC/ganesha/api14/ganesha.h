/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ganesha.h
 * @brief Ganesha 9.x: what differs between the FSAL APIs 12 (5.9) and 14.
 *
 * One header of this name stands in a folder for each API; the build chooses
 * the folder by the source tree of Ganesha (cmake/FindGaneshaTree.cmake).  No
 * other file asks for the version.  Both headers have the same names.
 */
#ifndef CASYNC_GANESHA_H
#define CASYNC_GANESHA_H

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "monitoring.h"
#include "nfs_core.h"

/*
 * Ganesha checks only the major and minor of the API.  These assertions catch a
 * config.h that differs from the daemon's: DEBUG_SAL moves the members after
 * state_t, ENABLE_QOS moves gsh_export.  The sizes are those of 9.14 on 64-bit
 * Linux; a mutex has 40 bytes, on arm64 48.
 */
_Static_assert(sizeof(struct state_t) == 184 + sizeof(pthread_mutex_t),
	       "config.h: DEBUG_SAL?");
_Static_assert(sizeof(struct fsal_fd) == 160 + sizeof(pthread_mutex_t),
	       "not Ganesha 9.14's headers");
_Static_assert(sizeof(struct req_op_context) == 256,
	       "not Ganesha 9.14's headers");
_Static_assert(sizeof(struct fsal_io_arg) == 96, "not Ganesha 9.14's headers");

/**
 * A directory's attributes before and after a change; no operation fills them
 * in.  Filled in, they would mean "atomic with the change" (change_info4), and
 * libcephfs cannot promise that.  If they are empty, Ganesha asks for them
 * itself and tells the client that they are not atomic.
 */
#define CASYNC_GANESHA_PARENT_ATTRS(dir)                           \
	, struct fsal_attrlist *dir##_pre __attribute__((unused)), \
		struct fsal_attrlist *dir##_post __attribute__((unused))

/** For struct fsal_staticfsinfo_t: MDCACHE keeps no list of a directory. */
#define CASYNC_GANESHA_FS_INFO .readdir_mode = FSAL_RDDIR_CHUNK_NEVER,

/** Does MDCACHE keep lists of directories if MDCACHE { Dir_Chunk } is not 0? */
#define CASYNC_GANESHA_KEEPS_LISTINGS false

/** For struct fsal_staticfsinfo_t: the delegations that work. */
enum { CASYNC_GANESHA_DELEGATIONS = FSAL_OPTION_FILE_DELEGATIONS };

/** An export is made: say what it asks for and this Ganesha cannot give. */
static inline void casync_ganesha_check_export(const struct gsh_export *exp
					       __attribute__((unused)))
{
}

/** FSAL_CEPH's form of the session name: Use_Old_Uuid's preset. */
#define CASYNC_GANESHA_OLD_UUID false

/** Does Ganesha read the module's block again (m_ops.update_config)?  If not,
 * the first export of a file does it. */
#define CASYNC_GANESHA_READS_MODULE_AGAIN true

/** Does Ganesha call m_ops.fsal_register_nfs_service? */
#define CASYNC_GANESHA_REGISTERS true

/** The operations that not every Ganesha has. */
#define CASYNC_GANESHA_SET_OPS(ops, update, reclaim, register_service) \
	do {                                                           \
		(ops)->update_config = (update);                       \
		(ops)->fsal_reclaim_client = (reclaim);                \
		(ops)->fsal_register_nfs_service = (register_service); \
	} while (0)

/** The port of Ganesha's metrics; 0: it has no registry of them. */
static inline uint16_t
casync_ganesha_monitoring_port(const nfs_core_parameter_t *core)
{
	return core->monitoring_port;
}

/** Does Ganesha show the metrics of its registry? */
static inline bool
casync_ganesha_enable_metrics(const nfs_core_parameter_t *core)
{
	return core->enable_metrics;
}

/** The target of a symlink, for READLINK. */
typedef utf8string casync_ganesha_target_t;

/** The length does not count the NUL (NFSv4 goes by it), but there is one
 * (NFSv3 goes by that). */
static inline void casync_ganesha_set_target(casync_ganesha_target_t *target,
					     const char *text,
					     size_t length_bytes)
{
	copy_into_utf8string(target, text, (int)length_bytes);
}

/** Make a handle that is not in the module's list: its lock would serialise
 * every create, and destroy_fsals() would release objects with no op_ctx. */
static inline void casync_ganesha_handle_init(struct fsal_obj_handle *handle,
					      struct fsal_export *exp,
					      object_file_type_t type)
{
	fsal_obj_handle_init(handle, exp, type, false);
}

static inline void casync_ganesha_handle_fini(struct fsal_obj_handle *handle)
{
	fsal_obj_handle_fini(handle, false);
}

/** Start work on an fd that Ganesha does not reclaim now: it cannot fail. */
static inline void casync_ganesha_start_fd_work(struct fsal_fd *fd)
{
	fsal_start_fd_work_no_reclaim(fd);
}

/** fsal_start_io().  Without a state it takes a share reservation. */
static inline fsal_status_t
casync_ganesha_start_io(struct fsal_fd **out_fd, struct fsal_obj_handle *handle,
			struct fsal_fd *obj_fd, struct fsal_fd *temp_fd,
			struct state_t *state, fsal_openflags_t openflags,
			bool for_lock, bool bypass, struct fsal_share *share)
{
	return fsal_start_io(out_fd, handle, obj_fd, temp_fd, state, openflags,
			     for_lock, NULL, bypass, share);
}

/** May the requester open a file that its state has open already?  Ganesha has
 * checked that. */
static inline fsal_status_t
casync_ganesha_check_reopen(struct fsal_obj_handle *handle
			    __attribute__((unused)),
			    fsal_openflags_t had __attribute__((unused)),
			    fsal_openflags_t wanted __attribute__((unused)))
{
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/** Is this thread's request a GETACL or SETACL of NFSv3 (NFSACL, by its usual
 * number)?  An op_ctx of this type is part of its request. */
static inline bool casync_ganesha_is_nfsacl(void)
{
	const struct nfs_request *request =
		container_of(op_ctx, struct nfs_request, op_context);

	return op_ctx->req_type == NFS_REQUEST &&
	       request->svc.rq_msg.cb_prog == 100227;
}

/** Is a READ really a READ_PLUS?  On Ganesha's worker only. */
static inline bool casync_ganesha_is_read_plus(const struct fsal_io_arg *arg)
{
	return arg->info != NULL;
}

/** The bytes that a READ or WRITE is for; its buffers may have more. */
static inline size_t casync_ganesha_asked_bytes(const struct fsal_io_arg *arg)
{
	return arg->io_request;
}

/** A READ of our own, whose data only the read cache gets. */
struct casync_ganesha_read {
	struct fsal_io_arg arg;
	struct iovec iov; /**< Right behind it. */
};

static inline void casync_ganesha_read_init(struct casync_ganesha_read *read,
					    size_t bytes)
{
	read->arg.iov_count = 1;
	read->arg.iov = &read->iov;
	read->arg.iov[0].iov_len = bytes;
	read->arg.io_request = bytes;
}

/** May the reply of a READ be sent from another buffer?  Only Ganesha's worker
 * can tell: it has the request's own op_ctx, which is part of the request.  A
 * reply that a session keeps may be sent again, and Ganesha releases the buffer
 * each time.  So it is with a NFSv4.0 compound that creates a file, which
 * Ganesha keeps, too. */
static inline bool casync_ganesha_may_share(const struct fsal_io_arg *arg)
{
	const struct nfs_request *request;
	const compound_data_t *compound;

	if (op_ctx->req_type != NFS_REQUEST || op_ctx->is_rdma_buff_used ||
	    arg->iov_count != 1 || arg->iov_release == NULL)
		return false;
	request = container_of(op_ctx, struct nfs_request, op_context);
	compound = request->proc_data;
	return request->svc.rq_msg.cb_cred.oa_flavor != RPCSEC_GSS &&
	       (op_ctx->nfs_vers != NFS_V4 ||
		(!compound->sa_cachethis &&
		 !(request->lookahead.flags & NFS_LOOKAHEAD_CREATE)));
}

/** Send the reply from @p data; @p release is called with @p buffer then. */
static inline void casync_ganesha_share(struct fsal_io_arg *arg,
					const void *data, size_t bytes,
					void (*release)(void *buffer),
					void *buffer)
{
	arg->iov_release(arg->release_data);
	arg->iov[0] = (struct iovec){(void *)data, bytes};
	arg->iov_release = release;
	arg->release_data = buffer;
}

/** May the buffer of a READ be kept for longer than the request?  Not that of
 * RDMA or 9P. */
static inline bool casync_ganesha_may_keep(const struct fsal_io_arg *arg)
{
	return arg->iov_release != NULL;
}

/** Keep it: Ganesha does not free it.  The READ must be answered with an error.
 */
static inline void casync_ganesha_keep(struct fsal_io_arg *arg,
				       void (**release)(void *data),
				       void **data)
{
	*release = arg->iov_release;
	*data = arg->release_data;
	arg->iov_release = NULL;
}

#endif /* CASYNC_GANESHA_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ganesha_unit.h
 * @brief Ganesha 9.x: what differs between the FSAL APIs for tests (ganesha.h).
 */
#ifndef GANESHA_UNIT_H
#define GANESHA_UNIT_H

#include "ganesha.h"

/** May a WRITE be shorter than its buffers, and the reply of a READ be sent
 * from the cache's memory? */
#define HAS_OWN_REPLY true

/** Is a second OPEN of an open file checked for access by us? */
#define CHECKS_REOPEN false

/** Changes of share counters by an I/O that Ganesha refuses to start. */
#define CHANGES_OF_REFUSED_IO 0

/** The attributes of one parent, for a call. */
#define NO_PARENT_ATTRS , NULL, NULL

/** The memory of a symlink's target. */
static inline void *target_memory(const casync_ganesha_target_t *target)
{
	return target->utf8string_val;
}

/** Its length, without the NUL. */
static inline size_t target_bytes(const casync_ganesha_target_t *target)
{
	return target->utf8string_len;
}

/** @param[in] iov  Right behind @p arg. */
static inline void set_buffers(struct fsal_io_arg *arg, struct iovec *iov,
			       size_t length)
{
	arg->iov = iov;
	arg->io_request = length;
}

/** Of all buffers, or less. */
static inline size_t asked_bytes(const struct fsal_io_arg *arg)
{
	return arg->io_request;
}

static inline void set_release(struct fsal_io_arg *arg, void (*release)(void *),
			       void *data)
{
	arg->iov_release = release;
	arg->release_data = data;
}

static inline bool has_release(const struct fsal_io_arg *arg,
			       void (*release)(void *))
{
	return arg->iov_release == release;
}

static inline void release_reply(struct fsal_io_arg *arg)
{
	arg->iov_release(arg->release_data);
}

static inline void set_rdma(struct req_op_context *context)
{
	context->is_rdma_buff_used = true;
}

/** The reply is kept: by the session of an NFSv4.1 request, or because an
 * NFSv4.0 compound creates a file. */
static inline void set_kept(struct nfs_request *request, bool by_session)
{
	static compound_data_t compound;

	compound.sa_cachethis = by_session;
	request->lookahead.flags = by_session ? 0 : NFS_LOOKAHEAD_CREATE;
	request->op_context.nfs_vers = NFS_V4;
	request->proc_data = &compound;
}

/** More parameters of fsal_obj_handle_init() and _fini(), and of
 * init_op_context(). */
#define MORE_OF_HANDLE_INIT , bool add_to_fsal_handle __attribute__((unused))
#define MORE_OF_HANDLE_FINI , bool added_to_fsal_handle __attribute__((unused))
#define MORE_OF_CONTEXT_INIT \
	, nfs_request_t *nfs_reqdata __attribute__((unused))

/** This thread's request is a GETACL of NFSv3. */
static inline void set_nfsacl(struct nfs_request *request)
{
	request->svc.rq_msg.cb_prog = 100227;
	request->op_context.req_type = NFS_REQUEST;
	op_ctx = &request->op_context;
}

#endif /* GANESHA_UNIT_H */

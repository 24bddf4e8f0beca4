/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ganesha_unit.h
 * @brief Ganesha 5.9: what differs between the FSAL APIs for tests (ganesha.h).
 *
 * The header of the same name in ../api14 says what each name is for.
 */
#ifndef GANESHA_UNIT_H
#define GANESHA_UNIT_H

#include "ganesha.h"

#define HAS_OWN_REPLY false
#define CHECKS_REOPEN true
#define CHANGES_OF_REFUSED_IO 2
#define NO_PARENT_ATTRS
#define MORE_OF_HANDLE_INIT
#define MORE_OF_HANDLE_FINI
#define MORE_OF_CONTEXT_INIT

/* Parameters that nobody looks at. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static inline void *target_memory(const casync_ganesha_target_t *target)
{
	return target->addr;
}

static inline size_t target_bytes(const casync_ganesha_target_t *target)
{
	return target->len - 1;
}

static inline void set_buffers(struct fsal_io_arg *arg, struct iovec *iov,
			       size_t length)
{
	if (arg->iov != iov)
		abort();
}

static inline size_t asked_bytes(const struct fsal_io_arg *arg)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < arg->iov_count; i++)
		bytes += arg->iov[i].iov_len;
	return bytes;
}

static inline void set_release(struct fsal_io_arg *arg, void (*release)(void *),
			       void *data)
{
}

static inline bool has_release(const struct fsal_io_arg *arg,
			       void (*release)(void *))
{
	return true;
}

static inline void release_reply(struct fsal_io_arg *arg)
{
	free(arg->iov[0].iov_base);
}

static inline void set_rdma(struct req_op_context *context)
{
}

static inline void set_kept(struct nfs_request *request, bool by_session)
{
}

#pragma GCC diagnostic pop

static inline void set_nfsacl(struct nfs_request *request)
{
	request->svc.rq_msg.cb_prog = 100227;
	request->op_context.req_type = NFS_REQUEST;
	request->op_context.nfs_vers = NFS_V3;
	op_ctx = &request->op_context;
}

#endif /* GANESHA_UNIT_H */

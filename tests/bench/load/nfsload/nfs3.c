/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* NFSv3, by libnfs' calls of single procedures. */
#include <stdio.h>
#include <string.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "conn.h"
#include "options.h"
#include "request.h"

static nfs_fh3 wire(const struct handle *handle)
{
	return (nfs_fh3){{handle->length, (char *)handle->bytes}};
}

static bool keep(struct call *call, struct handle *handle, const char *bytes,
		 uint32_t length)
{
	if (length > sizeof(handle->bytes)) {
		(void)snprintf(call->error, sizeof(call->error),
			       "a handle of %u bytes", length);
		return false;
	}
	handle->length = length;
	memcpy(handle->bytes, bytes, length);
	return true;
}

static bool refused(struct call *call, int status, const char *name)
{
	if (status != 0)
		(void)snprintf(call->error, sizeof(call->error), "%s", name);
	return status != 0;
}

/* ---- set-up, waited for ---- */

static void mounted(struct rpc_context *rpc, int status, void *data,
		    void *private_data)
{
	struct call *call = private_data;
	mountres3 *res = data;

	(void)rpc;
	if (!call_answered(call, status, data) ||
	    refused(call, (int)res->fhs_status,
		    mountstat3_to_str((int)res->fhs_status)))
		return;
	(void)keep(call, call->result,
		   res->mountres3_u.mountinfo.fhandle.fhandle3_val,
		   res->mountres3_u.mountinfo.fhandle.fhandle3_len);
}

/* The MOUNT protocol has a connection of its own. */
static bool nfs3_mount(const struct options *options, struct conn *conn,
		       struct handle *root)
{
	struct call call = {.result = root};
	struct conn mount;
	bool good;

	(void)conn;
	if (!conn_open(&mount, options->server, options->mount_port,
		       MOUNT_PROGRAM, MOUNT_V3))
		return false;
	good = rpc_mount3_mnt_async(mount.rpc, mounted, (char *)options->export,
				    &call) == 0 &&
	       conn_wait(&mount, &call, "MOUNT");
	conn_close(&mount);
	return good;
}

static bool nfs3_introduce(const struct options *options, struct conn *conn)
{
	(void)options;
	(void)conn;
	return true; /* NFSv3 knows no clients */
}

static void created(struct rpc_context *rpc, int status, void *data,
		    void *private_data)
{
	struct call *call = private_data;
	CREATE3res *res = data;
	nfs_fh3 *fh;

	(void)rpc;
	if (!call_answered(call, status, data) ||
	    refused(call, (int)res->status, nfsstat3_to_str((int)res->status)))
		return;
	if (!res->CREATE3res_u.resok.obj.handle_follows) {
		(void)snprintf(call->error, sizeof(call->error), "no handle");
		return;
	}
	fh = &res->CREATE3res_u.resok.obj.post_op_fh3_u.handle;
	(void)keep(call, &((struct file *)call->result)->handle,
		   fh->data.data_val, fh->data.data_len);
}

static void sized(struct rpc_context *rpc, int status, void *data,
		  void *private_data)
{
	struct call *call = private_data;
	struct file *file = call->result;
	GETATTR3res *res = data;

	(void)rpc;
	if (!call_answered(call, status, data) ||
	    refused(call, (int)res->status, nfsstat3_to_str((int)res->status)))
		return;
	file->size_bytes = res->GETATTR3res_u.resok.obj_attributes.size;
}

static bool nfs3_open(struct conn *conn, const struct handle *root,
		      const char *name, bool empty, struct file *file)
{
	struct call create = {.result = file};
	struct call getattr = {.result = file};
	CREATE3args args = {.where = {wire(root), (char *)name}};
	sattr3 *attributes = &args.how.createhow3_u.obj_attributes;
	GETATTR3args object;

	args.how.mode = UNCHECKED;
	attributes->mode.set_it = 1;
	attributes->mode.set_mode3_u.mode = 0644;
	attributes->size.set_it = empty;
	if (rpc_nfs3_create_async(conn->rpc, created, &args, &create) != 0 ||
	    !conn_wait(conn, &create, "CREATE"))
		return false;
	object.object = wire(&file->handle);
	return rpc_nfs3_getattr_async(conn->rpc, sized, &object, &getattr) ==
		       0 &&
	       conn_wait(conn, &getattr, "GETATTR");
}

static void committed(struct rpc_context *rpc, int status, void *data,
		      void *private_data)
{
	struct call *call = private_data;
	COMMIT3res *res = data;

	(void)rpc;
	if (call_answered(call, status, data))
		(void)refused(call, (int)res->status,
			      nfsstat3_to_str((int)res->status));
}

static bool nfs3_commit(struct conn *conn, const struct file *file)
{
	COMMIT3args args = {.file = wire(&file->handle)};
	struct call call = {0};

	return rpc_nfs3_commit_async(conn->rpc, committed, &args, &call) == 0 &&
	       conn_wait(conn, &call, "COMMIT");
}

/* ---- load ---- */

/* Nothing came, or an error: that ends the request.  @return Did it? */
static bool ended(struct request *request, int rpc_status, const int *status)
{
	if (rpc_status != RPC_STATUS_SUCCESS)
		request->done(request, "connection lost", true);
	else if (*status != 0)
		request->done(request, nfsstat3_to_str(*status), false);
	else
		return false;
	return true;
}

static void read_done(struct rpc_context *rpc, int status, void *data,
		      void *private_data)
{
	struct request *request = private_data;
	READ3res *res = data;

	(void)rpc;
	if (ended(request, status, data))
		return;
	/* All reads are within the file. */
	request->done(request,
		      res->READ3res_u.resok.count == request->length_bytes
			      ? NULL
			      : "short READ",
		      false);
}

static void write_done(struct rpc_context *rpc, int status, void *data,
		       void *private_data)
{
	struct request *request = private_data;
	const WRITE3resok *ok = &((WRITE3res *)data)->WRITE3res_u.resok;
	const char *error = NULL;

	(void)rpc;
	if (ended(request, status, data))
		return;
	if (ok->count != request->length_bytes)
		error = "short WRITE";
	else if ((int)ok->committed < (int)request->stable)
		error = "less stable than asked for";
	request->done(request, error, false);
}

/* Of what has no more to check than its status. */
static void plain_done(struct rpc_context *rpc, int status, void *data,
		       void *private_data)
{
	struct request *request = private_data;

	(void)rpc;
	if (!ended(request, status, data))
		request->done(request, NULL, false);
}

static void create_done(struct rpc_context *rpc, int status, void *data,
			void *private_data)
{
	struct request *request = private_data;

	(void)rpc;
	if (ended(request, status, data))
		return;
	request->made = true;
	request->done(request, NULL, false);
}

static bool send_read(struct request *request)
{
	READ3args args = {.file = wire(&request->file->handle),
			  .offset = request->offset,
			  .count = request->length_bytes};

	return rpc_nfs3_read_async(request->conn->rpc, read_done, &args,
				   request) == 0;
}

static bool send_write(struct request *request)
{
	WRITE3args args = {.file = wire(&request->file->handle),
			   .offset = request->offset,
			   .count = request->length_bytes,
			   .stable = (stable_how)request->stable,
			   .data = {request->length_bytes, request->data}};

	return rpc_nfs3_write_async(request->conn->rpc, write_done, &args,
				    request) == 0;
}

static bool send_getattr(struct request *request)
{
	GETATTR3args args = {.object = wire(&request->file->handle)};

	return rpc_nfs3_getattr_async(request->conn->rpc, plain_done, &args,
				      request) == 0;
}

static diropargs3 place_of(const struct request *request)
{
	return (diropargs3){wire(&request->file->handle),
			    (char *)request->name};
}

static bool send_create(struct request *request)
{
	CREATE3args args = {.where = place_of(request)};
	set_mode3 *mode = &args.how.createhow3_u.g_obj_attributes.mode;

	args.how.mode = GUARDED;
	mode->set_it = 1;
	mode->set_mode3_u.mode = 0644;
	return rpc_nfs3_create_async(request->conn->rpc, create_done, &args,
				     request) == 0;
}

static bool nfs3_remove(struct request *request)
{
	REMOVE3args args = {.object = place_of(request)};

	return rpc_nfs3_remove_async(request->conn->rpc, plain_done, &args,
				     request) == 0;
}

static bool nfs3_send(struct request *request)
{
	switch (request->kind) {
	case KIND_READ:
		return send_read(request);
	case KIND_WRITE:
		return send_write(request);
	case KIND_CREATE:
		return send_create(request);
	default:
		return send_getattr(request);
	}
}

const struct protocol nfs3_protocol = {
	.program_version = NFS_V3,
	.mount = nfs3_mount,
	.introduce = nfs3_introduce,
	.open = nfs3_open,
	.commit = nfs3_commit,
	.send = nfs3_send,
	.remove = nfs3_remove,
};

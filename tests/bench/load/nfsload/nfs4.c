/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * NFSv4.0, by COMPOUNDs.  libnfs 5 has no EXCHANGE_ID on the wire, so there
 * are no sessions and no NFSv4.1.  All connections are one client with one
 * open per file; READ, WRITE and OPEN renew its lease.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs4.h>

#include "clock.h"
#include "conn.h"
#include "options.h"
#include "request.h"

/* Room for a COMPOUND around its payload. */
#define COMPOUND_BYTES 512
#define MOST_OPS 24
#define ATTRIBUTE(n) (1U << ((n) % 32))

struct compound {
	nfs_argop4 ops[MOST_OPS];
	unsigned int count;
};

static clientid4 client_id;
static uint32_t open_seqid; /* of the one open-owner of the files */

/* ---- COMPOUNDs: put together, and what is in their answers ---- */

static nfs_argop4 *compound_add(struct compound *compound, nfs_opnum4 opnum)
{
	nfs_argop4 *op = &compound->ops[compound->count++];

	memset(op, 0, sizeof(*op));
	op->argop = opnum;
	return op;
}

static void compound_putfh(struct compound *compound,
			   const struct handle *handle)
{
	PUTFH4args *args =
		&compound_add(compound, OP_PUTFH)->nfs_argop4_u.opputfh;

	args->object.nfs_fh4_len = handle->length;
	args->object.nfs_fh4_val = (char *)handle->bytes;
}

static OPEN4args *compound_open(struct compound *compound, clientid4 client,
				const char *owner, const char *name)
{
	OPEN4args *open = &compound_add(compound, OP_OPEN)->nfs_argop4_u.opopen;

	open->share_access = OPEN4_SHARE_ACCESS_BOTH;
	open->owner.clientid = client;
	open->owner.owner.owner_len = (u_int)strlen(owner);
	open->owner.owner.owner_val = (char *)owner;
	open->openhow.opentype = OPEN4_CREATE;
	open->claim.claim = CLAIM_NULL;
	open->claim.open_claim4_u.file.utf8string_len = (u_int)strlen(name);
	open->claim.open_claim4_u.file.utf8string_val = (char *)name;
	return open;
}

static COMPOUND4args compound_args(struct compound *compound)
{
	return (COMPOUND4args){
		.argarray = {compound->count, compound->ops},
	};
}

static bool compound_send(struct compound *compound, struct request *request,
			  rpc_cb callback, size_t payload_bytes)
{
	COMPOUND4args args = compound_args(compound);

	return rpc_nfs4_compound_async2(request->conn->rpc, callback, &args,
					request,
					COMPOUND_BYTES + payload_bytes) == 0;
}

static stateid4 state_of(const struct file *file)
{
	stateid4 stateid = {.seqid = file->state_seqid};

	memcpy(stateid.other, file->state_other, sizeof(stateid.other));
	return stateid;
}

static void take_state(struct file *file, const stateid4 *stateid)
{
	file->state_seqid = stateid->seqid;
	memcpy(file->state_other, stateid->other, sizeof(file->state_other));
}

static bool take_handle(struct handle *handle, const nfs_resop4 *op)
{
	const nfs_fh4 *fh = &op->nfs_resop4_u.opgetfh.GETFH4res_u.resok4.object;

	if (fh->nfs_fh4_len > sizeof(handle->bytes))
		return false;
	handle->length = fh->nfs_fh4_len;
	memcpy(handle->bytes, fh->nfs_fh4_val, fh->nfs_fh4_len);
	return true;
}

/* ---- set-up, waited for ---- */

/* A call, and who takes what it wants from the answer. */
struct waited {
	struct call call;
	bool (*take)(struct waited *waited, const nfs_resop4 *op);
	struct file *file;
	struct handle *handle;
	SETCLIENTID4resok client;
	bool must_confirm;
};

static void answered(struct rpc_context *rpc, int status, void *data,
		     void *private_data)
{
	struct waited *waited = private_data;
	COMPOUND4res *res = data;
	unsigned int i;

	(void)rpc;
	if (!call_answered(&waited->call, status, data))
		return;
	if (res->status != NFS4_OK) {
		(void)snprintf(waited->call.error, sizeof(waited->call.error),
			       "%s", nfsstat4_to_str((int)res->status));
		return;
	}
	for (i = 0; waited->take != NULL && i < res->resarray.resarray_len;
	     i++) {
		if (!waited->take(waited, &res->resarray.resarray_val[i])) {
			(void)snprintf(waited->call.error,
				       sizeof(waited->call.error),
				       "an answer that makes no sense");
			return;
		}
	}
}

static bool run(struct conn *conn, struct compound *compound,
		struct waited *waited, const char *what)
{
	COMPOUND4args args = compound_args(compound);

	waited->call = (struct call){0};
	return rpc_nfs4_compound_async(conn->rpc, answered, &args, waited) ==
		       0 &&
	       conn_wait(conn, &waited->call, what);
}

static bool take_root(struct waited *waited, const nfs_resop4 *op)
{
	return op->resop != OP_GETFH || take_handle(waited->handle, op);
}

static bool nfs4_mount(const struct options *options, struct conn *conn,
		       struct handle *root)
{
	struct waited waited = {.take = take_root, .handle = root};
	struct compound compound = {.count = 0};
	char path[1024];
	char *rest = path;
	char *name;

	if (snprintf(path, sizeof(path), "%s", options->export) >=
	    (int)sizeof(path)) {
		fprintf(stderr, "nfsload: the path is too long\n");
		return false;
	}
	(void)compound_add(&compound, OP_PUTROOTFH);
	while ((name = strsep(&rest, "/")) != NULL) {
		LOOKUP4args *lookup;

		if (*name == '\0')
			continue;
		if (compound.count + 2 > MOST_OPS) {
			fprintf(stderr, "nfsload: the path is too deep\n");
			return false;
		}
		lookup = &compound_add(&compound, OP_LOOKUP)
				  ->nfs_argop4_u.oplookup;
		lookup->objname.utf8string_len = (u_int)strlen(name);
		lookup->objname.utf8string_val = name;
	}
	(void)compound_add(&compound, OP_GETFH);
	return run(conn, &compound, &waited, "LOOKUP of the export");
}

static bool take_client(struct waited *waited, const nfs_resop4 *op)
{
	waited->client =
		op->nfs_resop4_u.opsetclientid.SETCLIENTID4res_u.resok4;
	return true;
}

static bool nfs4_introduce(const struct options *options, struct conn *conn)
{
	struct waited waited = {.take = take_client};
	struct compound compound = {.count = 0};
	SETCLIENTID4args *set = &compound_add(&compound, OP_SETCLIENTID)
					 ->nfs_argop4_u.opsetclientid;
	SETCLIENTID_CONFIRM4args *confirm;
	int64_t now = now_ns();
	char id[64];

	(void)options;
	/* Each run is a client of its own; no callbacks, so no delegations. */
	set->client.id.id_len = (u_int)snprintf(id, sizeof(id),
						"nfsload %d %lld",
						(int)getpid(), (long long)now);
	set->client.id.id_val = id;
	memcpy(set->client.verifier, &now, sizeof(set->client.verifier));
	set->callback.cb_location.r_netid = (char *)"tcp";
	set->callback.cb_location.r_addr = (char *)"0.0.0.0.0.0";
	if (!run(conn, &compound, &waited, "SETCLIENTID"))
		return false;

	client_id = waited.client.clientid;
	compound.count = 0;
	confirm = &compound_add(&compound, OP_SETCLIENTID_CONFIRM)
			   ->nfs_argop4_u.opsetclientid_confirm;
	confirm->clientid = client_id;
	memcpy(confirm->setclientid_confirm, waited.client.setclientid_confirm,
	       sizeof(confirm->setclientid_confirm));
	waited.take = NULL;
	return run(conn, &compound, &waited, "SETCLIENTID_CONFIRM");
}

static bool take_size(struct file *file, const nfs_resop4 *op)
{
	const attrlist4 *values = &op->nfs_resop4_u.opgetattr.GETATTR4res_u
					   .resok4.obj_attributes.attr_vals;
	uint32_t half[2];

	if (values->attrlist4_len != sizeof(half))
		return false;
	memcpy(half, values->attrlist4_val, sizeof(half));
	file->size_bytes = (uint64_t)ntohl(half[0]) << 32 | ntohl(half[1]);
	return true;
}

static bool take_open(struct waited *waited, const nfs_resop4 *op)
{
	const OPEN4resok *open;

	switch (op->resop) {
	case OP_OPEN:
		open = &op->nfs_resop4_u.opopen.OPEN4res_u.resok4;
		take_state(waited->file, &open->stateid);
		waited->must_confirm = open->rflags & OPEN4_RESULT_CONFIRM;
		return true;
	case OP_GETFH:
		return take_handle(&waited->file->handle, op);
	case OP_GETATTR:
		return take_size(waited->file, op);
	case OP_OPEN_CONFIRM:
		take_state(waited->file,
			   &op->nfs_resop4_u.opopen_confirm.OPEN_CONFIRM4res_u
				    .resok4.open_stateid);
		return true;
	default:
		return true;
	}
}

static bool confirm_open(struct conn *conn, struct waited *waited)
{
	struct compound compound = {.count = 0};
	OPEN_CONFIRM4args *confirm;

	compound_putfh(&compound, &waited->file->handle);
	confirm = &compound_add(&compound, OP_OPEN_CONFIRM)
			   ->nfs_argop4_u.opopen_confirm;
	confirm->open_stateid = state_of(waited->file);
	confirm->seqid = open_seqid++;
	return run(conn, &compound, waited, "OPEN_CONFIRM");
}

static bool nfs4_open(struct conn *conn, const struct handle *root,
		      const char *name, bool empty, struct file *file)
{
	struct waited waited = {.take = take_open, .file = file};
	struct compound compound = {.count = 0};
	/* In the order of their numbers: a size of 0, a mode. */
	uint32_t mask[2] = {empty ? ATTRIBUTE(FATTR4_SIZE) : 0,
			    ATTRIBUTE(FATTR4_MODE)};
	uint32_t values[3] = {0, 0, htonl(0644)};
	uint32_t wanted = ATTRIBUTE(FATTR4_SIZE);
	unsigned int skipped = empty ? 0 : 2;
	GETATTR4args *getattr;
	OPEN4args *open;
	fattr4 *set;

	compound_putfh(&compound, root);
	open = compound_open(&compound, client_id, "nfsload", name);
	open->seqid = open_seqid++;
	open->openhow.openflag4_u.how.mode = UNCHECKED4;
	set = &open->openhow.openflag4_u.how.createhow4_u.createattrs;
	set->attrmask.bitmap4_len = 2;
	set->attrmask.bitmap4_val = mask;
	set->attr_vals.attrlist4_len =
		(u_int)(sizeof(values) - skipped * sizeof(values[0]));
	set->attr_vals.attrlist4_val = (char *)(values + skipped);
	(void)compound_add(&compound, OP_GETFH);
	getattr = &compound_add(&compound, OP_GETATTR)->nfs_argop4_u.opgetattr;
	getattr->attr_request.bitmap4_len = 1;
	getattr->attr_request.bitmap4_val = &wanted;
	return run(conn, &compound, &waited, "OPEN") &&
	       (!waited.must_confirm || confirm_open(conn, &waited));
}

static bool nfs4_commit(struct conn *conn, const struct file *file)
{
	struct waited waited = {0};
	struct compound compound = {.count = 0};

	compound_putfh(&compound, &file->handle);
	(void)compound_add(&compound, OP_COMMIT);
	return run(conn, &compound, &waited, "COMMIT");
}

/* ---- load ---- */

static const char *write_error(const struct request *request,
			       const WRITE4resok *ok)
{
	if (ok->count != request->length_bytes)
		return "short WRITE";
	if ((int)ok->committed < (int)request->stable)
		return "less stable than asked for";
	return NULL;
}

/* What an answer of status NFS4_OK still can be short of. */
static const char *shortcoming(const struct request *request,
			       const COMPOUND4res *res)
{
	const nfs_resop4 *last;

	if (res->resarray.resarray_len == 0)
		return "an empty answer";
	last = &res->resarray.resarray_val[res->resarray.resarray_len - 1];
	if (request->kind == KIND_WRITE)
		return write_error(
			request,
			&last->nfs_resop4_u.opwrite.WRITE4res_u.resok4);
	if (request->kind == KIND_READ &&
	    last->nfs_resop4_u.opread.READ4res_u.resok4.data.data_len !=
		    request->length_bytes)
		return "short READ";
	return NULL;
}

static void request_done(struct rpc_context *rpc, int status, void *data,
			 void *private_data)
{
	struct request *request = private_data;
	const COMPOUND4res *res = data;

	(void)rpc;
	if (status != RPC_STATUS_SUCCESS)
		request->done(request, "connection lost", true);
	else if (res->status != NFS4_OK)
		request->done(request, nfsstat4_to_str((int)res->status),
			      false);
	else
		request->done(request, shortcoming(request, res), false);
}

static void add_read(struct compound *compound, const struct request *request)
{
	READ4args *args = &compound_add(compound, OP_READ)->nfs_argop4_u.opread;

	args->stateid = state_of(request->file);
	args->offset = request->offset;
	args->count = request->length_bytes;
}

static void add_write(struct compound *compound, const struct request *request)
{
	WRITE4args *args =
		&compound_add(compound, OP_WRITE)->nfs_argop4_u.opwrite;

	args->stateid = state_of(request->file);
	args->offset = request->offset;
	args->stable = (stable_how4)request->stable;
	args->data.data_len = request->length_bytes;
	args->data.data_val = request->data;
}

static void add_getattr(struct compound *compound)
{
	/* What Linux asks for when a program calls stat(). */
	static uint32_t wanted[2] = {
		ATTRIBUTE(FATTR4_TYPE) | ATTRIBUTE(FATTR4_CHANGE) |
			ATTRIBUTE(FATTR4_SIZE) | ATTRIBUTE(FATTR4_FSID) |
			ATTRIBUTE(FATTR4_FILEID),
		ATTRIBUTE(FATTR4_MODE) | ATTRIBUTE(FATTR4_NUMLINKS) |
			ATTRIBUTE(FATTR4_OWNER) |
			ATTRIBUTE(FATTR4_OWNER_GROUP) |
			ATTRIBUTE(FATTR4_SPACE_USED) |
			ATTRIBUTE(FATTR4_TIME_ACCESS) |
			ATTRIBUTE(FATTR4_TIME_METADATA) |
			ATTRIBUTE(FATTR4_TIME_MODIFY)};
	GETATTR4args *args =
		&compound_add(compound, OP_GETATTR)->nfs_argop4_u.opgetattr;

	args->attr_request.bitmap4_len = 2;
	args->attr_request.bitmap4_val = wanted;
}

static bool nfs4_send(struct request *request)
{
	struct compound compound = {.count = 0};
	size_t payload_bytes = 0;

	compound_putfh(&compound, &request->file->handle);
	if (request->kind == KIND_READ) {
		add_read(&compound, request);
	} else if (request->kind == KIND_WRITE) {
		add_write(&compound, request);
		payload_bytes = request->length_bytes;
	} else {
		add_getattr(&compound);
	}
	return compound_send(&compound, request, request_done, payload_bytes);
}

const struct protocol nfs4_protocol = {
	.program_version = NFS_V4,
	.mount = nfs4_mount,
	.introduce = nfs4_introduce,
	.open = nfs4_open,
	.commit = nfs4_commit,
	.send = nfs4_send,
};

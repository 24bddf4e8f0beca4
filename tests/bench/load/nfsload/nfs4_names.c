/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A create is two calls: OPEN, and CLOSE, or open state would pile up.  What
 * one open-owner asks for is done in the order of its seqids (RFC 7530,
 * 9.1.7), so one owner could have one create in flight only.  Each slot is an
 * owner of its own, therefore; a server that sees one for the first time
 * wants OPEN_CONFIRM in between.
 *
 * Ganesha does not count an OPEN that the export's permissions forbid, though
 * RFC 7530 says so; the next one has a BAD_SEQID then.  As Linux' client does,
 * the slot becomes another owner and asks again.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "compound.h"
#include "conn.h"
#include "nfs4_names.h"

/* Where the operation with the owner's seqid is, behind PUTFH. */
#define AT_SEQID 1U

/* Do owner and server go on to the next seqid after that?  RFC 7530, 9.1.7. */
static bool uses_seqid(nfsstat4 status)
{
	switch (status) {
	case NFS4ERR_STALE_CLIENTID:
	case NFS4ERR_STALE_STATEID:
	case NFS4ERR_BAD_STATEID:
	case NFS4ERR_BAD_SEQID:
	case NFS4ERR_BADZDR:
	case NFS4ERR_RESOURCE:
	case NFS4ERR_NOFILEHANDLE:
	case NFS4ERR_MOVED:
		return false;
	default:
		return true;
	}
}

/* Nothing came, or an error: that ends the request.  @return Did it? */
static bool ended(struct request *request, int rpc_status,
		  const COMPOUND4res *res)
{
	if (rpc_status != RPC_STATUS_SUCCESS)
		request->done(request, "connection lost", true);
	else if (res->status != NFS4_OK)
		request->done(request, nfsstat4_to_str((int)res->status),
			      false);
	else
		return false;
	return true;
}

/* Keep the owner's seqid right.  @return Did its operation succeed? */
static bool seqid_passed(struct request *request, int rpc_status,
			 const COMPOUND4res *res)
{
	unsigned int answers;
	bool good;

	if (rpc_status != RPC_STATUS_SUCCESS)
		return false; /* the slot is not used again */
	answers = res->resarray.resarray_len;
	if (answers <= AT_SEQID)
		return false; /* it was not tried */
	/* Operations end with the first one that fails. */
	good = answers > AT_SEQID + 1 || res->status == NFS4_OK;
	if (good || uses_seqid(res->status))
		request->open_seqid++;
	return good;
}

static void closed(struct rpc_context *rpc, int status, void *data,
		   void *private_data)
{
	struct request *request = private_data;

	(void)rpc;
	(void)seqid_passed(request, status, data);
	if (!ended(request, status, data))
		request->done(request, NULL, false);
}

static void send_close(struct request *request)
{
	struct compound compound = {.count = 0};
	CLOSE4args *args;

	compound_putfh(&compound, &request->opened.handle);
	args = &compound_add(&compound, OP_CLOSE)->nfs_argop4_u.opclose;
	args->seqid = request->open_seqid;
	args->open_stateid = state_of(&request->opened);
	if (!compound_send(&compound, request, closed, 0))
		request->done(request, "not sent", true);
}

static void confirmed(struct rpc_context *rpc, int status, void *data,
		      void *private_data)
{
	struct request *request = private_data;
	const COMPOUND4res *res = data;
	const nfs_resop4 *confirm;

	(void)rpc;
	(void)seqid_passed(request, status, res);
	if (ended(request, status, res))
		return;
	confirm = &res->resarray.resarray_val[AT_SEQID];
	take_state(&request->opened,
		   &confirm->nfs_resop4_u.opopen_confirm.OPEN_CONFIRM4res_u
			    .resok4.open_stateid);
	send_close(request);
}

static void send_confirm(struct request *request)
{
	struct compound compound = {.count = 0};
	OPEN_CONFIRM4args *args;

	compound_putfh(&compound, &request->opened.handle);
	args = &compound_add(&compound, OP_OPEN_CONFIRM)
			->nfs_argop4_u.opopen_confirm;
	args->open_stateid = state_of(&request->opened);
	args->seqid = request->open_seqid;
	if (!compound_send(&compound, request, confirmed, 0))
		request->done(request, "not sent", true);
}

static void new_owner(struct request *request)
{
	static uint32_t owners;

	request->open_owner = ++owners;
	request->open_seqid = 0;
}

/* To be asked again?  An owner's first seqid cannot be a bad one. */
static bool out_of_step(const struct request *request, int rpc_status,
			const COMPOUND4res *res)
{
	return rpc_status == RPC_STATUS_SUCCESS &&
	       res->status == NFS4ERR_BAD_SEQID && request->open_seqid != 0;
}

static void opened(struct rpc_context *rpc, int status, void *data,
		   void *private_data)
{
	struct request *request = private_data;
	const COMPOUND4res *res = data;
	const nfs_resop4 *ops;
	const OPEN4resok *open;

	(void)rpc;
	if (out_of_step(request, status, res)) {
		new_owner(request);
		if (!nfs4_create(request))
			request->done(request, "not sent", true);
		return;
	}
	request->made = seqid_passed(request, status, res);
	if (ended(request, status, res))
		return;
	ops = res->resarray.resarray_val;
	open = &ops[AT_SEQID].nfs_resop4_u.opopen.OPEN4res_u.resok4;
	take_state(&request->opened, &open->stateid);
	if (!take_handle(&request->opened.handle, &ops[AT_SEQID + 1]))
		request->done(request, "too long a handle", false);
	else if (open->rflags & OPEN4_RESULT_CONFIRM)
		send_confirm(request);
	else
		send_close(request);
}

bool nfs4_create(struct request *request)
{
	static uint32_t mask[2] = {0, ATTRIBUTE(FATTR4_MODE)};
	uint32_t mode = htonl(0644);
	struct compound compound = {.count = 0};
	char owner[32];
	OPEN4args *open;
	fattr4 *set;

	if (request->open_owner == 0)
		new_owner(request);
	(void)snprintf(owner, sizeof(owner), "nfsload %u", request->open_owner);
	compound_putfh(&compound, &request->file->handle);
	open = compound_open(&compound, nfs4_client_id, owner, request->name);
	open->seqid = request->open_seqid;
	open->openhow.openflag4_u.how.mode = GUARDED4;
	set = &open->openhow.openflag4_u.how.createhow4_u.createattrs;
	set->attrmask.bitmap4_len = 2;
	set->attrmask.bitmap4_val = mask;
	set->attr_vals.attrlist4_len = sizeof(mode);
	set->attr_vals.attrlist4_val = (char *)&mode;
	(void)compound_add(&compound, OP_GETFH);
	return compound_send(&compound, request, opened, strlen(request->name));
}

static void removed(struct rpc_context *rpc, int status, void *data,
		    void *private_data)
{
	struct request *request = private_data;

	(void)rpc;
	if (!ended(request, status, data))
		request->done(request, NULL, false);
}

bool nfs4_remove(struct request *request)
{
	struct compound compound = {.count = 0};
	component4 *target;

	compound_putfh(&compound, &request->file->handle);
	target = &compound_add(&compound, OP_REMOVE)
			  ->nfs_argop4_u.opremove.target;
	target->utf8string_len = (u_int)strlen(request->name);
	target->utf8string_val = (char *)request->name;
	return compound_send(&compound, request, removed,
			     strlen(request->name));
}

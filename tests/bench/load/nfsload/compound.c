/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <string.h>

#include "compound.h"
#include "conn.h"

/* Room for a COMPOUND around its payload. */
#define COMPOUND_BYTES 512

nfs_argop4 *compound_add(struct compound *compound, nfs_opnum4 opnum)
{
	nfs_argop4 *op = &compound->ops[compound->count++];

	memset(op, 0, sizeof(*op));
	op->argop = opnum;
	return op;
}

void compound_putfh(struct compound *compound, const struct handle *handle)
{
	PUTFH4args *args =
		&compound_add(compound, OP_PUTFH)->nfs_argop4_u.opputfh;

	args->object.nfs_fh4_len = handle->length;
	args->object.nfs_fh4_val = (char *)handle->bytes;
}

OPEN4args *compound_open(struct compound *compound, clientid4 client,
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

COMPOUND4args compound_args(struct compound *compound)
{
	return (COMPOUND4args){
		.argarray = {compound->count, compound->ops},
	};
}

bool compound_send(struct compound *compound, struct request *request,
		   rpc_cb callback, size_t payload_bytes)
{
	COMPOUND4args args = compound_args(compound);

	return rpc_nfs4_compound_async2(request->conn->rpc, callback, &args,
					request,
					COMPOUND_BYTES + payload_bytes) == 0;
}

stateid4 state_of(const struct file *file)
{
	stateid4 stateid = {.seqid = file->state_seqid};

	memcpy(stateid.other, file->state_other, sizeof(stateid.other));
	return stateid;
}

void take_state(struct file *file, const stateid4 *stateid)
{
	file->state_seqid = stateid->seqid;
	memcpy(file->state_other, stateid->other, sizeof(file->state_other));
}

bool take_handle(struct handle *handle, const nfs_resop4 *op)
{
	const nfs_fh4 *fh = &op->nfs_resop4_u.opgetfh.GETFH4res_u.resok4.object;

	if (fh->nfs_fh4_len > sizeof(handle->bytes))
		return false;
	handle->length = fh->nfs_fh4_len;
	memcpy(handle->bytes, fh->nfs_fh4_val, fh->nfs_fh4_len);
	return true;
}

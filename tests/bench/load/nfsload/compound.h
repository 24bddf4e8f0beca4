/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file compound.h
 * @brief NFSv4.0's COMPOUNDs: put together, and what is in their answers.
 */
#ifndef NFSLOAD_COMPOUND_H
#define NFSLOAD_COMPOUND_H

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs4.h>

#include "request.h"

#define MOST_OPS 24
#define ATTRIBUTE(n) (1U << ((n) % 32))

struct compound {
	nfs_argop4 ops[MOST_OPS];
	unsigned int count;
};

/** One more operation, all zeros. */
nfs_argop4 *compound_add(struct compound *compound, nfs_opnum4 opnum);

void compound_putfh(struct compound *compound, const struct handle *handle);

/** OPEN that creates; its seqid, mode and attributes are the caller's. */
OPEN4args *compound_open(struct compound *compound, clientid4 client,
			 const char *owner, const char *name);

COMPOUND4args compound_args(struct compound *compound);

/** @param[in] payload_bytes  What is to be sent beside the operations. */
bool compound_send(struct compound *compound, struct request *request,
		   rpc_cb callback, size_t payload_bytes);

stateid4 state_of(const struct file *file);
void take_state(struct file *file, const stateid4 *stateid);

/** @return false: such a long handle there is not. */
bool take_handle(struct handle *handle, const nfs_resop4 *op);

#endif /* NFSLOAD_COMPOUND_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file nfs4_names.h
 * @brief Names made and removed over NFSv4.0, without waiting.
 */
#ifndef NFSLOAD_NFS4_NAMES_H
#define NFSLOAD_NFS4_NAMES_H

#include <stdbool.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-nfs4.h>

struct request;

/** Given by the server when nfsload introduced itself. */
extern clientid4 nfs4_client_id;

/** Both: false if it cannot be sent. */
bool nfs4_create(struct request *request);
bool nfs4_remove(struct request *request);

#endif /* NFSLOAD_NFS4_NAMES_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file parts.h
 * @brief Cutting a request into what libcephfs is asked for.
 *
 * A read is cut at the borders of RADOS objects: over several objects
 * libcephfs drops the error of each one and hands back zeros with success;
 * within one it reports the error.  A write stays whole.
 */
#ifndef CASYNC_PARTS_H
#define CASYNC_PARTS_H

#include <cephfs/libcephfs.h>

#include "op.h"

/**
 * Most bytes in one call: libcephfs returns an int and clamps to INT_MAX.  A
 * shorter result is legal for NFS; Ganesha's own limit is 64 MiB.
 */
#define CASYNC_PART_MAX_BYTES (1U << 30)

/**
 * Bytes that lie in one object in sequence, from a multiple of it on.
 *
 * @return 0 when the layout says nothing, and reads are not cut.
 */
uint64_t casync_parts_span(const struct ceph_file_layout *layout);

/**
 * How much of a request is passed on: what was asked for, what the buffers
 * hold (a clamped WRITE comes with longer ones), CASYNC_PART_MAX_BYTES.
 */
size_t casync_parts_length(const struct fsal_io_arg *arg);

/** Fill in op->parts; needs fsal_fd, length and durability. */
void casync_parts_lay_out(struct casync_op *op);

#endif /* CASYNC_PARTS_H */

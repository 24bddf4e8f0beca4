/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file parts.h
 * @brief Cuts a request into the parts that libcephfs gets.
 *
 * A read is cut at the borders of RADOS objects.  For a read over several
 * objects, libcephfs drops the error of an object and returns zeros with
 * success.  For a read within one object it reports the error.  A write is not
 * cut.
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
 * Number of consecutive bytes of a file that are in one object.  Such a run
 * begins at each multiple of this number.
 *
 * @return 0 if the layout does not tell; then reads are not cut.
 */
uint64_t casync_parts_span(const struct ceph_file_layout *layout);

/**
 * Bytes of a request that are passed on.  It is the least of: the bytes asked
 * for, the length of the buffers (a clamped WRITE comes with longer ones), and
 * CASYNC_PART_MAX_BYTES.
 */
size_t casync_parts_length(const struct fsal_io_arg *arg);

/** Fill in op->parts; needs fsal_fd, length and durability. */
void casync_parts_lay_out(struct casync_op *op);

#endif /* CASYNC_PARTS_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stub_mount.h
 * @brief A mount that nothing connects, for the exports of a test.
 *
 * Its guard is real.
 * stub_keeper.c stands for a keeper that never doubts an answer.
 */
#ifndef STUB_MOUNT_H
#define STUB_MOUNT_H

#include "mount.h"

extern struct casync_mount stub_mount;

/** Zero everything; the mount has a client, which must not end, and serves. */
void stub_mount_reset(void);

/** Whatever phase there is.  The keeper goes through all of them. */
void stub_mount_set_phase(enum casync_guard_phase phase);

#endif /* STUB_MOUNT_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file on_thread.h
 * @brief Tells whether the calling thread may wait for Ceph.
 */
#ifndef CASYNC_ON_THREAD_H
#define CASYNC_ON_THREAD_H

#include <stdbool.h>

/** Mark the calling thread as a completion thread. */
void casync_on_thread_begin(void);

/** Is this a completion thread?  Then it must not wait for Ceph. */
bool casync_on_completion_thread(void);

#endif /* CASYNC_ON_THREAD_H */

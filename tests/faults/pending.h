/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file pending.h
 * @brief Intercepted calls from libcephfs' completion to the plugin's.
 *
 * libcephfs' threads hand over with fault_pending_done(); all else is done by
 * the shim's own thread, which calls the plugin's callbacks with no lock held.
 */
#ifndef FAULTS_PENDING_H
#define FAULTS_PENDING_H

#include <semaphore.h>

#include <cephfs/libcephfs.h>

#include "rules.h"

#define FAULT_SCRIBBLE 0xEE

/** A call of the plugin's, made with an io of ours. */
struct fault_call {
	struct ceph_ll_io_info io; /**< First: the callback gets it. */
	struct fault_call *next;
	struct ceph_ll_io_info *theirs;
	struct fault_call_id id;
	struct fault_hit hit;
	struct iovec *cut; /**< A shortened write's; NULL for others. */
	uint64_t due_ns;
	sem_t answered; /**< Duplicates within the call wait for it. */
};

struct fault_call *fault_call_new(struct ceph_ll_io_info *theirs,
				  const struct fault_call_id *id,
				  const struct fault_hit *hit);
void fault_call_free(struct fault_call *call);

/** Spoil a read's buffers from there on: nothing the plugin may pass on. */
void fault_scribble(const struct ceph_ll_io_info *io, uint64_t from);

/** Give the plugin io.result. */
void fault_call_complete(struct fault_call *call);

/** io.result is there; the call is the shim's thread's.  From any thread. */
void fault_pending_done(struct fault_call *call);

/**
 * Let go what rules before that edition hold, and will hold: libcephfs may not
 * have answered yet.  The shim's thread only.
 */
void fault_pending_release(enum fault_release release, unsigned int edition);

/** Hold this thread, for a rule of that edition, until it is released.  Any
 * thread but the shim's. */
void fault_pending_wait(unsigned int edition);

/**
 * Do what is due.  The shim's thread only.
 *
 * @return Milliseconds until there is more to do, -1 for never.
 */
int fault_pending_run(void);

/** fault_pending_done() writes to it; for the shim's thread to wait on. */
int fault_pending_fd(void);

#endif /* FAULTS_PENDING_H */

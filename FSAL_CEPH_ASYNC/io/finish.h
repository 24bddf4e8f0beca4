/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file finish.h
 * @brief From libcephfs' results to the answer: count, EOF, error.
 */
#ifndef CASYNC_FINISH_H
#define CASYNC_FINISH_H

struct casync_op;

/** Finish an op that all results are in for.  On a completion thread, or by
 * the worker that waited for them. */
void casync_finish(struct casync_op *op);

#endif /* CASYNC_FINISH_H */

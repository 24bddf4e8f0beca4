/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file finish.h
 * @brief Turns libcephfs' results into the answer: count, EOF, error.
 */
#ifndef CASYNC_FINISH_H
#define CASYNC_FINISH_H

struct casync_op;

/** Finish an op whose results are all there.  Runs on a completion thread, or
 * on the worker that waited for the results. */
void casync_finish(struct casync_op *op);

#endif /* CASYNC_FINISH_H */

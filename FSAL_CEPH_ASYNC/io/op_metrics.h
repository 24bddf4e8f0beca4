/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file op_metrics.h
 * @brief Adds one READ or WRITE to its export's metrics.
 */
#ifndef CASYNC_OP_METRICS_H
#define CASYNC_OP_METRICS_H

#include "fsal_api.h"

struct casync_op;

/** Count an op whose outcome is known, before it is answered: a client that has
 * the answer finds it counted. */
void casync_op_count(const struct casync_op *op);

/** Count an op that casync_op_fail() answers. */
void casync_op_count_unsubmitted(const struct casync_op *op,
				 fsal_status_t status);

#endif /* CASYNC_OP_METRICS_H */

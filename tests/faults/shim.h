/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file shim.h
 * @brief The rules in force, and the thread that watches their file.
 */
#ifndef FAULTS_SHIM_H
#define FAULTS_SHIM_H

#include "rules.h"

/** Decide on a call by the rules in force; a hit is recorded. */
struct fault_hit fault_decide(const struct fault_call_id *call);

#endif /* FAULTS_SHIM_H */

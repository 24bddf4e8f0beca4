/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file report.h
 * @brief JSON for programs, a line for people.
 */
#ifndef NFSLOAD_REPORT_H
#define NFSLOAD_REPORT_H

#include "load.h"
#include "probe.h"

/** @param[in] probe  NULL: there was none. */
bool report_write(const struct load *load, const struct probe *probe);

#endif /* NFSLOAD_REPORT_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file name.h
 * @brief Under which name Ganesha knows us.
 *
 * It decides the file that Ganesha loads, lib<fsal, in small letters>.so, and
 * the block that is ours.  All objects are linked twice, each time with one
 * of name.c's two forms.
 */
#ifndef CASYNC_NAME_H
#define CASYNC_NAME_H

#include <stdbool.h>

/** "CEPH_ASYNC"; "CEPH" in libfsalceph.so, which stands in for FSAL_CEPH. */
extern const char casync_name[];

/** In FSAL_CEPH's stead, with configurations that were written for it. */
extern const bool casync_compat;

#endif /* CASYNC_NAME_H */

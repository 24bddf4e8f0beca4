/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file name.h
 * @brief The FSAL's name: CEPH_ASYNC, or CEPH in the stand-in for FSAL_CEPH.
 *
 * The name decides which file Ganesha loads (lib<fsal, in small letters>.so)
 * and which configuration block is ours.  All objects are linked twice, each
 * time with one of the two forms of name.c.
 */
#ifndef CASYNC_NAME_H
#define CASYNC_NAME_H

#include <stdbool.h>

/** The stand-in reads the block of this name too. */
#define CASYNC_OWN_NAME "CEPH_ASYNC"

/** "CEPH_ASYNC"; "CEPH" in libfsalceph.so, the stand-in for FSAL_CEPH. */
extern const char casync_name[];

/** Are we the stand-in for FSAL_CEPH?  Then configurations were written for
 * FSAL_CEPH. */
extern const bool casync_compat;

#endif /* CASYNC_NAME_H */

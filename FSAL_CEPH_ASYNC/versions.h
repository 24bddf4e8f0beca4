/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file versions.h
 * @brief What we were built for, what runs us, and whether that goes together.
 *
 * Ganesha itself compares the API's number alone, and structs change without
 * that; where another version runs us anyway, it is said and no export is
 * served.  Pure but for casync_versions_running().
 */
#ifndef CASYNC_VERSIONS_H
#define CASYNC_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

/** The first libcephfs with all of ceph_ll_nonblocking_readv_writev. */
#define CASYNC_CEPH_MAJOR_MIN 19
#define CASYNC_CEPH_MINOR_MIN 2

/** An unknown version is an empty text. */
struct casync_versions {
	char ganesha[32]; /**< "9.14" */
	char ceph[32];	  /**< "20.2.4" */
};

/** Of the headers that we were compiled with. */
extern const struct casync_versions casync_versions_built;

/** Of the libraries that are loaded. */
void casync_versions_running(struct casync_versions *running);

/**
 * The version at the end of a library's file name.
 *
 * @param[in]  path     "/usr/lib/ganesha/libganesha_nfsd.so.9.14"
 * @param[out] version  "9.14"; empty where the name has none.
 */
void casync_versions_of_file(const char *path, char *version, size_t size);

/**
 * May these run us?
 *
 * @param[out] why  If not: what is wrong, and what to install.
 */
bool casync_versions_fit(const struct casync_versions *built,
			 const struct casync_versions *running, char *why,
			 size_t size);

#endif /* CASYNC_VERSIONS_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file versions.h
 * @brief Compares the versions of Ganesha and libcephfs at build and at run
 * time.
 *
 * Ganesha compares the number of the FSAL API only, but structs change without
 * a new number.  If another version runs us, a log line says so, and no export
 * is served.  The same version has other structs if it was configured with
 * other flags: casync_versions_layout_fits() refuses that.
 */
#ifndef CASYNC_VERSIONS_H
#define CASYNC_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

/** The first libcephfs with all of ceph_ll_nonblocking_readv_writev. */
#define CASYNC_CEPH_MAJOR_MIN 19
#define CASYNC_CEPH_MINOR_MIN 2

/** Versions; an unknown one is an empty text. */
struct casync_versions {
	char ganesha[32]; /**< "9.14" */
	char ceph[32];	  /**< "20.2.4" */
};

/** The versions of the headers that we were compiled with. */
extern const struct casync_versions casync_versions_built;

/** Find the versions of the loaded libraries. */
void casync_versions_running(struct casync_versions *running);

/**
 * Take the version from the end of a library's file name.
 *
 * @param[in]  path     "/usr/lib/ganesha/libganesha_nfsd.so.9.14"
 * @param[out] version  "9.14"; empty if the name has none.
 */
void casync_versions_of_file(const char *path, char *version, size_t size);

/**
 * Can the running versions serve with this build?
 *
 * @param[out] why  If not: what is wrong, and what to install.
 */
bool casync_versions_fit(const struct casync_versions *built,
			 const struct casync_versions *running, char *why,
			 size_t size);

/**
 * Does Ganesha have its struct gsh_export where we have it?
 *
 * ENABLE_QOS moves the members of this struct that we read, and changes neither
 * the version nor a symbol.  To be called when casync_versions_fit() was true:
 * it calls a function of Ganesha.
 *
 * @param[out] why  If not: what is wrong, and what to do.
 */
bool casync_versions_layout_fits(char *why, size_t size);

#endif /* CASYNC_VERSIONS_H */

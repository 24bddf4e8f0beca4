/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file namespace.h
 * @brief Sees to it that a changed name lasts.
 */
#ifndef CASYNC_NAMESPACE_H
#define CASYNC_NAMESPACE_H

struct casync_object;

/**
 * A name in a directory was changed: see to it that the MDS journals it.  With
 * Stable_Names = journal this waits for it; all that wait for one directory
 * share a flush.
 *
 * @param[in] made  The new object of that name, or NULL.
 *
 * @return 0 or a negative errno: the change may be lost.
 */
int casync_namespace_changed(struct casync_object *dir,
			     struct casync_object *made);

#endif /* CASYNC_NAMESPACE_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stay.h
 * @brief Keep the plugin mapped when a libcephfs call does not return.
 */
#ifndef CASYNC_STAY_H
#define CASYNC_STAY_H

#include <stdbool.h>

/**
 * Keep our text mapped until the process ends: a thread or a callback may
 * still return into it after Ganesha has unloaded us.  Any thread; repeated
 * calls are harmless.
 */
void casync_stay(void);

/** Has casync_stay() been called?  Then no thread of ours is joined. */
bool casync_stays(void);

#endif /* CASYNC_STAY_H */

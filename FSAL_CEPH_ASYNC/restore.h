/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file restore.h
 * @brief What clients hold through a mount, around a change of its client.
 */
#ifndef CASYNC_RESTORE_H
#define CASYNC_RESTORE_H

/** Tell the keepers what to do around a change.  Before the first mount. */
void casync_restore_init(void);

#endif /* CASYNC_RESTORE_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ending.h
 * @brief Ends a Ganesha that cannot end, as its workers wait for Ceph.
 *
 * At its end Ganesha waits for its workers first, without a timeout, and
 * removes its exports after that.  A worker in a call of libcephfs that waits
 * for the MDS cannot be called back: ceph_abort_conn() itself waits until
 * nobody is inside.  So the process ends without them, as if it had crashed.
 * The next one takes the sessions over, and nothing acknowledged is lost.
 */
#ifndef CASYNC_ENDING_H
#define CASYNC_ENDING_H

#include <stdbool.h>
#include <stdint.h>

/** Zero at first. */
struct casync_ending {
	bool exports_go; /**< No worker is waited for any more; atomic. */
	uint64_t busy_since_ns; /**< 0: nobody waits for Ceph. */
};

/** An export is being removed.  Ganesha does so once its workers have ended. */
void casync_ending_exports_go(struct casync_ending *ending);

/**
 * Look, again and again, from the time that Ganesha has been told to end.
 *
 * @param[in] busy     Some request waits for Ceph.
 * @param[in] limit_s  For so long that is borne without a pause.
 *
 * @return the process has to be ended.
 */
bool casync_ending_hangs(struct casync_ending *ending, bool busy,
			 uint32_t limit_s, uint64_t now_ns);

#endif /* CASYNC_ENDING_H */

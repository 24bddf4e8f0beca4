/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file pace.h
 * @brief How many calls of a stream may be in flight before its writes wait.
 *
 * A write that waits is gathered with others (gate.h).  If the OSD answers at
 * once, the CPUs that make, send and do the calls are what a stream waits for:
 * few and large calls are faster.  If the OSD takes long for a call, it does
 * many at the same time: a write that waits loses time, and nothing is gained.
 *
 * So a stream makes about one call in CASYNC_PACE_CALL_US without waiting.  The
 * longer a call takes, the more are in flight.  The measure is the fastest call
 * of the piece (gather.h): calls that queue behind others take longer, and must
 * not make the queue longer still.
 */
#ifndef CASYNC_PACE_H
#define CASYNC_PACE_H

#include <stdint.h>

/**
 * Compared with 8 calls in flight, 64 writes in flight: 1.1 times as fast on a
 * backend that answers within 0.3 ms, and as fast as without gathering on one
 * that takes 0 to 20 ms (0.9 with 8).  Half or double of it makes little
 * difference.
 */
#define CASYNC_PACE_CALL_US 100

/** Calls in flight of a new stream. */
#define CASYNC_PACE_CALLS 8

/** Of a fast and of a slow OSD.  With one alone, the OSD would be idle while we
 * make the next.  Tests that count calls set both to 8. */
#ifndef CASYNC_PACE_FEWEST
#define CASYNC_PACE_FEWEST 2
#define CASYNC_PACE_MOST 128
#endif

/** Embedded in a stream; the gate's lock protects it. */
struct casync_pace {
	uint32_t calls;	     /**< That may be in flight. */
	uint64_t fastest_ns; /**< Call of the piece; 0: none is known. */
};

/** A new stream. */
void casync_pace_init(struct casync_pace *pace);

/** The stream goes on in another object: that may be on another OSD. */
void casync_pace_new_piece(struct casync_pace *pace);

/**
 * A call of the stream's piece has been answered.
 *
 * @param[in] took_ns  Since it was submitted; 0: not known, ignored.
 */
void casync_pace_learn(struct casync_pace *pace, uint64_t took_ns);

#endif /* CASYNC_PACE_H */

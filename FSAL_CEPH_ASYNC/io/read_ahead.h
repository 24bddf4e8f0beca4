/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file read_ahead.h
 * @brief How much more than asked for a READ of a stream should fetch.
 *
 * A READ of a stream that misses the read cache fetches more, up to where an
 * aligned piece of the file ends; the next ones find it in the cache.  Within a
 * file no request is made that no client has asked for: so nobody's request
 * waits for one, and none is left when a file is closed.  Beyond the file it is
 * next_files.h that reads ahead.
 *
 * A client that sends large READs reads ahead by itself: Linux has two and more
 * of 128 KiB under way.  Those behind the one that fetches a piece would not
 * find it yet, and fetch their part of it once more.
 *
 * A READ near one of the last READs of the file continues its stream, forward
 * or backward (tac), and out of order as kernel clients send them.  A file has
 * room for CASYNC_STREAMS: clients that read other places have streams of their
 * own.  The piece grows with the stream: it is at most CASYNC_AHEAD_FACTOR
 * times what the stream has read so far, and CASYNC_CACHE_BUFFER_MAX.  A random
 * READ continues no stream.
 *
 * Three READs at equal distances are a stream too: a scan of a column.  The
 * bytes between them count as read.  The distance is CASYNC_AHEAD_STRIDE at
 * most: so that a whole piece serves eight READs.
 *
 * All members are atomic, and several threads may look at once: then a stream
 * may be missed, or counted twice.  No lock is needed for that.
 */
#ifndef CASYNC_READ_AHEAD_H
#define CASYNC_READ_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASYNC_STREAMS 8
#define CASYNC_AHEAD_FACTOR 4

/** READs of so many bytes and more read nothing ahead. */
#define CASYNC_AHEAD_LARGE (128U << 10)

/** READs that are farther apart are no stream. */
#define CASYNC_AHEAD_STRIDE (128 << 10)

/** Where READs of a file were; all zero at first. */
struct casync_read_ahead {
	struct {
		uint64_t offset; /**< Of its last READ. */
		uint64_t piece;	 /**< The last larger piece. */
		/** From its first READ to its second, if it has no other; 0:
		 * none. */
		int64_t stride;
		uint32_t bytes; /**< Of its last READ; 0: free. */
		uint32_t run;	/**< Bytes of its READs, up to 16 MiB. */
		bool backward;
	} streams[CASYNC_STREAMS];
	uint32_t next; /**< The stream to be forgotten next. */
};

/** A range of a file. */
struct casync_range {
	uint64_t offset;
	size_t bytes;
};

/** Note a READ. @return Its stream, or -1: it continues none. */
int casync_read_ahead_note(struct casync_read_ahead *ahead, uint64_t offset,
			   size_t bytes);

/**
 * Decide the range that a READ should fetch if it misses.
 *
 * @param[in] stream  From casync_read_ahead_note().
 *
 * @return A range that has all of the READ.  It is the READ itself if it
 *	   continues no stream, or if another READ fetches that piece already.
 */
struct casync_range casync_read_ahead_plan(struct casync_read_ahead *ahead,
					   int stream, uint64_t offset,
					   size_t bytes);

#endif /* CASYNC_READ_AHEAD_H */

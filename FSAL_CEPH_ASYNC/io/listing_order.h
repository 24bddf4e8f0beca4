/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file listing_order.h
 * @brief In which order READDIR has shown files, and who reads them so.
 *
 * A backup, `tar c` or `grep -r` opens and reads files in the order of their
 * listing.  READDIR notes each file here, and gets its place.  A file that is
 * read from its beginning is compared with the one before it in the listing.
 * If that one was read just before, the next ones are named: next_files.h
 * fetches them.
 *
 *	files before it that were read just before,	next files
 *	in the order of the listing
 *	none: it is the first of its listing		CASYNC_NEXT_FILES / 4
 *	one, which is the first of its listing		CASYNC_NEXT_FILES / 2
 *	two						CASYNC_NEXT_FILES
 *	otherwise					none
 *
 * Two in a row are wanted because of a random order: in a folder of 200 files
 * one READ of 12 finds that the file before it was among the last 16.
 *
 * The places are a ring of the process, with a bound.  A READDIR takes a block
 * of places at a time: so those of two folders do not mix.  A place that was
 * given to another file since names nothing.
 *
 * The lock is a leaf.
 */
#ifndef CASYNC_LISTING_ORDER_H
#define CASYNC_LISTING_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/** Files whose place is known: 2.5 MiB, touched when they are used.  In a
 * larger folder nothing is named. */
#define CASYNC_LISTED 65536U

/** Places that a READDIR takes at once.  MDCACHE asks for 128 entries
 * (Dir_Chunk). */
#define CASYNC_LISTED_BLOCK 128U

/** Most next files of a READ.  An OSD that takes 2 ms is hidden behind a client
 * that needs 0.2 ms for each file. */
#define CASYNC_NEXT_FILES 16U

/** "Just before": among so many READs of a file's beginning. */
#define CASYNC_LISTED_RECENT 16U

/** A file that was named or read is not named again for so long. */
#define CASYNC_LISTED_AGAIN_S 60U

/** One READDIR; all but the first two are listing_order.c's. */
struct casync_listed_walk {
	uint64_t dir; /**< Inode number of the folder. */
	uint16_t export_id;
	bool first; /**< It began at the beginning, and noted no file yet. */
	uint64_t next, end; /**< Of its block. */
};

/**
 * Note a file, in the order of the listing.
 *
 * @param[in] ino  Its inode number.
 *
 * @return Its place; never 0.
 */
uint64_t casync_listing_order_note(struct casync_listed_walk *walk,
				   uint64_t ino);

/** The listing has no further file. */
void casync_listing_order_end(const struct casync_listed_walk *walk);

/**
 * A file is read from its beginning.
 *
 * @param[in]  place  From casync_listing_order_note(), or 0.
 * @param[out] next   Inode numbers of the files to fetch.
 *
 * @return How many.
 */
unsigned int casync_listing_order_read(uint64_t place, uint16_t export_id,
				       uint64_t ino,
				       uint64_t next[CASYNC_NEXT_FILES]);

#endif /* CASYNC_LISTING_ORDER_H */

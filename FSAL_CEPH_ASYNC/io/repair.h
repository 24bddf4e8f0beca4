/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file repair.h
 * @brief READs that need a blocking call of libcephfs.
 *
 * A part of a read can come back short for three reasons: the end of the file,
 * a hole (the object does not exist), or a race with a truncation.  A worker
 * reads the rest with the blocking call.
 *
 * **Zeros that nobody wrote.**  libcephfs fills in zeros for what an OSD did
 * not have, up to the size that it knows when it looks at the answer.  If
 * somebody has written these bytes meanwhile, and made the file longer by it,
 * the zeros stand for data.  They are right if the file was long enough all the
 * time that the read took, because then there was a hole.  The MDS shortens no
 * file while libcephfs reads it, but before, and the read may wait for that.
 * So a read that has a zero byte is believed
 *
 *	- if its range was within a size that was known before, and no
 *	  truncation was counted since (file_size.h).  This is the usual case,
 *	  and asks nobody;
 *	- else if it is done again, within a size that was asked for before, and
 *	  the file's version is the same afterwards.  If nobody has shortened
 *	  the file in the last minute, or a busy writer changes the version
 *	  again and again, it is enough that no truncation was counted.
 *
 * After some tries the client is asked to repeat the READ.  A read without a
 * zero byte is all of it data of one moment, and needs none of this.
 *
 * A read can be complete and end at the known end of the file.  Then the file
 * may have grown, and the size is asked for again.  This waits for the MDS if
 * another client writes.  A worker asks, if one is free.  If none is free, the
 * answer is "not the end", and the client's next READ finds the end.  Over
 * NFSv4 Ganesha asks as well (Getattrs_In_Complete_Read), but may be content
 * with its cache; we learn of a truncation by another client (rw.c).
 */
#ifndef CASYNC_REPAIR_H
#define CASYNC_REPAIR_H

#include <stdint.h>

struct casync_op;
struct casync_part;

/**
 * Read the missing bytes of a part by the blocking call, on this thread.
 *
 * @return The bytes that the part has now, or a negative errno: EIO if its pool
 *	   was deleted, ESTALE if its snapshot was removed.
 */
int64_t casync_repair_part(struct casync_op *op,
			   const struct casync_part *part);

/** Read the missing bytes of the op's parts, on a worker, and end the op. */
void casync_repair(struct casync_op *op);

/**
 * Do a whole read that was started but not submitted, on a worker, and end it.
 * Its parts have a result of 0.
 */
void casync_repair_whole(struct casync_op *op);

/** All bytes are there.  Ask whether the read has reached the end of the file,
 * on a thread that may wait, and end the op. */
void casync_repair_end_of_file(struct casync_op *op);

#endif /* CASYNC_REPAIR_H */

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file request.h
 * @brief READs and WRITEs on the rig's file, from the call to the answer.
 *
 * Everything of ours on that way is linked for real, with a libcephfs and a
 * Ganesha of our own around it.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "durability.h"
#include "ganesha_unit.h"
#include "rig.h"

#define UNTOUCHED 0xEE
#define BUFFER_BYTES (RIG_OBJECT * RIG_OBJECTS)
#define GROUPS 20 /* more than an op has room for */
#define OBJ ((uint64_t)RIG_OBJECT)

/* One request, as a protocol layer would keep it, and what it was answered. */
struct io {
	struct fsal_io_arg arg;
	struct iovec iov[3];
	uint8_t buffer[BUFFER_BYTES];

	/* Set before: what done does. */
	sem_t *hold;	       /* wait for it */
	bool frees_object;     /* as the last request on it may */
	void (*in_done)(void); /* call it */

	/* Set in done. */
	sem_t came;
	int calls; /* atomic */
	fsal_status_t status;
	bool own_export;
	struct user_cred creds;
	gid_t groups[GROUPS];
	uint64_t inflight_ops;
	int ios_completed;
	bool on_completer;
	bool in_caller;
};

/** casync_submit_duplicates() at the start of the test. */
extern uint64_t duplicates_before;

/** Runs in each blocking call of libcephfs; the test's to set. */
extern void (*in_blocking)(enum fake_blocking which);

/** cmocka setup: the rig, and all threads of ours. */
int request_up(void **state);

/** cmocka teardown. */
int request_down(void **state);

/** A case with request_up() and request_down(). */
#define CASE(test) TEST_WITH(test, request_up, request_down)

/**
 * Have @p request send its READ or WRITE at @p offset, as the only one, and wait
 * for its end.  It returns false if the answer came after the time that a worker
 * waits for it, which on a busy machine proves nothing: it is made again.
 */
void request_until_in_time(bool (*request)(struct io *io), uint64_t offset,
			   void **state);

/** The requester that has @p count groups, 5000 and up. */
void set_creds(gid_t *groups, unsigned int count);

/** In three pieces; the buffers are of io->buffer. */
struct io *new_io(uint64_t offset, size_t length);
void free_io(struct io *io);

void start_read(struct io *io);
void start_write(struct io *io, bool stable);

/** Join the threads that answer and end. */
void stop_threads(void);

/** Wait for the answer, stop all threads, and see that nothing is left. */
void settle(struct io *io);

void check_ok(const struct io *io, size_t amount);
void check_error(const struct io *io, fsal_errors_t major);
void check_bytes_read(const struct io *io, size_t amount);
void check_bytes_written(const struct io *io, size_t amount);

/**
 * What every answer from a thread of ours has to have; @p others were under
 * way beside it.
 */
void check_answer_context(const struct io *io, unsigned int groups,
			  unsigned int others);

void check_nothing_asked(const struct io *io);

#endif /* REQUEST_H */

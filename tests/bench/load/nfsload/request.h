/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file request.h
 * @brief One request, and what the two protocols do with it.
 */
#ifndef NFSLOAD_REQUEST_H
#define NFSLOAD_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct options;

enum op_kind { KIND_READ, KIND_WRITE, KIND_GETATTR, KIND_CREATE, KINDS };

/** As on the wire, in both versions. */
enum stable_level { STABLE_UNSTABLE, STABLE_DATA_SYNC, STABLE_FILE_SYNC };

#define MOST_HANDLE_BYTES 128

/* The server, not we, shall refuse a name that is too long. */
#define MOST_NAME_BYTES 512

struct handle {
	uint32_t length;
	char bytes[MOST_HANDLE_BYTES];
};

struct file {
	struct handle handle;
	uint32_t state_seqid; /**< NFSv4's open state. */
	char state_other[12];
	uint64_t size_bytes; /**< When it was opened. */
	uint64_t next_read;
	uint64_t next_write;
};

struct request {
	struct conn *conn;
	enum op_kind kind;
	struct file *file; /**< Of a CREATE or REMOVE: the directory. */
	uint64_t offset;
	uint32_t length_bytes;
	enum stable_level stable;
	char *data; /**< What a WRITE writes. */
	int64_t began_ns;
	bool in_flight;

	/* Of a CREATE or REMOVE: the file in that directory. */
	char name[MOST_NAME_BYTES];
	uint64_t number; /**< Of that name, among all. */
	bool made;	 /**< It was created, whatever came then. */

	/**
	 * Called once, from conn_service() or conn_close().
	 *
	 * @param[in] error  NULL, or a word to count it under.
	 * @param[in] lost   There was no NFS answer at all.
	 */
	void (*done)(struct request *request, const char *error, bool lost);
	void *owner;
};

/** NFSv3 or NFSv4.0.  All but send() and remove() wait, and say what went
 * wrong. */
struct protocol {
	int program_version;

	/** The export's root. */
	bool (*mount)(const struct options *options, struct conn *conn,
		      struct handle *root);

	/** What later opens need; once, not per connection. */
	bool (*introduce)(const struct options *options, struct conn *conn);

	/** Open or create; an emptied file has size 0. */
	bool (*open)(struct conn *conn, const struct handle *root,
		     const char *name, bool empty, struct file *file);

	/** Unstable writes become stable. */
	bool (*commit)(struct conn *conn, const struct file *file);

	/** @return false if it cannot be sent: done() is not called then. */
	bool (*send)(struct request *request);

	/** Likewise; of the file `name` in the directory `file`.  NFSv3's. */
	bool (*remove)(struct request *request);
};

extern const struct protocol nfs3_protocol;
extern const struct protocol nfs4_protocol;

const struct protocol *protocol_of(const struct options *options);

#endif /* NFSLOAD_REQUEST_H */

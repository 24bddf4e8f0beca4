/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file conn.h
 * @brief One connection: a libnfs RPC context that one thread uses.
 */
#ifndef NFSLOAD_CONN_H
#define NFSLOAD_CONN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct rpc_context;

struct conn {
	struct rpc_context *rpc;
	bool broken;
};

/** What a call that is waited for fills in, in its callback. */
struct call {
	bool done;
	char error[160]; /**< Empty: it went well. */
	void *result;
};

/** Connect and send a NULL call; complains on stderr. */
bool conn_open(struct conn *conn, const char *server, int port, int program,
	       int version);

/** Requests in flight get done() with an error. */
void conn_close(struct conn *conn);

/** What to poll for. */
struct pollfd conn_poll(const struct conn *conn);

/** Read, write and call callbacks; a failure closes the connection. */
void conn_service(struct conn *conn, int revents);

/** Serve until the call has ended; complains, naming `what`. */
bool conn_wait(struct conn *conn, struct call *call, const char *what);

/** Note what libnfs says of a call.  @return Did an answer come? */
bool call_answered(struct call *call, int status, const char *words);

#endif /* NFSLOAD_CONN_H */

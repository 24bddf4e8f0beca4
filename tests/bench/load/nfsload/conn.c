/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>

#include "clock.h"
#include "conn.h"

/* No answer to a single call takes longer than this in a working lab. */
#define CALL_LIMIT_S 60

bool call_answered(struct call *call, int status, const char *words)
{
	call->done = true;
	if (status == RPC_STATUS_SUCCESS)
		return true;
	(void)snprintf(call->error, sizeof(call->error), "%s",
		       words != NULL ? words : "no answer");
	return false;
}

static void connected(struct rpc_context *rpc, int status, void *data,
		      void *private_data)
{
	(void)rpc;
	(void)call_answered(private_data, status, data);
}

bool conn_open(struct conn *conn, const char *server, int port, int program,
	       int version)
{
	struct call call = {0};
	char what[256];

	conn->broken = false;
	conn->rpc = rpc_init_context();
	if (conn->rpc == NULL) {
		fprintf(stderr, "nfsload: no memory for a connection\n");
		return false;
	}
	(void)snprintf(what, sizeof(what), "connect to %s port %d", server,
		       port);
	if (rpc_connect_port_async(conn->rpc, server, port, program, version,
				   connected, &call) != 0) {
		fprintf(stderr, "nfsload: %s: %s\n", what,
			rpc_get_error(conn->rpc));
		conn_close(conn);
		return false;
	}
	if (!conn_wait(conn, &call, what)) {
		conn_close(conn);
		return false;
	}
	return true;
}

void conn_close(struct conn *conn)
{
	struct rpc_context *rpc = conn->rpc;

	conn->broken = true;
	conn->rpc = NULL;
	if (rpc == NULL)
		return;
	if (rpc_get_fd(rpc) >= 0)
		(void)rpc_disconnect(rpc, "closed");
	rpc_destroy_context(rpc);
}

struct pollfd conn_poll(const struct conn *conn)
{
	struct pollfd pollfd = {.fd = -1};

	if (!conn->broken) {
		pollfd.fd = rpc_get_fd(conn->rpc);
		pollfd.events = (short)rpc_which_events(conn->rpc);
	}
	return pollfd;
}

void conn_service(struct conn *conn, int revents)
{
	if (conn->broken || revents == 0)
		return;
	if (rpc_service(conn->rpc, revents) < 0) {
		fprintf(stderr, "nfsload: a connection failed: %s\n",
			rpc_get_error(conn->rpc));
		conn_close(conn);
	}
}

bool conn_wait(struct conn *conn, struct call *call, const char *what)
{
	int64_t deadline = now_ns() + CALL_LIMIT_S * NS_PER_S;

	while (!call->done && !conn->broken && now_ns() < deadline) {
		struct pollfd pollfd = conn_poll(conn);

		if (poll(&pollfd, 1, 100) < 0 && errno != EINTR)
			break;
		conn_service(conn, pollfd.revents);
	}
	if (!call->done) {
		/* `call` is the caller's: no callback may come any more. */
		conn_close(conn);
		fprintf(stderr, "nfsload: %s: no answer\n", what);
		return false;
	}
	if (call->error[0] != '\0') {
		fprintf(stderr, "nfsload: %s: %s\n", what, call->error);
		return false;
	}
	return true;
}

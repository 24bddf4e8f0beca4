/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "fsal.h"

#include "deadline_call.h"
#include "identity.h"
#include "reclaim.h"

struct question {
	struct casync_deadline_call call;
	struct ceph_mount_info *ceph;
	char uuid[CASYNC_UUID_BYTES];
};

static int reclaim_ask(struct casync_deadline_call *call)
{
	struct question *question = container_of(call, struct question, call);
	int rc;

	rc = ceph_start_reclaim(question->ceph, question->uuid,
				CEPH_RECLAIM_RESET);
	if (rc == 0 || rc == -ENOENT)
		ceph_finish_reclaim(question->ceph);
	return rc;
}

int casync_reclaim_session(struct ceph_mount_info *ceph, const char *uuid,
			   uint32_t timeout_s)
{
	struct question *question = gsh_calloc(1, sizeof(*question));

	question->call.run = reclaim_ask;
	question->ceph = ceph;
	(void)snprintf(question->uuid, sizeof(question->uuid), "%s", uuid);
	return casync_deadline_call_run(&question->call, timeout_s);
}

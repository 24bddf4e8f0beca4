/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "fsal.h"

#include "identity.h"
#include "module.h"
#include "takeover.h"

/* Freed by whoever is the last to need it. */
struct question {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct ceph_mount_info *ceph;
	char uuid[CASYNC_UUID_BYTES];
	bool done;
	bool given_up;
	int rc;
};

static void question_free(struct question *question)
{
	pthread_cond_destroy(&question->answered);
	pthread_mutex_destroy(&question->lock);
	gsh_free(question);
}

static void *ask(void *arg)
{
	struct question *question = arg;
	bool given_up;
	int rc;

	rc = ceph_start_reclaim(question->ceph, question->uuid,
				CEPH_RECLAIM_RESET);
	if (rc == 0 || rc == -ENOENT)
		ceph_finish_reclaim(question->ceph);

	pthread_mutex_lock(&question->lock);
	question->rc = rc;
	question->done = true;
	given_up = question->given_up;
	pthread_cond_signal(&question->answered);
	pthread_mutex_unlock(&question->lock);
	if (given_up)
		question_free(question);
	return NULL;
}

static bool await(struct question *question, uint32_t timeout_s)
{
	struct timespec deadline;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += timeout_s;
	pthread_mutex_lock(&question->lock);
	while (!question->done && rc == 0)
		rc = pthread_cond_timedwait(&question->answered,
					    &question->lock, &deadline);
	question->given_up = !question->done;
	pthread_mutex_unlock(&question->lock);
	return !question->given_up;
}

int casync_takeover_session(struct ceph_mount_info *ceph, const char *uuid,
			    uint32_t timeout_s)
{
	struct question *question = gsh_calloc(1, sizeof(*question));
	pthread_t thread;
	int rc;

	pthread_mutex_init(&question->lock, NULL);
	pthread_cond_init(&question->answered, NULL);
	question->ceph = ceph;
	(void)snprintf(question->uuid, sizeof(question->uuid), "%s", uuid);

	rc = pthread_create(&thread, NULL, ask, question);
	if (rc != 0) {
		question_free(question);
		return -rc;
	}
	if (!await(question, timeout_s)) {
		/* It comes back some time, or never, into our text. */
		pthread_detach(thread);
		casync_module_stay();
		return -ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	rc = question->rc;
	question_free(question);
	return rc;
}

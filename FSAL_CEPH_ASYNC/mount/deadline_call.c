/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "fsal.h"

#include "deadline_call.h"
#include "clock.h"
#include "pin.h"

struct thread_work {
	struct casync_deadline_call call;
	void (*run)(struct casync_mount *mount);
	struct casync_mount *mount;
};

static void deadline_call_free(struct casync_deadline_call *call)
{
	pthread_cond_destroy(&call->done_cond);
	pthread_mutex_destroy(&call->lock);
	gsh_free(call);
}

static void *deadline_call_run(void *arg)
{
	struct casync_deadline_call *call = arg;
	bool abandoned;
	int rc = call->run(call);

	pthread_mutex_lock(&call->lock);
	call->rc = rc;
	call->done = true;
	abandoned = call->abandoned;
	pthread_cond_signal(&call->done_cond);
	pthread_mutex_unlock(&call->lock);
	if (abandoned)
		deadline_call_free(call);
	return NULL;
}

static bool deadline_call_await(struct casync_deadline_call *call,
				uint32_t timeout_s)
{
	struct timespec deadline =
		casync_clock_deadline(timeout_s * UINT64_C(1000));
	bool done;
	int rc = 0;

	pthread_mutex_lock(&call->lock);
	while (!call->done && rc == 0)
		rc = pthread_cond_timedwait(&call->done_cond, &call->lock,
					    &deadline);
	done = call->done;
	call->abandoned = !done;
	/* An abandoned call is freed by its thread from then on. */
	pthread_mutex_unlock(&call->lock);
	return done;
}

int casync_deadline_call_begin(struct casync_deadline_call *call)
{
	int rc;

	pthread_mutex_init(&call->lock, NULL);
	casync_clock_cond_init(&call->done_cond);
	rc = pthread_create(&call->thread, NULL, deadline_call_run, call);
	if (rc != 0)
		deadline_call_free(call);
	return -rc;
}

int casync_deadline_call_end(struct casync_deadline_call *call,
			     uint32_t timeout_s)
{
	/* After the timeout the call's thread owns the call. */
	pthread_t thread = call->thread;
	int rc;

	/* Before the thread can end: it returns into our code. */
	if (!deadline_call_await(call, timeout_s)) {
		pthread_detach(thread);
		casync_pin_module();
		return -ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	rc = call->rc;
	deadline_call_free(call);
	return rc;
}

int casync_deadline_call_run(struct casync_deadline_call *call,
			     uint32_t timeout_s)
{
	int rc = casync_deadline_call_begin(call);

	return rc == 0 ? casync_deadline_call_end(call, timeout_s) : rc;
}

static int deadline_call_work(struct casync_deadline_call *call)
{
	struct thread_work *work = container_of(call, struct thread_work, call);

	work->run(work->mount);
	return 0;
}

void casync_deadline_call_free_thread(struct casync_deadline_thread *thread)
{
	pthread_cond_destroy(&thread->wake);
	pthread_mutex_destroy(&thread->lock);
}

bool casync_deadline_call_runs(const struct casync_deadline_thread *thread)
{
	return __atomic_load_n(&thread->call, __ATOMIC_ACQUIRE) != NULL;
}

static void deadline_call_set(struct casync_deadline_thread *thread,
			      struct casync_deadline_call *call)
{
	__atomic_store_n(&thread->call, call, __ATOMIC_RELEASE);
}

int casync_deadline_call_start_thread(struct casync_deadline_thread *thread,
				      void (*run)(struct casync_mount *mount),
				      struct casync_mount *mount)
{
	struct thread_work *work = gsh_calloc(1, sizeof(*work));
	int rc;

	pthread_mutex_init(&thread->lock, NULL);
	casync_clock_cond_init(&thread->wake);
	work->call.run = deadline_call_work;
	work->run = run;
	work->mount = mount;
	/* Before the thread reads it. */
	deadline_call_set(thread, &work->call);
	rc = casync_deadline_call_begin(&work->call);
	if (rc != 0)
		deadline_call_set(thread, NULL);
	return rc;
}

bool casync_deadline_call_stop_thread(struct casync_deadline_thread *thread,
				      uint32_t timeout_s)
{
	if (!casync_deadline_call_runs(thread))
		return true;
	pthread_mutex_lock(&thread->lock);
	thread->stopping = true;
	pthread_cond_signal(&thread->wake);
	pthread_mutex_unlock(&thread->lock);
	if (casync_deadline_call_end(thread->call, timeout_s) == -ETIMEDOUT)
		return false;
	deadline_call_set(thread, NULL);
	return true;
}

void casync_deadline_call_wake_thread(struct casync_deadline_thread *thread)
{
	if (!casync_deadline_call_runs(thread))
		return;
	pthread_mutex_lock(&thread->lock);
	thread->woken = true;
	pthread_cond_signal(&thread->wake);
	pthread_mutex_unlock(&thread->lock);
}

bool casync_deadline_call_pause(struct casync_deadline_thread *thread,
				uint64_t ms)
{
	struct timespec deadline = casync_clock_deadline(ms);
	bool stopping;
	int rc = 0;

	pthread_mutex_lock(&thread->lock);
	while (!thread->stopping && !thread->woken && rc == 0)
		rc = pthread_cond_timedwait(&thread->wake, &thread->lock,
					    &deadline);
	thread->woken = false;
	stopping = thread->stopping;
	pthread_mutex_unlock(&thread->lock);
	return !stopping;
}

bool casync_deadline_call_sleep(struct casync_deadline_thread *thread,
				uint64_t ms)
{
	uint64_t end_ns = casync_clock_ns() + ms * CASYNC_NS_PER_MS;
	uint64_t now_ns;

	while ((now_ns = casync_clock_ns()) < end_ns) {
		if (!casync_deadline_call_pause(
			    thread, (end_ns - now_ns) / CASYNC_NS_PER_MS + 1))
			return false;
	}
	return true;
}

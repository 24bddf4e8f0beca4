/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "pending.h"

#define NS_PER_MS 1000000ULL

struct list {
	struct fault_call *first, **end;
	unsigned int count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t release_came = PTHREAD_COND_INITIALIZER;
static struct list arrived = {NULL, &arrived.first, 0}; /* under the lock */

/* The shim's thread's own. */
static struct list held = {NULL, &held.first, 0};
static struct list batch = {NULL, &batch.first, 0};
static struct fault_call *waiting; /* by due time */
/* Editions before it hold nothing.  Written under the lock. */
static unsigned int released;

static void append(struct list *list, struct fault_call *call)
{
	call->next = NULL;
	*list->end = call;
	list->end = &call->next;
	list->count++;
}

static struct fault_call *take_all(struct list *list)
{
	struct fault_call *first = list->first;

	list->first = NULL;
	list->end = &list->first;
	list->count = 0;
	return first;
}

static struct fault_call *reversed(struct fault_call *call)
{
	struct fault_call *back = NULL;

	while (call != NULL) {
		struct fault_call *next = call->next;

		call->next = back;
		back = call;
		call = next;
	}
	return back;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

struct fault_call *fault_call_new(struct ceph_ll_io_info *theirs,
				  const struct fault_call_id *id,
				  const struct fault_hit *hit)
{
	struct fault_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		abort();
	call->io = *theirs;
	call->theirs = theirs;
	call->id = *id;
	call->hit = *hit;
	(void)sem_init(&call->answered, 0, 0);
	return call;
}

void fault_call_free(struct fault_call *call)
{
	(void)sem_destroy(&call->answered);
	free(call->cut);
	free(call);
}

void fault_scribble(const struct ceph_ll_io_info *io, uint64_t from)
{
	int i;

	if (io->write)
		return;
	for (i = 0; i < io->iovcnt; i++) {
		size_t length = io->iov[i].iov_len;

		if (from < length)
			memset((char *)io->iov[i].iov_base + from,
			       FAULT_SCRIBBLE, length - from);
		from = from > length ? from - length : 0;
	}
}

void fault_call_complete(struct fault_call *call)
{
	call->theirs->result = call->io.result;
	call->theirs->callback(call->theirs);
}

static void let_go(struct fault_call *call)
{
	while (call != NULL) {
		struct fault_call *next = call->next;

		fault_call_complete(call);
		fault_call_free(call);
		call = next;
	}
}

static void wait_until_due(struct fault_call *call)
{
	struct fault_call **at = &waiting;

	call->due_ns = now_ns() + call->hit.wait_ms * NS_PER_MS;
	while (*at != NULL && (*at)->due_ns <= call->due_ns)
		at = &(*at)->next;
	call->next = *at;
	*at = call;
}

static void let_batch_go(void)
{
	if (batch.first == NULL)
		return;
	fault_event_count("reordered", batch.count);
	let_go(reversed(take_all(&batch)));
}

static void add_to_batch(struct fault_call *call)
{
	if (batch.first == NULL)
		call->due_ns = now_ns() + call->hit.wait_ms * NS_PER_MS;
	append(&batch, call);
	if (batch.count >= call->hit.times)
		let_batch_go();
}

static void spoil(struct fault_call *call)
{
	struct ceph_ll_io_info *io = &call->io;

	if (call->hit.action == FAULT_SHORT && io->result > 0 &&
	    (uint64_t)io->result > call->hit.bytes)
		io->result = (int64_t)call->hit.bytes;
	fault_scribble(io, io->result > 0 ? (uint64_t)io->result : 0);
}

static void hold(struct fault_call *call)
{
	if (call->hit.edition < released) {
		fault_call_complete(call);
		fault_call_free(call);
		return;
	}
	append(&held, call);
	fault_event_count("held", held.count);
}

static void arrive(struct fault_call *call)
{
	switch (call->hit.action) {
	case FAULT_ERROR:
	case FAULT_SHORT:
		spoil(call);
		wait_until_due(call);
		break;
	case FAULT_DELAY:
		wait_until_due(call);
		break;
	case FAULT_DUPLICATE: /* the later kind */
		fault_call_complete(call);
		wait_until_due(call);
		break;
	case FAULT_HOLD:
		hold(call);
		break;
	case FAULT_REORDER:
		add_to_batch(call);
		break;
	case FAULT_NEVER:
	case FAULT_NONE:
	case FAULT_REFUSE:
		break; /* kept for ever: libcephfs may still know the io */
	}
}

static void due(struct fault_call *call)
{
	fault_call_complete(call);
	if (call->hit.action == FAULT_DUPLICATE && --call->hit.times != 0)
		wait_until_due(call);
	else
		fault_call_free(call);
}

void fault_pending_done(struct fault_call *call)
{
	uint64_t one = 1;

	pthread_mutex_lock(&lock);
	append(&arrived, call);
	pthread_mutex_unlock(&lock);
	(void)!write(fault_pending_fd(), &one, sizeof(one));
}

void fault_pending_release(enum fault_release release, unsigned int edition)
{
	unsigned int count = held.count;
	struct fault_call *call;

	if (release == FAULT_RELEASE_NOT)
		return;
	pthread_mutex_lock(&lock);
	released = edition;
	pthread_cond_broadcast(&release_came);
	pthread_mutex_unlock(&lock);
	call = take_all(&held);
	fault_event_count("released", count);
	let_go(release == FAULT_RELEASE_REVERSED ? reversed(call) : call);
}

void fault_pending_wait(unsigned int edition)
{
	pthread_mutex_lock(&lock);
	while (edition >= released)
		pthread_cond_wait(&release_came, &lock);
	pthread_mutex_unlock(&lock);
}

static int ms_until(uint64_t due_ns)
{
	uint64_t now = now_ns();

	return due_ns <= now ? 0 : (int)((due_ns - now) / NS_PER_MS + 1);
}

int fault_pending_run(void)
{
	struct fault_call *call, *next;
	int waiting_ms, batch_ms;

	pthread_mutex_lock(&lock);
	call = take_all(&arrived);
	pthread_mutex_unlock(&lock);
	for (; call != NULL; call = next) {
		next = call->next;
		arrive(call);
	}

	while (waiting != NULL && waiting->due_ns <= now_ns()) {
		call = waiting;
		waiting = call->next;
		due(call);
	}
	if (batch.first != NULL && batch.first->due_ns <= now_ns())
		let_batch_go();

	waiting_ms = waiting != NULL ? ms_until(waiting->due_ns) : -1;
	batch_ms = batch.first != NULL ? ms_until(batch.first->due_ns) : -1;
	if (waiting_ms < 0 || (batch_ms >= 0 && batch_ms < waiting_ms))
		return batch_ms;
	return waiting_ms;
}

int fault_pending_fd(void)
{
	static int fd = -1;

	/* First called before there are threads. */
	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return fd;
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "clock.h"
#include "errors.h"
#include "export.h"
#include "flush.h"
#include "inode.h"
#include "mount.h"
#include "object.h"
#include "op.h"
#include "submit.h"

static void flush_count(struct casync_export *exp, int rc, uint64_t began_ns)
{
	struct casync_metrics_shard *shard =
		casync_metrics_shard(&exp->metrics);

	if (!CASYNC_METRICS_ON)
		return;
	casync_metrics_observe(shard, CASYNC_H_FLUSH,
			       casync_clock_age_ns(began_ns));
	if (rc < 0)
		casync_metrics_count(shard, CASYNC_C_FLUSH_ERRORS, 1);
}

/* Of a question to the MDS about a file. */
static int flush_answer_of(int rc)
{
	if (rc == -ENOENT || rc == -ESTALE)
		return 0; /* removed: nothing of it has to last */
	/* A session that the MDS has rejected is EPERM. */
	return rc == -EPERM ? -ENOTCONN : rc;
}

/* A client that loses its session drops what is dirty, and libcephfs' flush
 * then succeeds: an acknowledged chmod was lost in this way
 * (test_lost_flush.py).  But such a client has no capabilities.  So it has to
 * ask the MDS, and is refused. */
int casync_flush_check_session(struct casync_object *obj)
{
	struct ceph_statx stx;
	int rc = ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
				 CEPH_STATX_MODE, 0, casync_inode_root(obj));

	return flush_answer_of(rc);
}

/* libcephfs' flush waits for the changes that it sends, and not for those that
 * casync_flush_try_send() has sent.  With a new ctime it has something to send,
 * and then it waits for all.  Without waiters it is the first flush of a new
 * file: the data need its create in the journal, and no attributes. */
static int flush_sync_inode(struct casync_object *obj, bool waiters)
{
	uint64_t began_ns = CASYNC_METRICS_ON ? casync_clock_ns() : 0;
	uint64_t end = casync_file_size_flush_begins(&obj->size);
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	bool covers = waiters && obj->queue.sent != 0;
	struct ceph_statx nothing = {0};
	int rc = 0;

	if (covers)
		rc = ceph_ll_setattr(ceph, obj->inode, &nothing, 0,
				     casync_inode_root(obj));
	if (rc == 0)
		rc = ceph_ll_sync_inode(ceph, obj->inode, 0);
	/* After a loss the OSDs refuse the data that a first flush is for. */
	if (rc == 0 && waiters)
		rc = casync_flush_check_session(obj);
	flush_count(obj->exp, rc, began_ns);
	/* Before a write fails because of it: that one shall be retried. */
	casync_session_note_error(casync_inode_mount(obj), -rc);
	if (rc == 0) {
		if (covers)
			obj->queue.sent = 0;
		casync_file_size_flushed(&obj->size, end);
	}
	return rc;
}

static void flush_answer(struct glist_head *waiters, int rc)
{
	struct casync_flush_waiter *waiter;

	while ((waiter = glist_first_entry(waiters, struct casync_flush_waiter,
					   link)) != NULL) {
		glist_del(&waiter->link);
		waiter->done(waiter, rc);
	}
}

void casync_flush_tick(void)
{
	struct casync_op *op;

	while (casync_queue_release_oldest(&op))
		casync_submit_on_lane(op);
}

static void flush_fail_all(struct casync_op *op, int rc)
{
	struct casync_op *next;

	for (; op != NULL; op = next) {
		next = op->next;
		op->status = casync_errors_status(rc);
		casync_op_end_on_worker(op);
	}
}

static void flush_run(struct casync_work *work);

static void flush_queue(struct casync_object *obj)
{
	obj->queue.work.run = flush_run;
	casync_lane_submit(casync_inode_lane(obj, CASYNC_LANE_METADATA),
			   &obj->queue.work);
}

/* Unless a flush is to be run, the writes keep the object: it may be freed once
 * they have gone. */
void casync_flush_go_on(struct casync_object *obj,
			const struct casync_queue_todo *todo, int rc)
{
	if (todo->flush)
		flush_queue(obj);
	casync_submit_on_lane(todo->submit);
	flush_fail_all(todo->fail, rc);
}

/*
 * The next flush begins before the waiters of this one are answered.  An answer
 * may block, and the object may be freed once the last waiter has its answer.
 */
static void flush_once(struct casync_object *obj)
{
	struct casync_queue_todo todo;
	struct glist_head covered;
	int rc;

	casync_queue_cover(&obj->queue, &covered);
	rc = flush_sync_inode(obj, !glist_empty(&covered));
	todo = casync_queue_flushed(&obj->queue, rc);
	casync_flush_go_on(obj, &todo, rc);
	flush_answer(&covered, rc);
}

static void flush_run(struct casync_work *work)
{
	flush_once(container_of(work, struct casync_object, queue.work));
}

/* Returns whether the caller has to run the flush. */
static bool flush_add_waiter(struct casync_object *obj,
			     struct casync_flush_waiter *waiter)
{
	casync_metrics_count(casync_metrics_shard(&obj->exp->metrics),
			     CASYNC_C_FLUSH_REQUESTS, 1);
	return casync_queue_want_flush(&obj->queue, waiter);
}

void casync_flush_request(struct casync_object *obj,
			  struct casync_flush_waiter *waiter)
{
	if (flush_add_waiter(obj, waiter))
		flush_queue(obj);
}

/* A caller that waits, on its own stack. */
struct blocked_waiter {
	struct casync_flush_waiter waiter;
	pthread_mutex_t lock;
	pthread_cond_t answered_cond; /* CLOCK_MONOTONIC */
	bool answered;
	int rc;
};

static void flush_wake_blocked(struct casync_flush_waiter *waiter, int rc)
{
	struct blocked_waiter *blocked =
		container_of(waiter, struct blocked_waiter, waiter);

	pthread_mutex_lock(&blocked->lock);
	blocked->rc = rc;
	blocked->answered = true;
	pthread_cond_signal(&blocked->answered_cond);
	pthread_mutex_unlock(&blocked->lock);
}

static bool flush_answered_in_time(struct blocked_waiter *blocked)
{
	struct timespec deadline = casync_clock_deadline(CASYNC_FLUSH_WAIT_MS);
	bool answered;
	int rc = 0;

	pthread_mutex_lock(&blocked->lock);
	while (!blocked->answered && rc == 0)
		rc = pthread_cond_timedwait(&blocked->answered_cond,
					    &blocked->lock, &deadline);
	answered = blocked->answered;
	pthread_mutex_unlock(&blocked->lock);
	return answered;
}

int casync_flush_wait(struct casync_object *obj)
{
	struct blocked_waiter blocked = {.waiter.done = flush_wake_blocked};
	bool withdrawn = false;

	pthread_mutex_init(&blocked.lock, NULL);
	casync_clock_cond_init(&blocked.answered_cond);
	if (flush_add_waiter(obj, &blocked.waiter))
		flush_once(obj);
	/* The last write keeps the object until it has seen who waits. */
	while (!withdrawn && !flush_answered_in_time(&blocked))
		withdrawn = casync_queue_withdraw(&obj->queue, &blocked.waiter);
	pthread_cond_destroy(&blocked.answered_cond);
	pthread_mutex_destroy(&blocked.lock);
	return withdrawn ? -EAGAIN : blocked.rc;
}

int casync_flush_try_send(struct casync_object *obj)
{
	int rc;

	/* That open would have a delegation returned. */
	if (obj->handle.type != REGULAR_FILE ||
	    __atomic_load_n(&obj->delegations.count, __ATOMIC_RELAXED) != 0 ||
	    !casync_queue_begin_send(&obj->queue))
		return -EAGAIN;
	rc = casync_inode_send_attributes(obj);
	if (casync_queue_end_send(&obj->queue, rc == 0))
		flush_queue(obj);
	return rc;
}

/* The session may be lost after the change was sent: then the question is
 * refused, as a client that has lost its session gets no other one. */
int casync_flush_tell_mds(struct casync_object *obj)
{
	int rc;

	if (casync_flush_try_send(obj) < 0)
		return casync_flush_wait(obj);
	rc = flush_answer_of(casync_inode_ask_mds(obj));
	casync_session_note_error(casync_inode_mount(obj), -rc);
	return rc;
}

bool casync_flush_before_data(struct casync_object *obj)
{
	bool run;
	bool waits = casync_queue_want_create(&obj->queue, &run);

	if (run)
		flush_queue(obj);
	return waits;
}

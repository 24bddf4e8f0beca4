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

/* The flushes that hold writes, oldest first.  The lock of a gate is taken
 * under this lock. */
static pthread_mutex_t holds_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(holds);

void casync_flush_init(struct casync_flush *flush)
{
	pthread_mutex_init(&flush->lock, NULL);
	glist_init(&flush->waiters);
	flush->running = false;
	flush->first = false;
	flush->holds = 0;
	flush->held_since_ns = 0;
	flush->sent = 0;
	flush->unjournaled = false;
}

void casync_flush_destroy(struct casync_flush *flush)
{
	/* The thread that released the last write may still hold the lock. */
	pthread_mutex_lock(&flush->lock);
	pthread_mutex_unlock(&flush->lock);
	pthread_mutex_destroy(&flush->lock);
}

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

/* A client that loses its session drops what is dirty, and libcephfs' flush
 * then succeeds: an acknowledged chmod was lost so (test_lost_flush.py).  But
 * such a client has no capabilities.  So it has to ask the MDS, and is refused.
 */
int casync_flush_check_session(struct casync_object *obj)
{
	struct ceph_statx stx;
	int rc = ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
				 CEPH_STATX_MODE, 0, casync_inode_root(obj));

	if (rc == -ENOENT || rc == -ESTALE)
		return 0; /* removed: nothing of it has to last */
	/* A session that the MDS has rejected is EPERM. */
	return rc == -EPERM ? -ENOTCONN : rc;
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
	bool covers = waiters && obj->flush.sent != 0;
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
	casync_session_note_error(&casync_inode_mount(obj)->session, -rc);
	if (rc == 0) {
		if (covers)
			obj->flush.sent = 0;
		casync_file_size_flushed(&obj->size, end);
		__atomic_store_n(&obj->flush.unjournaled, false,
				 __ATOMIC_RELEASE);
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

/* --- holding writes back */

/* Returns true if no write is in flight that the flush would wait for. */
static bool flush_hold_writes(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	bool drained;

	pthread_mutex_lock(&holds_lock);
	flush->held_since_ns = casync_clock_ns();
	glist_add_tail(&holds, &flush->hold);
	flush->holds++;
	drained = casync_gate_hold(&obj->gate);
	pthread_mutex_unlock(&holds_lock);
	return drained;
}

/* Were the held writes released, because the earlier ones took too long? */
static bool flush_hold_is_over(struct casync_flush *flush)
{
	bool over;

	pthread_mutex_lock(&holds_lock);
	over = flush->held_since_ns == 0;
	pthread_mutex_unlock(&holds_lock);
	return over;
}

static void flush_forget_hold(struct casync_flush *flush)
{
	pthread_mutex_lock(&holds_lock);
	if (flush->held_since_ns != 0)
		glist_del(&flush->hold);
	flush->held_since_ns = 0;
	pthread_mutex_unlock(&holds_lock);
}

/* Release the oldest hold if too old.  *op is to be submitted, or NULL. */
static bool flush_release_one_locked(struct casync_op **op)
{
	struct casync_flush *flush =
		glist_first_entry(&holds, struct casync_flush, hold);

	if (flush == NULL || casync_clock_age_ns(flush->held_since_ns) <
				     CASYNC_FLUSH_HOLD_MS * CASYNC_NS_PER_MS)
		return false;
	glist_del(&flush->hold);
	flush->held_since_ns = 0;
	/* While it was in the list, its object exists. */
	*op = casync_gate_release(
		&container_of(flush, struct casync_object, flush)->gate, false);
	return true;
}

void casync_flush_tick(void)
{
	struct casync_op *op;
	bool more;

	do {
		pthread_mutex_lock(&holds_lock);
		more = flush_release_one_locked(&op);
		pthread_mutex_unlock(&holds_lock);
		if (more)
			casync_submit_admitted(op);
	} while (more);
}

/* --- flushing */

static void flush_fail_all(struct casync_op *op, int rc)
{
	struct casync_op *next;

	for (; op != NULL; op = next) {
		next = op->next;
		op->status = casync_errors_status(rc);
		casync_op_end_on_worker(op);
	}
}

/*
 * A flush has ended: release the held writes.  If the first flush failed, the
 * writes that waited for it fail: the MDS may forget the file.  Returns whether
 * callers wait for the next flush.
 */
static bool flush_end_hold(struct casync_object *obj, int rc)
{
	struct casync_flush *flush = &obj->flush;
	struct casync_op *expelled = NULL;
	struct casync_op *now;
	bool more;

	flush_forget_hold(flush);
	pthread_mutex_lock(&flush->lock);
	if (flush->first && rc < 0)
		expelled = casync_gate_remove_unjournaled(&obj->gate);
	now = casync_gate_release(&obj->gate, flush->first);
	flush->first = false;
	more = !glist_empty(&flush->waiters);
	flush->running = more;
	pthread_mutex_unlock(&flush->lock);

	/* Without waiters the object may be freed from here on. */
	casync_submit_admitted(now);
	flush_fail_all(expelled, rc);
	return more;
}

static void flush_run(struct casync_work *work);

/*
 * No write is in flight that the flush would wait for.  Returns whether a
 * caller still waits for the flush.  The waiting callers keep the object until
 * it has ended.
 */
static bool flush_is_wanted(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	struct casync_op *now = NULL;
	bool wanted;

	pthread_mutex_lock(&flush->lock);
	wanted = flush->first || !glist_empty(&flush->waiters);
	flush->running = wanted;
	if (!wanted) {
		flush_forget_hold(flush);
		now = casync_gate_release(&obj->gate, false);
	}
	pthread_mutex_unlock(&flush->lock);
	casync_submit_admitted(now);
	return wanted;
}

/* Begin the next flush.  True: it can run at once. */
static bool flush_begin(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;

	flush->work.run = flush_run;
	flush->holds = 0;
	return flush_hold_writes(obj) && flush_is_wanted(obj);
}

static void flush_queue(struct casync_object *obj)
{
	casync_lane_submit(casync_inode_lane(obj, CASYNC_LANE_METADATA),
			   &obj->flush.work);
}

void casync_flush_drained(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;

	/* Others are in flight by now: hold again, or libcephfs waits for them.
	 */
	if (flush_hold_is_over(flush) && flush->holds < CASYNC_FLUSH_HOLDS &&
	    !flush_hold_writes(obj))
		return;
	if (flush_is_wanted(obj))
		flush_queue(obj);
}

static void flush_take_waiters_locked(struct casync_flush *flush,
				      struct glist_head *covered)
{
	struct glist_head *node;

	glist_init(covered);
	glist_splice_tail(covered, &flush->waiters);
	glist_for_each(node, covered)
		glist_entry(node, struct casync_flush_waiter, link)->covered =
			true;
}

/*
 * The next flush begins before the waiters of this one are answered.  An answer
 * may block, and the object may be freed once the last waiter has its answer.
 */
static void flush_once(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	struct glist_head covered;
	int rc;

	pthread_mutex_lock(&flush->lock);
	flush_take_waiters_locked(flush, &covered);
	pthread_mutex_unlock(&flush->lock);

	rc = flush_sync_inode(obj, !glist_empty(&covered));
	if (flush_end_hold(obj, rc) && flush_begin(obj))
		flush_queue(obj);
	flush_answer(&covered, rc);
}

static void flush_run(struct casync_work *work)
{
	flush_once(container_of(work, struct casync_object, flush.work));
}

/* Returns whether the caller has to call flush_begin(). */
static bool flush_add_waiter(struct casync_object *obj,
			     struct casync_flush_waiter *waiter)
{
	struct casync_flush *flush = &obj->flush;
	bool lead;

	waiter->covered = false;
	casync_metrics_count(casync_metrics_shard(&obj->exp->metrics),
			     CASYNC_C_FLUSH_REQUESTS, 1);
	pthread_mutex_lock(&flush->lock);
	glist_add_tail(&flush->waiters, &waiter->link);
	lead = !flush->running;
	flush->running = true;
	pthread_mutex_unlock(&flush->lock);
	return lead;
}

void casync_flush_request(struct casync_object *obj,
			  struct casync_flush_waiter *waiter)
{
	if (flush_add_waiter(obj, waiter) && flush_begin(obj))
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

/*
 * Returns whether the caller may leave.  The flush still waits for writes.  The
 * last of them checks for waiters (flush_is_wanted()), and keeps the object
 * until then.
 */
static bool flush_withdraw(struct casync_object *obj,
			   struct casync_flush_waiter *waiter)
{
	struct casync_flush *flush = &obj->flush;
	bool withdrawn;

	pthread_mutex_lock(&flush->lock);
	withdrawn = !waiter->covered && casync_gate_is_draining(&obj->gate);
	if (withdrawn)
		glist_del(&waiter->link);
	pthread_mutex_unlock(&flush->lock);
	return withdrawn;
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
	if (flush_add_waiter(obj, &blocked.waiter) && flush_begin(obj))
		flush_once(obj);
	while (!withdrawn && !flush_answered_in_time(&blocked))
		withdrawn = flush_withdraw(obj, &blocked.waiter);
	pthread_cond_destroy(&blocked.answered_cond);
	pthread_mutex_destroy(&blocked.lock);
	return withdrawn ? -EAGAIN : blocked.rc;
}

/* --- sending without a wait */

/* No flush runs meanwhile: each could take the other's changes along, and not
 * wait for them. */
static bool flush_take_turn(struct casync_flush *flush)
{
	bool taken;

	pthread_mutex_lock(&flush->lock);
	taken = !flush->running && flush->sent < CASYNC_FLUSH_SENT_MAX;
	if (taken)
		flush->running = true;
	pthread_mutex_unlock(&flush->lock);
	return taken;
}

static void flush_end_turn(struct casync_object *obj, bool sent)
{
	struct casync_flush *flush = &obj->flush;
	bool more;

	pthread_mutex_lock(&flush->lock);
	flush->sent += sent;
	more = flush->first || !glist_empty(&flush->waiters);
	flush->running = more;
	pthread_mutex_unlock(&flush->lock);
	if (more && flush_begin(obj))
		flush_queue(obj);
}

int casync_flush_try_send(struct casync_object *obj)
{
	int rc;

	/* That open would have a delegation returned. */
	if (obj->handle.type != REGULAR_FILE ||
	    __atomic_load_n(&obj->delegations.count, __ATOMIC_RELAXED) != 0 ||
	    !flush_take_turn(&obj->flush))
		return -EAGAIN;
	rc = casync_inode_send_attributes(obj);
	flush_end_turn(obj, rc == 0);
	return rc;
}

int casync_flush_send(struct casync_object *obj)
{
	return casync_flush_try_send(obj) < 0 ? casync_flush_wait(obj) : 0;
}

/* --- new files */

bool casync_flush_before_data(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	bool lead = false;
	bool waits;

	if (!casync_flush_is_unjournaled(flush))
		return false;
	pthread_mutex_lock(&flush->lock);
	/* A flush that is under way is enough: it began after the create. */
	waits = casync_flush_is_unjournaled(flush);
	if (waits && !flush->first) {
		flush->first = true;
		casync_gate_hold_for_journal(&obj->gate);
		lead = !flush->running;
		flush->running = true;
	}
	pthread_mutex_unlock(&flush->lock);
	if (lead && flush_begin(obj))
		flush_queue(obj);
	return waits;
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"
#include "fsal_up.h"

#include "delegations.h"
#include "fd.h"
#include "filehandle.h"
#include "object.h"
#include "rig.h"
#include "rig_lanes.h"
#include "strict.h"
#include "stub_mount.h"
#include "upcalls.h"

#define FSCID 7
#define INO 0x10000000123
#define EXPORTS 2
#define FILES (CASYNC_DELEGATIONS_RECALLERS + 4)

/* What an export's Ganesha was told. */
struct listener {
	struct casync_export exp;
	struct fsal_up_vector up;
	int heard; /* atomic */
	pthread_mutex_t last_lock;
	struct casync_fileid last; /* under last_lock while threads tell */
	bool on_thread;		   /* as `last` */
};

static struct listener listeners[EXPORTS];
/* Files of the second one, and a delegation of each. */
static struct casync_object objs[FILES];
static struct casync_state *states[FILES];
static struct fake_delegation recall_of[FILES];
static struct req_op_context request;
/* The mount's. */
static struct casync_upcalls *const upcalls = &stub_mount.upcalls;

/* Inodes below `gated_inos` stop in their recall. */
static uint64_t gated_inos; /* atomic */
static sem_t begun;
static sem_t gate;
static sem_t upcall_gate;
static bool timed_out;
static int bad_handles;
static void (*in_recall)(void);

void up_ready_wait(struct fsal_up_vector *up_ops)
{
	(void)up_ops;
}

static state_status_t delegrecall(const struct fsal_up_vector *vec,
				  struct gsh_buffdesc *handle)
{
	struct listener *to = container_of(vec, struct listener, up);
	struct casync_fileid id = {.ino = 0};

	/* Not an assert_: those jump, and this is another thread. */
	if (!casync_filehandle_decode(handle->addr, handle->len, &id))
		__atomic_add_fetch(&bad_handles, 1, __ATOMIC_ACQ_REL);
	if (id.ino < __atomic_load_n(&gated_inos, __ATOMIC_ACQUIRE)) {
		sem_post(&begun);
		if (!rig_wait(&gate))
			timed_out = true;
	} else {
		pthread_mutex_lock(&to->last_lock);
		to->last = id;
		to->on_thread = casync_upcalls_on_thread();
		pthread_mutex_unlock(&to->last_lock);
	}
	if (in_recall != NULL)
		in_recall();
	__atomic_add_fetch(&to->heard, 1, __ATOMIC_ACQ_REL);
	return STATE_SUCCESS;
}

/* Waits, as for the lock of an object. */
static fsal_status_t invalidate(const struct fsal_up_vector *vec,
				struct gsh_buffdesc *obj, uint32_t flags)
{
	(void)vec;
	(void)obj;
	(void)flags;
	sem_post(&begun);
	if (!rig_wait(&upcall_gate))
		timed_out = true;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static void set_up(struct listener *listener, uint16_t export_id)
{
	memset(listener, 0, sizeof(*listener));
	pthread_mutex_init(&listener->last_lock, NULL);
	listener->up.delegrecall = delegrecall;
	listener->up.invalidate = invalidate;
	listener->exp.export.up_ops = &listener->up;
	listener->exp.export.export_id = export_id;
	listener->exp.mount = &stub_mount;
	stub_mount.delegations = true;
	casync_upcalls_join(upcalls, &listener->exp);
	casync_delegations_join(&listener->exp);
}

static void grant(unsigned int file)
{
	struct casync_object *obj = &objs[file];
	fsal_status_t status;

	memset(obj, 0, sizeof(*obj));
	obj->exp = &listeners[1].exp;
	obj->id = (struct casync_fileid){
		.ino = INO + file, .snapid = CEPH_NOSNAP, .fscid = FSCID};
	casync_delegations_init(&obj->delegations);
	states[file] = calloc(1, sizeof(*states[file]));
	states[file]->state.state_type = STATE_TYPE_DELEG;
	status = casync_lease_op2(&obj->handle, &states[file]->state, NULL,
				  FSAL_DELEG_RD);
	assert_int_equal(status.major, ERR_FSAL_NO_ERROR);
	recall_of[file] = fake.delegation;
}

static void give_back(unsigned int file)
{
	if (states[file] == NULL)
		return;
	(void)casync_lease_op2(&objs[file].handle, &states[file]->state, NULL,
			       FSAL_DELEG_NONE);
	free(states[file]);
	states[file] = NULL;
}

static int up(void **state)
{
	unsigned int i;

	stub_reset();
	fake_setup(0, RIG_OBJECT);
	gated_inos = 0;
	timed_out = false;
	bad_handles = 0;
	in_recall = NULL;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	sem_init(&upcall_gate, 0, 0);
	stub_mount_reset();
	casync_upcalls_init(upcalls);
	for (i = 0; i < EXPORTS; i++)
		set_up(&listeners[i], (uint16_t)(77 + i));
	request.fsal_export = &listeners[1].exp.export;
	op_ctx = &request;
	for (i = 0; i < FILES; i++)
		grant(i);
	op_ctx = NULL;
	if (casync_upcalls_register(upcalls, NULL) != 0)
		return -1;
	if (rig_lanes_up() != 0)
		return -1;
	/* The lock of the recalls, and that of their lane. */
	strict_allow_begin();
	casync_delegations_join(&listeners[1].exp);
	(void)casync_lane_is_stopping(
		casync_lane_of_process(CASYNC_LANE_RECALL));
	strict_allow_end();
	return 0;
}

static int down(void **state)
{
	unsigned int i;

	for (i = 0; i < FILES; i++)
		give_back(i);
	for (i = 0; i < EXPORTS; i++) {
		casync_delegations_leave(&listeners[i].exp);
		casync_upcalls_leave(upcalls, &listeners[i].exp);
	}
	casync_upcalls_destroy(upcalls);
	rig_lanes_down();
	for (i = 0; i < EXPORTS; i++)
		pthread_mutex_destroy(&listeners[i].last_lock);
	fake_teardown();
	sem_destroy(&begun);
	sem_destroy(&gate);
	sem_destroy(&upcall_gate);
	return timed_out || bad_handles != 0 || strict_offences() != 0 ? -1 : 0;
}

#define CASE(test) TEST_WITH(test, up, down)

/* --- libcephfs calls, on a thread of its own */

static void *call_on_thread(void *arg)
{
	const struct fake_delegation *recalled = arg;

	strict_begin();
	recalled->recall(NULL, recalled->priv);
	strict_end();
	return NULL;
}

static void libcephfs_recalls(unsigned int file)
{
	pthread_t thread;

	assert_int_equal(
		pthread_create(&thread, NULL, call_on_thread, &recall_of[file]),
		0);
	RIG_JOIN(thread, NULL);
}

static void libcephfs_invalidates(void)
{
	vinodeno_t vino;

	memset(&vino, 0, sizeof(vino));
	vino.ino.val = INO;
	vino.snapid.val = CEPH_NOSNAP;
	fake.callbacks.ino_cb(fake.callbacks.handle, vino, 0, 0);
}

static void check_heard(unsigned int listener, int count)
{
	RIG_UNTIL(NOW(listeners[listener].heard) >= count);
	assert_int_equal(
		__atomic_load_n(&listeners[listener].heard, __ATOMIC_ACQUIRE),
		count);
}

/* So many recalls, each waiting in Ganesha; those behind them do not. */
static void hold(unsigned int count)
{
	unsigned int i;

	__atomic_store_n(&gated_inos, INO + count, __ATOMIC_RELEASE);
	for (i = 0; i < count; i++)
		libcephfs_recalls(i);
	for (i = 0; i < count; i++)
		assert_true(rig_wait(&begun));
}

static void let_go(unsigned int count)
{
	while (count-- > 0)
		sem_post(&gate);
}

CASE(recall_is_told_to_its_export_alone)
{
	libcephfs_recalls(0);
	check_heard(1, 1);
	check_heard(0, 0);
	assert_true(listeners[1].last.ino == INO);
	assert_true(listeners[1].last.snapid == CEPH_NOSNAP);
	assert_int_equal(listeners[1].last.fscid, FSCID);
	assert_true(listeners[1].on_thread);
	assert_false(casync_upcalls_on_thread());
}

/* The object whose lock an invalidation wants may be in the hands of an
 * operation that waits for this very delegation. */
CASE(recall_is_not_behind_an_invalidation_that_waits)
{
	unsigned int i;

	libcephfs_invalidates();
	assert_true(rig_wait(&begun));
	for (i = 0; i < 100; i++)
		libcephfs_invalidates();
	libcephfs_recalls(0);
	check_heard(1, 1);
	for (i = 0; i < 101 * EXPORTS; i++)
		sem_post(&upcall_gate);
}

CASE(recall_is_not_behind_one_that_waits)
{
	const unsigned int held = CASYNC_DELEGATIONS_RECALLERS - 1;

	hold(held);
	libcephfs_recalls(held);
	check_heard(1, 1);
	let_go(held);
	check_heard(1, CASYNC_DELEGATIONS_RECALLERS);
}

CASE(all_are_told_in_the_end)
{
	unsigned int i;

	hold(CASYNC_DELEGATIONS_RECALLERS);
	for (i = CASYNC_DELEGATIONS_RECALLERS; i < FILES; i++)
		libcephfs_recalls(i);
	check_heard(1, 0);
	let_go(CASYNC_DELEGATIONS_RECALLERS);
	check_heard(1, FILES);
}

CASE(recall_that_is_queued_is_not_queued_twice)
{
	hold(CASYNC_DELEGATIONS_RECALLERS);
	libcephfs_recalls(FILES - 1);
	libcephfs_recalls(FILES - 1);
	let_go(CASYNC_DELEGATIONS_RECALLERS);
	rig_lanes_down();
	check_heard(1, CASYNC_DELEGATIONS_RECALLERS + 1);
}

CASE(recall_may_come_again)
{
	libcephfs_recalls(0);
	check_heard(1, 1);
	libcephfs_recalls(0);
	check_heard(1, 2);
}

/* Its memory goes. */
CASE(recall_of_a_returned_one_is_told_to_nobody)
{
	hold(CASYNC_DELEGATIONS_RECALLERS);
	libcephfs_recalls(FILES - 1);
	casync_delegations_return(&states[FILES - 1]->delegation);
	give_back(FILES - 1);
	let_go(CASYNC_DELEGATIONS_RECALLERS);
	rig_lanes_down();
	check_heard(1, CASYNC_DELEGATIONS_RECALLERS);
}

/* --- leaving */

CASE(who_has_left_hears_nothing)
{
	casync_delegations_leave(&listeners[1].exp);
	casync_delegations_leave(&listeners[1].exp);
	libcephfs_recalls(0);
	rig_lanes_down();
	check_heard(0, 0);
	check_heard(1, 0);
}

static int left; /* atomic */

static void *leave(void *unused)
{
	casync_delegations_leave(&listeners[1].exp);
	__atomic_store_n(&left, 1, __ATOMIC_RELEASE);
	return NULL;
}

CASE(leave_waits_for_a_recall_on_its_way)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	pthread_t thread;

	left = 0;
	hold(1);
	assert_int_equal(pthread_create(&thread, NULL, leave, NULL), 0);
	nanosleep(&pause, NULL);
	assert_false(__atomic_load_n(&left, __ATOMIC_ACQUIRE));
	let_go(1);
	RIG_UNTIL(NOW(left) >= 1);
	RIG_JOIN(thread, NULL);
	check_heard(1, 1);
}

static void leave_itself(void)
{
	casync_delegations_leave(&listeners[1].exp);
}

/* A recall may drop the last reference to an export. */
CASE(leave_in_a_recall_does_not_wait_for_it)
{
	in_recall = leave_itself;
	libcephfs_recalls(0);
	check_heard(1, 1);
	libcephfs_recalls(1);
	rig_lanes_down();
	check_heard(1, 1);
}

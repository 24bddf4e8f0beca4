/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "fsal_up.h"
#include "nfs_core.h"

#include "delegations.h"
#include "export.h"
#include "fake_libcephfs.h"
#include "fd.h"
#include "delegations.h"
#include "obj_ops.h"
#include "object.h"
#include "rig.h"
#include "rig_lanes.h"
#include "strict.h"
#include "stub_ganesha.h"
#include "stub_mount.h"

#define INO 0x10000000123

static struct casync_export exp;
static struct req_op_context request;
static struct fsal_up_vector up_ops;
static struct casync_object *obj;
static struct casync_state open_state, deleg_state;
static struct state_hdl file_state;
#define OPEN_FH ((struct Fh *)&open_state)
static sem_t told;
static int recalls_told; /* atomic */

int ceph_set_deleg_timeout(struct ceph_mount_info *cmount, uint32_t timeout)
{
	(void)cmount;
	(void)timeout;
	return 0;
}

uint32_t ceph_get_cap_return_timeout(struct ceph_mount_info *cmount)
{
	(void)cmount;
	return 60;
}

void up_ready_wait(struct fsal_up_vector *vec)
{
	(void)vec;
}

static state_status_t delegrecall(const struct fsal_up_vector *vec,
				  struct gsh_buffdesc *handle)
{
	(void)vec;
	(void)handle;
	__atomic_add_fetch(&recalls_told, 1, __ATOMIC_ACQ_REL);
	sem_post(&told);
	return STATE_SUCCESS;
}

static int up(void **unused)
{
	stub_reset();
	fake_setup(0, 4096);
	memset(&exp, 0, sizeof(exp));
	memset(&deleg_state, 0, sizeof(deleg_state));
	deleg_state.state.state_type = STATE_TYPE_DELEG;
	memset(&open_state, 0, sizeof(open_state));
	open_state.fd.fh = OPEN_FH;
	memset(&request, 0, sizeof(request));
	memset(&file_state, 0, sizeof(file_state));
	/* Of the open that the delegation's state is related to. */
	stub.io_fd = &open_state.fd.fsal_fd;
	recalls_told = 0;
	sem_init(&told, 0, 0);
	up_ops.delegrecall = delegrecall;
	stub_mount_reset();
	exp.mount = &stub_mount;
	exp.export.up_ops = &up_ops;
	stub_mount.delegations = true;
	request.fsal_export = &exp.export;
	op_ctx = &request;
	obj = calloc(1, sizeof(*obj));
	obj->exp = &exp;
	obj->id.ino = INO;
	obj->handle.state_hdl = &file_state;
	deleg_state.state.state_obj = &obj->handle;
	casync_delegations_init(&obj->delegations);
	if (rig_lanes_up() != 0)
		return -1;
	/* The lock of the recalls, and that of their lane. */
	strict_allow_begin();
	casync_delegations_join(&exp);
	(void)casync_lane_is_stopping(
		casync_lane_of_process(CASYNC_LANE_RECALL));
	strict_allow_end();
	return 0;
}

static int down(void **unused)
{
	casync_delegations_return(&deleg_state.delegation);
	casync_delegations_destroy(&obj->delegations);
	free(obj);
	casync_delegations_leave(&exp);
	rig_lanes_down();
	op_ctx = NULL;
	fake_teardown();
	sem_destroy(&told);
	return strict_offences() != 0 ||
			       !casync_guard_is_empty(&stub_mount.guard)
		       ? -1
		       : 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static void grant(fsal_deleg_t kind)
{
	fsal_status_t status;

	status = casync_lease_op2(&obj->handle, &deleg_state.state, NULL, kind);
	assert_int_equal(status.major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.delegation.command, kind == FSAL_DELEG_WR
							  ? CEPH_DELEGATION_WR
							  : CEPH_DELEGATION_RD);
}

static void *call_on_thread(void *unused)
{
	strict_begin();
	fake.delegation.recall(OPEN_FH, fake.delegation.priv);
	strict_end();
	return NULL;
}

static void libcephfs_recalls(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_on_thread, NULL),
			 0);
	RIG_JOIN(thread, NULL);
	assert_true(rig_wait(&told));
}

static void assert_held(bool held)
{
	assert_int_equal(fake.delegation.command != CEPH_DELEGATION_NONE, held);
	assert_int_equal(
		__atomic_load_n(&obj->delegations.count, __ATOMIC_ACQUIRE),
		held ? 1 : 0);
}

CASE(recall_is_told_and_the_delegation_stays)
{
	grant(FSAL_DELEG_WR);
	libcephfs_recalls();
	assert_int_equal(recalls_told, 1);
	assert_held(true);
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	assert_held(false);
}

CASE(holder_that_works_on_keeps_it)
{
	grant(FSAL_DELEG_WR);
	casync_delegations_return_recalled(&obj->delegations, false);
	assert_held(true);
	assert_int_equal(recalls_told, 0);
}

/* Else what it asks for waits until the delegation is revoked. */
CASE(holder_that_works_on_after_the_recall_gives_it_up)
{
	grant(FSAL_DELEG_WR);
	libcephfs_recalls();
	casync_delegations_return_recalled(&obj->delegations, false);
	assert_held(false);
	assert_int_equal(open_state.fd.delegation == NULL, true);
	/* The client's own return comes later. */
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	assert_int_equal(recalls_told, 1);
}

CASE(next_delegation_is_not_recalled_yet)
{
	grant(FSAL_DELEG_RD);
	libcephfs_recalls();
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	grant(FSAL_DELEG_WR);
	casync_delegations_return_recalled(&obj->delegations, false);
	assert_held(true);
}

CASE(refused_delegation_leaves_nothing)
{
	fsal_status_t status;

	fake.delegation.refusal = -EAGAIN;
	status = casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
				  FSAL_DELEG_RD);
	assert_true(FSAL_IS_ERROR(status));
	assert_held(false);
	assert_int_equal(fake.open_fhs, 0);
}

/* session_autoclose may be another one when the session was lost. */
CASE(next_client_of_the_mount_may_grant_none)
{
	fsal_status_t status;

	__atomic_store_n(&stub_mount.delegations, false, __ATOMIC_RELAXED);
	status = casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
				  FSAL_DELEG_RD);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_held(false);
}

CASE(holder_that_opens_again_is_recalled_and_gives_it_up)
{
	grant(FSAL_DELEG_WR);
	casync_delegations_return_conflicting(&obj->delegations, FSAL_O_READ);
	assert_held(false);
	assert_true(rig_wait(&told));
}

CASE(client_that_goes_takes_its_delegations_along)
{
	grant(FSAL_DELEG_WR);
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	casync_delegations_return_all(&stub_mount);
	assert_held(false);
	assert_true(open_state.fd.delegation == NULL);
	/* The client has to give it back: nobody recalls it any more. */
	assert_true(rig_wait(&told));
	/* It does so while there is no client of CephFS. */
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	fake.delegation.command = CEPH_DELEGATION_RD;
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	assert_int_equal(fake.delegation.command, CEPH_DELEGATION_RD);
}

/* Granted while the mount gave all back, returned while it has no client. */
CASE(delegation_that_nobody_returned_is_not_found_again)
{
	grant(FSAL_DELEG_WR);
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	assert_true(open_state.fd.delegation == NULL);
	assert_true(glist_empty(&stub_mount.delegations_held));
	assert_int_equal(NOW(obj->delegations.count), 0);
	/* The client has it until it ends. */
	assert_int_equal(fake.delegation.command, CEPH_DELEGATION_WR);
	fake.delegation.command = CEPH_DELEGATION_NONE;
}

CASE(delegation_of_another_mount_stays)
{
	static struct casync_mount other;

	glist_init(&other.delegations_held);
	grant(FSAL_DELEG_WR);
	casync_delegations_return_all(&other);
	assert_held(true);
	assert_int_equal(recalls_told, 0);
}

struct asker {
	struct casync_object *obj;
	struct casync_state *state;
	struct req_op_context request;
	pthread_t thread;
	sem_t answered;
};

static void *ask_for_one(void *arg)
{
	struct asker *asker = arg;

	op_ctx = &asker->request;
	(void)casync_lease_op2(&asker->obj->handle, &asker->state->state, NULL,
			       FSAL_DELEG_RD);
	sem_post(&asker->answered);
	return NULL;
}

static void begin_to_ask(struct asker *asker, struct casync_object *of,
			 struct casync_state *with)
{
	asker->obj = of;
	asker->state = with;
	asker->request = (struct req_op_context){
		.fsal_export = &of->exp->export,
	};
	sem_init(&asker->answered, 0, 0);
	assert_int_equal(
		pthread_create(&asker->thread, NULL, ask_for_one, asker), 0);
}

static void end_to_ask(struct asker *asker)
{
	RIG_JOIN(asker->thread, NULL);
	sem_destroy(&asker->answered);
}

/* Its lock is held meanwhile. */
CASE(mount_that_hangs_stops_no_other)
{
	struct casync_mount *other = calloc(1, sizeof(*other));
	struct casync_object *file = calloc(1, sizeof(*file));
	struct casync_export other_exp = exp;
	struct casync_state other_state = deleg_state;
	struct asker first, second;
	bool answered;

	glist_init(&other->delegations_held);
	other->client = stub_mount.client;
	other->delegations = true;
	other_exp.mount = other;
	file->exp = &other_exp;
	casync_delegations_init(&file->delegations);
	rig_hold(FAKE_DELEGATION);
	begin_to_ask(&first, obj, &deleg_state);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	fake.hook = NULL;
	begin_to_ask(&second, file, &other_state);
	answered = rig_wait(&second.answered);
	sem_post(&rig_held.go);
	end_to_ask(&first);
	end_to_ask(&second);
	sem_destroy(&rig_held.go);
	assert_true(answered);
	assert_held(true);
	assert_non_null(other_state.delegation.fh);
	casync_delegations_return(&other_state.delegation);
	free(file);
	free(other);
}

/* The next client grants one anew. */
CASE(next_client_grants_one)
{
	grant(FSAL_DELEG_WR);
	casync_delegations_return_all(&stub_mount);
	assert_true(rig_wait(&told));
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	casync_guard_renew(&stub_mount.guard);
	obj->generation = casync_guard_generation(&stub_mount.guard);
	open_state.fd.generation = obj->generation;
	grant(FSAL_DELEG_WR);
	assert_held(true);
	casync_delegations_return_all(&stub_mount);
	assert_held(false);
}

/* Only their addresses matter. */
static char host, other_host;

static bool hidden_from(uint64_t *clientid, char *from)
{
	request.clientid = clientid;
	request.client = (struct gsh_client *)from;
	return casync_delegations_recall_writers(&obj->delegations);
}

/* The holder may have written what only it knows. */
CASE(attributes_wait_for_the_holder_that_writes)
{
	uint64_t holder = 1, other = 2;

	assert_false(hidden_from(&other, &other_host));
	request.clientid = &holder;
	request.client = (struct gsh_client *)&host;
	file_state.file.write_delegated = true;
	grant(FSAL_DELEG_WR);
	/* Ganesha would send CB_GETATTR. */
	assert_false(file_state.file.write_delegated);
	assert_false(hidden_from(&holder, &other_host));
	/* NFSv3 from the host of the holder; an upcall. */
	assert_false(hidden_from(NULL, &host));
	assert_false(hidden_from(NULL, NULL));
	assert_int_equal(recalls_told, 0);
	assert_true(hidden_from(&other, &host));
	assert_true(rig_wait(&told));
	assert_true(hidden_from(NULL, &other_host));
	assert_held(true);
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	assert_false(hidden_from(&other, &other_host));
}

CASE(attributes_do_not_wait_for_readers)
{
	uint64_t other = 2;

	grant(FSAL_DELEG_RD);
	assert_false(hidden_from(&other, &host));
	assert_int_equal(recalls_told, 0);
}

/* Its SETATTR would wait for its own DELEGRETURN (RFC 9754). */
CASE(change_by_the_holder_ends_its_read_delegation)
{
	uint64_t holder = 1, other = 2;

	request.clientid = &holder;
	grant(FSAL_DELEG_RD);
	request.clientid = &other;
	casync_delegations_return_recalled(&obj->delegations, true);
	assert_held(true);
	request.clientid = &holder;
	casync_delegations_return_recalled(&obj->delegations, true);
	assert_held(false);
	assert_true(rig_wait(&told));
	casync_lease_op2(&obj->handle, &deleg_state.state, NULL,
			 FSAL_DELEG_NONE);
	grant(FSAL_DELEG_WR);
	casync_delegations_return_recalled(&obj->delegations, true);
	assert_held(true);
}

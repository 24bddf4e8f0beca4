/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ganesha.h
 * @brief Ganesha 5.9: what differs between the FSAL APIs 12 and 14 (9.x).
 *
 * The header of the same name in ../api14 says what each name is for.
 */
#ifndef CASYNC_GANESHA_H
#define CASYNC_GANESHA_H

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "nfs_exports.h"
#include "nfs_core.h"

_Static_assert(sizeof(struct state_t) == 184 + sizeof(pthread_mutex_t),
	       "config.h: DEBUG_SAL?");
_Static_assert(sizeof(struct fsal_fd) == 160 + sizeof(pthread_mutex_t),
	       "not Ganesha 5.9's headers");
_Static_assert(sizeof(struct req_op_context) == 240,
	       "not Ganesha 5.9's headers");
_Static_assert(sizeof(struct fsal_io_arg) == 56, "not Ganesha 5.9's headers");

/** The operations have no such parameters. */
#define CASYNC_GANESHA_PARENT_ATTRS(dir)

/** An FSAL cannot say how its directories are listed. */
#define CASYNC_GANESHA_FS_INFO
#define CASYNC_GANESHA_KEEPS_LISTINGS true

/**
 * None.  This Ganesha crashes when it recalls a delegation from a client whose
 * connection is gone (delegrecall_one() of 5.9).  And it counts an OPEN to read
 * and write as a conflict with itself, and does not tell which open a
 * delegation belongs to.
 */
enum { CASYNC_GANESHA_DELEGATIONS = 0 };

static inline void casync_ganesha_check_export(const struct gsh_export *exp)
{
	if (nfs_param.nfsv4_param.allow_delegations &&
	    (exp->export_perms.options & EXPORT_OPTION_DELEGATIONS) != 0)
		LogWarn(COMPONENT_CONFIG,
			"export %" PRIu16
			": Delegations has no effect: no delegations with Ganesha %s, which crashes when it recalls one from a client that is gone",
			exp->export_id, GANESHA_VERSION);
}

#define CASYNC_GANESHA_OLD_UUID true
#define CASYNC_GANESHA_READS_MODULE_AGAIN false
#define CASYNC_GANESHA_REGISTERS false

/** There are no such operations. */
#define CASYNC_GANESHA_SET_OPS(ops, update, reclaim, register_service) \
	do {                                                           \
		(void)(ops);                                           \
		(void)(update);                                        \
		(void)(reclaim);                                       \
		(void)(register_service);                              \
	} while (0)

static inline uint16_t
casync_ganesha_monitoring_port(const nfs_core_parameter_t *core
			       __attribute__((unused)))
{
	return 0;
}

static inline bool
casync_ganesha_enable_metrics(const nfs_core_parameter_t *core
			      __attribute__((unused)))
{
	return false;
}

typedef struct gsh_buffdesc casync_ganesha_target_t;

/** The length counts the NUL. */
static inline void casync_ganesha_set_target(casync_ganesha_target_t *target,
					     const char *text,
					     size_t length_bytes)
{
	char *copy = gsh_malloc(length_bytes + 1);

	memcpy(copy, text, length_bytes);
	copy[length_bytes] = '\0';
	target->addr = copy;
	target->len = length_bytes + 1;
}

/** This Ganesha puts each handle in the module's list.  It is taken out again
 * at once, or destroy_fsals() would release objects with no op_ctx.  The list's
 * lock is still taken for each handle. */
static inline void casync_ganesha_handle_init(struct fsal_obj_handle *handle,
					      struct fsal_export *exp,
					      object_file_type_t type)
{
	fsal_obj_handle_init(handle, exp, type);
	PTHREAD_RWLOCK_wrlock(&handle->fsal->fsm_lock);
	glist_del(&handle->handles);
	PTHREAD_RWLOCK_unlock(&handle->fsal->fsm_lock);
}

static inline void casync_ganesha_handle_fini(struct fsal_obj_handle *handle)
{
	fsal_obj_handle_fini(handle);
}

static inline void casync_ganesha_start_fd_work(struct fsal_fd *fd)
{
	/* It fails for a reclaiming caller only. */
	(void)fsal_start_fd_work(fd, false);
}

/**
 * Takes the reservation itself.  If another open denies it, this Ganesha
 * unlocks obj_lock once too often (fsal_start_global_io() of 5.9), and whoever
 * comes to the file later waits for ever.
 */
static inline fsal_status_t
casync_ganesha_start_io(struct fsal_fd **out_fd, struct fsal_obj_handle *handle,
			struct fsal_fd *obj_fd, struct fsal_fd *temp_fd,
			struct state_t *state, fsal_openflags_t openflags,
			bool for_lock, bool bypass, struct fsal_share *share)
{
	bool reserves = state == NULL && openflags != FSAL_O_ANY;
	fsal_status_t status;

	if (reserves) {
		status = check_share_conflict_and_update_locked(
			handle, share, FSAL_O_CLOSED, openflags, bypass);
		if (FSAL_IS_ERROR(status))
			return status;
	}
	status = fsal_start_io(out_fd, handle, obj_fd, temp_fd, state,
			       openflags, for_lock, NULL, bypass, NULL);
	if (reserves && FSAL_IS_ERROR(status))
		update_share_counters_locked(handle, share, openflags,
					     FSAL_O_CLOSED);
	return status;
}

/**
 * This Ganesha does not check it (open4_ex() of 5.9): a user who may only read
 * could write, and empty the file.
 *
 * @param[in] had     The state's access.  It was checked when it was opened.
 * @param[in] wanted  With what it had; FSAL_O_TRUNC is a write.
 */
static inline fsal_status_t
casync_ganesha_check_reopen(struct fsal_obj_handle *handle,
			    fsal_openflags_t had, fsal_openflags_t wanted)
{
	bool is_reclaim = (wanted & FSAL_O_RECLAIM) != 0;
	fsal_accessflags_t access = 0;
	fsal_status_t status;

	if (wanted & ~had & FSAL_O_READ)
		access |= FSAL_READ_ACCESS;
	if ((wanted & ~had & FSAL_O_WRITE) || (wanted & FSAL_O_TRUNC))
		access |= FSAL_WRITE_ACCESS;
	if (access == 0)
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	status = handle->obj_ops->test_access(handle, access, NULL, NULL,
					      is_reclaim);
	/* To execute a file is to read it, as in check_open_permission(). */
	if (access == FSAL_READ_ACCESS && status.major == ERR_FSAL_ACCESS)
		status = handle->obj_ops->test_access(
			handle, FSAL_EXECUTE_ACCESS, NULL, NULL, is_reclaim);
	return status;
}

/** Its op_ctx is part of the request.  Other contexts of NFSv3 are of NLM's
 * upcalls, and ask for no attributes. */
static inline bool casync_ganesha_is_nfsacl(void)
{
	const struct nfs_request *request =
		container_of(op_ctx, struct nfs_request, op_context);

	return op_ctx->req_type == NFS_REQUEST && op_ctx->nfs_vers == NFS_V3 &&
	       request->svc.rq_msg.cb_prog == 100227;
}

/**
 * This Ganesha does not say so, and answers a READ_PLUS that went well with no
 * data (nfs4_complete_read_plus() of 5.9).  So the whole COMPOUND is looked at:
 * a READ beside a READ_PLUS is refused as well.
 */
static inline bool casync_ganesha_is_read_plus(const struct fsal_io_arg *arg)
{
	const struct nfs_request *request;
	const COMPOUND4args *compound;
	u_int i;

	if (arg->info != NULL)
		return true;
	if (op_ctx->req_type != NFS_REQUEST || op_ctx->nfs_vers != NFS_V4 ||
	    op_ctx->nfs_minorvers < 2)
		return false;
	request = container_of(op_ctx, struct nfs_request, op_context);
	compound = &request->arg_nfs.arg_compound4;
	for (i = 0; i < compound->argarray.argarray_len; i++)
		if (compound->argarray.argarray_val[i].argop ==
		    NFS4_OP_READ_PLUS)
			return true;
	return false;
}

/** The buffers have as many bytes as the request. */
static inline size_t casync_ganesha_asked_bytes(const struct fsal_io_arg *arg
						__attribute__((unused)))
{
	return SIZE_MAX;
}

/** The reply is freed by free(). */
static inline bool casync_ganesha_may_share(const struct fsal_io_arg *arg
					    __attribute__((unused)))
{
	return false;
}

/** It is never called. */
static inline void
casync_ganesha_share(struct fsal_io_arg *arg __attribute__((unused)),
		     const void *data __attribute__((unused)),
		     size_t bytes __attribute__((unused)),
		     void (*release)(void *buffer) __attribute__((unused)),
		     void *buffer __attribute__((unused)))
{
}

/** A READ of our own, whose data only the read cache gets. */
struct casync_ganesha_read {
	struct fsal_io_arg arg;
	struct iovec iov; /**< Right behind it. */
};

static inline void casync_ganesha_read_init(struct casync_ganesha_read *read,
					    size_t bytes)
{
	read->arg.iov_count = 1;
	read->arg.iov[0].iov_len = bytes;
}

/** NFS frees each buffer of a READ that failed; 9P has one in its reply. */
static inline bool casync_ganesha_may_keep(const struct fsal_io_arg *arg)
{
	return op_ctx->req_type == NFS_REQUEST && arg->iov_count == 1;
}

static inline void casync_ganesha_keep(struct fsal_io_arg *arg,
				       void (**release)(void *data),
				       void **data)
{
	*release = gsh_free;
	*data = arg->iov[0].iov_base;
	arg->iov[0].iov_base = NULL;
}

/*
 * The registry of metrics, as 9.x has it.  prometheus.c looks for its functions
 * when it starts, and finds none in this Ganesha.
 */
#define METRIC_UNIT_NONE NULL
#define METRIC_UNIT_MICROSECOND "us"
#define METRIC_METADATA(text, unit_name) \
	((metric_metadata_t){.description = (text), .unit = (unit_name)})
#define METRIC_LABEL(name, text) \
	((metric_label_t){.key = (name), .value = (text)})

typedef struct {
	const char *description;
	const char *unit;
} metric_metadata_t;

typedef struct {
	const char *key;
	const char *value;
} metric_label_t;

typedef struct {
	const int64_t *buckets; /**< Upper bounds. */
	uint16_t count;
} histogram_buckets_t;

typedef struct {
	void *metric;
} counter_metric_handle_t;

typedef struct {
	void *metric;
} gauge_metric_handle_t;

typedef struct {
	void *metric;
} histogram_metric_handle_t;

counter_metric_handle_t
monitoring__register_counter(const char *name, metric_metadata_t metadata,
			     const metric_label_t *labels, uint16_t count);
gauge_metric_handle_t monitoring__register_gauge(const char *name,
						 metric_metadata_t metadata,
						 const metric_label_t *labels,
						 uint16_t count);
histogram_metric_handle_t
monitoring__register_histogram(const char *name, metric_metadata_t metadata,
			       const metric_label_t *labels, uint16_t count,
			       histogram_buckets_t buckets);
void monitoring__counter_inc(counter_metric_handle_t counter, int64_t by);
void monitoring__gauge_set(gauge_metric_handle_t gauge, int64_t value);
void monitoring__histogram_observe(histogram_metric_handle_t histogram,
				   int64_t value);

#endif /* CASYNC_GANESHA_H */

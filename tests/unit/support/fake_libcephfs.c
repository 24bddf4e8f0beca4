/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "fake_libcephfs.h"

struct Fh {
	int open_flags;
};

struct fake fake;
__thread const struct ceph_ll_io_info *fake_submitting;

static pthread_mutex_t client_lock;
static pthread_t threads[FAKE_MAX_CALLS];
static unsigned int thread_count;

uint8_t fake_byte(uint64_t offset)
{
	return (uint8_t)(offset * 7 % 251 + 1);
}

uint8_t fake_content(uint64_t offset)
{
	const uint8_t *object = fake.objects[offset / fake.object_size_bytes];

	return object != NULL ? object[offset % fake.object_size_bytes] : 0;
}

static uint8_t *make_object(uint64_t index)
{
	if (fake.objects[index] == NULL)
		fake.objects[index] = calloc(1, fake.object_size_bytes);
	return fake.objects[index];
}

void fake_setup(uint64_t size_bytes, uint64_t object_size_bytes)
{
	pthread_mutexattr_t attr;
	uint64_t offset;

	memset(&fake, 0, sizeof(fake));
	fake.size_bytes = size_bytes;
	fake.object_size_bytes = object_size_bytes;
	fake.layout.fl_object_size = (uint32_t)object_size_bytes;
	fake.layout.fl_stripe_unit = (uint32_t)object_size_bytes;
	fake.layout.fl_stripe_count = 1;
	fake.plan.result = FAKE_TRUE_RESULT;
	fake.others_lock.l_type = F_UNLCK;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&client_lock, &attr);
	pthread_mutexattr_destroy(&attr);

	for (offset = 0; offset < size_bytes; offset++)
		make_object(offset /
			    object_size_bytes)[offset % object_size_bytes] =
			fake_byte(offset);
}

void fake_join(void)
{
	while (thread_count != 0)
		pthread_join(threads[--thread_count], NULL);
}

void fake_teardown(void)
{
	unsigned int i;

	fake_join();
	for (i = 0; i < FAKE_MAX_OBJECTS; i++)
		free(fake.objects[i]);
	memset(&fake, 0, sizeof(fake));
	pthread_mutex_destroy(&client_lock);
}

void fake_special(unsigned int call, struct fake_plan plan)
{
	fake.special[call] = plan;
	fake.is_special[call] = true;
}

void fake_punch(unsigned int object)
{
	free(fake.objects[object]);
	fake.objects[object] = NULL;
}

void fake_zero(uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length;

	for (; offset < end && offset < fake.size_bytes; offset++)
		make_object(offset /
			    fake.object_size_bytes)[offset %
						    fake.object_size_bytes] = 0;
}

/* False in a callback, where libcephfs would deadlock. */
static bool lock_client(void)
{
	if (pthread_mutex_lock(&client_lock) == 0)
		return true;
	fake.calls_in_callback++;
	return false;
}

static void unlock_client(void)
{
	pthread_mutex_unlock(&client_lock);
}

static size_t iov_bytes(const struct iovec *iov, int count)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

static uint8_t *iov_at(const struct iovec *iov, size_t position)
{
	while (position >= iov->iov_len) {
		position -= iov->iov_len;
		iov++;
	}
	return (uint8_t *)iov->iov_base + position;
}

static int64_t write_locked(const struct ceph_ll_io_info *io, size_t length)
{
	uint64_t offset = (uint64_t)io->off;
	size_t i;

	if ((offset + length) / fake.object_size_bytes >= FAKE_MAX_OBJECTS)
		return -EFBIG;
	for (i = 0; i < length; i++, offset++)
		make_object(offset /
			    fake.object_size_bytes)[offset %
						    fake.object_size_bytes] =
			*iov_at(io->iov, i);
	if (offset > fake.size_bytes)
		fake.size_bytes = offset;
	return (int64_t)length;
}

static size_t below_size(uint64_t offset, size_t length)
{
	if (offset >= fake.size_bytes)
		return 0;
	if (length > fake.size_bytes - offset)
		return fake.size_bytes - offset;
	return length;
}

static int64_t read_locked(const struct ceph_ll_io_info *io, size_t length)
{
	uint64_t offset = (uint64_t)io->off;
	uint64_t first = offset / fake.object_size_bytes;
	size_t i;

	length = below_size(offset, length);
	if (length == 0)
		return 0;
	/* Missing: nothing of it is filled in. */
	if ((offset + length - 1) / fake.object_size_bytes == first &&
	    fake.objects[first] == NULL)
		return 0;
	for (i = 0; i < length; i++)
		*iov_at(io->iov, i) = fake_content(offset + i);
	return (int64_t)length;
}

static int64_t transfer_locked(struct fake_call *call)
{
	size_t length = call->length_bytes;

	if (call->plan.result != FAKE_TRUE_RESULT) {
		if (call->plan.result < 0)
			return call->plan.result;
		if (length > (size_t)call->plan.result)
			length = (size_t)call->plan.result;
	}
	return call->asked.write ? write_locked(&call->asked, length)
				 : read_locked(&call->asked, length);
}

static void answer_locked(struct fake_call *call)
{
	struct ceph_ll_io_info *io = call->io;
	/* The first callback may be the op's last moment. */
	struct fake_plan plan = call->plan;

	call->pending = false;
	call->unanswered = false;
	io->result = transfer_locked(call);
	io->callback(io);
	if (plan.twice) {
		io->result = plan.second_result;
		io->callback(io);
	}
}

static void *answer_on_thread(void *call)
{
	if (lock_client()) {
		answer_locked(call);
		unlock_client();
	}
	return NULL;
}

static void remember_locked(struct fake_call *call, unsigned int number,
			    struct ceph_ll_io_info *io)
{
	call->io = io;
	call->asked = *io;
	call->length_bytes = iov_bytes(io->iov, io->iovcnt);
	call->plan = fake.is_special[number] ? fake.special[number] : fake.plan;
	call->unanswered = true;
}

int64_t ceph_ll_nonblocking_readv_writev(struct ceph_mount_info *cmount,
					 struct ceph_ll_io_info *io)
{
	struct fake_call *call;
	int64_t rc = 0;

	(void)cmount;
	fake_submitting = io;
	if (fake.submission != NULL)
		fake.submission();
	if (!lock_client())
		return -EDEADLK;
	if (fake.call_count == FAKE_MAX_CALLS)
		abort();
	call = &fake.calls[fake.call_count];
	remember_locked(call, fake.call_count++, io);

	switch (call->plan.when) {
	case FAKE_BEFORE_RETURN:
		answer_locked(call);
		break;
	case FAKE_LATER:
		call->pending = true;
		break;
	case FAKE_ON_THREAD:
		if (pthread_create(&threads[thread_count++], NULL,
				   answer_on_thread, call) != 0)
			abort();
		break;
	case FAKE_RETURNED:
		call->unanswered = false;
		rc = transfer_locked(call);
		break;
	}
	unlock_client();
	return rc;
}

void fake_complete(unsigned int call)
{
	if (!lock_client())
		return;
	if (fake.calls[call].pending)
		answer_locked(&fake.calls[call]);
	unlock_client();
}

void fake_complete_again(unsigned int call, int64_t result)
{
	struct ceph_ll_io_info *io = fake.calls[call].io;

	if (!lock_client())
		return;
	io->result = result;
	io->callback(io);
	unlock_client();
}

void fake_complete_in_order(void)
{
	unsigned int count = fake_call_count();
	unsigned int i;

	for (i = 0; i < count; i++)
		fake_complete(i);
}

void fake_complete_reversed(void)
{
	unsigned int i;

	for (i = fake_call_count(); i != 0; i--)
		fake_complete(i - 1);
}

void fake_forget_calls(void)
{
	if (!lock_client())
		abort();
	fake.call_count = 0;
	unlock_client();
}

unsigned int fake_call_count(void)
{
	unsigned int count;

	if (!lock_client())
		abort();
	count = fake.call_count;
	unlock_client();
	return count;
}

unsigned int fake_blocking_count(enum fake_blocking which)
{
	return fake.blocking_calls[which];
}

/* Count, run the hook, lock.  Zero or what the call fails with, unlocked. */
static int begin(enum fake_blocking which)
{
	void (*hook)(enum fake_blocking) = fake.hook;
	int rc;

	fake.blocking_calls[which]++;
	if (hook != NULL)
		hook(which);
	rc = fake.blocking_result[which];
	if (rc < 0)
		return rc;
	return lock_client() ? 0 : -EDEADLK;
}

int ceph_ll_read(struct ceph_mount_info *cmount, struct Fh *filehandle,
		 int64_t off, uint64_t len, char *buf)
{
	size_t length, i;
	int rc = begin(FAKE_READ);

	(void)cmount;
	(void)filehandle;
	if (rc != 0)
		return rc;
	length = below_size((uint64_t)off, len);
	for (i = 0; i < length; i++)
		buf[i] = (char)fake_content((uint64_t)off + i);
	if (fake.zero_reads != 0) {
		fake.zero_reads--;
		memset(buf, 0, length);
	}
	unlock_client();
	return (int)length;
}

int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in,
		    struct ceph_statx *stx, unsigned int want,
		    unsigned int flags, const UserPerm *perms)
{
	uint64_t size_bytes = fake.size_bytes;
	int rc;

	fake.asked_inode = in;
	rc = begin(FAKE_GETATTR);
	(void)cmount;
	(void)flags;
	(void)perms;
	if (rc != 0)
		return rc;
	memset(stx, 0, sizeof(*stx));
	stx->stx_mask = want;
	/* As of when it was asked for, like an MDS' answer in flight. */
	if (want & CEPH_STATX_SIZE)
		stx->stx_size = size_bytes;
	stx->stx_mtime = fake.mtime;
	stx->stx_ctime = fake.ctime;
	stx->stx_version = fake.version;
	if (want & CEPH_STATX_MODE)
		stx->stx_mode = fake.mode;
	unlock_client();
	return 0;
}

int ceph_ll_sync_inode(struct ceph_mount_info *cmount, struct Inode *in,
		       int syncdataonly)
{
	int rc = begin(FAKE_SYNC_INODE);

	(void)cmount;
	(void)in;
	(void)syncdataonly;
	if (rc != 0)
		return rc;
	unlock_client();
	return 0;
}

uint32_t ceph_ll_file_layout(struct ceph_mount_info *cmount, struct Inode *in,
			     struct ceph_file_layout *layout)
{
	(void)cmount;
	(void)in;
	*layout = fake.layout;
	return 0;
}

int ceph_get_pool_replication(struct ceph_mount_info *cmount, int pool_id)
{
	(void)cmount;
	(void)pool_id;
	return fake.pool_is_gone ? -ENOENT : 3;
}

int ceph_ll_open(struct ceph_mount_info *cmount, struct Inode *in, int flags,
		 struct Fh **fh, const UserPerm *perms)
{
	int rc;

	fake.asked_inode = in;
	rc = begin(FAKE_OPEN);
	(void)cmount;
	(void)perms;
	/* libcephfs remembers what is there as an open file, even if it fails,
	 * and uses it when the client ends. */
	if (*fh != NULL)
		abort();
	if (rc != 0)
		return rc;
	*fh = calloc(1, sizeof(**fh));
	(*fh)->open_flags = flags;
	fake.open_fhs++;
	fake.last_open_flags = flags;
	/* As in 20.2.4: the close does not drop it. */
	fake.inode_refs += (flags & O_DIRECTORY) != 0;
	fake.truncations += (flags & O_TRUNC) != 0;
	unlock_client();
	return 0;
}

int ceph_ll_lookup_vino(struct ceph_mount_info *cmount, vinodeno_t vino,
			struct Inode **inode)
{
	int rc = begin(FAKE_LOOKUP_VINO);

	(void)cmount;
	fake.looked_up_ino = vino.ino.val;
	if (rc != 0)
		return rc;
	*inode = fake.inode;
	fake.inode_refs++;
	unlock_client();
	return 0;
}

int ceph_ll_lookup_root(struct ceph_mount_info *cmount, struct Inode **root)
{
	int rc = begin(FAKE_LOOKUP_ROOT);

	(void)cmount;
	if (rc != 0)
		return rc;
	*root = fake.inode;
	fake.inode_refs++;
	unlock_client();
	return 0;
}

UserPerm *ceph_mount_perms(struct ceph_mount_info *cmount)
{
	(void)cmount;
	return NULL;
}

struct Inode *ceph_ll_get_inode(struct ceph_mount_info *cmount, vinodeno_t vino)
{
	static char inode;

	(void)cmount;
	fake.looked_up_ino = vino.ino.val;
	fake.inode_refs++;
	return fake.inode != NULL ? fake.inode : (struct Inode *)&inode;
}

int ceph_ll_put(struct ceph_mount_info *cmount, struct Inode *in)
{
	(void)cmount;
	(void)in;
	if (!lock_client())
		return -EDEADLK;
	fake.inode_refs--;
	unlock_client();
	return 0;
}

static void see_whether_in_use_locked(const struct Fh *fh)
{
	unsigned int i;

	for (i = 0; i < fake.call_count; i++) {
		if (fake.calls[i].unanswered && fake.calls[i].asked.fh == fh)
			fake.closed_in_use++;
	}
}

int ceph_ll_close(struct ceph_mount_info *cmount, struct Fh *filehandle)
{
	int rc = begin(FAKE_CLOSE);

	(void)cmount;
	/* Even a close that reports an error has closed. */
	if (rc != 0 && !lock_client())
		return rc;
	see_whether_in_use_locked(filehandle);
	free(filehandle);
	fake.open_fhs--;
	unlock_client();
	return rc;
}

int ceph_ll_releasedir(struct ceph_mount_info *cmount,
		       struct ceph_dir_result *dir)
{
	int rc = begin(FAKE_RELEASEDIR);

	(void)cmount;
	if (rc != 0)
		return rc;
	fake.released = dir;
	unlock_client();
	return 0;
}

int ceph_ll_register_callbacks2(struct ceph_mount_info *cmount,
				struct ceph_client_callback_args *args)
{
	(void)cmount;
	fake.callbacks = *args;
	return 0;
}

int ceph_start_reclaim(struct ceph_mount_info *cmount, const char *uuid,
		       unsigned flags)
{
	int rc;

	(void)cmount;
	(void)snprintf(fake.reclaimed, sizeof(fake.reclaimed), "%s", uuid);
	if (flags != CEPH_RECLAIM_RESET)
		abort();
	rc = begin(FAKE_START_RECLAIM);
	if (rc == 0)
		unlock_client();
	return rc;
}

int ceph_sync_fs(struct ceph_mount_info *cmount)
{
	int rc = begin(FAKE_SYNC_FS);

	(void)cmount;
	if (rc == 0)
		unlock_client();
	return rc;
}

/* As if the client had lost its session. */
int ceph_abort_conn(struct ceph_mount_info *cmount)
{
	(void)cmount;
	fake.clients_aborted++;
	return 0;
}

int ceph_is_mounted(struct ceph_mount_info *cmount)
{
	(void)cmount;
	return 0;
}

int ceph_unmount(struct ceph_mount_info *cmount)
{
	(void)cmount;
	return 0;
}

int ceph_release(struct ceph_mount_info *cmount)
{
	(void)cmount;
	fake.clients_ended++;
	return 0;
}

void ceph_finish_reclaim(struct ceph_mount_info *cmount)
{
	(void)cmount;
	fake.reclaims_finished++;
}

/* Past the last byte; a length of 0 is to the end of the file. */
static uint64_t lock_end(const struct flock *fl)
{
	return fl->l_len == 0 ? UINT64_MAX
			      : (uint64_t)fl->l_start + (uint64_t)fl->l_len;
}

static bool in_the_way_locked(const struct flock *fl)
{
	const struct flock *other = &fake.others_lock;

	if (other->l_type == F_UNLCK || fl->l_type == F_UNLCK)
		return false;
	if (other->l_type == F_RDLCK && fl->l_type == F_RDLCK)
		return false;
	return (uint64_t)fl->l_start < lock_end(other) &&
	       (uint64_t)other->l_start < lock_end(fl);
}

int ceph_ll_setlk(struct ceph_mount_info *cmount, Fh *fh, struct flock *fl,
		  uint64_t owner, int sleep)
{
	int rc = begin(FAKE_SETLK);

	(void)cmount;
	(void)fh;
	if (rc != 0)
		return rc;
	fake.asked_lock = *fl;
	fake.asked_owner = owner;
	fake.asked_to_wait = sleep != 0;
	rc = in_the_way_locked(fl) ? -EAGAIN : 0;
	unlock_client();
	return rc;
}

int ceph_ll_getlk(struct ceph_mount_info *cmount, Fh *fh, struct flock *fl,
		  uint64_t owner)
{
	int rc = begin(FAKE_GETLK);

	(void)cmount;
	(void)fh;
	if (rc != 0)
		return rc;
	fake.asked_lock = *fl;
	fake.asked_owner = owner;
	if (in_the_way_locked(fl))
		*fl = fake.others_lock;
	else
		fl->l_type = F_UNLCK;
	unlock_client();
	return 0;
}

int ceph_ll_delegation(struct ceph_mount_info *cmount, Fh *fh, unsigned int cmd,
		       ceph_deleg_cb_t cb, void *priv)
{
	struct fake_delegation *delegation = &fake.delegation;
	int rc = begin(FAKE_DELEGATION);

	(void)cmount;
	(void)fh;
	if (rc != 0)
		return rc;
	unlock_client();
	if (cmd != CEPH_DELEGATION_NONE && delegation->refusal != 0)
		return delegation->refusal;
	delegation->command = cmd;
	delegation->recall = cb;
	delegation->priv = priv;
	return 0;
}

/* Linked by what only takes options apart; none is ever set here. */
int ceph_conf_set(struct ceph_mount_info *cmount, const char *option,
		  const char *value)
{
	(void)cmount;
	(void)option;
	(void)value;
	return -ENOSYS;
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	if (major != NULL)
		*major = 20;
	if (minor != NULL)
		*minor = 2;
	if (patch != NULL)
		*patch = fake.patch != 0 ? fake.patch : 4;
	return "(fake)";
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * How long is libcephfs' client_lock held?  An LD_PRELOAD for ganesha.nfsd:
 *
 *   CLIENT_LOCK_FILE=FILE LD_PRELOAD=libclient_lock.so ganesha.nfsd ...
 *
 * It interposes the calls of mutexes and counts those of one mutex in FILE
 * (figures.h).  Which one it is, it learns from the first calls of
 * ceph_ll_getattr(): in most of them, no other mutex is held for as long.  The
 * callbacks of non-blocking I/O, which come with it held, then tell whether
 * that was right.
 *
 * The figures need no lock: they change only while client_lock is held.
 */
#include <cephfs/libcephfs.h>
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"

#define LEARN_CALLS 33
#define LEARN_MUTEXES 32
/* A prime, so that no pattern of a request's holds hides from it. */
#define SAMPLE_EVERY 17

#define EXPORTED __attribute__((visibility("default")))

static struct {
	int (*lock)(pthread_mutex_t *);
	int (*trylock)(pthread_mutex_t *);
	int (*unlock)(pthread_mutex_t *);
	int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	int (*timedwait)(pthread_cond_t *, pthread_mutex_t *,
			 const struct timespec *);
	int (*clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
			 const struct timespec *);
} real;

/* Candidates: in how many calls was each the one that was held longest?  Not
 * for how long: who is preempted at the wrong time holds any mutex for long. */
static struct {
	pthread_mutex_t guard; /* by the real calls alone */
	struct {
		pthread_mutex_t *mutex;
		unsigned int calls;
	} mutex[LEARN_MUTEXES];
	unsigned int calls;
} learn = {.guard = PTHREAD_MUTEX_INITIALIZER};

static struct figures nowhere;
static struct figures *figures = &nowhere;
static pthread_mutex_t *target; /* atomic; NULL until it is known */
static void (*callback)(struct ceph_ll_io_info *);

static __thread struct {
	struct figures_kind *kind;
	uint64_t since_ns; /* 0: does not hold it */
	uint64_t cpu_since_ns;
	bool learning;
	pthread_mutex_t *longest; /* while learning: of this call */
	uint64_t longest_ns;
	unsigned int depth; /* of mutexes taken while learning */
	struct {
		pthread_mutex_t *mutex;
		uint64_t since_ns;
	} taken[8];
} self;

static uint64_t clock_read(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* What two readings are apart with nothing between them. */
static uint64_t clock_cost(clockid_t clock)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		uint64_t since = clock_read(clock);

		sum += clock_read(clock) - since;
	}
	return sum / 1000;
}

/* The old glibc's condition variables are another type: not them. */
static void *find(const char *name)
{
	void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

	return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

static void find_real(void)
{
	real.trylock = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	real.unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	real.wait = find("pthread_cond_wait");
	real.timedwait = find("pthread_cond_timedwait");
	real.clockwait = find("pthread_cond_clockwait");
	real.lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CLIENT_LOCK_FILE");
	void *mapped = MAP_FAILED;
	int fd;

	if (real.lock == NULL)
		find_real();
	if (path == NULL)
		return;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd >= 0 && ftruncate(fd, sizeof(*figures)) == 0)
		mapped = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		abort();
	close(fd);
	figures = mapped;
	figures->clock_ns = clock_cost(CLOCK_MONOTONIC);
	figures->cpu_clock_ns = clock_cost(CLOCK_THREAD_CPUTIME_ID);
}

/* With the mutex held.  More kinds than there is room for: the last one's. */
static struct figures_kind *kind_of_thread(void)
{
	char name[FIGURES_NAME_WORDS * 8] = "";
	size_t len, i;

	prctl(PR_GET_NAME, name);
	for (len = strlen(name); len > 1; len--)
		if (!isdigit((unsigned char)name[len - 1]) &&
		    name[len - 1] != '-')
			break;
	memset(name + len, 0, sizeof(name) - len);
	for (i = 0; i < figures->kinds; i++)
		if (memcmp(figures->kind[i].name, name, sizeof(name)) == 0)
			return &figures->kind[i];
	if (i == FIGURES_KINDS)
		return &figures->kind[i - 1];
	memcpy(figures->kind[i].name, name, sizeof(name));
	figures->kinds++;
	return &figures->kind[i];
}

static void count_taken(uint64_t waited_ns, bool contended)
{
	struct figures_kind *kind = self.kind;

	if (kind == NULL)
		self.kind = kind = kind_of_thread();
	kind->taken++;
	kind->contended += contended;
	kind->waited_ns += waited_ns;
	if (kind->taken % SAMPLE_EVERY == 0)
		self.cpu_since_ns = clock_read(CLOCK_THREAD_CPUTIME_ID);
	self.since_ns = now_ns();
}

static void count_released(void)
{
	struct figures_kind *kind = self.kind;
	uint64_t held_ns;
	unsigned int bucket;

	if (self.since_ns == 0) /* taken before the mutex was known */
		return;
	held_ns = now_ns() - self.since_ns;
	bucket = held_ns == 0 ? 0 : 64 - (unsigned int)__builtin_clzll(held_ns);
	if (bucket >= FIGURES_BUCKETS)
		bucket = FIGURES_BUCKETS - 1;
	kind->held_ns += held_ns;
	kind->holds[bucket]++;
	if (self.cpu_since_ns != 0) {
		kind->sampled++;
		kind->sampled_cpu_ns +=
			clock_read(CLOCK_THREAD_CPUTIME_ID) - self.cpu_since_ns;
		self.cpu_since_ns = 0;
	}
	self.since_ns = 0;
}

static void learn_taken(pthread_mutex_t *mutex)
{
	if (self.depth < sizeof(self.taken) / sizeof(self.taken[0])) {
		self.taken[self.depth].mutex = mutex;
		self.taken[self.depth].since_ns = now_ns();
		self.depth++;
	}
}

static void learn_released(pthread_mutex_t *mutex)
{
	uint64_t held_ns;
	unsigned int i;

	for (i = self.depth; i > 0; i--) {
		if (self.taken[i - 1].mutex != mutex)
			continue;
		held_ns = now_ns() - self.taken[i - 1].since_ns;
		if (held_ns > self.longest_ns) {
			self.longest_ns = held_ns;
			self.longest = mutex;
		}
		self.depth--;
		memmove(&self.taken[i - 1], &self.taken[i],
			(self.depth - (i - 1)) * sizeof(self.taken[0]));
		return;
	}
}

static void learn_vote_locked(void)
{
	int i;

	for (i = 0; i < LEARN_MUTEXES; i++) {
		if (learn.mutex[i].mutex == NULL)
			learn.mutex[i].mutex = self.longest;
		if (learn.mutex[i].mutex == self.longest) {
			learn.mutex[i].calls++;
			return;
		}
	}
}

static void learn_decide_locked(void)
{
	int i, best = 0;

	for (i = 1; i < LEARN_MUTEXES; i++)
		if (learn.mutex[i].calls > learn.mutex[best].calls)
			best = i;
	figures->learned_calls = learn.calls;
	figures->learned_votes = learn.mutex[best].calls;
	figures->mutex = (uint64_t)(uintptr_t)learn.mutex[best].mutex;
	__atomic_store_n(&target, learn.mutex[best].mutex, __ATOMIC_RELEASE);
}

static void learn_end_call(void)
{
	real.lock(&learn.guard);
	learn_vote_locked();
	if (++learn.calls == LEARN_CALLS)
		learn_decide_locked();
	real.unlock(&learn.guard);
}

static bool is_target(const pthread_mutex_t *mutex)
{
	return mutex == __atomic_load_n(&target, __ATOMIC_RELAXED);
}

static void released(pthread_mutex_t *mutex)
{
	if (is_target(mutex))
		count_released();
	else if (self.learning)
		learn_released(mutex);
}

EXPORTED int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	uint64_t since_ns;
	int err;

	if (real.lock == NULL)
		find_real();
	if (!is_target(mutex)) {
		err = real.lock(mutex);
		if (self.learning && err == 0)
			learn_taken(mutex);
		return err;
	}
	if (real.trylock(mutex) == 0) {
		count_taken(0, false);
		return 0;
	}
	since_ns = now_ns();
	err = real.lock(mutex);
	if (err == 0)
		count_taken(now_ns() - since_ns, true);
	return err;
}

EXPORTED int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int err;

	if (real.lock == NULL)
		find_real();
	err = real.trylock(mutex);
	if (err == 0 && is_target(mutex))
		count_taken(0, false);
	else if (err == 0 && self.learning)
		learn_taken(mutex);
	return err;
}

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (real.lock == NULL)
		find_real();
	released(mutex);
	return real.unlock(mutex);
}

/* After a wait on a condition: when the lock was free again is not known. */
static int taken_again(pthread_mutex_t *mutex, int err)
{
	if (is_target(mutex)) {
		count_taken(0, false);
		self.kind->waits++;
	} else if (self.learning) {
		learn_taken(mutex);
	}
	return err;
}

EXPORTED int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (real.lock == NULL)
		find_real();
	released(mutex);
	return taken_again(mutex, real.wait(cond, mutex));
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *cond,
				    pthread_mutex_t *mutex,
				    const struct timespec *until)
{
	if (real.lock == NULL)
		find_real();
	released(mutex);
	return taken_again(mutex, real.timedwait(cond, mutex, until));
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t *cond,
				    pthread_mutex_t *mutex, clockid_t clock,
				    const struct timespec *until)
{
	if (real.lock == NULL)
		find_real();
	released(mutex);
	return taken_again(mutex, real.clockwait(cond, mutex, clock, until));
}

/* Ganesha loads its FSALs with RTLD_DEEPBIND, by which they would get libc's
 * mutexes and not these. */
EXPORTED void *dlopen(const char *path, int flags)
{
	static __typeof__(&dlopen) next;

	if (next == NULL)
		next = dlsym(RTLD_NEXT, "dlopen");
	return next(path, flags & ~RTLD_DEEPBIND);
}

/* Ganesha loads libcephfs with the plugin, out of RTLD_NEXT's sight. */
static void *find_in_libcephfs(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	void *library;

	if (found != NULL)
		return found;
	library = dlopen("libcephfs.so.2", RTLD_LAZY | RTLD_NOLOAD);
	found = library != NULL ? dlsym(library, name) : NULL;
	if (found == NULL)
		abort();
	return found;
}

EXPORTED int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in,
			     struct ceph_statx *stx, unsigned int want,
			     unsigned int flags, const UserPerm *perms)
{
	static __typeof__(&ceph_ll_getattr) next;
	int err;

	if (next == NULL)
		next = find_in_libcephfs("ceph_ll_getattr");
	if (!is_target(NULL))
		return next(cmount, in, stx, want, flags, perms);
	self.depth = 0;
	self.longest = NULL;
	self.longest_ns = 0;
	self.learning = true;
	err = next(cmount, in, stx, want, flags, perms);
	self.learning = false;
	if (self.longest != NULL)
		learn_end_call();
	return err;
}

static void completed(struct ceph_ll_io_info *io)
{
	uint64_t since_ns;

	if (!is_target(NULL))
		__atomic_fetch_add(&figures->callbacks, 1, __ATOMIC_RELAXED);
	if (self.since_ns == 0) {
		callback(io);
		return;
	}
	since_ns = now_ns();
	callback(io);
	figures->callbacks_ns += now_ns() - since_ns;
	figures->callbacks_held++;
}

EXPORTED int64_t ceph_ll_nonblocking_readv_writev(
	struct ceph_mount_info *cmount, struct ceph_ll_io_info *io)
{
	static __typeof__(&ceph_ll_nonblocking_readv_writev) next;

	if (next == NULL)
		next = find_in_libcephfs("ceph_ll_nonblocking_readv_writev");
	/* A caller has one callback for all. */
	if (io->callback != completed) {
		callback = io->callback;
		io->callback = completed;
	}
	return next(cmount, io);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A file as slow as a SATA disk.  An LD_PRELOAD for ceph-osd, where BlueStore
 * has its data in the file "block":
 *
 *   DISK_FILE=FILE DISK_MIB_S=150 DISK_SEEK_US=8000 LD_PRELOAD=libdisks.so ...
 *
 * There is one head.  It takes batches of requests in the order in which they
 * are issued, each by offset, and seeks where one does not begin at the end of
 * the one before.  A request is carried out at once, but told only when the
 * head would have ended it.
 * FILE.PID has the counters (figures.h).  block.db is another disk, which is
 * left alone, as other programs and --mkfs are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"

#define EXPORTED __attribute__((visibility("default")))
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define HELD 4096 /* more than BlueStore's throttles let pass */

static struct figures *figures; /* NULL: this is no OSD */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t head_at, head_free_ns;

/* What is done but not told yet.  A thread's own: BlueStore has one thread for
 * each file. */
static __thread struct {
	unsigned int count;
	struct io_event event[HELD];
} *held;

static uint64_t number_of(const char *name)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *prefix = getenv("DISK_FILE");
	char path[PATH_MAX];
	int fd;

	if (prefix == NULL || argc < 2 || strcmp(argv[1], "--mkfs") == 0 ||
	    strcmp(program_invocation_short_name, "ceph-osd") != 0)
		return;
	snprintf(path, sizeof(path), "%s.%d", prefix, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (ftruncate(fd, sizeof(*figures)) != 0)
		abort(); /* also when it was not opened */
	figures = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	close(fd);
	figures->mib_s = number_of("DISK_MIB_S");
	figures->seek_us = number_of("DISK_SEEK_US");
}

static uint64_t ns_of(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ns_of(now);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

static bool is_disk(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t len;

	if (figures == NULL)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	return len > 6 && memcmp(path + len - 6, "/block", 6) == 0;
}

/* When will the head have ended this one? */
static uint64_t queue_locked(int64_t offset, uint64_t bytes, bool write)
{
	uint64_t mib_s = figures->mib_s, now = now_ns();
	bool seek = (uint64_t)offset != head_at;

	head_at = (uint64_t)offset + bytes;
	if (head_free_ns < now)
		head_free_ns = now;
	if (mib_s != 0)
		head_free_ns += bytes * 1000000000 / (mib_s << 20) +
				seek * figures->seek_us * 1000;
	*(write ? &figures->writes : &figures->reads) += 1;
	figures->bytes += bytes;
	figures->seeks += seek;
	return head_free_ns;
}

EXPORTED ssize_t pread64(int fd, void *data, size_t bytes, off_t offset)
{
	struct timespec until;

	if (is_disk(fd)) {
		pthread_mutex_lock(&lock);
		until = timespec_of(queue_locked(offset, bytes, false));
		pthread_mutex_unlock(&lock);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return NEXT(pread64)(fd, data, bytes, offset);
}

EXPORTED ssize_t pread(int, void *, size_t, off_t)
	__attribute__((alias("pread64")));

static int by_offset(const void *a, const void *b)
{
	int64_t first = (*(struct iocb *const *)a)->aio_offset;
	int64_t second = (*(struct iocb *const *)b)->aio_offset;

	return (first > second) - (first < second);
}

/* libaio's, with the kernel's structs.  An event brings back the aio_data of
 * its request, which Ceph does not use: it gets the time of the end. */
EXPORTED int io_submit(aio_context_t queue, long count, struct iocb **iocbs)
{
	/* As the kernel does.  BlueStore's order is that of addresses in
	 * memory. */
	qsort(iocbs, (size_t)count, sizeof(struct iocb *), by_offset);
	pthread_mutex_lock(&lock); /* of a batch, neighbours stay neighbours */
	for (long i = 0; i < count; i++) {
		struct iocb *one = iocbs[i];
		const struct iovec *iov = (const struct iovec *)one->aio_buf;
		uint64_t bytes = 0;

		/* One that the kernel had no room for comes again. */
		if (one->aio_data != 0 || !is_disk((int)one->aio_fildes))
			continue;
		for (uint64_t each = 0; each < one->aio_nbytes; each++)
			bytes += iov[each].iov_len;
		one->aio_data =
			queue_locked(one->aio_offset, bytes,
				     one->aio_lio_opcode == IOCB_CMD_PWRITEV);
	}
	pthread_mutex_unlock(&lock);
	return NEXT(io_submit)(queue, count, iocbs);
}

static int by_end(const void *a, const void *b)
{
	uint64_t first = ((const struct io_event *)a)->data;
	uint64_t second = ((const struct io_event *)b)->data;

	return (first > second) - (first < second);
}

/* Those that are ended by now, in the order in which the head ended them.
 * *next_ns: when another one will be, if that is sooner. */
static int tell(struct io_event *events, long room, uint64_t *next_ns)
{
	uint64_t now = now_ns();
	unsigned int left = 0;
	int told = 0;

	qsort(held->event, held->count, sizeof(held->event[0]), by_end);
	for (unsigned int i = 0; i < held->count; i++) {
		if (held->event[i].data <= now && told < room) {
			events[told++] = held->event[i];
			continue;
		}
		if (held->event[i].data < *next_ns)
			*next_ns = held->event[i].data;
		held->event[left++] = held->event[i];
	}
	held->count = left;
	return told;
}

/* As BlueStore asks: for at least one event, and with a timeout. */
EXPORTED int io_getevents(aio_context_t queue, long least, long room,
			  struct io_event *events, struct timespec *timeout)
{
	uint64_t limit_ns;

	if (figures == NULL)
		return NEXT(io_getevents)(queue, least, room, events, timeout);
	if (held == NULL)
		held = calloc(1, sizeof(*held));
	limit_ns = now_ns() + ns_of(*timeout);
	for (;;) {
		uint64_t next_ns = limit_ns;
		int told = tell(events, room, &next_ns), got;
		struct timespec wait;
		uint64_t now = now_ns();

		if (told > 0 || now >= limit_ns)
			return told;
		wait = timespec_of(next_ns > now ? next_ns - now : 0);
		got = NEXT(io_getevents)(queue, 1, HELD - held->count,
					 &held->event[held->count], &wait);
		if (got < 0)
			return got;
		held->count += (unsigned int)got;
	}
}

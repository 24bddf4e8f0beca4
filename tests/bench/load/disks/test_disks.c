/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* disks.c before a libaio that is quick: fake_aio.c.  This program is named
 * ceph-osd, as the library is only for that. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "figures.h"

#define MIB (1 << 20)
/* As CMakeLists.txt says them. */
#define MIB_MS 50
#define SEEK_MS 40

int io_submit(aio_context_t queue, long count, struct iocb **iocbs);
int io_getevents(aio_context_t queue, long least, long room,
		 struct io_event *events, struct timespec *timeout);

static struct figures *figures, before;
static char data[MIB];
static int block_fd, db_fd;

static int open_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 16 * MIB), 0);
	return fd;
}

static int open_files(void **state)
{
	(void)state;
	mkdir("osd", 0755);
	block_fd = open_file("osd/block");
	db_fd = open_file("osd/block.db");
	return 0;
}

static int figures_fd(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s.%d", getenv("DISK_FILE"), getpid());
	return open(path, O_RDWR);
}

/* Maps the figures too: each test begins with the head at 0. */
static int head_to_0(void **state)
{
	int fd = figures_fd();

	(void)state;
	assert_true(fd >= 0);
	figures = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	assert_ptr_not_equal(figures, MAP_FAILED);
	close(fd);
	figures->mib_s = 0;
	assert_int_equal(pread(block_fd, data, 0, 0), 0);
	figures->mib_s = 1000 / MIB_MS;
	before = *figures;
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void read_mib(int fd, off_t mib)
{
	assert_int_equal(pread(fd, data, MIB, mib * MIB), MIB);
}

static void only_what_is_apart_needs_a_seek(void **state)
{
	uint64_t since = now_ms();

	(void)state;
	read_mib(block_fd, 0);
	read_mib(block_fd, 1);
	assert_int_equal(figures->seeks, before.seeks);
	assert_true(now_ms() - since >= 2 * MIB_MS - 2);
	since = now_ms();
	read_mib(block_fd, 3);
	assert_int_equal(figures->seeks, before.seeks + 1);
	assert_true(now_ms() - since >= MIB_MS + SEEK_MS - 2);
	assert_int_equal(figures->reads, before.reads + 3);
	assert_int_equal(figures->bytes, before.bytes + 3 * MIB);
}

static void *read_first(void *arg)
{
	(void)arg;
	read_mib(block_fd, 0);
	return NULL;
}

static void two_threads_share_the_head(void **state)
{
	uint64_t since = now_ms();
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_first, NULL), 0);
	read_mib(block_fd, 8);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(now_ms() - since >= 2 * MIB_MS + SEEK_MS - 2);
}

static void prepare(struct iocb *iocb, struct iovec *iov, int fd, int mib)
{
	*iov = (struct iovec){.iov_base = data, .iov_len = MIB};
	*iocb = (struct iocb){.aio_lio_opcode = IOCB_CMD_PWRITEV,
			      .aio_fildes = (__u32)fd,
			      .aio_buf = (__u64)iov,
			      .aio_nbytes = 1,
			      .aio_offset = (__s64)mib * MIB};
}

/* The number of its MiB. */
static long long next_told(void)
{
	struct timespec timeout = {.tv_sec = 10};
	struct io_event event;

	assert_int_equal(io_getevents(0, 1, 1, &event, &timeout), 1);
	return ((struct iocb *)event.obj)->aio_offset / MIB;
}

static void a_batch_is_told_by_offset(void **state)
{
	struct iocb iocb[3], *iocbs[3] = {&iocb[2], &iocb[0], &iocb[1]};
	uint64_t since = now_ms();
	struct iovec iov[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		prepare(&iocb[i], &iov[i], block_fd, i);
	assert_int_equal(io_submit(0, 3, iocbs), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(next_told(), i);
		assert_true(now_ms() - since >= (uint64_t)(i + 1) * MIB_MS - 2);
	}
	assert_int_equal(figures->writes, before.writes + 3);
	assert_int_equal(figures->seeks, before.seeks);
}

static void nothing_is_told_after_the_timeout(void **state)
{
	struct timespec timeout = {.tv_nsec = 1000000};
	struct iocb iocb, *iocbs = &iocb;
	struct io_event event;
	struct iovec iov;
	uint64_t since;

	(void)state;
	/* Again, where this thread had no CPU until the head was ready. */
	do {
		since = now_ms();
		prepare(&iocb, &iov, block_fd, 8);
		iov.iov_len = 8 * (size_t)MIB; /* none of it is touched */
		assert_int_equal(io_submit(0, 1, &iocbs), 1);
	} while (io_getevents(0, 1, 1, &event, &timeout) == 1 &&
		 now_ms() - since >= 8 * MIB_MS);
	assert_int_equal(next_told(), 8);
}

static void the_file_beside_it_is_not_slowed(void **state)
{
	struct iocb iocb, *iocbs = &iocb;
	struct iovec iov;

	(void)state;
	prepare(&iocb, &iov, db_fd, 5);
	assert_int_equal(io_submit(0, 1, &iocbs), 1);
	assert_int_equal(next_told(), 5);
	assert_int_equal(iocb.aio_data, 0);
	read_mib(db_fd, 7);
	assert_memory_equal(figures, &before, sizeof(before));
}

static void without_a_rate_it_only_counts(void **state)
{
	uint64_t since;

	(void)state;
	figures->mib_s = 0;
	since = now_ms();
	for (int i = 0; i < 100; i++)
		read_mib(block_fd, 14);
	assert_true(now_ms() - since < 100 * MIB_MS);
	assert_int_equal(figures->reads, before.reads + 100);
	assert_int_equal(figures->seeks, before.seeks + 100);
}

static void mkfs_is_left_alone(void **state)
{
	(void)state;
	read_mib(block_fd, 3);
	assert_int_equal(figures_fd(), -1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(only_what_is_apart_needs_a_seek,
				       head_to_0),
		cmocka_unit_test_setup(two_threads_share_the_head, head_to_0),
		cmocka_unit_test_setup(a_batch_is_told_by_offset, head_to_0),
		cmocka_unit_test_setup(nothing_is_told_after_the_timeout,
				       head_to_0),
		cmocka_unit_test_setup(the_file_beside_it_is_not_slowed,
				       head_to_0),
		cmocka_unit_test_setup(without_a_rate_it_only_counts,
				       head_to_0),
	};
	const struct CMUnitTest mkfs[] = {
		cmocka_unit_test(mkfs_is_left_alone),
	};

	if (argc > 1 && strcmp(argv[1], "--mkfs") == 0)
		return cmocka_run_group_tests(mkfs, open_files, NULL);
	return cmocka_run_group_tests(tests, open_files, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* ceiling.c before a libcephfs that counts its calls: fake_client.c. */
#include <cephfs/libcephfs.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "figures.h"

#define SIZE 10000 /* of fake_client.c's file */

extern unsigned int fake_calls;

static const struct figures *figures;
static unsigned int answers;
/* Only their addresses are used. */
static char places[4096];
static struct Fh *fh = (struct Fh *)&places[16];
static struct Inode *inode = (struct Inode *)&places[32];

static int map_figures(void **state)
{
	const char *path = getenv("CEILING_FILE");
	int fd;

	(void)state;
	assert_non_null(path);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	figures = mmap(NULL, sizeof(*figures), PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(figures, MAP_FAILED);
	return close(fd);
}

static void answered(struct ceph_ll_io_info *io)
{
	answers++;
	io->iov = NULL; /* it is the caller's again */
}

static void a_size_is_asked_for_once_for_each_open(void **state)
{
	char data[100];
	unsigned int before = fake_calls;

	(void)state;
	memset(data, 1, sizeof(data));
	assert_int_equal(ceph_ll_read(NULL, fh, 0, 100, data), 100);
	assert_int_equal(data[0], 0);
	assert_int_equal(data[99], 0);
	assert_int_equal(ceph_ll_write(NULL, fh, SIZE - 100, 100, data), 100);
	assert_int_equal(ceph_ll_fsync(NULL, fh, 0), 0);
	assert_int_equal(fake_calls, before + 1);
	ceph_ll_close(NULL, fh);
	assert_int_equal(ceph_ll_read(NULL, fh, 0, 100, data), 100);
	assert_int_equal(fake_calls, before + 2);
	assert_int_equal(figures->reads, 2);
	assert_int_equal(figures->writes, 1);
	assert_int_equal(figures->fsyncs, 1);
	assert_int_equal(figures->passed, 0);
}

static void a_read_ends_with_the_file(void **state)
{
	char data[] = "abcdefgh";
	struct iovec iov[] = {{data, 2}, {data + 2, 3}, {data + 5, 3}};
	struct ceph_ll_io_info io = {.callback = answered,
				     .fh = fh,
				     .iov = iov,
				     .iovcnt = 3,
				     .off = SIZE - 4};
	unsigned int before = answers;

	(void)state;
	assert_int_equal(ceph_ll_nonblocking_readv_writev(NULL, &io), 0);
	assert_int_equal(answers, before + 1);
	assert_int_equal(io.result, 4);
	assert_memory_equal(data, "\0\0\0", 4);
	assert_int_equal(ceph_ll_read(NULL, fh, SIZE, 8, data), 0);
}

static void a_write_within_the_file_is_answered(void **state)
{
	char data[] = "abcdefgh";
	struct iovec iov[] = {{data, 5}, {data + 5, 3}};
	struct ceph_ll_io_info io = {.callback = answered,
				     .fh = fh,
				     .iov = iov,
				     .iovcnt = 2,
				     .off = SIZE - 8,
				     .write = true,
				     .fsync = true};
	unsigned int before = answers, calls = fake_calls;
	uint64_t passed = figures->passed;

	(void)state;
	assert_int_equal(ceph_ll_nonblocking_readv_writev(NULL, &io), 0);
	assert_int_equal(answers, before + 1);
	assert_int_equal(io.result, 8);
	assert_string_equal(data, "abcdefgh");
	assert_int_equal(fake_calls, calls);

	/* One past its end is libcephfs', and so is its answer. */
	io.iov = iov;
	io.off++;
	assert_int_equal(ceph_ll_nonblocking_readv_writev(NULL, &io), 0);
	assert_int_equal(answers, before + 1);
	assert_int_equal(ceph_ll_write(NULL, fh, SIZE, 8, data), 8);
	assert_int_equal(fake_calls, calls + 2);
	assert_int_equal(figures->passed, passed + 2);
}

static void attributes_are_those_of_the_first_call(void **state)
{
	struct ceph_statx first = {0}, stx = {0};
	unsigned int before = fake_calls;
	uint64_t passed = figures->passed;

	(void)state;
	ceph_ll_getattr(NULL, inode, &first, CEPH_STATX_INO, 0, NULL);
	assert_int_equal(first.stx_mask, CEPH_STATX_ALL_STATS);
	ceph_ll_getattr(NULL, inode, &stx, CEPH_STATX_ALL_STATS, 0, NULL);
	assert_memory_equal(&stx, &first, sizeof(stx));
	assert_int_equal(fake_calls, before + 1);
	/* Then the address may be another's. */
	ceph_ll_put(NULL, inode);
	ceph_ll_getattr(NULL, inode, &stx, CEPH_STATX_INO, 0, NULL);
	assert_int_equal(stx.stx_ino, first.stx_ino + 1);
	assert_int_equal(figures->getattrs, 1);
	assert_int_equal(figures->passed, passed + 2);
}

static void *read_often(void *cmount)
{
	char data[8];
	unsigned int i;

	for (i = 0; i < 50; i++)
		(void)ceph_ll_read(cmount, fh, 0, sizeof(data), data);
	return NULL;
}

static int64_t read_by_two_ms(void *first, void *second)
{
	struct timespec began, ended;
	pthread_t other;

	clock_gettime(CLOCK_MONOTONIC, &began);
	pthread_create(&other, NULL, read_often, first);
	read_often(second);
	pthread_join(other, NULL);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	return (ended.tv_sec - began.tv_sec) * 1000 +
	       (ended.tv_nsec - began.tv_nsec) / 1000000;
}

/* 100 times 4 ms under one lock, 50 under each of two; the environment says
 * 4 ms.  A thread may get no CPU for a while: of ten times one is enough. */
static void a_lock_is_held_of_each_mount(void **state)
{
	unsigned int tries = 0;

	(void)state;
	assert_true(read_by_two_ms(&places[48], &places[48]) >= 400);
	while (read_by_two_ms(&places[48], &places[64]) >= 400)
		assert_int_not_equal(++tries, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_is_asked_for_once_for_each_open),
		cmocka_unit_test(a_read_ends_with_the_file),
		cmocka_unit_test(a_write_within_the_file_is_answered),
		cmocka_unit_test(attributes_are_those_of_the_first_call),
		cmocka_unit_test(a_lock_is_held_of_each_mount),
	};

	return cmocka_run_group_tests(tests, map_figures, NULL);
}

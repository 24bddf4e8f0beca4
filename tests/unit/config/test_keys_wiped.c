/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* No copy of a handle key stays in the memory that its file was read to. */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "handle_keys.h"

#define HEX_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define HEX_B "fffe00000000000000000000000000000000000000000000000000000000abcd"

static unsigned int wiped_a, wiped_b;
/* What free() and fclose() get back. */
static unsigned int left;

static bool has(const void *memory, size_t bytes, const char *text)
{
	return memmem(memory, bytes, text, strlen(text)) != NULL;
}

/* A line as it was read, or a buffer of stdio. */
void __wrap_explicit_bzero(void *memory, size_t bytes)
{
	volatile char *at = memory;

	wiped_a += has(memory, bytes, HEX_A);
	wiped_b += has(memory, bytes, HEX_B);
	while (bytes-- != 0)
		*at++ = 0;
}

void __real_free(void *memory);

void __wrap_free(void *memory)
{
	size_t bytes = malloc_usable_size(memory);

	left += memory != NULL &&
		(has(memory, bytes, HEX_A) || has(memory, bytes, HEX_B));
	__real_free(memory);
}

static char path[] = "/tmp/test_keys_wiped.XXXXXX";

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
	wiped_a = wiped_b = left = 0;
}

TEST(each_line_is_wiped)
{
	struct casync_handle_keys keys;
	char why[256];

	write_file(HEX_A "\n" HEX_B "\n");
	assert_true(casync_handle_keys_read(path, &keys, why, sizeof(why)));
	assert_true(wiped_a > 0);
	assert_true(wiped_b > 0);
	assert_int_equal(left, 0);
}

/* The key before the mistake may be the one that is in use. */
TEST(lines_of_a_file_that_is_wrong_are_wiped)
{
	struct casync_handle_keys keys;
	char why[256];

	write_file(HEX_A "\n" HEX_B " and more\n");
	assert_false(casync_handle_keys_read(path, &keys, why, sizeof(why)));
	assert_true(wiped_a > 0);
	assert_true(wiped_b > 0);
	assert_int_equal(left, 0);
	assert_null(strstr(why, HEX_B));
}

TEST(keys_are_wiped_by_those_who_used_them)
{
	struct casync_handle_keys keys;
	char why[256];
	static const struct casync_handle_keys none;

	write_file(HEX_A "\n");
	assert_true(casync_handle_keys_read(path, &keys, why, sizeof(why)));
	casync_handle_keys_wipe(&keys);
	assert_memory_equal(keys.key, none.key, sizeof(keys.key));
}

static int begin(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	return unlink(path);
}

TEST_FIXTURE(begin, end)

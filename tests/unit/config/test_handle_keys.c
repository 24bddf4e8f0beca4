/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The file of Handle_Keys: what is accepted, and what each refusal says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "handle_keys.h"

#define HEX_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define HEX_B "FFfe00000000000000000000000000000000000000000000000000000000abCD"

static char path[] = "/tmp/test_handle_keys.XXXXXX";

static void write_file(const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* An object's text is read as the file is, and is not left in memory. */
static void accepts_as_text(const char *text,
			    const struct casync_handle_keys *wanted)
{
	static const char wiped[4096];
	struct casync_handle_keys keys;
	char why[256] = "";
	char copy[4096];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	if (!casync_handle_keys_read_text(copy, &keys, why, sizeof(why)))
		fail_msg("refused: %s", why);
	assert_memory_equal(&keys, wanted, sizeof(keys));
	assert_memory_equal(copy, wiped, strlen(text));
}

static void accepts(const char *text, unsigned int count)
{
	struct casync_handle_keys keys;
	char why[256] = "";
	unsigned int i;

	write_file(text, 0600);
	if (!casync_handle_keys_read(path, &keys, why, sizeof(why)))
		fail_msg("refused: %s", why);
	assert_int_equal(keys.count, count);
	accepts_as_text(text, &keys);
	for (i = 0; i < 32; i++)
		assert_int_equal(keys.key[0][i], i);
	if (count > 1) {
		assert_int_equal(keys.key[1][0], 0xff);
		assert_int_equal(keys.key[1][1], 0xfe);
		assert_int_equal(keys.key[1][30], 0xab);
		assert_int_equal(keys.key[1][31], 0xcd);
	}
}

static void refuses(const char *reason)
{
	static const struct casync_handle_keys none;
	struct casync_handle_keys keys;
	char why[256] = "";

	assert_false(casync_handle_keys_read(path, &keys, why, sizeof(why)));
	if (strstr(why, reason) == NULL)
		fail_msg("'%s' is not in '%s'", reason, why);
	assert_memory_equal(&keys, &none, sizeof(keys));
}

static void refuses_text(const char *text, const char *reason)
{
	write_file(text, 0600);
	refuses(reason);
}

TEST(one_key)
{
	accepts(HEX_A, 1);
	accepts(HEX_A "\n", 1);
}

TEST(two_keys_with_comments)
{
	accepts("# of 2026-11\n\n \t" HEX_A " # signs\r\n\n" HEX_B "\n", 2);
}

TEST(three_keys)
{
	refuses_text(HEX_A "\n" HEX_B "\n" HEX_A "\n",
		     "line 3: there are more");
}

TEST(no_key)
{
	refuses_text("", "it has no key");
	refuses_text("# only words\n", "openssl rand -hex 32");
}

TEST(no_hexadecimal_digits)
{
	refuses_text("secret\n", "line 1 is no key");
	refuses_text(HEX_A "\n" HEX_A "0\n", "line 2 is no key");
	refuses_text("g" HEX_A, "64 hexadecimal digits");
	refuses_text("g00102030405060708090a0b0c0d0e0f"
		     "101112131415161718191a1b1c1d1e1f",
		     "line 1 is no key");
}

/* They must not be cut into a key and a rest. */
TEST(long_lines)
{
	char text[2000] = "# ";

	memset(text + 2, 'a', sizeof(text) - 3);
	memcpy(text + sizeof(text) - sizeof("\n" HEX_A), "\n" HEX_A,
	       sizeof("\n" HEX_A));
	accepts(text, 1);
	text[0] = 'a';
	refuses_text(text, "line 1 is no key");
}

TEST(others_may_read_it)
{
	static const mode_t modes[] = {0640, 0604, 0620, 0660, 0601};
	unsigned int i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		write_file(HEX_A, modes[i]);
		refuses("chmod 600");
	}
}

/* A user of the host has put it there, and knows the key. */
TEST(somebody_else_owns_it)
{
	if (geteuid() != 0)
		skip();
	write_file(HEX_A, 0600);
	assert_int_equal(chown(path, 1000, 0), 0);
	refuses("its owner is user 1000");
	assert_int_equal(chown(path, 0, 0), 0);
}

TEST(no_such_file)
{
	assert_int_equal(unlink(path), 0);
	refuses("No such file");
}

/* Reading it would wait for a writer. */
TEST(pipe_is_refused)
{
	(void)unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuses("no regular file");
	assert_int_equal(unlink(path), 0);
}

static int begin(void **state)
{
	return close(mkstemp(path));
}

static int end(void **state)
{
	(void)unlink(path);
	return 0;
}

TEST_FIXTURE(begin, end)

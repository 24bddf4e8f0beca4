/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "ceph_options.h"

static char line[CASYNC_CEPH_OPTION_MAX + 2];
static char why[512];

/* libcephfs: what was set, and how it answers. */
static char was_set[256];
static int answer;

int ceph_conf_set(struct ceph_mount_info *cmount, const char *option,
		  const char *value)
{
	size_t used = strlen(was_set);

	(void)cmount;
	(void)snprintf(was_set + used, sizeof(was_set) - used, "[%s|%s]",
		       option, value);
	return answer;
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	(void)major;
	(void)minor;
	(void)patch;
	return "20.0.0";
}

static bool parse(const char *text)
{
	memset(why, 0, sizeof(why));
	return casync_ceph_options_parse(text, line, why, sizeof(why));
}

TEST(a_name_is_as_ceph_has_it)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"a=b", "a=b\n"},
		{"  debug client\t=  1/5  ", "debug_client=1/5\n"},
		{"Debug-Client = 1/5", "debug_client=1/5\n"},
		{"client_metadata = x=y, z", "client_metadata=x=y, z\n"},
		{"empty =", "empty=\n"},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(parse(cases[i].text));
		assert_string_equal(line, cases[i].line);
	}
}

TEST(another_form_is_refused)
{
	static const char *const bad[] = {
		"", "client_cache_size", "=5", " = ", "a/b = c", "a\nb = c"};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(parse(bad[i]));
		assert_non_null(strstr(why, "it must be \"name = value\""));
	}
	assert_false(parse("a = b\nc = d"));
	assert_string_equal(why, "the value must be one line");
}

/* Each with a word of its reason; and in the spellings Ceph takes. */
TEST(what_breaks_a_promise_is_refused_with_the_reason)
{
	static const char *const bad[][2] = {
		{"client_oc = true", "COMMIT"},
		{"client_oc = false", "COMMIT"},
		{"client oc = true", "COMMIT"},
		{"Client-OC=true", "COMMIT"},
		{"client_acl_type = none", "posix_acl"},
		{"client_permissions = false", "checks access"},
		{"client_force_lazyio = true", "old data"},
		{"client_use_faked_inos = true", "file handles"},
		{"client_mountpoint = /x", "Cmount_Path"},
		{"client_fs = x", "Filesystem"},
		{"client_mds_namespace = x", "Filesystem"},
		{"client_mount_timeout = 5", "Mount_Timeout"},
		{"rados_osd_op_timeout = 5", "after a later write"},
		{"key = AQ==", "Secret_Access_Key"},
		{"keyfile = /x", "Secret_Access_Key"},
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i][0]))
			fail_msg("'%s' is taken", bad[i][0]);
		if (strstr(why, bad[i][1]) == NULL)
			fail_msg("'%s': %s", bad[i][0], why);
	}
}

TEST(a_list_is_set_in_its_order)
{
	was_set[0] = '\0';
	answer = 0;
	assert_int_equal(casync_ceph_options_set(NULL, "a=b\nc=\nd=e=f\n", why,
						 sizeof(why)),
			 0);
	assert_string_equal(was_set, "[a|b][c|][d|e=f]");
	was_set[0] = '\0';
	assert_int_equal(casync_ceph_options_set(NULL, NULL, why, sizeof(why)),
			 0);
	assert_string_equal(was_set, "");
}

TEST(what_ceph_refuses_is_named)
{
	was_set[0] = '\0';
	answer = -ENOENT;
	assert_int_equal(casync_ceph_options_set(NULL, "nosuch=b\nc=d\n", why,
						 sizeof(why)),
			 -ENOENT);
	assert_string_equal(why, "Ceph 20.0.0 has no option 'nosuch'");
	assert_string_equal(was_set, "[nosuch|b]");
	answer = -EINVAL;
	assert_int_equal(
		casync_ceph_options_set(NULL, "a=b\n", why, sizeof(why)),
		-EINVAL);
	assert_string_equal(why,
			    "Ceph refuses the value of a: Invalid argument");
}

TEST(a_list_is_searched_by_whole_names)
{
	assert_true(casync_ceph_options_have("a=b\nab=c\n", "ab"));
	assert_true(casync_ceph_options_have("a=b\nab=c\n", "a"));
	assert_false(casync_ceph_options_have("a=b\nab=c\n", "b"));
	assert_false(casync_ceph_options_have("abc=ab\n", "ab"));
	assert_false(casync_ceph_options_have(NULL, "a"));
}

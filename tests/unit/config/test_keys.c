/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Every key of the table: its default, its lowest and highest value, what is
 * beyond, what is of another type, and what is said then.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "durability.h"
#include "ganesha.h"
#include "keys.h"

static char why[512];

/* Big enough for any member, and for a neighbour that must not change. */
union member {
	uint64_t number[2];
	char *text;
	char bytes[16];
};

static const struct casync_key *find(const char *name)
{
	const struct casync_key *key = casync_keys_find(name);

	assert_non_null(key);
	return key;
}

static bool set(const char *name, const char *text, void *member)
{
	memset(why, 0, sizeof(why));
	return casync_key_values_set(find(name), text, member, why,
				     sizeof(why));
}

static uint64_t number_of(const struct casync_key *key, const void *member)
{
	uint64_t wide = 0;

	assert_true(key->bytes <= sizeof(wide));
	memcpy(&wide, member, key->bytes);
	return wide;
}

struct number_case {
	const char *name;
	uint64_t preset;
	const char *lowest, *highest;
	const char *below, *above; /* NULL: there is none */
	const char *said;
};

static const struct number_case numbers[] = {
	{"Umask", 0, "0", "0777", "-1", "01000",
	 "it must be an octal number from 0 to 0777"},
	{"Max_Inflight_Total", 32768, "256", "16777216", "255", "16777217",
	 "it must be a number of requests from 256 to 16777216"},
	{"Max_Inflight_Bytes_Total", UINT64_C(4) << 30, "67108864",
	 "1099511627776", "67108863", "1099511627777",
	 "it must be a number of bytes from 67108864 to 1099511627776"},
	{"Cache_Bytes", 1 << 28, "0", "1099511627776", "-1", "1099511627777",
	 "it must be a number of bytes from 0 to 1099511627776"},
	{"Max_Inflight", 8192, "1", "1048576", "0", "1048577",
	 "it must be a number of requests from 1 to 1048576"},
	{"Max_Inflight_Bytes", 1 << 30, "1048576", "1099511627776", "1048575",
	 "1099511627777",
	 "it must be a number of bytes from 1048576 to 1099511627776"},
	{"Max_Read", 0, "4096", "67108864", "4095", "67108865",
	 "it must be a number of bytes from 4096 to 67108864, or 0"},
	{"Max_Write", 0, "4096", "67108864", "4095", "67108865",
	 "it must be a number of bytes from 4096 to 67108864, or 0"},
	{"Gather_Bytes", 65536, "0", "4194304", "-1", "4194305",
	 "it must be a number of bytes from 0 to 4194304"},
	{"Object_Size", 0, "65536", "134217728", "65535", "134217729",
	 "it must be a number of bytes from 65536 to 134217728, a multiple of 65536, or 0"},
	{"Stripe_Unit", 0, "65536", "134217728", "1", "134283264",
	 "it must be a number of bytes from 65536 to 134217728, a multiple of 65536, or 0"},
	{"Stripe_Count", 0, "1", "1024", "-1", "1025",
	 "it must be a number of objects from 1 to 1024, or 0"},
	{"Mount_Timeout", 120, "1", "3600", "0", "3601",
	 "it must be a number of seconds from 1 to 3600"},
	{"Session_Timeout", 300, "30", "86400", "29", "86401",
	 "it must be a number of seconds from 30 to 86400"},
	{"Reconnect_Timeout", 0, "1", "604800", "-1", "604801",
	 "it must be a number of seconds from 1 to 604800, or 0"},
	{"Drain_Timeout", 30, "1", "3600", "0", "3601",
	 "it must be a number of seconds from 1 to 3600"},
	{"Slow_Op_Warn", 10000, "0", "3600000", "-2", "3600001",
	 "it must be a number of milliseconds from 0 to 3600000"},
	{"Stats_Interval", 0, "0", "86400", "-1", "86401",
	 "it must be a number of seconds from 0 to 86400"},
};

static const char *const no_numbers[] = {
	"many",
	"",
	"-1",
	"+1",
	"1x",
	"1.5",
	" 1",
	"true",
	"~0x0",
	"0x",
	"18446744073709551616",
	"-18446744073709551615",
};

static void check_refused(const struct number_case *c, const char *text,
			  union member *member, const union member *before)
{
	if (set(c->name, text, member))
		fail_msg("%s = '%s' is taken", c->name, text);
	assert_string_equal(why, c->said);
	assert_memory_equal(before, member, sizeof(*before));
}

static void check_number(const struct number_case *c)
{
	const struct casync_key *key = find(c->name);
	union member member, before;
	size_t i;

	assert_int_equal(key->preset, c->preset);
	memset(&member, 0xff, sizeof(member));
	before = member;
	check_refused(c, c->below, &member, &before);
	check_refused(c, c->above, &member, &before);
	for (i = 0; i < sizeof(no_numbers) / sizeof(no_numbers[0]); i++)
		check_refused(c, no_numbers[i], &member, &before);

	assert_true(set(c->name, c->lowest, &member));
	assert_int_equal(number_of(key, &member), strtoull(c->lowest, NULL, 0));
	assert_true(set(c->name, c->highest, &member));
	assert_int_equal(number_of(key, &member),
			 strtoull(c->highest, NULL, 0));
	/* Nothing beside it. */
	assert_memory_equal(member.bytes + key->bytes,
			    before.bytes + key->bytes,
			    sizeof(member) - key->bytes);
	if (key->or_zero) {
		assert_true(set(c->name, "0", &member));
		assert_int_equal(number_of(key, &member), 0);
	}
}

TEST(numbers_are_taken_in_range_and_refused_beyond)
{
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		check_number(&numbers[i]);
}

TEST(sizes_are_multiples_of_a_stripe_unit_of_ceph)
{
	union member member = {0};

	assert_false(set("Object_Size", "98304", &member));
	assert_non_null(strstr(why, "a multiple of 65536"));
	assert_false(set("Stripe_Unit", "65537", &member));
	assert_true(set("Stripe_Unit", "196608", &member));
}

/* Words; the first is the default, the others are taken. */
static const struct {
	const char *name;
	uint64_t preset;
	const char *good[4];
	uint64_t value[4];
	const char *said;
} words[] = {
	{"Stable_Write",
	 CASYNC_STABLE_DATA,
	 {"data", "fdatasync", "full", "FULL"},
	 {CASYNC_STABLE_DATA, CASYNC_STABLE_FDATASYNC, CASYNC_STABLE_FULL,
	  CASYNC_STABLE_FULL},
	 "it must be one of data, fdatasync, full"},
	{"Stable_Metadata",
	 CASYNC_METADATA_MDS,
	 {"mds", "journal", "Journal", "MDS"},
	 {CASYNC_METADATA_MDS, CASYNC_METADATA_JOURNAL, CASYNC_METADATA_JOURNAL,
	  CASYNC_METADATA_MDS},
	 "it must be one of mds, journal"},
	{"Promote_Unstable",
	 1,
	 {"true", "Yes", "off", "FALSE"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Sign_Handles",
	 0,
	 {"true", "ON", "no", "off"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Share_Client",
	 1,
	 {"true", "ON", "no", "off"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Reconnect",
	 1,
	 {"true", "ON", "no", "off"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Zerocopy",
	 0,
	 {"true", "on", "no", "false"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Use_Old_Uuid",
	 CASYNC_GANESHA_OLD_UUID,
	 {"true", "on", "no", "false"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Register_Service",
	 0,
	 {"true", "on", "no", "false"},
	 {1, 1, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Client_OC",
	 0,
	 {"false", "no", "off", "FALSE"},
	 {0, 0, 0, 0},
	 "it must be one of true, false, yes, no, on, off"},
	{"Async",
	 1,
	 {"true", "yes", "on", "TRUE"},
	 {1, 1, 1, 1},
	 "it must be one of true, false, yes, no, on, off"},
};

TEST(words_are_taken_in_any_case_and_others_refused)
{
	static const char *const bad[] = {"", "sometimes", "1", "0", "tru"};
	union member member, before;
	size_t i, j;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct casync_key *key = find(words[i].name);

		assert_int_equal(key->preset, words[i].preset);
		memset(&member, 0, sizeof(member));
		for (j = 0; j < 4; j++) {
			assert_true(set(key->name, words[i].good[j], &member));
			assert_int_equal(number_of(key, &member),
					 words[i].value[j]);
		}
		before = member;
		for (j = 0; j < sizeof(bad) / sizeof(bad[0]); j++) {
			assert_false(set(key->name, bad[j], &member));
			assert_string_equal(why, words[i].said);
			assert_memory_equal(&before, &member, sizeof(before));
		}
	}
}

TEST(what_would_be_unsafe_is_refused_with_the_reason)
{
	union member member = {0};

	assert_false(set("Client_OC", "true", &member));
	assert_non_null(strstr(why, "COMMIT"));
	assert_false(set("Async", "false", &member));
	assert_non_null(strstr(why, "no blocking data path"));
	assert_int_equal(member.number[0], 0);
}

static const struct {
	const char *name, *preset;
	size_t shortest, longest;
	bool path;
	const char *said;
} strings[] = {
	{"Ceph_Conf", NULL, 1, MAXPATHLEN, true,
	 "it must be a path that begins with /, of at most 4096 characters"},
	{"NodeId", NULL, 1, MAXPATHLEN, false,
	 "it must be a text of 1 to 4096 characters"},
	{"User_Id", NULL, 0, 1024, false,
	 "it must be a text of 0 to 1024 characters"},
	{"Secret_Access_Key", NULL, 0, 1024, false,
	 "it must be a text of 0 to 1024 characters"},
	{"Filesystem", NULL, 0, 255, false,
	 "it must be a text of 0 to 255 characters"},
	{"Handle_Keys", NULL, 1, MAXPATHLEN, true,
	 "it must be a path that begins with /, or rados://POOL/NAMESPACE/OBJECT, of at most 4096 characters"},
	{"Metrics_File", NULL, 1, MAXPATHLEN, true,
	 "it must be a path that begins with /, of at most 4096 characters"},
	{"Cmount_Path", NULL, 1, MAXPATHLEN, true,
	 "it must be a path that begins with /, of at most 4096 characters"},
	{"Sec_Label_Xattr", "security.selinux", 0, 256, false,
	 "it must be a text of 0 to 256 characters"},
	{"Data_Pool", NULL, 0, 255, false,
	 "it must be a text of 0 to 255 characters"},
};

TEST(strings_are_taken_up_to_their_length)
{
	static char text[8192];
	union member member;
	size_t i;

	memset(text, '/', sizeof(text));
	for (i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		const struct casync_key *key = find(strings[i].name);

		if (strings[i].preset == NULL)
			assert_null(key->preset_string);
		else
			assert_string_equal(key->preset_string,
					    strings[i].preset);
		memset(&member, 0, sizeof(member));
		text[strings[i].longest] = '\0';
		assert_true(set(key->name, text, &member));
		assert_string_equal(member.text, text);
		text[strings[i].longest] = '/';
		text[strings[i].longest + 1] = '\0';
		assert_false(set(key->name, text, &member));
		assert_string_equal(why, strings[i].said);
		text[strings[i].longest + 1] = '/';
		assert_int_equal(strlen(member.text), strings[i].longest);

		if (strings[i].shortest != 0) {
			assert_false(set(key->name, "", &member));
			assert_string_equal(why, strings[i].said);
		}
		if (strings[i].path) {
			assert_false(set(key->name, "not/absolute", &member));
			assert_string_equal(why, strings[i].said);
		}
		text[strings[i].shortest] = '\0';
		assert_true(set(key->name, text, &member));
		assert_int_equal(strlen(member.text), strings[i].shortest);
		text[strings[i].shortest] = '/';
		gsh_free(member.text);
	}
}

TEST(options_are_collected)
{
	static char text[CASYNC_CEPH_OPTION_MAX + 2];
	union member member = {0};

	assert_true(set("Ceph_Option", "client_cache_size = 5", &member));
	assert_string_equal(member.text, "client_cache_size=5\n");
	assert_true(set("Ceph_Option", "debug client=1/5", &member));
	assert_string_equal(member.text,
			    "client_cache_size=5\ndebug_client=1/5\n");
	assert_false(set("Ceph_Option", "client_oc = true", &member));
	assert_non_null(strstr(why, "remove client_oc: it must stay false"));
	assert_string_equal(member.text,
			    "client_cache_size=5\ndebug_client=1/5\n");

	memset(text, 'x', sizeof(text) - 1);
	assert_false(set("Ceph_Option", text, &member));
	assert_string_equal(
		why, "it must be \"name = value\" of at most 1024 characters");
	text[1] = '=';
	text[sizeof(text) - 2] = '\0';
	assert_true(set("Ceph_Option", text, &member));
	assert_int_equal(strlen(member.text),
			 strlen("client_cache_size=5\ndebug_client=1/5\n") +
				 CASYNC_CEPH_OPTION_MAX + 1);
	gsh_free(member.text);
}

static bool has_a_row(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(numbers[i].name, name) == 0)
			return true;
	}
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].name, name) == 0)
			return true;
	}
	for (i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		if (strcmp(strings[i].name, name) == 0)
			return true;
	}
	return strcmp(name, "Ceph_Option") == 0 || strcmp(name, "Name") == 0;
}

TEST(every_key_is_tested_and_explained)
{
	const struct casync_key *key, *other;

	for (key = casync_keys; key->name != NULL; key++) {
		if (!has_a_row(key->name))
			fail_msg("%s has no row in this test", key->name);
		assert_ptr_equal(casync_keys_find(key->name), key);
		assert_true(casync_keys_in_block(key, CASYNC_IN_MODULE) ||
			    casync_keys_in_block(key, CASYNC_IN_EXPORT));
		assert_non_null(key->summary);
		assert_int_equal(key->summary[strlen(key->summary) - 1], '.');
		for (other = casync_keys; other != key; other++)
			assert_string_not_equal(key->name, other->name);
	}
}

TEST(unknown_key_is_not_found)
{
	assert_null(casync_keys_find("Colour"));
	assert_ptr_equal(casync_keys_find("STABLE_write"),
			 casync_keys_find("Stable_Write"));
}

TEST(message_fits_any_buffer)
{
	const struct casync_key *key;
	char small[40];
	size_t size;

	for (key = casync_keys; key->name != NULL; key++) {
		if (key->type == CASYNC_KEY_GANESHA)
			continue;
		for (size = 1; size < sizeof(small); size++) {
			union member member = {0};

			memset(small, 'x', sizeof(small));
			if (casync_key_values_set(key, "", &member, small,
						  size)) {
				gsh_free(member.text); /* a string of 0 */
				break;
			}
			assert_non_null(memchr(small, '\0', size));
			assert_int_equal(small[size], 'x');
		}
	}
}

TEST(module_starts_from_the_defaults)
{
	struct casync_module_keys keys;

	memset(&keys, 0xff, sizeof(keys));
	casync_key_values_set_defaults(CASYNC_IN_MODULE, &keys);
	assert_null(keys.ceph_conf);
	assert_int_equal(keys.umask, 0);
	assert_false(keys.client_oc);
	assert_true(keys.async);
	assert_false(keys.zerocopy);
	assert_int_equal(keys.use_old_uuid, CASYNC_GANESHA_OLD_UUID);
	assert_false(keys.register_service);
	assert_null(keys.nodeid);
	assert_null(keys.data_pool);
	assert_null(keys.ceph_options);
	assert_int_equal(keys.tuning.stable_write, CASYNC_STABLE_DATA);
	assert_int_equal(keys.tuning.promote_unstable, 1);
	assert_int_equal(keys.tuning.max_inflight, 8192);
	assert_int_equal(keys.tuning.max_inflight_bytes, 1ULL << 30);
	assert_int_equal(keys.tuning.max_read, 0);
	assert_int_equal(keys.tuning.max_write, 0);
	assert_int_equal(keys.tuning.gather_bytes, 65536);
	assert_int_equal(keys.tuning.object_size, 0);
	assert_int_equal(keys.tuning.stripe_unit, 0);
	assert_int_equal(keys.tuning.stripe_count, 0);
	assert_int_equal(keys.tuning.mount_timeout, 120);
	assert_int_equal(keys.tuning.session_timeout, 300);
	assert_int_equal(keys.tuning.reconnect, 1);
	assert_int_equal(keys.tuning.reconnect_timeout, 0);
	assert_int_equal(keys.tuning.drain_timeout, 30);
	assert_int_equal(keys.tuning.slow_op_warn, 10000);
	assert_int_equal(keys.tuning.stats_interval, 0);
	casync_key_values_free(CASYNC_IN_MODULE, &keys);
}

TEST(export_inherits_what_both_have)
{
	struct casync_module_keys module;
	struct casync_export_keys keys;

	casync_key_values_set_defaults(CASYNC_IN_MODULE, &module);
	module.tuning.max_inflight = 17;
	module.tuning.reconnect = 0;
	module.tuning.reconnect_timeout = 600;
	assert_true(set("Data_Pool", "fast", &module.data_pool));
	assert_true(set("Ceph_Option", "a=b", &module.ceph_options));

	casync_key_values_set_defaults(CASYNC_IN_EXPORT, &keys);
	casync_key_values_inherit(&keys, &module);
	assert_null(keys.user_id);
	assert_string_equal(keys.sec_label_xattr, "security.selinux");
	assert_int_equal(keys.tuning.max_inflight, 17);
	assert_int_equal(keys.tuning.reconnect, 0);
	assert_int_equal(keys.tuning.reconnect_timeout, 600);
	assert_string_equal(keys.data_pool, "fast");
	assert_ptr_not_equal(keys.data_pool, module.data_pool);
	assert_true(set("Ceph_Option", "c=d", &keys.ceph_options));
	assert_string_equal(keys.ceph_options, "a=b\nc=d\n");
	assert_string_equal(module.ceph_options, "a=b\n");

	casync_key_values_free(CASYNC_IN_EXPORT, &keys);
	assert_null(keys.data_pool);
	assert_null(keys.sec_label_xattr);
	casync_key_values_free(CASYNC_IN_MODULE, &module);
}

TEST(what_is_not_set_follows_from_the_others)
{
	struct casync_tuning tuning = {.max_inflight_bytes = 1 << 30};

	casync_key_values_resolve(&tuning);
	assert_int_equal(tuning.max_read, FSAL_MAXIOSIZE);
	assert_int_equal(tuning.max_write, FSAL_MAXIOSIZE);
	assert_int_equal(tuning.object_size, 0);
	assert_int_equal(tuning.stripe_unit, 0);
	assert_int_equal(tuning.stripe_count, 0);

	tuning = (struct casync_tuning){.max_inflight_bytes = 1 << 20,
					.max_write = 8192,
					.object_size = 1 << 25};
	casync_key_values_resolve(&tuning);
	assert_int_equal(tuning.max_read, 1 << 20);
	assert_int_equal(tuning.max_write, 8192);
	assert_int_equal(tuning.stripe_unit, 1 << 25);
	assert_int_equal(tuning.stripe_count, 1);

	tuning = (struct casync_tuning){.max_inflight_bytes = 1 << 20,
					.stripe_count = 3};
	casync_key_values_resolve(&tuning);
	assert_int_equal(tuning.object_size, 4 << 20);
	assert_int_equal(tuning.stripe_unit, 4 << 20);
	assert_int_equal(tuning.stripe_count, 3);
	assert_true(casync_key_values_agree(&tuning, why, sizeof(why)));
}

TEST(contradictions_are_named)
{
	static const struct {
		struct casync_tuning tuning;
		const char *said; /* NULL: they agree */
	} cases[] = {
		{{.max_inflight_bytes = 1 << 30}, NULL},
		{{.max_inflight_bytes = 1 << 20, .max_read = 1 << 20}, NULL},
		{{.max_inflight_bytes = 1 << 20, .max_read = (1 << 20) + 1},
		 "Max_Read = 1048577 with Max_Inflight_Bytes = 1048576: "},
		{{.max_inflight_bytes = 1 << 20, .max_write = 1 << 21},
		 "Max_Write = 2097152 with Max_Inflight_Bytes = 1048576: "},
		{{.max_inflight_bytes = 1 << 30,
		  .object_size = 3 << 16,
		  .stripe_unit = 3 << 16},
		 NULL},
		{{.max_inflight_bytes = 1 << 30,
		  .object_size = 3 << 16,
		  .stripe_unit = 2 << 16},
		 "Object_Size = 196608 with Stripe_Unit = 131072: "},
		{{.max_inflight_bytes = 1 << 30, .stripe_unit = 8 << 20},
		 "Object_Size = 4194304 with Stripe_Unit = 8388608: "},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct casync_tuning tuning = cases[i].tuning;

		casync_key_values_resolve(&tuning);
		memset(why, 0, sizeof(why));
		assert_int_equal(
			casync_key_values_agree(&tuning, why, sizeof(why)),
			cases[i].said == NULL);
		if (cases[i].said != NULL)
			assert_memory_equal(why, cases[i].said,
					    strlen(cases[i].said));
	}
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What a reload may change, for every key of the table; how it is told; and
 * that values are taken over while they are read.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "durability.h"
#include "ganesha.h"
#include "key_changes.h"

#define ROUNDS 20000

static struct casync_export_keys running, fresh;
static struct casync_module_keys module_running, module_fresh;
static char text[2048];

static int up(void **state)
{
	casync_key_values_set_defaults(CASYNC_IN_EXPORT, &running);
	casync_key_values_set_defaults(CASYNC_IN_EXPORT, &fresh);
	casync_key_values_set_defaults(CASYNC_IN_MODULE, &module_running);
	casync_key_values_set_defaults(CASYNC_IN_MODULE, &module_fresh);
	memset(text, 0, sizeof(text));
	return 0;
}

static int down(void **state)
{
	casync_key_values_free(CASYNC_IN_EXPORT, &running);
	casync_key_values_free(CASYNC_IN_EXPORT, &fresh);
	casync_key_values_free(CASYNC_IN_MODULE, &module_running);
	casync_key_values_free(CASYNC_IN_MODULE, &module_fresh);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static const struct casync_key *find(const char *name)
{
	const struct casync_key *key = casync_keys_find(name);

	assert_non_null(key);
	return key;
}

static void set(enum casync_block block, void *values, const char *name,
		const char *value)
{
	const struct casync_key *key = find(name);
	char why[512];

	assert_true(casync_key_values_set(
		key, value, (char *)values + key->at[block], why, sizeof(why)));
}

static void set_fresh(const char *name, const char *value)
{
	set(CASYNC_IN_EXPORT, &fresh, name, value);
}

static void set_fresh_block(const char *name, const char *value)
{
	set(CASYNC_IN_MODULE, &module_fresh, name, value);
}

static const char *fixed(void)
{
	return casync_key_changes_list_fixed(CASYNC_IN_EXPORT, &running, &fresh,
					     text, sizeof(text))
		       ? text
		       : NULL;
}

static const char *fixed_block(void)
{
	return casync_key_changes_list_fixed(CASYNC_IN_MODULE, &module_running,
					     &module_fresh, text, sizeof(text))
		       ? text
		       : NULL;
}

struct change {
	const char *name, *value;
	const char *said;
};

static const struct change live[] = {
	{"Stable_Write", "full", "Stable_Write = full (was data)"},
	{"Stable_Metadata", "journal", "Stable_Metadata = journal (was mds)"},
	{"Promote_Unstable", "no", "Promote_Unstable = false (was true)"},
	{"Max_Inflight", "5", "Max_Inflight = 5 (was 8192)"},
	{"Max_Inflight_Bytes", "1048576",
	 "Max_Inflight_Bytes = 1048576 (was 1073741824)"},
	{"Max_Read", "4096", "Max_Read = 4096 (was 0)"},
	{"Max_Write", "8192", "Max_Write = 8192 (was 0)"},
	{"Gather_Bytes", "0", "Gather_Bytes = 0 (was 65536)"},
	{"Object_Size", "65536", "Object_Size = 65536 (was 0)"},
	{"Stripe_Unit", "65536", "Stripe_Unit = 65536 (was 0)"},
	{"Stripe_Count", "2", "Stripe_Count = 2 (was 0)"},
	{"Data_Pool", "fast", "Data_Pool = \"fast\" (was not set)"},
	{"Reconnect", "off", "Reconnect = false (was true)"},
	{"Reconnect_Timeout", "600", "Reconnect_Timeout = 600 (was 0)"},
	{"Drain_Timeout", "3", "Drain_Timeout = 3 (was 30)"},
	{"Slow_Op_Warn", "0", "Slow_Op_Warn = 0 (was 10000)"},
	{"Stats_Interval", "60", "Stats_Interval = 60 (was 0)"},
};

static const struct change identity[] = {
	{"User_Id", "joe", "User_Id = \"joe\" (was not set)"},
	{"Secret_Access_Key", "abc", "Secret_Access_Key (not shown)"},
	{"Filesystem", "other", "Filesystem = \"other\" (was not set)"},
	{"Cmount_Path", "/", "Cmount_Path = \"/\" (was not set)"},
	{"Sign_Handles", "on", "Sign_Handles = true (was false)"},
	{"Sec_Label_Xattr", "user.label",
	 "Sec_Label_Xattr = \"user.label\" (was \"security.selinux\")"},
	{"Share_Client", "no", "Share_Client = false (was true)"},
	{"Mount_Timeout", "61", "Mount_Timeout = 61 (was 120)"},
	{"Session_Timeout", "61", "Session_Timeout = 61 (was 300)"},
	{"Ceph_Option", "a = b", "Ceph_Option = \"a=b\" (was not set)"},
};

static const struct change restart[] = {
	{"Ceph_Conf", "/x", "Ceph_Conf = \"/x\" (was not set)"},
	{"Umask", "022", "Umask = 022 (was 0)"},
	{"Zerocopy", "true", "Zerocopy = true (was false)"},
	{"Use_Old_Uuid", CASYNC_GANESHA_OLD_UUID ? "false" : "true",
	 CASYNC_GANESHA_OLD_UUID ? "Use_Old_Uuid = false (was true)"
				 : "Use_Old_Uuid = true (was false)"},
	{"Register_Service", "on", "Register_Service = true (was false)"},
	{"NodeId", "a", "NodeId = \"a\" (was not set)"},
	{"Max_Inflight_Total", "300", "Max_Inflight_Total = 300 (was 32768)"},
	{"Max_Inflight_Bytes_Total", "134217728",
	 "Max_Inflight_Bytes_Total = 134217728 (was 4294967296)"},
};

/* A key of the block alone that a reload takes over. */
static const struct change live_block[] = {
	{"Cache_Bytes", "0", "Cache_Bytes = 0 (was 268435456)"},
	{"Handle_Keys", "/k", "Handle_Keys = \"/k\" (was not set)"},
	{"Metrics_File", "/m", "Metrics_File = \"/m\" (was not set)"},
};

static bool is_in(const struct change *changes, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(changes[i].name, name) == 0)
			return true;
	}
	return false;
}

/* A key that is added to the table is to be added here. */
CASE(every_key_is_tried)
{
	const struct casync_key *key;

	for (key = casync_keys; key->name != NULL; key++) {
		/* With one value only, or Ganesha's. */
		if (key->only != NULL || key->type == CASYNC_KEY_GANESHA)
			continue;
		if (!is_in(live, COUNT(live), key->name) &&
		    !is_in(live_block, COUNT(live_block), key->name) &&
		    !is_in(identity, COUNT(identity), key->name) &&
		    !is_in(restart, COUNT(restart), key->name))
			fail_msg("%s is not tried", key->name);
	}
}

CASE(nothing_new_is_no_change)
{
	assert_null(casync_key_changes_next(CASYNC_IN_EXPORT, &running, &fresh,
					    NULL));
	assert_null(casync_key_changes_next(CASYNC_IN_MODULE, &module_running,
					    &module_fresh, NULL));
	assert_null(fixed());
	assert_null(fixed_block());
}

CASE(live_keys_are_taken_over)
{
	size_t i;

	for (i = 0; i < COUNT(live); i++) {
		const struct casync_key *key = find(live[i].name);

		set_fresh(live[i].name, live[i].value);
		assert_ptr_equal(casync_key_changes_next(CASYNC_IN_EXPORT,
							 &running, &fresh,
							 NULL),
				 key);
		assert_null(casync_key_changes_next(CASYNC_IN_EXPORT, &running,
						    &fresh, key));
		casync_key_changes_describe(key, CASYNC_IN_EXPORT, &running,
					    &fresh, text, sizeof(text));
		assert_string_equal(text, live[i].said);
		assert_null(fixed());

		casync_key_changes_adopt(CASYNC_IN_EXPORT, &running, &fresh);
		down(state);
		up(state);
	}
	/* All of them, in one go. */
	for (i = 0; i < COUNT(live); i++)
		set_fresh(live[i].name, live[i].value);
	casync_key_changes_adopt(CASYNC_IN_EXPORT, &running, &fresh);
	assert_int_equal(running.tuning.stable_write, CASYNC_STABLE_FULL);
	assert_int_equal(running.tuning.promote_unstable, 0);
	assert_int_equal(running.tuning.max_inflight, 5);
	assert_int_equal(running.tuning.max_inflight_bytes, 1 << 20);
	assert_int_equal(running.tuning.max_read, 4096);
	assert_int_equal(running.tuning.max_write, 8192);
	assert_int_equal(running.tuning.gather_bytes, 0);
	assert_int_equal(running.tuning.object_size, 65536);
	assert_int_equal(running.tuning.stripe_unit, 65536);
	assert_int_equal(running.tuning.stripe_count, 2);
	assert_int_equal(running.tuning.reconnect, 0);
	assert_int_equal(running.tuning.reconnect_timeout, 600);
	assert_int_equal(running.tuning.drain_timeout, 3);
	assert_int_equal(running.tuning.slow_op_warn, 0);
	assert_string_equal(running.data_pool, "fast");
	assert_null(fresh.data_pool);
}

CASE(keys_of_the_mount_are_refused_each)
{
	size_t i;

	for (i = 0; i < COUNT(identity); i++) {
		set_fresh("Max_Inflight", "5");
		set_fresh(identity[i].name, identity[i].value);
		assert_non_null(fixed());
		assert_string_equal(text, identity[i].said);
		down(state);
		up(state);
	}
}

CASE(all_that_is_refused_is_one_list)
{
	set_fresh("User_Id", "joe");
	set_fresh("Secret_Access_Key", "hush");
	set_fresh("Stable_Write", "full");
	set_fresh("Ceph_Option", "a = b");
	set_fresh("Ceph_Option", "c = d");
	assert_string_equal(
		fixed(),
		"User_Id = \"joe\" (was not set), Secret_Access_Key (not shown), Ceph_Option = \"a=b; c=d\" (was not set)");
}

CASE(a_list_too_long_is_cut)
{
	char little[24];

	set_fresh("User_Id", "somebody");
	set_fresh("Filesystem", "somewhere");
	memset(little, 'x', sizeof(little));
	assert_true(casync_key_changes_list_fixed(CASYNC_IN_EXPORT, &running,
						  &fresh, little,
						  sizeof(little) - 1));
	assert_string_equal(little, "User_Id = \"somebody\" (");
	assert_int_equal(little[sizeof(little) - 1], 'x');
}

CASE(text_that_comes_and_goes_is_a_change)
{
	set_fresh("Data_Pool", "");
	assert_non_null(casync_key_changes_next(CASYNC_IN_EXPORT, &running,
						&fresh, NULL));
	casync_key_changes_adopt(CASYNC_IN_EXPORT, &running, &fresh);
	assert_string_equal(running.data_pool, "");
	/* What was there before is ours to free. */
	assert_null(fresh.data_pool);
	casync_key_changes_describe(find("Data_Pool"), CASYNC_IN_EXPORT,
				    &running, &fresh, text, sizeof(text));
	assert_string_equal(text, "Data_Pool = not set (was \"\")");
}

CASE(keys_of_a_start_are_refused_in_the_block)
{
	size_t i;

	for (i = 0; i < COUNT(restart); i++) {
		set_fresh_block(restart[i].name, restart[i].value);
		assert_non_null(fixed_block());
		assert_string_equal(text, restart[i].said);
		down(state);
		up(state);
	}
}

CASE(live_keys_of_the_block_are_taken_over)
{
	set_fresh_block(live_block[0].name, live_block[0].value);
	assert_null(fixed_block());
	casync_key_changes_describe(find(live_block[0].name), CASYNC_IN_MODULE,
				    &module_running, &module_fresh, text,
				    sizeof(text));
	assert_string_equal(text, live_block[0].said);
	casync_key_changes_adopt(CASYNC_IN_MODULE, &module_running,
				 &module_fresh);
	assert_int_equal(module_running.cache_bytes, 0);
}

/* Defaults of exports to come. */
CASE(the_rest_of_the_block_is_taken_over)
{
	set_fresh_block("Max_Inflight", "5");
	set_fresh_block("Mount_Timeout", "61");
	set_fresh_block("Ceph_Option", "a = b");
	assert_null(fixed_block());
	casync_key_changes_adopt(CASYNC_IN_MODULE, &module_running,
				 &module_fresh);
	assert_int_equal(module_running.tuning.max_inflight, 5);
	assert_int_equal(module_running.tuning.mount_timeout, 61);
	assert_string_equal(module_running.ceph_options, "a=b\n");

	/* One that inherits them cannot follow. */
	casync_key_values_inherit(&fresh, &module_running);
	assert_string_equal(
		fixed(),
		"Mount_Timeout = 61 (was 120), Ceph_Option = \"a=b\" (was not set)");
}

/* --- while they are read */

static bool ended;

static void *read_on(void *arg)
{
	uint64_t *wrong = arg;

	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		uint32_t mode =
			casync_tuning_read(&running.tuning.stable_write);
		uint32_t most = casync_tuning_read(&running.tuning.max_write);
		uint32_t slow =
			casync_tuning_read(&running.tuning.slow_op_warn);

		*wrong += mode != CASYNC_STABLE_DATA &&
			  mode != CASYNC_STABLE_FULL;
		*wrong += most != 4096 && most != 65536 && most != 0;
		*wrong += slow != 10000 && slow != 7;
	}
	return NULL;
}

CASE(values_are_read_while_they_change)
{
	uint64_t wrong[2] = {0};
	pthread_t readers[2];
	unsigned int i;

	ended = false;
	for (i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&readers[i], NULL, read_on, &wrong[i]),
			0);
	for (i = 0; i < ROUNDS; i++) {
		set_fresh("Stable_Write", i % 2 ? "full" : "data");
		set_fresh("Max_Write", i % 3 ? "4096" : "65536");
		set_fresh("Slow_Op_Warn", i % 2 ? "7" : "10000");
		set_fresh("Data_Pool", i % 2 ? "a" : "b");
		casync_key_changes_adopt(CASYNC_IN_EXPORT, &running, &fresh);
	}
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		RIG_JOIN(readers[i], NULL);
		assert_int_equal(wrong[i], 0);
	}
	assert_int_equal(running.tuning.stable_write, CASYNC_STABLE_FULL);
	assert_string_equal(running.data_pool, "a");
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "durability.h"
#include "tuning.h"

static char wanted[128];

static bool set(struct casync_tuning *tuning, const char *key, const char *text)
{
	memset(wanted, 0, sizeof(wanted));
	return casync_tuning_set(key, text, tuning, wanted, sizeof(wanted));
}

static void defaults_are_the_documented_ones(void **state)
{
	struct casync_tuning tuning;

	(void)state;
	casync_tuning_defaults(&tuning);
	assert_int_equal(tuning.stable_write, CASYNC_STABLE_DATA);
	assert_int_equal(tuning.promote_unstable, 1);
	assert_int_equal(tuning.max_inflight, 8192);
	assert_int_equal(tuning.max_inflight_bytes, 1ULL << 30);
	assert_int_equal(tuning.mount_timeout, 60);
	assert_int_equal(tuning.session_timeout, 300);
	assert_int_equal(tuning.drain_timeout, 30);
	assert_int_equal(tuning.slow_op_warn, 10000);
}

static const struct {
	const char *key, *lowest, *highest, *below, *above, *range;
} numbers[] = {
	{"Max_Inflight", "1", "1048576", "0", "1048577",
	 "a number from 1 to 1048576"},
	{"Max_Inflight_Bytes", "1048576", "1099511627776", "1048575",
	 "1099511627777", "a number from 1048576 to 1099511627776"},
	{"Mount_Timeout", "1", "3600", "0", "3601", "a number from 1 to 3600"},
	{"Session_Timeout", "30", "86400", "29", "86401",
	 "a number from 30 to 86400"},
	{"Drain_Timeout", "1", "3600", "0", "3601", "a number from 1 to 3600"},
	{"Slow_Op_Warn", "0", "3600000", "-2", "3600001",
	 "a number from 0 to 3600000"},
};

static void numbers_are_taken_in_range_and_refused_beyond(void **state)
{
	struct casync_tuning tuning, before;
	size_t i;

	(void)state;
	casync_tuning_defaults(&tuning);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_true(set(&tuning, numbers[i].key, numbers[i].lowest));
		assert_true(set(&tuning, numbers[i].key, numbers[i].highest));
		before = tuning;
		assert_false(set(&tuning, numbers[i].key, numbers[i].below));
		assert_string_equal(wanted, numbers[i].range);
		assert_false(set(&tuning, numbers[i].key, numbers[i].above));
		assert_false(set(&tuning, numbers[i].key, "many"));
		assert_false(set(&tuning, numbers[i].key, "-1"));
		assert_false(set(&tuning, numbers[i].key, "1x"));
		assert_false(set(&tuning, numbers[i].key, ""));
		assert_memory_equal(&before, &tuning, sizeof(before));
	}
	assert_int_equal(tuning.max_inflight, 1048576);
	assert_int_equal(tuning.max_inflight_bytes, 1ULL << 40);
	assert_int_equal(tuning.mount_timeout, 3600);
	assert_int_equal(tuning.session_timeout, 86400);
	assert_int_equal(tuning.drain_timeout, 3600);
	assert_int_equal(tuning.slow_op_warn, 3600000);
}

static void words_are_taken_in_any_case_and_others_refused(void **state)
{
	struct casync_tuning tuning;

	(void)state;
	casync_tuning_defaults(&tuning);
	assert_true(set(&tuning, "stable_write", "FULL"));
	assert_int_equal(tuning.stable_write, CASYNC_STABLE_FULL);
	assert_true(set(&tuning, "Stable_Write", "fdatasync"));
	assert_int_equal(tuning.stable_write, CASYNC_STABLE_FDATASYNC);
	assert_false(set(&tuning, "Stable_Write", "sometimes"));
	assert_string_equal(wanted, "one of data, fdatasync, full");
	assert_int_equal(tuning.stable_write, CASYNC_STABLE_FDATASYNC);
	assert_true(set(&tuning, "Promote_Unstable", "No"));
	assert_int_equal(tuning.promote_unstable, 0);
	assert_false(set(&tuning, "Promote_Unstable", "perhaps"));
}

static void unknown_key_is_refused(void **state)
{
	struct casync_tuning tuning;

	(void)state;
	casync_tuning_defaults(&tuning);
	assert_false(set(&tuning, "Colour", "red"));
}

static void message_fits_any_buffer(void **state)
{
	struct casync_tuning tuning;
	char small[8];

	(void)state;
	casync_tuning_defaults(&tuning);
	assert_false(casync_tuning_set("Promote_Unstable", "x", &tuning, small,
				       sizeof(small)));
	assert_true(strlen(small) < sizeof(small));
}

static void items_name_every_key_once(void **state)
{
	struct config_item items[CASYNC_TUNING_KEYS];
	struct casync_tuning tuning;
	size_t i, j;

	(void)state;
	casync_tuning_defaults(&tuning);
	casync_tuning_items(items, 40);
	for (i = 0; i < CASYNC_TUNING_KEYS; i++) {
		assert_int_equal(items[i].off, 40);
		assert_int_equal(items[i].type, CONFIG_PROC);
		assert_false(set(&tuning, items[i].name, "?"));
		assert_string_not_equal(wanted, "a known key");
		for (j = 0; j < i; j++)
			assert_string_not_equal(items[i].name, items[j].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_documented_ones),
		cmocka_unit_test(numbers_are_taken_in_range_and_refused_beyond),
		cmocka_unit_test(
			words_are_taken_in_any_case_and_others_refused),
		cmocka_unit_test(unknown_key_is_refused),
		cmocka_unit_test(message_fits_any_buffer),
		cmocka_unit_test(items_name_every_key_once),
	};

	return cmocka_run_group_tests_name("tuning", tests, NULL, NULL);
}

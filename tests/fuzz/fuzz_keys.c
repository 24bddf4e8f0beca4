/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Keys and values of a configuration file: whatever they are, what is taken
 * is in its range and goes to its own member, what is refused changes
 * nothing and says what was wanted.
 *
 * Input: how large the message may be (a byte), the key (a byte's number, or
 * text for the highest numbers), a NUL, the value.
 */
#include "config.h"

#include <stdbool.h>
#include <strings.h>

#include "fsal.h"

#include "keys.h"
#include "fuzz.h"

#define MIB ((uint64_t)1 << 20)

struct key {
	const char *name;
	uint64_t min, max;
	size_t offset, bytes;
	bool words; /* not a number */
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

#define MEMBER(member)                          \
	offsetof(struct casync_tuning, member), \
		sizeof(((struct casync_tuning *)0)->member)

/* What the documentation promises, not what keys.c has. */
static const struct key keys[] = {
	{"Stable_Write", 0, 2, MEMBER(stable_write), true},
	{"Promote_Unstable", 0, 1, MEMBER(promote_unstable), true},
	{"Max_Inflight", 1, 1048576, MEMBER(max_inflight), false},
	{"Max_Inflight_Bytes", MIB, MIB << 20, MEMBER(max_inflight_bytes),
	 false},
	{"Mount_Timeout", 1, 3600, MEMBER(mount_timeout), false},
	{"Session_Timeout", 30, 86400, MEMBER(session_timeout), false},
	{"Drain_Timeout", 1, 3600, MEMBER(drain_timeout), false},
	{"Slow_Op_Warn", 0, 3600000, MEMBER(slow_op_warn), false},
	{"Stats_Interval", 0, 86400, MEMBER(stats_interval), false},
	{"Max_Read", 0, MIB << 6, MEMBER(max_read), false},
	{"Max_Write", 0, MIB << 6, MEMBER(max_write), false},
	{"Gather_Bytes", 0, MIB << 2, MEMBER(gather_bytes), false},
	{"Object_Size", 0, MIB << 7, MEMBER(object_size), false},
	{"Stripe_Unit", 0, MIB << 7, MEMBER(stripe_unit), false},
	{"Stripe_Count", 0, 1024, MEMBER(stripe_count), false},
	{"Reconnect", 0, 1, MEMBER(reconnect), true},
	{"Reconnect_Timeout", 0, 604800, MEMBER(reconnect_timeout), false},
};

static uint64_t value_of(const struct casync_tuning *tuning,
			 const struct key *key)
{
	const char *at = (const char *)tuning + key->offset;
	uint32_t narrow;
	uint64_t wide;

	if (key->bytes == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

static const struct key *known(const char *name)
{
	size_t i;

	for (i = 0; i < KEYS; i++) {
		if (strcasecmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

/* A number has no sign and is what its digits say; 0 and 0x are C's. */
static void check_number(const char *text, uint64_t value)
{
	uint64_t digits = 0;

	FUZZ_CHECK(text[0] >= '0' && text[0] <= '9');
	if (text[0] == '0')
		return;
	/* NOLINTNEXTLINE(*.ArrayBound): the input ends with a NUL. */
	for (; *text != '\0'; text++) {
		FUZZ_CHECK(*text >= '0' && *text <= '9');
		digits = digits * 10 + (uint64_t)(*text - '0');
	}
	FUZZ_CHECK(digits == value);
}

/* Everything but the key's own member is as it was. */
static void check_others(const struct casync_tuning *before,
			 const struct casync_tuning *after,
			 const struct key *taken)
{
	size_t i;

	for (i = 0; i < KEYS; i++) {
		if (&keys[i] != taken)
			FUZZ_CHECK(value_of(before, &keys[i]) ==
				   value_of(after, &keys[i]));
	}
}

static void check_said(const char *why, size_t room)
{
	if (room != 0)
		FUZZ_CHECK(memchr(why, '\0', room) != NULL);
	if (room > 1)
		FUZZ_CHECK(why[0] != '\0');
}

static void set_number(const struct key *key, const char *text, char *why,
		       size_t room)
{
	struct casync_tuning before, after;
	uint64_t value;

	/* Values that no key may have: what is not set shows. */
	memset(&before, 0xff, sizeof(before));
	after = before;
	if (casync_key_values_set(casync_keys_find(key->name), text,
				  (char *)&after + key->offset, why, room)) {
		value = value_of(&after, key);
		FUZZ_CHECK(value >= key->min && value <= key->max);
		if (!key->words)
			check_number(text, value);
		check_others(&before, &after, key);
	} else {
		check_others(&before, &after, NULL);
		check_said(why, room);
	}
}

/* What is taken of a string is the string; a list only grows. */
static void set_text(const struct casync_key *key, const char *text, char *why,
		     size_t room)
{
	char *member = NULL;

	if (!casync_key_values_set(key, text, &member, why, room)) {
		FUZZ_CHECK(member == NULL);
		check_said(why, room);
		return;
	}
	FUZZ_CHECK(member != NULL);
	if (key->type == CASYNC_KEY_OPTION)
		FUZZ_CHECK(member[strlen(member) - 1] == '\n' &&
			   strchr(member, '=') != NULL);
	else
		FUZZ_CHECK(strcmp(member, text) == 0);
	gsh_free(member);
}

static void set(const char *name, const char *text, size_t room)
{
	const struct casync_key *key = casync_keys_find(name);
	const struct key *number = known(name);
	/* NOLINTNEXTLINE(*.UnixAPI): no room is a case, a write is seen. */
	char *why = malloc(room);

	FUZZ_CHECK(why != NULL || room == 0);
	FUZZ_CHECK(key != NULL || number == NULL);
	if (number != NULL)
		set_number(number, text, why, room);
	else if (key != NULL && key->words == NULL &&
		 key->type >= CASYNC_KEY_STRING &&
		 key->type != CASYNC_KEY_GANESHA)
		set_text(key, text, why, room);
	free(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	uint8_t room, number;
	char *rest, *name, *text;

	fuzz_take(&input, &room, sizeof(room));
	fuzz_take(&input, &number, sizeof(number));
	rest = malloc(input.left + 1);
	FUZZ_CHECK(rest != NULL);
	memcpy(rest, input.data, input.left);
	rest[input.left] = '\0';

	if (number < 0xc0) {
		set(keys[number % KEYS].name, rest, room);
	} else {
		name = strdup(rest);
		text = memchr(rest, '\0', input.left);
		text = strdup(text != NULL ? text + 1 : "");
		FUZZ_CHECK(name != NULL && text != NULL);
		set(name, text, room);
		free(name);
		free(text);
	}
	free(rest);
	return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log.h"

#include "durability.h"
#include "tuning.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define TIB (1ULL << 40)

/* A word and what it stands for; ends with a NULL word. */
struct word {
	const char *word;
	uint64_t value;
};

static const struct word stable_write_words[] = {
	{"data", CASYNC_STABLE_DATA},
	{"fdatasync", CASYNC_STABLE_FDATASYNC},
	{"full", CASYNC_STABLE_FULL},
	{NULL, 0},
};

static const struct word boolean_words[] = {
	{"true", 1}, {"false", 0}, {"yes", 1}, {"no", 0},
	{"on", 1},   {"off", 0},   {NULL, 0},
};

struct key {
	char *name;		  /* as struct config_item has it */
	const struct word *words; /* NULL: a number */
	uint64_t min, max, preset;
	size_t offset, bytes; /* in struct casync_tuning */
};

#define AT(member)                              \
	offsetof(struct casync_tuning, member), \
		sizeof(((struct casync_tuning *)0)->member)

/* clang-format off */
static const struct key keys[CASYNC_TUNING_KEYS] = {
	{ "Stable_Write", stable_write_words, 0, 0, CASYNC_STABLE_DATA,
	  AT(stable_write) },
	{ "Promote_Unstable", boolean_words, 0, 0, 1, AT(promote_unstable) },
	{ "Max_Inflight", NULL, 1, 1048576, 8192, AT(max_inflight) },
	{ "Max_Inflight_Bytes", NULL, MIB, TIB, GIB, AT(max_inflight_bytes) },
	{ "Mount_Timeout", NULL, 1, 3600, 60, AT(mount_timeout) },
	{ "Session_Timeout", NULL, 30, 86400, 300, AT(session_timeout) },
	{ "Drain_Timeout", NULL, 1, 3600, 30, AT(drain_timeout) },
	/* A third of Ceph's osd_op_complaint_time (30 s). */
	{ "Slow_Op_Warn", NULL, 0, 3600000, 10000, AT(slow_op_warn) },
};
/* clang-format on */

static void store(const struct key *key, uint64_t value,
		  struct casync_tuning *tuning)
{
	char *to = (char *)tuning + key->offset;
	uint32_t narrow = (uint32_t)value;

	if (key->bytes == sizeof(narrow))
		memcpy(to, &narrow, sizeof(narrow));
	else
		memcpy(to, &value, sizeof(value));
}

static const struct key *find(const char *name)
{
	size_t i;

	for (i = 0; i < CASYNC_TUNING_KEYS; i++) {
		if (strcasecmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

void casync_tuning_defaults(struct casync_tuning *tuning)
{
	size_t i;

	memset(tuning, 0, sizeof(*tuning));
	for (i = 0; i < CASYNC_TUNING_KEYS; i++)
		store(&keys[i], keys[i].preset, tuning);
}

static bool parse_word(const struct key *key, const char *text, uint64_t *value)
{
	const struct word *word;

	for (word = key->words; word->word != NULL; word++) {
		if (strcasecmp(word->word, text) == 0) {
			*value = word->value;
			return true;
		}
	}
	return false;
}

static bool parse_number(const struct key *key, const char *text,
			 uint64_t *value)
{
	char *end;

	/* strtoull takes a sign; a number of requests has none. */
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno == 0 && *end == '\0' && *value >= key->min &&
	       *value <= key->max;
}

static void describe(const struct key *key, char *wanted, size_t size)
{
	const struct word *word;
	size_t used = 0;

	if (key->words == NULL) {
		(void)snprintf(wanted, size,
			       "a number from %" PRIu64 " to %" PRIu64,
			       key->min, key->max);
		return;
	}
	for (word = key->words; word->word != NULL && used < size; word++)
		used += (size_t)snprintf(wanted + used, size - used, "%s%s",
					 used == 0 ? "one of " : ", ",
					 word->word);
}

bool casync_tuning_set(const char *name, const char *text,
		       struct casync_tuning *tuning, char *wanted, size_t size)
{
	const struct key *key = find(name);
	uint64_t value = 0;
	bool good;

	if (key == NULL) {
		(void)snprintf(wanted, size, "a known key");
		return false;
	}
	good = key->words != NULL ? parse_word(key, text, &value)
				  : parse_number(key, text, &value);
	if (good)
		store(key, value, tuning);
	else
		describe(key, wanted, size);
	return good;
}

/* The value is preset; nothing is to be initialised. */
static void *keep(void *link_mem, void *self_struct)
{
	(void)link_mem;
	return self_struct;
}

static int handle(const char *token, enum term_type type_hint,
		  struct config_item *item, void *param_addr, void *cnode,
		  struct config_error_type *err_type)
{
	char wanted[128];

	(void)type_hint;
	(void)cnode;
	if (casync_tuning_set(item->name, token, param_addr, wanted,
			      sizeof(wanted)))
		return 0;

	LogCrit(COMPONENT_CONFIG, "%s = %s is refused: it must be %s",
		item->name, token, wanted);
	err_type->invalid = true;
	return 1;
}

void casync_tuning_items(struct config_item *items, size_t offset)
{
	size_t i;

	for (i = 0; i < CASYNC_TUNING_KEYS; i++) {
		items[i] = (struct config_item){
			.name = keys[i].name,
			.type = CONFIG_PROC,
			.flags = CONFIG_UNIQUE,
			.u.proc.init = keep,
			.u.proc.handler = handle,
			.off = offset, /* the handler finds the member */
		};
	}
}

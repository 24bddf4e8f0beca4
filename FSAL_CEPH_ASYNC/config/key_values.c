/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Parses, stores and describes values by the table of keys.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fsal.h"

#include "ceph_options.h"
#include "keys.h"
#include "rados_object.h"
#include "text.h"

/* Ceph's default, if a layout does not set it. */
#define DEFAULT_OBJECT_SIZE (4U << 20)

static void *key_values_member_of(const struct casync_key *key,
				  enum casync_block block, void *values)
{
	return (char *)values + key->at[block];
}

static bool key_values_is_read(const struct casync_key *key,
			       enum casync_block block)
{
	return casync_keys_in_block(key, block) &&
	       key->type != CASYNC_KEY_GANESHA;
}

void casync_key_values_store(const struct casync_key *key, uint64_t value,
			     void *member)
{
	if (key->bytes == sizeof(bool))
		__atomic_store_n((bool *)member, value != 0, __ATOMIC_RELAXED);
	else if (key->bytes == sizeof(uint32_t))
		__atomic_store_n((uint32_t *)member, (uint32_t)value,
				 __ATOMIC_RELAXED);
	else
		__atomic_store_n((uint64_t *)member, value, __ATOMIC_RELAXED);
}

void casync_key_values_set_defaults(enum casync_block block, void *values)
{
	const struct casync_key *key;
	void *member;

	for (key = casync_keys; key->name != NULL; key++) {
		if (!key_values_is_read(key, block))
			continue;
		member = key_values_member_of(key, block, values);
		if (casync_keys_is_text(key))
			*(char **)member = casync_text_copy(key->preset_string);
		else
			casync_key_values_store(key, key->preset, member);
	}
}

void casync_key_values_free(enum casync_block block, void *values)
{
	const struct casync_key *key;
	char **text;

	for (key = casync_keys; key->name != NULL; key++) {
		if (!key_values_is_read(key, block) ||
		    !casync_keys_is_text(key))
			continue;
		text = key_values_member_of(key, block, values);
		gsh_free(*text);
		*text = NULL;
	}
}

void casync_key_values_inherit(struct casync_export_keys *keys,
			       const struct casync_module_keys *module)
{
	const struct casync_key *key;

	keys->tuning = module->tuning;
	keys->sign_handles = module->sign_handles;
	for (key = casync_keys; key->name != NULL; key++) {
		char *const *from;
		char **to;

		if (!casync_keys_is_text(key) ||
		    !key_values_is_read(key, CASYNC_IN_MODULE) ||
		    !key_values_is_read(key, CASYNC_IN_EXPORT))
			continue;
		from = (char *const *)((const char *)module +
				       key->at[CASYNC_IN_MODULE]);
		to = key_values_member_of(key, CASYNC_IN_EXPORT, keys);
		gsh_free(*to);
		*to = casync_text_copy(*from);
	}
}

static bool key_values_parse_word(const struct casync_key *key,
				  const char *text, uint64_t *value)
{
	const struct casync_word *word;

	for (word = key->words; word->word != NULL; word++) {
		if (strcasecmp(word->word, text) == 0) {
			*value = word->value;
			return true;
		}
	}
	return false;
}

static bool key_values_parse_number(const struct casync_key *key,
				    const char *text, uint64_t *value)
{
	char *end;

	/* strtoull accepts a sign; these numbers have none. */
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	if (errno != 0 || *end != '\0')
		return false;
	if (key->or_zero && *value == 0)
		return true;
	return *value >= key->min && *value <= key->max &&
	       (key->multiple == 0 || *value % key->multiple == 0);
}

static void key_values_describe_words(const struct casync_key *key,
				      char *wanted, size_t size)
{
	const struct casync_word *word;
	size_t used = 0;

	for (word = key->words;
	     word != NULL && word->word != NULL && used < size; word++)
		used += (size_t)snprintf(wanted + used, size - used, "%s%s",
					 used == 0 ? "one of " : ", ",
					 word->word);
}

static void key_values_describe_number(const struct casync_key *key,
				       char *wanted, size_t size)
{
	char multiple[64] = "";

	if (key->multiple != 0)
		(void)snprintf(multiple, sizeof(multiple),
			       ", a multiple of %" PRIu64, key->multiple);
	(void)snprintf(wanted, size,
		       "a number%s%s from %" PRIu64 " to %" PRIu64 "%s%s",
		       key->unit != NULL ? " of " : "",
		       key->unit != NULL ? key->unit : "", key->min, key->max,
		       multiple, key->or_zero ? ", or 0" : "");
}

void casync_key_values_describe(const struct casync_key *key, char *wanted,
				size_t size)
{
	switch (key->type) {
	case CASYNC_KEY_NUMBER:
		key_values_describe_number(key, wanted, size);
		break;
	case CASYNC_KEY_OCTAL:
		(void)snprintf(wanted, size,
			       "an octal number from 0 to 0%" PRIo64, key->max);
		break;
	case CASYNC_KEY_BOOLEAN:
	case CASYNC_KEY_WORD:
		key_values_describe_words(key, wanted, size);
		break;
	case CASYNC_KEY_PATH:
		(void)snprintf(wanted, size,
			       "a path that begins with /, of at most %" PRIu64
			       " characters",
			       key->max);
		break;
	case CASYNC_KEY_PLACE:
		(void)snprintf(
			wanted, size,
			"a path that begins with /, or " CASYNC_RADOS_SCHEME
			"POOL/NAMESPACE/OBJECT, of at most %" PRIu64
			" characters",
			key->max);
		break;
	case CASYNC_KEY_OPTION:
		(void)snprintf(wanted, size,
			       "\"name = value\" of at most %" PRIu64
			       " characters",
			       key->max);
		break;
	case CASYNC_KEY_STRING:
	case CASYNC_KEY_GANESHA:
		(void)snprintf(wanted, size,
			       "a text of %" PRIu64 " to %" PRIu64
			       " characters",
			       key->min, key->max);
		break;
	}
}

static bool key_values_refuse(const struct casync_key *key, char *why,
			      size_t size)
{
	static const char must[] = "it must be ";

	(void)snprintf(why, size, "%s", must);
	if (size > sizeof(must))
		casync_key_values_describe(key, why + sizeof(must) - 1,
					   size - sizeof(must) + 1);
	return false;
}

static bool key_values_set_number(const struct casync_key *key,
				  const char *text, void *member, char *why,
				  size_t size)
{
	uint64_t value = 0;
	bool good = key->words != NULL
			    ? key_values_parse_word(key, text, &value)
			    : key_values_parse_number(key, text, &value);

	if (!good)
		return key_values_refuse(key, why, size);
	if (key->only != NULL && value != key->preset)
		return casync_text_refuse(why, size, "%s", key->only);
	casync_key_values_store(key, value, member);
	return true;
}

static bool key_values_set_string(const struct casync_key *key,
				  const char *text, char **member, char *why,
				  size_t size)
{
	size_t length = strlen(text);

	if (length < key->min || length > key->max ||
	    (key->type == CASYNC_KEY_PATH && text[0] != '/') ||
	    (key->type == CASYNC_KEY_PLACE && text[0] != '/' &&
	     !casync_rados_object_is_url(text)))
		return key_values_refuse(key, why, size);
	gsh_free(*member);
	*member = gsh_strdup(text);
	return true;
}

/* Add a line to the list. */
static bool key_values_add_option(const struct casync_key *key,
				  const char *text, char **member, char *why,
				  size_t size)
{
	char line[CASYNC_CEPH_OPTION_MAX + 2];
	size_t length, more;
	char *longer;

	if (strlen(text) > key->max)
		return key_values_refuse(key, why, size);
	if (!casync_ceph_options_parse(text, line, why, size))
		return false;
	length = *member != NULL ? strlen(*member) : 0;
	more = strlen(line) + 1;
	longer = gsh_malloc(length + more);
	if (length != 0)
		memcpy(longer, *member, length);
	memcpy(longer + length, line, more);
	gsh_free(*member);
	*member = longer;
	return true;
}

bool casync_key_values_set(const struct casync_key *key, const char *text,
			   void *member, char *why, size_t size)
{
	if (key->type == CASYNC_KEY_OPTION)
		return key_values_add_option(key, text, member, why, size);
	if (casync_keys_is_text(key))
		return key_values_set_string(key, text, member, why, size);
	if (key->type == CASYNC_KEY_GANESHA)
		return true;
	return key_values_set_number(key, text, member, why, size);
}

void casync_key_values_resolve(struct casync_tuning *tuning)
{
	uint32_t most = FSAL_MAXIOSIZE;

	if (tuning->max_inflight_bytes < most)
		most = (uint32_t)tuning->max_inflight_bytes;
	if (tuning->max_read == 0)
		tuning->max_read = most;
	if (tuning->max_write == 0)
		tuning->max_write = most;

	if (tuning->object_size == 0 && tuning->stripe_unit == 0 &&
	    tuning->stripe_count == 0)
		return;
	if (tuning->object_size == 0)
		tuning->object_size = DEFAULT_OBJECT_SIZE;
	if (tuning->stripe_unit == 0)
		tuning->stripe_unit = tuning->object_size;
	if (tuning->stripe_count == 0)
		tuning->stripe_count = 1;
}

/* Refuse a request size that is larger than the limit of all requests. */
static bool key_values_fits(const char *name, uint32_t bytes,
			    const struct casync_tuning *tuning, char *why,
			    size_t size)
{
	if (bytes <= tuning->max_inflight_bytes)
		return true;
	return casync_text_refuse(
		why, size,
		"%s = %" PRIu32 " with Max_Inflight_Bytes = %" PRIu64
		": one request alone would exceed the limit; lower the first or raise the second",
		name, bytes, tuning->max_inflight_bytes);
}

bool casync_key_values_agree(const struct casync_tuning *tuning, char *why,
			     size_t size)
{
	if (!key_values_fits("Max_Read", tuning->max_read, tuning, why, size) ||
	    !key_values_fits("Max_Write", tuning->max_write, tuning, why, size))
		return false;
	if (tuning->object_size == 0 ||
	    tuning->object_size % tuning->stripe_unit == 0)
		return true;
	return casync_text_refuse(
		why, size,
		"Object_Size = %" PRIu32 " with Stripe_Unit = %" PRIu32
		": an object holds whole stripe units only; make the first a multiple of the second",
		tuning->object_size, tuning->stripe_unit);
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "key_changes.h"
#include "text.h"

static const void *key_changes_member_of(const struct casync_key *key,
					 enum casync_block block,
					 const void *values)
{
	return (const char *)values + key->at[block];
}

static const char *key_changes_text_of(const void *member)
{
	return *(char *const *)member;
}

static uint64_t key_changes_number_of(const struct casync_key *key,
				      const void *member)
{
	if (key->bytes == sizeof(bool))
		return *(const bool *)member;
	if (key->bytes == sizeof(uint32_t))
		return *(const uint32_t *)member;
	return *(const uint64_t *)member;
}

static bool key_changes_same(const struct casync_key *key, const void *a,
			     const void *b)
{
	if (!casync_keys_is_text(key))
		return memcmp(a, b, key->bytes) == 0;
	return casync_text_same(key_changes_text_of(a), key_changes_text_of(b));
}

const struct casync_key *casync_key_changes_next(enum casync_block block,
						 const void *now,
						 const void *fresh,
						 const struct casync_key *after)
{
	const struct casync_key *key = after != NULL ? after + 1 : casync_keys;

	for (; key->name != NULL; key++) {
		if (casync_keys_in_block(key, block) &&
		    key->type != CASYNC_KEY_GANESHA &&
		    !key_changes_same(key,
				      key_changes_member_of(key, block, now),
				      key_changes_member_of(key, block, fresh)))
			return key;
	}
	return NULL;
}

/* May a reload change the key in this block?  CEPH_ASYNC { } may change
 * defaults that a running export cannot adopt: they apply to exports that are
 * added later. */
static bool key_changes_is_allowed(const struct casync_key *key,
				   enum casync_block block)
{
	if (key->change == CASYNC_KEY_IDENTITY)
		return block == CASYNC_IN_MODULE;
	return key->change == CASYNC_KEY_LIVE;
}

static const char *key_changes_word_of(const struct casync_key *key,
				       uint64_t value)
{
	const struct casync_word *word;

	for (word = key->words; word->word != NULL; word++) {
		if (word->value == value)
			return word->word;
	}
	return "?";
}

/* The lines of Ceph_Option become "name=value; name=value". */
static void key_changes_show_text(const char *value, char *text, size_t size)
{
	size_t used = 0;

	while (value[0] != '\0' && used < size) {
		int length = (int)strcspn(value, "\n");

		used += (size_t)snprintf(text + used, size - used, "%s%.*s",
					 used != 0 ? "; " : "\"", length,
					 value);
		value += length + (value[length] != '\0');
	}
	if (used < size)
		(void)snprintf(text + used, size - used,
			       used != 0 ? "\"" : "\"\"");
}

static void key_changes_show(const struct casync_key *key, const void *member,
			     char *text, size_t size)
{
	if (casync_keys_is_text(key) && key_changes_text_of(member) == NULL)
		(void)snprintf(text, size, "not set");
	else if (casync_keys_is_text(key))
		key_changes_show_text(key_changes_text_of(member), text, size);
	else if (key->words != NULL)
		(void)snprintf(text, size, "%s",
			       key_changes_word_of(key, key_changes_number_of(
								key, member)));
	else if (key->type == CASYNC_KEY_OCTAL)
		(void)snprintf(text, size, "%#" PRIo64,
			       key_changes_number_of(key, member));
	else
		(void)snprintf(text, size, "%" PRIu64,
			       key_changes_number_of(key, member));
}

void casync_key_changes_describe(const struct casync_key *key,
				 enum casync_block block, const void *now,
				 const void *fresh, char *text, size_t size)
{
	char was[CASYNC_SHOWN_BYTES];
	char is[CASYNC_SHOWN_BYTES];

	if (key->secret) {
		(void)snprintf(text, size, "%s (not shown)", key->name);
		return;
	}
	key_changes_show(key, key_changes_member_of(key, block, now), was,
			 sizeof(was));
	key_changes_show(key, key_changes_member_of(key, block, fresh), is,
			 sizeof(is));
	(void)snprintf(text, size, "%s = %s (was %s)", key->name, is, was);
}

bool casync_key_changes_list_fixed(enum casync_block block, const void *now,
				   const void *fresh, char *text, size_t size)
{
	const struct casync_key *key = NULL;
	char one[CASYNC_CHANGE_BYTES];
	size_t used = 0;

	while ((key = casync_key_changes_next(block, now, fresh, key)) !=
	       NULL) {
		if (key_changes_is_allowed(key, block))
			continue;
		casync_key_changes_describe(key, block, now, fresh, one,
					    sizeof(one));
		if (used < size)
			used += (size_t)snprintf(text + used, size - used,
						 "%s%s", used != 0 ? ", " : "",
						 one);
	}
	return used != 0;
}

static void key_changes_swap(char **now, char **fresh)
{
	char *old = *now;

	*now = *fresh;
	*fresh = old;
}

void casync_key_changes_adopt(enum casync_block block, void *now, void *fresh)
{
	const struct casync_key *key = NULL;

	while ((key = casync_key_changes_next(block, now, fresh, key)) !=
	       NULL) {
		void *to = (char *)now + key->at[block];
		void *from = (char *)fresh + key->at[block];

		if (casync_keys_is_text(key))
			key_changes_swap(to, from);
		else
			casync_key_values_store(
				key, key_changes_number_of(key, from), to);
	}
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Prints the table of keys as JSON, for documents.py.
 */
#include "config.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "keys.h"

static const char *const types[] = {
	[CASYNC_KEY_NUMBER] = "number",	  [CASYNC_KEY_OCTAL] = "octal",
	[CASYNC_KEY_BOOLEAN] = "boolean", [CASYNC_KEY_WORD] = "word",
	[CASYNC_KEY_STRING] = "string",	  [CASYNC_KEY_PATH] = "path",
	[CASYNC_KEY_PLACE] = "place",	  [CASYNC_KEY_OPTION] = "option",
	[CASYNC_KEY_GANESHA] = "ganesha",
};

static const char *const changes[] = {
	[CASYNC_KEY_LIVE] = "live",
	[CASYNC_KEY_IDENTITY] = "identity",
	[CASYNC_KEY_RESTART] = "restart",
};

static void add_text(struct json_object *to, const char *name, const char *text)
{
	json_object_object_add(
		to, name, text != NULL ? json_object_new_string(text) : NULL);
}

static void add_number(struct json_object *to, const char *name, uint64_t value)
{
	json_object_object_add(to, name, json_object_new_uint64(value));
}

static void add_truth(struct json_object *to, const char *name, bool truth)
{
	json_object_object_add(to, name, json_object_new_boolean(truth));
}

static struct json_object *words_of(const struct casync_key *key)
{
	struct json_object *words = json_object_new_object();
	const struct casync_word *word;

	for (word = key->words; word != NULL && word->word != NULL; word++)
		add_number(words, word->word, word->value);
	return words;
}

static struct json_object *describe(const struct casync_key *key)
{
	struct json_object *one = json_object_new_object();
	char wanted[256];

	casync_key_values_describe(key, wanted, sizeof(wanted));
	add_text(one, "name", key->name);
	add_text(one, "type", types[key->type]);
	add_text(one, "wanted", wanted);
	json_object_object_add(one, "words", words_of(key));
	add_number(one, "min", key->min);
	add_number(one, "max", key->max);
	add_number(one, "multiple", key->multiple);
	add_truth(one, "or_zero", key->or_zero);
	add_number(one, "preset", key->preset);
	add_text(one, "preset_string", key->preset_string);
	add_text(one, "unset", key->unset);
	add_text(one, "unit", key->unit);
	add_text(one, "change", changes[key->change]);
	add_truth(one, "module", casync_keys_in_block(key, CASYNC_IN_MODULE));
	add_truth(one, "export", casync_keys_in_block(key, CASYNC_IN_EXPORT));
	add_text(one, "summary", key->summary);
	add_text(one, "text", key->text);
	return one;
}

int main(void)
{
	struct json_object *all = json_object_new_array();
	const struct casync_key *key;

	for (key = casync_keys; key->name != NULL; key++)
		json_object_array_add(all, describe(key));
	puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	json_object_put(all);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file keys.h
 * @brief The table of all keys of both blocks.
 *
 * keys.c has the table; key_values.c parses and stores values by it.
 * docs/generate writes the reference sample (config/ceph_async.conf), the man
 * page and docs/configuration.md from the table.  A test fails if they differ.
 */
#ifndef CASYNC_KEYS_H
#define CASYNC_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ceph_options.h"
#include "config_keys.h"

enum casync_key_type {
	CASYNC_KEY_NUMBER,
	CASYNC_KEY_OCTAL,
	CASYNC_KEY_BOOLEAN,
	CASYNC_KEY_WORD,
	CASYNC_KEY_STRING,
	CASYNC_KEY_PATH,   /**< A string that begins with a slash. */
	CASYNC_KEY_PLACE,  /**< A path, or a URL of rados_object.h. */
	CASYNC_KEY_OPTION, /**< "name = value", any number of them. */
	CASYNC_KEY_GANESHA /**< Ganesha reads it; here only documented. */
};

/** The act that applies a new value. */
enum casync_key_change {
	CASYNC_KEY_LIVE,     /**< A reload, on the running export. */
	CASYNC_KEY_IDENTITY, /**< Removing and adding the export. */
	CASYNC_KEY_RESTART,  /**< A restart of Ganesha. */
};

/** A word and its value; a list ends with a NULL word. */
struct casync_word {
	const char *word;
	uint64_t value;
};

/** The blocks, as the index of casync_key.at. */
enum casync_block { CASYNC_IN_MODULE, CASYNC_IN_EXPORT, CASYNC_BLOCKS };

/** The key is not in that block. */
#define CASYNC_NOWHERE SIZE_MAX

struct casync_key {
	const char *name;
	const struct casync_word *words; /**< For booleans and words. */
	uint64_t min, max;	   /**< Of a number, or a string's length. */
	uint64_t multiple;	   /**< A number's divisor; 0: none. */
	uint64_t preset;	   /**< Default of numbers and words. */
	const char *preset_string; /**< Default of strings, or NULL. */
	const char *unset;	   /**< The default in words. */
	const char *unit;	   /**< Of numbers, or NULL. */
	const char *only;	   /**< Why only the default is accepted. */
	const char *summary;	   /**< One sentence, for tables. */
	const char *text;	   /**< More; paragraphs end with "\n\n". */
	enum casync_key_type type;
	enum casync_key_change change;
	bool or_zero;		  /**< 0 is accepted too: not set. */
	bool secret;		  /**< The value is not logged. */
	size_t at[CASYNC_BLOCKS]; /**< Offset in the block's struct. */
	size_t bytes;		  /**< Of the member. */
};

/** The table; ends with a NULL name. */
extern const struct casync_key casync_keys[];

/** Longest name of a pool; Ceph has no limit. */
#define CASYNC_POOL_NAME_MAX 255

/** Find a key by name, in any case.  NULL: there is none. */
const struct casync_key *casync_keys_find(const char *name);

/** Is it a key of that block? */
static inline bool casync_keys_in_block(const struct casync_key *key,
					enum casync_block block)
{
	return key->at[block] != CASYNC_NOWHERE;
}

/** Is its value a text? */
static inline bool casync_keys_is_text(const struct casync_key *key)
{
	return key->type == CASYNC_KEY_STRING || key->type == CASYNC_KEY_PATH ||
	       key->type == CASYNC_KEY_PLACE || key->type == CASYNC_KEY_OPTION;
}

/** Give every key of a block its default; old values are overwritten. */
void casync_key_values_set_defaults(enum casync_block block, void *values);

/** Free the allocated values, and set them to NULL. */
void casync_key_values_free(enum casync_block block, void *values);

/** Copy the values of the keys that both blocks have from the module. */
void casync_key_values_inherit(struct casync_export_keys *keys,
			       const struct casync_module_keys *module);

/** Store a number, atomically, in the member of a struct of a block. */
void casync_key_values_store(const struct casync_key *key, uint64_t value,
			     void *member);

/**
 * Set one key from its text.
 *
 * @param[in]     key     From the table.
 * @param[in]     text    Its value, as written.
 * @param[in,out] member  Where to store it; unchanged on error.
 * @param[out]    why     On error "it must be ..." or a reason.
 * @param[in]     size    Of @p why, in bytes.
 *
 * @return Whether the value is right.
 */
bool casync_key_values_set(const struct casync_key *key, const char *text,
			   void *member, char *why, size_t size);

/** Say what a value must be: "a number of requests from 1 to 1048576". */
void casync_key_values_describe(const struct casync_key *key, char *wanted,
				size_t size);

/**
 * Fill in values that were not set and follow from other keys: the sizes of
 * requests and the rest of a layout.
 */
void casync_key_values_resolve(struct casync_tuning *tuning);

/**
 * Check that the values of resolved keys do not contradict each other.
 *
 * @param[out] why   If they do: the keys and the reason.
 * @param[in]  size  Of @p why, in bytes.
 */
bool casync_key_values_agree(const struct casync_tuning *tuning, char *why,
			     size_t size);

#endif /* CASYNC_KEYS_H */

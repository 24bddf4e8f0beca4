/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file keys.h
 * @brief Every key of both blocks: the one place that knows them.
 *
 * keys.c is the table, key_values.c what is done by it.  The reference sample
 * (config/ceph_async.conf), the man page and docs/configuration.md are written
 * from it by docs/generate; a test fails when they differ.
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
	CASYNC_KEY_OPTION, /**< "name = value", as often as one likes. */
	CASYNC_KEY_GANESHA /**< Read by Ganesha, known here by name only. */
};

/** What it takes to bring a new value into force. */
enum casync_key_change {
	CASYNC_KEY_LIVE,     /**< A reload: on the export as it runs. */
	CASYNC_KEY_IDENTITY, /**< The export is removed and added again. */
	CASYNC_KEY_RESTART,  /**< Ganesha is started again. */
};

/** A word and what it stands for; a list ends with a NULL word. */
struct casync_word {
	const char *word;
	uint64_t value;
};

/** The blocks, as the index of casync_key.at. */
enum casync_block { CASYNC_IN_MODULE, CASYNC_IN_EXPORT, CASYNC_BLOCKS };

/** Not a key of that block. */
#define CASYNC_NOWHERE SIZE_MAX

struct casync_key {
	const char *name;
	const struct casync_word *words; /**< Of booleans and words. */
	uint64_t min, max;	   /**< Of numbers; of a string's length. */
	uint64_t multiple;	   /**< Numbers: of this, unless it is 0. */
	uint64_t preset;	   /**< Default of numbers and words. */
	const char *preset_string; /**< Default of strings, or NULL. */
	const char *unset;	   /**< What holds while it is not set. */
	const char *unit;	   /**< Of numbers, or NULL. */
	const char *only;	   /**< Why nothing but the default is taken. */
	const char *summary;	   /**< One sentence, for tables. */
	const char *text;	   /**< More; paragraphs end with "\n\n". */
	enum casync_key_type type;
	enum casync_key_change change;
	bool or_zero;		  /**< 0 is taken, too: as if not set. */
	bool secret;		  /**< The value is not logged. */
	size_t at[CASYNC_BLOCKS]; /**< In the block's struct. */
	size_t bytes;		  /**< Of the member. */
};

/** The table; ends with a NULL name. */
extern const struct casync_key casync_keys[];

/** Longest name of a pool; Ceph itself has no limit. */
#define CASYNC_POOL_NAME_MAX 255

/** NULL when there is none.  Case does not matter. */
const struct casync_key *casync_key_find(const char *name);

/** Is it a key of that block? */
static inline bool casync_key_in(const struct casync_key *key,
				 enum casync_block block)
{
	return key->at[block] != CASYNC_NOWHERE;
}

/** Give every key of a block its default; what was there is overwritten. */
void casync_keys_defaults(enum casync_block block, void *values);

/** Free what is allocated, and forget it. */
void casync_keys_free(enum casync_block block, void *values);

/** What both blocks have is what the module's has.  Strings are copied. */
void casync_keys_inherit(struct casync_export_keys *keys,
			 const struct casync_module_keys *module);

/**
 * Set one key from its text.
 *
 * @param[in]     key     From the table.
 * @param[in]     text    Its value, as written.
 * @param[in,out] member  Where it goes; untouched on error.
 * @param[out]    why     On error "it must be ..." or a reason.
 * @param[in]     size    Of @p why, in bytes.
 *
 * @return Whether the value is right.
 */
bool casync_key_set(const struct casync_key *key, const char *text,
		    void *member, char *why, size_t size);

/** What a value must be: "a number of requests from 1 to 1048576". */
void casync_key_wanted(const struct casync_key *key, char *wanted, size_t size);

/**
 * Put in what follows from other keys, where an export leaves it to us: the
 * sizes of requests and the rest of a layout.
 */
void casync_keys_resolve(struct casync_tuning *tuning);

/**
 * Do the values of resolved keys go together?
 *
 * @param[out] why   If not: which do not, and for what reason.
 * @param[in]  size  Of @p why, in bytes.
 */
bool casync_keys_agree(const struct casync_tuning *tuning, char *why,
		       size_t size);

#endif /* CASYNC_KEYS_H */

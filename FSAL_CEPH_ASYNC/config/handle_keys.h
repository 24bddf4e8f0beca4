/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file handle_keys.h
 * @brief Reads the lines of Handle_Keys: the secrets that sign file handles.
 *
 * One key a line, 64 hexadecimal digits.  The first one signs; a handle that
 * any of them signed is right.  Empty lines and lines with # are skipped.
 */
#ifndef CASYNC_HANDLE_KEYS_H
#define CASYNC_HANDLE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The length of HMAC-SHA256's own result (RFC 2104, section 3). */
#define CASYNC_HANDLE_KEY_BYTES 32

/** The new one and the old one. */
#define CASYNC_HANDLE_KEYS_MAX 2

struct casync_handle_keys {
	unsigned int count;
	uint8_t key[CASYNC_HANDLE_KEYS_MAX][CASYNC_HANDLE_KEY_BYTES];
};

/**
 * Read the file.  It has to be a regular file that only its owner may read.
 *
 * @param[in]  path  Of the file.
 * @param[out] keys  At least one key; casync_handle_keys_wipe() when used.
 * @param[out] why   On error: what is wrong, and the way out.
 * @param[in]  size  Of @p why, in bytes.
 *
 * @return Whether the file is right.
 */
bool casync_handle_keys_read(const char *path, struct casync_handle_keys *keys,
			     char *why, size_t size);

/** Read the same lines from a text, and overwrite it. */
bool casync_handle_keys_read_text(char *text, struct casync_handle_keys *keys,
				  char *why, size_t size);

/** Overwrite the keys in memory. */
void casync_handle_keys_wipe(struct casync_handle_keys *keys);

#endif /* CASYNC_HANDLE_KEYS_H */

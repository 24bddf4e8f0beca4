/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file signature.h
 * @brief Signs wire handles, and checks the signatures.
 *
 * A signed handle has CASYNC_WIRE_BYTES of filehandle.h, and then
 * CASYNC_SIGNATURE_BYTES: HMAC-SHA256 of those bytes and the export's number
 * (u16, little-endian), cut to its first half (RFC 2104, section 5).  So a
 * handle of one export is none of another one, and a client cannot make up one.
 * Gateways that have the same keys take each other's handles.
 */
#ifndef CASYNC_SIGNATURE_H
#define CASYNC_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "filehandle.h"
#include "handle_keys.h"

#define CASYNC_SIGNATURE_BYTES 16
#define CASYNC_SIGNED_WIRE_BYTES (CASYNC_WIRE_BYTES + CASYNC_SIGNATURE_BYTES)

/**
 * Take these keys from now on, in the place of those before.  Requests that
 * are being checked end with the keys that they began with.
 *
 * @return 0, or -ENOTSUP if OpenSSL has no HMAC-SHA256: the keys stay.
 */
int casync_signature_use(const struct casync_handle_keys *keys);

/** Are there keys? */
bool casync_signature_ready(void);

/**
 * Append the signature.
 *
 * @param[in,out] wire  CASYNC_WIRE_BYTES of a handle, and room for
 *                      CASYNC_SIGNED_WIRE_BYTES.
 *
 * @return 0, or -EIO if OpenSSL fails or there is no key.
 */
int casync_signature_add(void *wire, uint16_t export_id);

/**
 * Check a signature.  Asks nobody but the CPU; takes the same time for each
 * wrong one.
 *
 * @param[in] wire  CASYNC_SIGNED_WIRE_BYTES, from a client.
 *
 * @return 0, -ESTALE if no key of ours made it, or -EIO.
 */
int casync_signature_check(const void *wire, uint16_t export_id);

/** Forget the keys.  No request may be running. */
void casync_signature_free(void);

#endif /* CASYNC_SIGNATURE_H */

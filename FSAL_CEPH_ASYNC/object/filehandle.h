/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file filehandle.h
 * @brief The wire handle and the cache key: pure functions.
 *
 * Wire form: 24 bytes, little-endian on every machine.  It is the same as
 * FSAL_CEPH's, so clients keep their mounts when the export's FSAL name
 * changes:
 *
 *	offset 0  u64 inode number
 *	offset 8  u64 snapshot id
 *	offset 16 i64 file system cluster id (fscid)
 *
 * Key: the same 24 bytes, followed by the u16 export id in host order.  A file
 * that is seen through two exports has two cache entries.
 */
#ifndef CASYNC_FILEHANDLE_H
#define CASYNC_FILEHANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASYNC_WIRE_BYTES 24
#define CASYNC_KEY_BYTES (CASYNC_WIRE_BYTES + sizeof(uint16_t))

/** The meaning of a handle: an object of a file system. */
struct casync_fileid {
	uint64_t ino;
	uint64_t snapid;
	int64_t fscid;
};

/**
 * Encode a file id.
 *
 * @param[in]  id    The file.
 * @param[out] wire  CASYNC_WIRE_BYTES bytes.
 */
void casync_filehandle_encode(const struct casync_fileid *id, void *wire);

/**
 * Decode a handle.  It came from a client, so it can be any bytes.
 *
 * @param[in]  wire       Bytes as received.
 * @param[in]  len_bytes  Their number.
 * @param[out] id         Their meaning.
 *
 * @retval true   Right length, a possible inode number, snapid and fscid.
 * @retval false  Not our handle; @p id is unchanged.
 */
bool casync_filehandle_decode(const void *wire, size_t len_bytes,
			      struct casync_fileid *id);

/**
 * Build the cache key.
 *
 * @param[in]  id         Object.
 * @param[in]  export_id  Ganesha's Export_Id.
 * @param[out] key        CASYNC_KEY_BYTES bytes.
 */
void casync_filehandle_key(const struct casync_fileid *id, uint16_t export_id,
			   void *key);

#endif /* CASYNC_FILEHANDLE_H */

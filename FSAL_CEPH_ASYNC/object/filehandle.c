/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <endian.h>
#include <string.h>

#include "filehandle.h"

_Static_assert(CASYNC_WIRE_BYTES == 3 * sizeof(uint64_t),
	       "the wire handle is FSAL_CEPH's, byte for byte");

void casync_filehandle_encode(const struct casync_fileid *id, void *wire)
{
	uint64_t words[3] = {
		htole64(id->ino),
		htole64(id->snapid),
		htole64((uint64_t)id->fscid),
	};

	memcpy(wire, words, sizeof(words));
}

/* The inodes that the MDS keeps for itself: its own directories, journals and
 * strays (mdstypes.h of Ceph).  libcephfs refuses them too, and writes a line
 * into its log for each. */
#define PRIVATE_FIRST 0x100
#define PRIVATE_END 0x1000

static bool filehandle_is_private(uint64_t ino)
{
	return ino >= PRIVATE_FIRST && ino < PRIVATE_END;
}

bool casync_filehandle_decode(const void *wire, size_t len_bytes,
			      struct casync_fileid *id)
{
	uint64_t words[3];
	int64_t fscid;

	if (len_bytes != CASYNC_WIRE_BYTES)
		return false;

	memcpy(words, wire, sizeof(words));
	fscid = (int64_t)le64toh(words[2]);

	/* CephFS numbers inodes from 1 and file systems from 1 (0 on an
	 * upgraded single-fs cluster); -1 is "none" in the FSMap.  Asked for
	 * snapshot 0, libcephfs ends the process: a ceph_assert (20.2.4). */
	if (le64toh(words[0]) == 0 || le64toh(words[1]) == 0 || fscid < 0)
		return false;

	if (filehandle_is_private(le64toh(words[0])))
		return false;

	id->ino = le64toh(words[0]);
	id->snapid = le64toh(words[1]);
	id->fscid = fscid;
	return true;
}

void casync_filehandle_key(const struct casync_fileid *id, uint16_t export_id,
			   void *key)
{
	casync_filehandle_encode(id, key);
	memcpy((char *)key + CASYNC_WIRE_BYTES, &export_id, sizeof(export_id));
}

/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Handles that come from a client: any bytes, any number of them.  What is
 * decoded is what was encoded, what is no handle leaves no trace, and keys
 * are as different as what they stand for.
 */
#include <endian.h>
#include <stdbool.h>

#include "filehandle.h"
#include "fuzz.h"

static uint64_t word(const uint8_t *bytes)
{
	uint64_t value = 0;
	int i;

	for (i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

/* The format once more, from its description. */
static bool is_handle(const uint8_t *data, size_t size)
{
	return size == 24 && word(data) != 0 && word(data + 8) != 0 &&
	       word(data + 16) >> 63 == 0;
}

static bool same(const struct casync_fileid *a, const struct casync_fileid *b)
{
	return a->ino == b->ino && a->snapid == b->snapid &&
	       a->fscid == b->fscid;
}

static void *encode(const struct casync_fileid *id)
{
	void *wire = malloc(CASYNC_WIRE_BYTES);

	FUZZ_CHECK(wire != NULL);
	casync_filehandle_encode(id, wire);
	return wire;
}

static void decode_anything(const uint8_t *data, size_t size)
{
	const struct casync_fileid before = {0xa5a5, 0x5a5a, 0xc3};
	struct casync_fileid id = before;
	uint8_t *bytes = fuzz_copy(data, size);
	void *again;

	if (casync_filehandle_decode(bytes, size, &id)) {
		FUZZ_CHECK(is_handle(data, size));
		FUZZ_CHECK(id.ino == word(data));
		FUZZ_CHECK(id.snapid == word(data + 8));
		FUZZ_CHECK(id.fscid == (int64_t)word(data + 16));
		again = encode(&id);
		FUZZ_CHECK(memcmp(again, data, size) == 0);
		free(again);
	} else {
		FUZZ_CHECK(!is_handle(data, size));
		FUZZ_CHECK(same(&id, &before));
	}
	free(bytes);
}

static void encode_anything(const struct casync_fileid *id)
{
	bool possible = id->ino != 0 && id->snapid != 0 && id->fscid >= 0;
	struct casync_fileid got = {0};
	void *wire = encode(id);

	FUZZ_CHECK(casync_filehandle_decode(wire, CASYNC_WIRE_BYTES, &got) ==
		   possible);
	if (possible)
		FUZZ_CHECK(same(id, &got));
	free(wire);
}

static void *key_of(const struct casync_fileid *id, uint16_t export_id)
{
	void *key = malloc(CASYNC_KEY_BYTES);

	FUZZ_CHECK(key != NULL);
	casync_filehandle_key(id, export_id, key);
	return key;
}

static void compare_keys(const struct casync_fileid *a, uint16_t a_export,
			 const struct casync_fileid *b, uint16_t b_export)
{
	void *a_key = key_of(a, a_export);
	void *b_key = key_of(b, b_export);

	FUZZ_CHECK((memcmp(a_key, b_key, CASYNC_KEY_BYTES) == 0) ==
		   (same(a, b) && a_export == b_export));
	free(a_key);
	free(b_key);
}

static struct casync_fileid take_id(struct fuzz_input *input)
{
	struct casync_fileid id;

	id.ino = fuzz_number(input);
	id.snapid = fuzz_number(input);
	id.fscid = (int64_t)fuzz_number(input);
	return id;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct casync_fileid a, b;
	uint16_t exports[2];

	decode_anything(data, size);

	a = take_id(&input);
	fuzz_take(&input, exports, sizeof(exports));
	/* What is left flips bits of the other: most often just a few. */
	b = take_id(&input);
	b.ino ^= a.ino;
	b.snapid ^= a.snapid;
	b.fscid ^= a.fscid;
	encode_anything(&a);
	encode_anything(&b);
	compare_keys(&a, exports[0], &b, exports[1]);
	compare_keys(&a, exports[0], &a, exports[0]);
	return 0;
}

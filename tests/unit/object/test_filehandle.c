/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The wire handle is what clients keep across restarts and across a change
 * from FSAL_CEPH, so its bytes are spelled out here, not computed.
 */
#include <string.h>

#include "unit.h"

#include "filehandle.h"

/* CEPH_NOSNAP, the "snapshot" of everything that is not in one. */
#define NOSNAP UINT64_C(0xfffffffffffffffe)

struct wire_case {
	const char *name;
	struct casync_fileid id;
	uint8_t wire[CASYNC_WIRE_BYTES];
};

static const struct wire_case wire_cases[] = {
	{"wire_of_root_is_little_endian",
	 {.ino = 1, .snapid = NOSNAP, .fscid = 1},
	 {1,	0,    0,    0,	  0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0,    0,	  0,	0}},
	{"wire_of_file_keeps_every_byte_in_place",
	 {.ino = UINT64_C(0x0102030405060708),
	  .snapid = UINT64_C(0x1112131415161718),
	  .fscid = INT64_C(0x2122232425262728)},
	 {8,	7,    6,    5,	  4,	3,    2,    1,
	  0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
	  0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21}},
	{"wire_of_snapshot_in_first_fs_has_zero_fscid",
	 {.ino = UINT64_C(0x10000000000), .snapid = 4, .fscid = 0},
	 {0, 0, 0, 0, 0, 1, 0, 0, 4, 0, 0, 0,
	  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"wire_of_lost_and_found_is_below_the_private",
	 {.ino = 4, .snapid = NOSNAP, .fscid = 1},
	 {4,	0,    0,    0,	  0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0,    0,	  0,	0}},
	{"wire_of_first_inode_above_the_private",
	 {.ino = 0x1000, .snapid = NOSNAP, .fscid = 1},
	 {0,	0x10, 0,    0,	  0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0,    0,	  0,	0}},
	{"wire_of_largest_values_does_not_overflow",
	 {.ino = UINT64_MAX, .snapid = UINT64_MAX, .fscid = INT64_MAX},
	 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
};

TEST_ROWS(check_wire, wire_cases, NULL, NULL)
{
	const struct wire_case *c = *state;
	uint8_t wire[CASYNC_WIRE_BYTES];
	struct casync_fileid id = {0};

	casync_filehandle_encode(&c->id, wire);
	assert_memory_equal(wire, c->wire, sizeof(wire));

	assert_true(casync_filehandle_decode(c->wire, sizeof(c->wire), &id));
	assert_memory_equal(&id, &c->id, sizeof(id));
}

struct reject_case {
	const char *name;
	struct casync_fileid id;
	size_t len_bytes;
};

static const struct reject_case reject_cases[] = {
	{"decode_of_empty_handle_is_refused", {5, NOSNAP, 1}, 0},
	{"decode_of_one_word_is_refused", {5, NOSNAP, 1}, 8},
	{"decode_of_handle_one_short_is_refused",
	 {5, NOSNAP, 1},
	 CASYNC_WIRE_BYTES - 1},
	{"decode_of_handle_one_long_is_refused",
	 {5, NOSNAP, 1},
	 CASYNC_WIRE_BYTES + 1},
	{"decode_of_key_in_place_of_handle_is_refused",
	 {5, NOSNAP, 1},
	 CASYNC_KEY_BYTES},
	{"decode_of_inode_zero_is_refused", {0, NOSNAP, 1}, CASYNC_WIRE_BYTES},
	{"decode_of_first_private_inode_is_refused",
	 {0x100, NOSNAP, 1},
	 CASYNC_WIRE_BYTES},
	{"decode_of_stray_folder_is_refused",
	 {0x600, NOSNAP, 1},
	 CASYNC_WIRE_BYTES},
	{"decode_of_last_private_inode_in_snapshot_is_refused",
	 {0xfff, 5, 1},
	 CASYNC_WIRE_BYTES},
	{"decode_of_snapshot_zero_is_refused", {5, 0, 1}, CASYNC_WIRE_BYTES},
	{"decode_of_fscid_none_is_refused", {5, NOSNAP, -1}, CASYNC_WIRE_BYTES},
	{"decode_of_most_negative_fscid_is_refused",
	 {5, NOSNAP, INT64_MIN},
	 CASYNC_WIRE_BYTES},
};

TEST_ROWS(check_rejected, reject_cases, NULL, NULL)
{
	const struct reject_case *c = *state;
	const struct casync_fileid before = {77, 78, 79};
	struct casync_fileid id = before;
	uint8_t wire[CASYNC_KEY_BYTES] = {0};

	casync_filehandle_encode(&c->id, wire);
	assert_false(casync_filehandle_decode(wire, c->len_bytes, &id));
	assert_memory_equal(&id, &before, sizeof(id));
}

TEST(decode_of_unaligned_handle_works)
{
	const struct casync_fileid in = {5, NOSNAP, 3};
	struct casync_fileid out = {0};
	uint8_t buffer[CASYNC_WIRE_BYTES + 1];

	casync_filehandle_encode(&in, buffer + 1);
	assert_true(
		casync_filehandle_decode(buffer + 1, CASYNC_WIRE_BYTES, &out));
	assert_memory_equal(&out, &in, sizeof(out));
}

TEST(key_begins_with_wire_handle)
{
	const struct casync_fileid id = {0x10000000001, NOSNAP, 2};
	uint8_t wire[CASYNC_WIRE_BYTES];
	uint8_t key[CASYNC_KEY_BYTES];

	casync_filehandle_encode(&id, wire);
	casync_filehandle_key(&id, 42, key);
	assert_memory_equal(key, wire, sizeof(wire));
}

TEST(key_ends_with_export_id_in_host_order)
{
	const struct casync_fileid id = {1, NOSNAP, 1};
	const uint16_t export_id = 0xabcd;
	uint8_t key[CASYNC_KEY_BYTES];

	casync_filehandle_key(&id, export_id, key);
	assert_memory_equal(key + CASYNC_WIRE_BYTES, &export_id,
			    sizeof(export_id));
}

struct distinct_case {
	const char *name;
	struct casync_fileid other;
	uint16_t other_export;
};

/* Each differs in one thing from inode 5, not in a snapshot, fs 1, export 7. */
static const struct distinct_case distinct_cases[] = {
	{"key_of_other_export_is_another", {5, NOSNAP, 1}, 8},
	{"key_of_other_snapshot_is_another", {5, 3, 1}, 7},
	{"key_of_other_fs_is_another", {5, NOSNAP, 2}, 7},
	{"key_of_other_inode_is_another", {6, NOSNAP, 1}, 7},
};

TEST_ROWS(check_distinct, distinct_cases, NULL, NULL)
{
	const struct distinct_case *c = *state;
	const struct casync_fileid id = {5, NOSNAP, 1};
	uint8_t key[CASYNC_KEY_BYTES];
	uint8_t other[CASYNC_KEY_BYTES];

	casync_filehandle_key(&id, 7, key);
	casync_filehandle_key(&c->other, c->other_export, other);
	assert_memory_not_equal(key, other, sizeof(key));
}

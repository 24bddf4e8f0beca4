/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The uuid has to be FSAL_CEPH's, byte for byte: what goes into the hash is
 * spelled out, the hash itself is Ganesha's and stood in for.
 */
#include <string.h>

#include "unit.h"

#include "config.h"
#include "city.h"
#include "identity.h"

static char hashed[16384];
static size_t hashed_bytes;

uint64 CityHash64(const char *buf, size_t len)
{
	hashed_bytes = len;
	if (len < sizeof(hashed)) {
		memcpy(hashed, buf, len);
		hashed[len] = '\0';
	}
	return UINT64_C(0x00bad5eedc0ffee1);
}

struct uuid_case {
	const char *name;
	const char *nodeid;
	bool distinct;
	struct casync_identity id;
	const char *hashed; /* NULL: nothing is */
	const char *uuid;
};

static const struct uuid_case cases[] = {
	{"all_set_is_hashed_in_order",
	 "node7",
	 false,
	 {.user_id = "ganesha",
	  .filesystem = "cephfs",
	  .path = "/a/b",
	  .export_id = 3},
	 "node7ganeshacephfs/a/b",
	 "ganesha-0xbad5eedc0ffee1"},
	{"unset_user_is_hashed_as_null_text",
	 "n",
	 false,
	 {.filesystem = "fs", .path = "/"},
	 "n(null)fs/",
	 "ganesha-0xbad5eedc0ffee1"},
	{"unset_filesystem_is_hashed_as_null_text",
	 "n",
	 false,
	 {.user_id = "u", .path = "/"},
	 "nu(null)/",
	 "ganesha-0xbad5eedc0ffee1"},
	{"nothing_but_node_and_path_has_both_null_texts",
	 "n",
	 false,
	 {.path = "/"},
	 "n(null)(null)/",
	 "ganesha-0xbad5eedc0ffee1"},
	{"export_id_is_not_hashed",
	 "n",
	 false,
	 {.path = "/", .export_id = 77},
	 "n(null)(null)/",
	 "ganesha-0xbad5eedc0ffee1"},
	{"distinct_gets_suffix_after_hash",
	 "n",
	 true,
	 {.path = "/"},
	 "n(null)(null)/",
	 "ganesha-0xbad5eedc0ffee1-async"},
	{"own_names_the_export_after_the_hash",
	 "n",
	 false,
	 {.path = "/", .export_id = 7, .own = true},
	 "n(null)(null)/",
	 "ganesha-0xbad5eedc0ffee1-export-7"},
	{"own_and_distinct_has_both_suffixes",
	 "n",
	 true,
	 {.path = "/", .export_id = 65535, .own = true},
	 "n(null)(null)/",
	 "ganesha-0xbad5eedc0ffee1-export-65535-async"},
	{"own_in_old_form_is_not_the_shared_one_of_that_export",
	 "n",
	 false,
	 {.path = "/", .export_id = 7, .own = true, .use_old_uuid = true},
	 NULL,
	 "ganesha-n-0007-export-7"},
	{"old_form_is_node_and_padded_hex_export",
	 "node7",
	 false,
	 {.user_id = "u", .path = "/", .export_id = 0x2a, .use_old_uuid = true},
	 NULL,
	 "ganesha-node7-002a"},
	{"old_form_of_largest_export_fits",
	 "n",
	 false,
	 {.path = "/", .export_id = 0xffff, .use_old_uuid = true},
	 NULL,
	 "ganesha-n-ffff"},
	{"old_form_distinct_gets_suffix",
	 "n",
	 true,
	 {.path = "/", .export_id = 1, .use_old_uuid = true},
	 NULL,
	 "ganesha-n-0001-async"},
};

TEST_ROWS(check_uuid, cases, NULL, NULL)
{
	const struct uuid_case *c = *state;
	char uuid[CASYNC_UUID_BYTES];

	hashed_bytes = 0;
	casync_identity_uuid(&c->id, c->nodeid, c->distinct, uuid,
			     sizeof(uuid));
	assert_string_equal(uuid, c->uuid);
	if (c->hashed != NULL)
		assert_string_equal(hashed, c->hashed);
	else
		assert_int_equal(hashed_bytes, 0);
}

TEST(longest_node_id_keeps_suffix_in_old_form)
{
	char nodeid[256]; /* MAXNAMLEN and the end */
	const struct casync_identity id = {
		.path = "/", .export_id = 1, .use_old_uuid = true};
	char uuid[CASYNC_UUID_BYTES];

	memset(nodeid, 'x', sizeof(nodeid) - 1);
	nodeid[sizeof(nodeid) - 1] = '\0';
	casync_identity_uuid(&id, nodeid, true, uuid, sizeof(uuid));
	assert_int_equal(strlen(uuid),
			 strlen("ganesha-") + 255 + strlen("-0001-async"));
	assert_string_equal(uuid + strlen(uuid) - 11, "-0001-async");
}

TEST(overlong_path_is_cut_not_overrun)
{
	static char path[12000];
	const struct casync_identity id = {
		.user_id = "u", .filesystem = "f", .path = path};
	char uuid[CASYNC_UUID_BYTES];

	memset(path, '/', sizeof(path) - 1);
	casync_identity_uuid(&id, "n", false, uuid, sizeof(uuid));
	assert_int_equal(hashed_bytes, 8191);
	assert_memory_equal(hashed, "nuf///", 6);
}

TEST(small_buffer_is_terminated)
{
	const struct casync_identity id = {.path = "/"};
	char uuid[9] = "XXXXXXXX";

	casync_identity_uuid(&id, "n", false, uuid, 8);
	assert_string_equal(uuid, "ganesha");
	assert_int_equal(uuid[8], '\0');
}

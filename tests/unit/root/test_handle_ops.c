/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Handles between the wire and Ganesha, with and without a signature; and where
 * the keys that sign come from.  OpenSSL is the real one.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "client_mgr.h"

#include "handle_ops.h"
#include "rados_object.h"
#include "rig.h"
#include "signature.h"
#include "stub_mount.h"

#define HEX_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define HEX_B "fffe00000000000000000000000000000000000000000000000000000000abcd"
#define URL CASYNC_RADOS_SCHEME "pool/namespace/keys"
#define EXPORT_ID 77
#define FSCID 3

/* --- the configuration and RADOS */

static char path[] = "/tmp/test_handle_ops.XXXXXX";

static struct {
	const char *text; /* Of the object; NULL: it cannot be read. */
	const char *user; /* UserId of RADOS_URLS { }; NULL: no such key. */
	bool block;	  /* There is such a block. */
	char read_as[64]; /* The user that has read the object. */
	char ceph_conf[64];
	unsigned int reads;
} rados;

static const char a_block;

const void *casync_config_node_block(const void *parent, const char *name,
				     const void *after)
{
	assert_string_equal(name, "RADOS_URLS");
	return rados.block ? &a_block : NULL;
}

const char *casync_config_node_value(const void *block, const char *key)
{
	assert_ptr_equal(block, &a_block);
	assert_string_equal(key, "UserId");
	return rados.user;
}

bool casync_rados_object_read(const char *url,
			      const struct casync_rados_user *user, char *text,
			      size_t room, char *why, size_t size)
{
	assert_string_equal(url, URL);
	rados.reads++;
	(void)snprintf(rados.read_as, sizeof(rados.read_as), "%s",
		       user->user_id != NULL ? user->user_id : "(default)");
	(void)snprintf(rados.ceph_conf, sizeof(rados.ceph_conf), "%s",
		       user->ceph_conf);
	if (rados.text == NULL)
		(void)snprintf(why, size, "it is not there");
	else
		(void)snprintf(text, room, "%s", rados.text);
	return rados.text != NULL;
}

static char conf[] = "/etc/ceph/other.conf";
static char url[] = URL;
static struct casync_module_keys keys = {.ceph_conf = conf};

static bool load(char *from)
{
	keys.handle_keys = from;
	return casync_handle_ops_load(&keys, NULL);
}

static bool load_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
	return load(path);
}

/* --- a handle */

static uint8_t wire[CASYNC_SIGNED_WIRE_BYTES + 8];
static struct gsh_buffdesc desc;

static int up(void **state)
{
	rig_up(state);
	memset(&rados, 0, sizeof(rados));
	casync_signature_free();
	stub_mount.fscid = FSCID;
	rig.exp.export.export_id = EXPORT_ID;
	rig.obj->id.fscid = FSCID;
	desc = (struct gsh_buffdesc){.addr = wire, .len = sizeof(wire)};
	return 0;
}

static void make_wire(void)
{
	desc.len = sizeof(wire);
	assert_int_equal(casync_handle_to_wire(&rig.obj->handle,
					       FSAL_DIGEST_NFSV4, &desc)
				 .major,
			 ERR_FSAL_NO_ERROR);
}

static fsal_errors_t let_in(void)
{
	return casync_wire_to_host(&rig.exp.export, FSAL_DIGEST_NFSV4, &desc, 0)
		.major;
}

static uint64_t refused(void)
{
	static struct casync_view totals;

	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return totals.numbers[CASYNC_C_HANDLES_REFUSED];
}

static void check_is_the_file_s(void)
{
	struct casync_fileid id = {0};

	assert_true(casync_handle_ops_decode(&desc, &id));
	assert_int_equal(id.ino, rig.obj->id.ino);
	assert_true(id.snapid == CEPH_NOSNAP);
	assert_int_equal(id.fscid, FSCID);
}

TEST_WITH(handle_without_a_signature_comes_back, up, rig_down)
{
	make_wire();
	assert_int_equal(desc.len, CASYNC_WIRE_BYTES);
	assert_int_equal(let_in(), ERR_FSAL_NO_ERROR);
	assert_int_equal(desc.len, CASYNC_WIRE_BYTES);
	check_is_the_file_s();
}

TEST_WITH(handle_with_a_signature_comes_back, up, rig_down)
{
	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	assert_int_equal(desc.len, CASYNC_SIGNED_WIRE_BYTES);
	/* MDCACHE keeps what goes to the wire. */
	check_is_the_file_s();
	assert_int_equal(let_in(), ERR_FSAL_NO_ERROR);
	assert_int_equal(desc.len, CASYNC_WIRE_BYTES);
	check_is_the_file_s();
	assert_int_equal(refused(), 0);
}

/* From before Sign_Handles became false. */
TEST_WITH(signature_that_nobody_wants_is_taken_off, up, rig_down)
{
	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	rig.exp.keys.sign_handles = false;
	wire[CASYNC_WIRE_BYTES] ^= 1;
	assert_int_equal(let_in(), ERR_FSAL_NO_ERROR);
	assert_int_equal(desc.len, CASYNC_WIRE_BYTES);
}

TEST_WITH(handle_of_another_file_system_is_stale, up, rig_down)
{
	rig.obj->id.fscid = FSCID + 1;
	make_wire();
	assert_int_equal(let_in(), ERR_FSAL_STALE);
	assert_int_equal(refused(), 0);
}

TEST_WITH(bytes_that_are_no_handle_are_told, up, rig_down)
{
	uint8_t key[64];
	struct casync_fileid id;
	size_t len;

	make_wire();
	for (len = 0; len < sizeof(wire); len++) {
		if (len == CASYNC_WIRE_BYTES || len == CASYNC_SIGNED_WIRE_BYTES)
			continue;
		desc.len = len;
		assert_int_equal(let_in(), ERR_FSAL_BADHANDLE);
		assert_false(casync_handle_ops_decode(&desc, &id));
		memcpy(key, wire, sizeof(wire));
		assert_int_equal(
			casync_host_to_key(&rig.exp.export, &desc).major,
			ERR_FSAL_BADHANDLE);
		assert_int_equal(desc.len, len);
		assert_memory_equal(wire, key, sizeof(wire));
	}
}

static const struct forged_case {
	const char *name;
	size_t change; /* The byte that is changed. */
	size_t len;
	bool other_export;
} forgeries[] = {
	{"first_byte", 0, CASYNC_SIGNED_WIRE_BYTES, false},
	{"last_byte_of_the_id", CASYNC_WIRE_BYTES - 1, CASYNC_SIGNED_WIRE_BYTES,
	 false},
	{"first_byte_of_the_signature", CASYNC_WIRE_BYTES,
	 CASYNC_SIGNED_WIRE_BYTES, false},
	{"last_byte_of_the_signature", CASYNC_SIGNED_WIRE_BYTES - 1,
	 CASYNC_SIGNED_WIRE_BYTES, false},
	{"no_signature", sizeof(wire) - 1, CASYNC_WIRE_BYTES, false},
	{"too_long", sizeof(wire) - 1, CASYNC_SIGNED_WIRE_BYTES + 1, false},
	{"of_another_export", sizeof(wire) - 1, CASYNC_SIGNED_WIRE_BYTES, true},
};

TEST_ROWS(check_forgery, forgeries, up, rig_down)
{
	const struct forged_case *c = *state;

	component_log_level[COMPONENT_FSAL] = NIV_WARN;
	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	wire[c->change] ^= 1;
	desc.len = c->len;
	rig.exp.export.export_id += c->other_export;
	assert_int_equal(let_in(), ERR_FSAL_STALE);
	assert_int_equal(refused(), 1);
	assert_true(stub_warned("without our signature"));
	/* A client must not fill the log. */
	assert_int_equal(let_in(), ERR_FSAL_STALE);
	assert_int_equal(refused(), 2);
	assert_int_equal(stub.warnings, 1);
}

TEST_WITH(line_names_the_client, up, rig_down)
{
	static struct gsh_client client = {.hostaddr_str = "192.0.2.7"};

	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	desc.len = CASYNC_WIRE_BYTES;
	rig.request.client = &client;
	assert_int_equal(let_in(), ERR_FSAL_STALE);
	assert_true(stub_warned("client 192.0.2.7 "));
	rig.exp.refused_line_ns = 0;
	rig.request.client = NULL;
	assert_int_equal(let_in(), ERR_FSAL_STALE);
	assert_true(stub_warned("client (unknown) "));
	rig.exp.refused_line_ns = 0;
	op_ctx = NULL;
	assert_int_equal(let_in(), ERR_FSAL_STALE);
	assert_true(stub_warned("client (unknown) "));
}

/* That is our fault, and not the client's. */
TEST_WITH(without_a_key_no_handle_is_judged, up, rig_down)
{
	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	casync_signature_free();
	assert_int_equal(let_in(), ERR_FSAL_IO);
	assert_int_equal(refused(), 0);
	desc.len = sizeof(wire);
	assert_int_equal(casync_handle_to_wire(&rig.obj->handle,
					       FSAL_DIGEST_NFSV4, &desc)
				 .major,
			 ERR_FSAL_IO);
}

TEST_WITH(small_buffer_is_left_alone, up, rig_down)
{
	const size_t wanted[] = {CASYNC_WIRE_BYTES, CASYNC_SIGNED_WIRE_BYTES};
	size_t i;

	assert_true(load_file(HEX_A "\n"));
	for (i = 0; i < COUNT(wanted); i++) {
		rig.exp.keys.sign_handles = i == 1;
		memset(wire, 0xee, sizeof(wire));
		desc.len = wanted[i] - 1;
		assert_int_equal(casync_handle_to_wire(&rig.obj->handle,
						       FSAL_DIGEST_NFSV4, &desc)
					 .major,
				 ERR_FSAL_TOOSMALL);
		assert_int_equal(wire[0], 0xee);
		desc.len = wanted[i];
		assert_int_equal(casync_handle_to_wire(&rig.obj->handle,
						       FSAL_DIGEST_NFSV4, &desc)
					 .major,
				 ERR_FSAL_NO_ERROR);
		assert_int_equal(desc.len, wanted[i]);
		assert_int_equal(wire[wanted[i]], 0xee);
	}
}

/* --- keys of Ganesha's cache */

TEST_WITH(key_has_the_export, up, rig_down)
{
	const uint16_t id = EXPORT_ID;
	uint8_t bare[CASYNC_WIRE_BYTES];

	make_wire();
	memcpy(bare, wire, sizeof(bare));
	assert_int_equal(casync_host_to_key(&rig.exp.export, &desc).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(desc.len, CASYNC_KEY_BYTES);
	assert_memory_equal(wire, bare, sizeof(bare));
	assert_memory_equal(wire + sizeof(bare), &id, sizeof(id));
}

TEST_WITH(key_of_an_object_is_its_own, up, rig_down)
{
	casync_handle_to_key(&rig.obj->handle, &desc);
	assert_ptr_equal(desc.addr, rig.obj->key);
	assert_int_equal(desc.len, CASYNC_KEY_BYTES);
}

/* --- keys that sign */

static void sign_and_let_in(fsal_errors_t answer)
{
	rig.exp.keys.sign_handles = true;
	make_wire();
	assert_int_equal(let_in(), answer);
}

TEST_WITH(without_handle_keys_nothing_changes, up, rig_down)
{
	assert_true(load(NULL));
	assert_false(casync_signature_ready());
	assert_true(load_file(HEX_A "\n"));
	assert_true(load(NULL));
	assert_true(casync_signature_ready());
}

TEST_WITH(file_that_is_wrong_leaves_the_keys, up, rig_down)
{
	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	assert_false(load_file("no key\n"));
	assert_true(stub_warned("is refused: "));
	assert_int_equal(let_in(), ERR_FSAL_NO_ERROR);
}

TEST_WITH(old_key_still_lets_in, up, rig_down)
{
	assert_true(load_file(HEX_A "\n"));
	rig.exp.keys.sign_handles = true;
	make_wire();
	assert_true(load_file(HEX_B "\n" HEX_A "\n"));
	assert_int_equal(let_in(), ERR_FSAL_NO_ERROR);
	make_wire();
	assert_true(load_file(HEX_A "\n"));
	assert_int_equal(let_in(), ERR_FSAL_STALE);
}

TEST_WITH(object_is_read_by_the_user_of_the_configuration, up, rig_down)
{
	rados.text = HEX_A "\n";
	assert_true(load(url));
	assert_string_equal(rados.read_as, "(default)");
	assert_string_equal(rados.ceph_conf, conf);
	sign_and_let_in(ERR_FSAL_NO_ERROR);

	rados.block = true;
	assert_true(load(url));
	assert_string_equal(rados.read_as, "(default)");
	rados.user = "nfs.c1";
	assert_true(load(url));
	assert_string_equal(rados.read_as, "nfs.c1");
	/* The file of one export has no such block. */
	rados.block = false;
	assert_true(load(url));
	assert_string_equal(rados.read_as, "nfs.c1");
	assert_int_equal(rados.reads, 4);
}

TEST_WITH(object_that_is_wrong_leaves_the_keys, up, rig_down)
{
	rados.text = HEX_A "\n";
	assert_true(load(url));
	rig.exp.keys.sign_handles = true;
	make_wire();
	rados.text = NULL;
	assert_false(load(url));
	assert_true(stub_warned("it is not there"));
	rados.text = "no key\n";
	assert_false(load(url));
	assert_int_equal(let_in(), ERR_FSAL_NO_ERROR);
}

TEST_WITH(export_that_signs_needs_a_key, up, rig_down)
{
	struct casync_export_keys of = {.sign_handles = false};

	assert_true(casync_handle_ops_can_sign(&of, EXPORT_ID));
	of.sign_handles = true;
	assert_false(casync_handle_ops_can_sign(&of, EXPORT_ID));
	assert_true(stub_warned("there are no keys"));
	assert_true(load_file(HEX_A "\n"));
	assert_true(casync_handle_ops_can_sign(&of, EXPORT_ID));
}

static int begin(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	casync_signature_free();
	return unlink(path);
}

TEST_FIXTURE(begin, end)

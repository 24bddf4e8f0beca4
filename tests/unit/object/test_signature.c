/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Signed handles, with the real OpenSSL.  Gateways of all versions have to agree
 * on the bytes, so one signature is spelled out here; Python's hmac made it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "unit.h"

#include "signature.h"

#define NOSNAP UINT64_C(0xfffffffffffffffe)
#define EXPORT_ID 77

static const struct casync_fileid file = {
	.ino = UINT64_C(0x10000000001),
	.snapid = NOSNAP,
	.fscid = 1,
};

/* hmac.new(bytes(range(32)), wire + struct.pack("<H", 77), "sha256") */
static const uint8_t expected[CASYNC_SIGNATURE_BYTES] = {
	0x8a, 0x4f, 0xef, 0xcd, 0xac, 0x41, 0xc3, 0x7a,
	0x8a, 0x3a, 0x2b, 0x93, 0x4a, 0x29, 0x04, 0x6d,
};

static uint8_t wire[CASYNC_SIGNED_WIRE_BYTES];

/* Keys whose bytes count up from `first`. */
static void use(uint8_t first, uint8_t second, unsigned int count)
{
	struct casync_handle_keys keys = {.count = count};
	uint8_t i;

	for (i = 0; i < CASYNC_HANDLE_KEY_BYTES; i++) {
		keys.key[0][i] = first + i;
		keys.key[1][i] = second + i;
	}
	assert_int_equal(casync_signature_use(&keys), 0);
}

static void use_key(uint8_t first)
{
	use(first, 0, 1);
}

static void use_both_keys(uint8_t first, uint8_t second)
{
	use(first, second, 2);
}

static void sign(void)
{
	casync_filehandle_encode(&file, wire);
	assert_int_equal(casync_signature_add(wire, EXPORT_ID), 0);
}

static int begin(void **state)
{
	use_key(0);
	sign();
	return 0;
}

static int end(void **state)
{
	casync_signature_free();
	return 0;
}

#define CASE(test) TEST_WITH(test, begin, end)

CASE(signature_is_hmac_of_handle_and_export)
{
	struct casync_fileid id;

	assert_memory_equal(wire + CASYNC_WIRE_BYTES, expected,
			    sizeof(expected));
	assert_true(casync_filehandle_decode(wire, CASYNC_WIRE_BYTES, &id));
	assert_int_equal(id.ino, file.ino);
	assert_int_equal(casync_signature_check(wire, EXPORT_ID), 0);
}

CASE(every_bit_counts)
{
	unsigned int bit;

	for (bit = 0; bit < 8 * sizeof(wire); bit++) {
		wire[bit / 8] ^= 1U << bit % 8;
		assert_int_equal(casync_signature_check(wire, EXPORT_ID),
				 -ESTALE);
		wire[bit / 8] ^= 1U << bit % 8;
	}
	assert_int_equal(casync_signature_check(wire, EXPORT_ID), 0);
}

CASE(other_export_is_refused)
{
	assert_int_equal(casync_signature_check(wire, EXPORT_ID + 1), -ESTALE);
	assert_int_equal(casync_signature_check(wire, EXPORT_ID + 256),
			 -ESTALE);
	assert_int_equal(casync_signature_check(wire, 0), -ESTALE);
}

/* The steps of docs/security.md: what the old key has signed is right until the
 * last one. */
CASE(keys_rotate)
{
	uint8_t old[sizeof(wire)];

	memcpy(old, wire, sizeof(wire));
	use_both_keys(0, 100);
	sign();
	assert_memory_equal(wire, old, sizeof(wire));

	use_both_keys(100, 0);
	sign();
	assert_memory_not_equal(wire, old, sizeof(wire));
	assert_int_equal(casync_signature_check(wire, EXPORT_ID), 0);
	assert_int_equal(casync_signature_check(old, EXPORT_ID), 0);
	old[0] ^= 1;
	assert_int_equal(casync_signature_check(old, EXPORT_ID), -ESTALE);
	old[0] ^= 1;

	use_key(100);
	assert_int_equal(casync_signature_check(wire, EXPORT_ID), 0);
	assert_int_equal(casync_signature_check(old, EXPORT_ID), -ESTALE);
}

CASE(without_keys_nothing_is_right)
{
	assert_true(casync_signature_ready());
	casync_signature_free();
	assert_false(casync_signature_ready());
	assert_int_equal(casync_signature_add(wire, EXPORT_ID), -EIO);
	assert_int_equal(casync_signature_check(wire, EXPORT_ID), -EIO);
}

#define THREADS 4
#define CHECKS 2000

static void *check_often(void *unused)
{
	int i;

	for (i = 0; i < CHECKS; i++) {
		if (casync_signature_check(wire, EXPORT_ID) != 0)
			return unused;
	}
	return NULL;
}

/* A reload replaces the keys under load. */
CASE(keys_change_while_threads_check)
{
	pthread_t threads[THREADS];
	void *failed;
	int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, check_often, wire),
			0);
	for (i = 0; i < 200; i++)
		use_both_keys(0, (uint8_t)(100 + i % 50));
	for (i = 0; i < THREADS; i++) {
		RIG_JOIN(threads[i], &failed);
		assert_null(failed);
	}
}

static bool changing; /* atomic */

static void *change_the_order(void *unused)
{
	while (__atomic_load_n(&changing, __ATOMIC_RELAXED)) {
		use_both_keys(1, 99);
		use_both_keys(99, 1);
	}
	return unused;
}

/* Another gateway has done the second step of docs/security.md, and this one
 * does it while handles of either key are checked. */
CASE(change_of_the_order_refuses_nothing)
{
	unsigned int i, refused = 0;
	pthread_t thread;

	use_both_keys(99, 1);
	sign();
	__atomic_store_n(&changing, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_create(&thread, NULL, change_the_order, NULL),
			 0);
	for (i = 0; i < 100000; i++)
		refused += casync_signature_check(wire, EXPORT_ID) != 0;
	__atomic_store_n(&changing, false, __ATOMIC_RELAXED);
	RIG_JOIN(thread, NULL);
	assert_int_equal(refused, 0);
}

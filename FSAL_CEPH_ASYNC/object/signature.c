/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "signature.h"

#define MAC_BYTES CASYNC_HANDLE_KEY_BYTES

/* A context that has its key is only copied, by any number of threads. */
struct signer {
	unsigned int count;
	EVP_MAC_CTX *keyed[CASYNC_HANDLE_KEYS_MAX];
};

/* Guards the pointers, not what they point to.  A leaf. */
static pthread_rwlock_t signer_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct signer signer;

static EVP_MAC_CTX *signature_key(const uint8_t *key)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest,
						 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);

	/* The context keeps it. */
	EVP_MAC_free(hmac);
	if (ctx != NULL &&
	    EVP_MAC_init(ctx, key, CASYNC_HANDLE_KEY_BYTES, params) == 1)
		return ctx;
	EVP_MAC_CTX_free(ctx);
	return NULL;
}

static void signature_drop(struct signer *old)
{
	while (old->count > 0)
		EVP_MAC_CTX_free(old->keyed[--old->count]);
}

int casync_signature_use(const struct casync_handle_keys *keys)
{
	struct signer fresh = {0}, old;

	for (; fresh.count < keys->count; fresh.count++) {
		EVP_MAC_CTX *ctx = signature_key(keys->key[fresh.count]);

		if (ctx == NULL) {
			signature_drop(&fresh);
			return -ENOTSUP;
		}
		fresh.keyed[fresh.count] = ctx;
	}
	pthread_rwlock_wrlock(&signer_lock);
	old = signer;
	signer = fresh;
	pthread_rwlock_unlock(&signer_lock);
	signature_drop(&old);
	return 0;
}

bool casync_signature_ready(void)
{
	bool ready;

	pthread_rwlock_rdlock(&signer_lock);
	ready = signer.count > 0;
	pthread_rwlock_unlock(&signer_lock);
	return ready;
}

/* Copies of the keys, all of one moment: a reload may change their order.
 * NULL: there is no memory. */
static struct signer signature_begin(unsigned int most)
{
	struct signer now = {0};

	pthread_rwlock_rdlock(&signer_lock);
	for (; now.count < signer.count && now.count < most; now.count++)
		now.keyed[now.count] = EVP_MAC_CTX_dup(signer.keyed[now.count]);
	pthread_rwlock_unlock(&signer_lock);
	return now;
}

static bool signature_make(EVP_MAC_CTX *ctx, const void *wire,
			   uint16_t export_id, uint8_t *mac)
{
	uint16_t export_le = htole16(export_id);
	size_t len = 0;

	return ctx != NULL &&
	       EVP_MAC_update(ctx, wire, CASYNC_WIRE_BYTES) == 1 &&
	       EVP_MAC_update(ctx, (const uint8_t *)&export_le,
			      sizeof(export_le)) == 1 &&
	       EVP_MAC_final(ctx, mac, &len, MAC_BYTES) == 1 &&
	       len == MAC_BYTES;
}

int casync_signature_add(void *wire, uint16_t export_id)
{
	struct signer now = signature_begin(1);
	bool made;
	uint8_t mac[MAC_BYTES];

	made = now.count > 0 &&
	       signature_make(now.keyed[0], wire, export_id, mac);
	signature_drop(&now);
	if (!made)
		return -EIO;
	memcpy((uint8_t *)wire + CASYNC_WIRE_BYTES, mac,
	       CASYNC_SIGNATURE_BYTES);
	return 0;
}

int casync_signature_check(const void *wire, uint16_t export_id)
{
	const uint8_t *theirs = (const uint8_t *)wire + CASYNC_WIRE_BYTES;
	struct signer now = signature_begin(CASYNC_HANDLE_KEYS_MAX);
	/* No key at all is our fault. */
	int rc = now.count > 0 ? -ESTALE : -EIO;
	uint8_t mac[MAC_BYTES];
	unsigned int i;

	for (i = 0; i < now.count && rc == -ESTALE; i++) {
		if (!signature_make(now.keyed[i], wire, export_id, mac))
			rc = -EIO;
		else if (CRYPTO_memcmp(mac, theirs, CASYNC_SIGNATURE_BYTES) ==
			 0)
			rc = 0;
	}
	signature_drop(&now);
	return rc;
}

void casync_signature_free(void)
{
	struct casync_handle_keys none = {.count = 0};

	(void)casync_signature_use(&none);
}

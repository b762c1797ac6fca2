/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - SHA-256 at once and in pieces. */
#include "hash/hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

void hash_hex(const unsigned char *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[bytes[i] >> 4];
		*ret++ = digits[bytes[i] & 15];
	}
	*ret = '\0';
}

bool hash_sha256(const void *data, size_t len, unsigned char ret[HASH_BYTES])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (EVP_Digest(data, len, sum, &n, EVP_sha256(), NULL) != 1 || n != HASH_BYTES)
		return false;
	memcpy(ret, sum, HASH_BYTES);
	return true;
}

bool hash_sha256_hex(const void *data, size_t len, char ret[HASH_HEX + 1])
{
	unsigned char sum[HASH_BYTES];

	if (!hash_sha256(data, len, sum))
		return false;
	hash_hex(sum, HASH_BYTES, ret);
	return true;
}

int hash_open(struct hash *h)
{
	/* Fetched once: a fetch by name later may load files, which a jail does not allow. */
	if (!h->md)
		h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!h->ctx)
		h->ctx = EVP_MD_CTX_new();
	return h->md && h->ctx ? 0 : -EIO;
}

void hash_close(struct hash *h)
{
	EVP_MD_CTX_free(h->ctx);
	EVP_MD_free(h->md);
	*h = (struct hash){ 0 };
}

void hash_begin(struct hash *h)
{
	h->failed = hash_open(h) < 0 || EVP_DigestInit_ex2(h->ctx, h->md, NULL) != 1;
}

void hash_add(struct hash *h, const void *data, size_t len)
{
	if (!h->failed && len > 0)
		h->failed = EVP_DigestUpdate(h->ctx, data, len) != 1;
}

bool hash_end(struct hash *h, char ret[HASH_HEX + 1])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (h->failed || EVP_DigestFinal_ex(h->ctx, sum, &n) != 1 || n != HASH_BYTES)
		return false;
	hash_hex(sum, n, ret);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - SHA-256, whose failure has to be read. */
#include "front/support/hash.h"

#include <openssl/evp.h>
#include <string.h>

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
	static const char digits[] = "0123456789abcdef";
	unsigned char sum[HASH_BYTES];

	if (!hash_sha256(data, len, sum))
		return false;
	for (size_t i = 0; i < HASH_BYTES; i++) {
		ret[2 * i] = digits[sum[i] >> 4];
		ret[2 * i + 1] = digits[sum[i] & 15];
	}
	ret[HASH_HEX] = '\0';
	return true;
}

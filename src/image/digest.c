/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - OpenSSL's SHA-256, which uses what the processor has for it. */
#include "image/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct digest {
	EVP_MD_CTX *ctx;
};

struct digest *digest_new(void)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (d && (d->ctx = EVP_MD_CTX_new()) && EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) == 1)
		return d;
	digest_free(d);
	return NULL;
}

int digest_add(struct digest *d, const void *data, size_t len)
{
	return EVP_DigestUpdate(d->ctx, data, len) == 1 ? 0 : -EIO;
}

int digest_end(struct digest *d, char ret[IMAGE_DIGEST_MAX])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int n = 0;
	int r = EVP_DigestFinal_ex(d->ctx, bytes, &n) == 1 && n == 32 ? 0 : -EIO;

	if (r == 0) {
		memcpy(ret, "sha256:", 7);
		for (unsigned int i = 0; i < n; i++)
			(void)snprintf(ret + 7 + 2 * (size_t)i, 3, "%02x", bytes[i]);
	}
	digest_free(d);
	return r;
}

void digest_free(struct digest *d)
{
	if (d)
		EVP_MD_CTX_free(d->ctx);
	free(d);
}

int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX])
{
	struct digest *d = digest_new();

	if (!d)
		return -ENOMEM;
	if (digest_add(d, data, len) < 0) {
		digest_free(d);
		return -EIO;
	}
	return digest_end(d, ret);
}

bool digest_is(const char *want, const void *data, size_t len)
{
	char have[IMAGE_DIGEST_MAX];

	return digest_of(data, len, have) == 0 && strcmp(have, want) == 0;
}

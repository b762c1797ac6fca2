/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - Hashes with the name of their kind before them. */
#include "image/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"

struct digest {
	struct hash hash;
};

struct digest *digest_new(void)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (d)
		hash_begin(&d->hash);
	if (d && !d->hash.failed)
		return d;
	digest_free(d);
	return NULL;
}

int digest_add(struct digest *d, const void *data, size_t len)
{
	hash_add(&d->hash, data, len);
	return d->hash.failed ? -EIO : 0;
}

int digest_end(struct digest *d, char ret[IMAGE_DIGEST_MAX])
{
	char hex[HASH_HEX + 1];
	int r = hash_end(&d->hash, hex) ? 0 : -EIO;

	if (r == 0) {
		memcpy(ret, "sha256:", 7);
		memcpy(ret + 7, hex, sizeof(hex));
	}
	digest_free(d);
	return r;
}

void digest_free(struct digest *d)
{
	if (d)
		hash_close(&d->hash);
	free(d);
}

int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX])
{
	char hex[HASH_HEX + 1];

	if (!hash_sha256_hex(data, len, hex))
		return -EIO;
	memcpy(ret, "sha256:", 7);
	memcpy(ret + 7, hex, sizeof(hex));
	return 0;
}

bool digest_is(const char *want, const void *data, size_t len)
{
	char have[IMAGE_DIGEST_MAX];

	return digest_of(data, len, have) == 0 && strcmp(have, want) == 0;
}

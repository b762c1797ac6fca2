/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - See hash.h. */
#include "s3/hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

int s3_hash_begin(struct s3_hasher *h)
{
	if (!h->ctx)
		h->ctx = EVP_MD_CTX_new();
	return h->ctx && EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

void s3_hash_add(struct s3_hasher *h, const void *data, size_t len)
{
	(void)EVP_DigestUpdate(h->ctx, data, len); /* of SHA-256 it does not fail once begun */
}

int s3_hash_end(struct s3_hasher *h, char out[S3_HASH_HEX + 1])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (EVP_DigestFinal_ex(h->ctx, sum, &n) != 1 || 2 * n != S3_HASH_HEX)
		return -EIO;
	for (unsigned int i = 0; i < n; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", sum[i]);
	return 0;
}

void s3_hash_free(struct s3_hasher *h)
{
	EVP_MD_CTX_free(h->ctx);
	h->ctx = NULL;
}

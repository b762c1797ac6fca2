/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - Entries, hashed one by one; then sorted, and hashed together. */
#include "package_store/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int digest_begin(struct digest *d, char type, bool executable, const char *path, const char *link,
		 struct err *e)
{
	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 1024;
		void *grown = realloc(d->all, cap * sizeof(*d->all));

		if (!grown)
			return err_set(e, -ENOMEM, "hash the packages");
		d->all = grown;
		d->cap = cap;
	}
	sha256_init(&d->one);
	sha256_add(&d->one, &type, 1);
	sha256_add(&d->one, executable && type == '0' ? "x" : "-", 1);
	sha256_add(&d->one, path, strlen(path) + 1);
	if (type == '2')
		sha256_add(&d->one, link, strlen(link));
	return 0;
}

void digest_add(struct digest *d, const void *data, size_t len)
{
	sha256_add(&d->one, data, len);
}

void digest_end(struct digest *d)
{
	sha256_end(&d->one, d->all[d->n++]);
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

void digest_hex(struct digest *d, char hex[65])
{
	uint8_t all[32];
	struct sha256 s;

	if (d->n > 1)
		qsort(d->all, d->n, sizeof(*d->all), by_bytes);
	sha256_init(&s);
	for (size_t i = 0; i < d->n; i++)
		sha256_add(&s, d->all[i], sizeof(d->all[i]));
	sha256_end(&s, all);
	for (size_t i = 0; i < sizeof(all); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", all[i]);
}

void digest_free(struct digest *d)
{
	free(d->all);
	*d = (struct digest){ 0 };
}

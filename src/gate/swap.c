/* SPDX-License-Identifier: Apache-2.0 */
/* swap.c - See swap.h. */
#include "gate/swap.h"

#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"

#define CREDENTIALS_MAX (16u << 10) /* decoded; longer ones stay as they are */

static int swap_text(const char *s, size_t len, const struct swap *pairs, size_t n,
		     unsigned char *used, struct buf *out)
{
	int hits = 0;

	for (size_t at = 0; at < len;) {
		size_t i = 0;

		while (i < n && !(strlen(pairs[i].from) <= len - at &&
				  memcmp(s + at, pairs[i].from, strlen(pairs[i].from)) == 0))
			i++;
		if (i == n) {
			(void)buf_append(out, s + at++, 1);
			continue;
		}
		(void)buf_puts(out, pairs[i].to);
		at += strlen(pairs[i].from);
		if (used)
			used[i] = 1;
		hits++;
	}
	return out->err ? out->err : hits;
}

/* The credentials after "Basic ", or NULL. */
static const char *basic(const char *value)
{
	if (strncasecmp(value, "Basic", 5) != 0 || (value[5] != ' ' && value[5] != '\t'))
		return NULL;
	return value + 5 + strspn(value + 5, " \t");
}

static int swap_basic(const char *value, const char *credentials, const struct swap *pairs,
		      size_t n, unsigned char *used, struct buf *out)
{
	_buf_ struct buf plain = BUF_INIT(CREDENTIALS_MAX), fresh = BUF_INIT(4 * CREDENTIALS_MAX);

	if (!base64_decode(credentials, strlen(credentials), &plain))
		return 0;
	int hits = swap_text(buf_str(&plain), plain.len, pairs, n, used, &fresh);

	if (hits > 0) {
		(void)buf_append(out, value, (size_t)(credentials - value));
		char *at = buf_reserve(out, fresh.len / 3 * 4 + 5);

		if (at)
			buf_commit(out, (size_t)EVP_EncodeBlock((unsigned char *)at,
								(const unsigned char *)fresh.data,
								(int)fresh.len));
	}
	if (plain.data)
		explicit_bzero(plain.data, plain.len);
	if (fresh.data)
		explicit_bzero(fresh.data, fresh.len);
	return hits > 0 && out->err ? out->err : hits;
}

int swap_header(const char *value, const struct swap *pairs, size_t n, unsigned char *used,
		struct buf *out)
{
	const char *credentials = basic(value);
	int hits = credentials ? swap_basic(value, credentials, pairs, n, used, out) : 0;

	return hits != 0 ? hits : swap_text(value, strlen(value), pairs, n, used, out);
}

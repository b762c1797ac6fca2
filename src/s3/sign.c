/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign.c - The four steps of the specification: canonical request, string to sign, signing key,
 * signature.
 */
#include "s3/sign.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "hash/hash.h"
#include "s3/site.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define CANONICAL_MAX (32u << 10)
#define MAC_LEN 32u

void s3_stamp(int64_t now, char out[S3_STAMP_MAX])
{
	time_t t = (time_t)now;
	struct tm tm;

	out[0] = '\0';
	if (gmtime_r(&t, &tm))
		(void)strftime(out, S3_STAMP_MAX, "%Y%m%dT%H%M%SZ", &tm);
}

static int mac(const void *key, size_t key_len, const char *text, unsigned char out[MAC_LEN])
{
	unsigned int n = 0;

	return HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, strlen(text), out,
		    &n) && n == MAC_LEN ?
		       0 :
		       -EIO;
}

/* ---- the canonical request ----------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct s3_header *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Blanks at the ends go, runs of them are one. */
static void put_value(struct buf *out, const char *v)
{
	v += strspn(v, " \t");
	for (; *v; v++)
		if (*v != ' ' && *v != '\t')
			(void)buf_append(out, v, 1);
		else if (v[1] && v[1] != ' ' && v[1] != '\t')
			(void)buf_append(out, " ", 1);
}

/* @names: "host;range" */
static void canonical(const struct s3_ask *ask, struct buf *text, struct buf *names)
{
	struct s3_header sorted[S3_HEADERS_MAX + 1] = { { "host", ask->host } };
	size_t n = 1;

	for (size_t i = 0; i < ask->n_headers && i < S3_HEADERS_MAX; i++)
		sorted[n++] = ask->headers[i];
	qsort(sorted, n, sizeof(sorted[0]), by_name);
	(void)buf_printf(text, "%s\n%s\n%s\n", ask->method, ask->path, ask->query);
	for (size_t i = 0; i < n; i++) {
		(void)buf_printf(text, "%s:", sorted[i].name);
		put_value(text, sorted[i].value);
		(void)buf_puts(text, "\n");
		(void)buf_printf(names, "%s%s", i ? ";" : "", sorted[i].name);
	}
	(void)buf_printf(text, "\n%s\n%s", buf_str(names), ask->payload);
}

/* ---- key and signature --------------------------------------------------------------------- */

static int signing_key(const struct s3_creds *c, const char *date, const char *region,
		       unsigned char out[MAC_LEN])
{
	char first[sizeof(c->secret) + 5];
	unsigned char k[MAC_LEN];
	int n = snprintf(first, sizeof(first), "AWS4%s", c->secret);
	int r = mac(first, (size_t)n, date, out);

	OPENSSL_cleanse(first, sizeof(first));
	if (r == 0)
		r = mac(out, MAC_LEN, region, k);
	if (r == 0)
		r = mac(k, MAC_LEN, "s3", out);
	if (r == 0)
		r = mac(out, MAC_LEN, "aws4_request", k);
	memcpy(out, k, MAC_LEN);
	OPENSSL_cleanse(k, sizeof(k));
	return r;
}

/* "20130524/us-east-1/s3/aws4_request" */
static void scope(const char *stamp, const char *region, char *out, size_t size)
{
	(void)snprintf(out, size, "%.8s/%s/s3/aws4_request", stamp, region);
}

static int signature(const struct s3_creds *c, const char *region, const char *stamp,
		     const struct buf *text, char out[S3_HASH_HEX + 1])
{
	unsigned char key[MAC_LEN], sum[MAC_LEN];
	char hash[S3_HASH_HEX + 1], where[128], date[9], string[512];

	scope(stamp, region, where, sizeof(where));
	(void)snprintf(date, sizeof(date), "%.8s", stamp);
	int r = text->err ? text->err : hash_sha256_hex(buf_str(text), text->len, hash) ? 0 : -EIO;

	if (r == 0)
		r = signing_key(c, date, region, key);
	if (r == 0) {
		(void)snprintf(string, sizeof(string), ALGORITHM "\n%s\n%s\n%s", stamp, where,
			       hash);
		r = mac(key, sizeof(key), string, sum);
	}
	OPENSSL_cleanse(key, sizeof(key));
	if (r == 0)
		hash_hex(sum, sizeof(sum), out);
	return r;
}

int s3_sign(const struct s3_creds *c, const char *region, const struct s3_ask *ask, struct buf *out)
{
	_buf_ struct buf text = BUF_INIT(CANONICAL_MAX), names = BUF_INIT(1024);
	char stamp[S3_STAMP_MAX], where[128], sum[S3_HASH_HEX + 1];

	s3_stamp(ask->now, stamp);
	scope(stamp, region, where, sizeof(where));
	canonical(ask, &text, &names);
	int r = signature(c, region, stamp, &text, sum);

	if (r < 0)
		return r;
	return buf_printf(out, ALGORITHM " Credential=%s/%s,SignedHeaders=%s,Signature=%s",
			  c->access, where, buf_str(&names), sum);
}

int s3_presign(const struct s3_creds *c, const char *region, const struct s3_ask *ask,
	       unsigned int expires, struct buf *out)
{
	_buf_ struct buf text = BUF_INIT(CANONICAL_MAX), names = BUF_INIT(64);
	_buf_ struct buf query = BUF_INIT(CANONICAL_MAX);
	struct s3_ask full = *ask;
	char stamp[S3_STAMP_MAX], where[128], who[300], sum[S3_HASH_HEX + 1];

	if (expires == 0 || expires > S3_EXPIRES_MAX)
		return -ERANGE;
	s3_stamp(ask->now, stamp);
	scope(stamp, region, where, sizeof(where));
	(void)snprintf(who, sizeof(who), "%s/%s", c->access, where);
	/* In the order of names: upper case comes before lower, so ours before "response-" and the
	 * like. */
	(void)buf_puts(&query, "X-Amz-Algorithm=" ALGORITHM "&X-Amz-Credential=");
	s3_escape(who, false, &query);
	(void)buf_printf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%u", stamp, expires);
	if (c->token[0]) {
		(void)buf_puts(&query, "&X-Amz-Security-Token=");
		s3_escape(c->token, false, &query);
	}
	(void)buf_puts(&query, "&X-Amz-SignedHeaders=host");
	if (ask->query[0])
		(void)buf_printf(&query, "&%s", ask->query);
	full.query = buf_str(&query);
	full.payload = S3_UNSIGNED;
	full.n_headers = 0;
	canonical(&full, &text, &names);
	int r = query.err ? query.err : signature(c, region, stamp, &text, sum);

	return r < 0 ? r : buf_printf(out, "%s&X-Amz-Signature=%s", buf_str(&query), sum);
}

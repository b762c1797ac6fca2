/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign.c - The four steps of the specification: canonical request, string to sign, signing key,
 * signature; and where the keys come from.
 */
#include "s3/sign.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/private.h"
#include "hash/hash.h"
#include "s3/site.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define CANONICAL_MAX (32u << 10)
#define MAC_LEN 32u
#define KEYS_TEXT_MAX (64u << 10)

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
	int r = mac(first, (size_t)n, date, out) < 0 || mac(out, MAC_LEN, region, k) < 0 ||
				mac(k, MAC_LEN, "s3", out) < 0 ||
				mac(out, MAC_LEN, "aws4_request", k) < 0 ?
			-EIO :
			0;

	OPENSSL_cleanse(first, sizeof(first));
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
	buf_escape(&query, who, "");
	(void)buf_printf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%u", stamp, expires);
	if (c->token[0]) {
		(void)buf_puts(&query, "&X-Amz-Security-Token=");
		buf_escape(&query, c->token, "");
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

/* ---- keys, from lines NAME = VALUE in sections; memory that held them is wiped ------------- */

struct slice {
	const char *at;
	size_t len;
};

static struct slice trim(const char *at, size_t len)
{
	while (len > 0 && strchr(" \t\r", at[0]))
		at++, len--;
	while (len > 0 && strchr(" \t\r", at[len - 1]))
		len--;
	return (struct slice){ at, len };
}

static bool is(struct slice s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

/* Only what a header can hold. */
static int put(char *to, size_t size, struct slice v)
{
	if (v.len >= size)
		return -E2BIG;
	for (size_t i = 0; i < v.len; i++)
		if ((unsigned char)v.at[i] <= ' ' || (unsigned char)v.at[i] >= 0x7f)
			return -EINVAL;
	memcpy(to, v.at, v.len);
	to[v.len] = '\0';
	return 0;
}

static int set(struct s3_creds *c, struct slice name, struct slice value)
{
	if (is(name, "aws_access_key_id") || is(name, "access_key"))
		return put(c->access, sizeof(c->access), value);
	if (is(name, "aws_secret_access_key") || is(name, "secret_key"))
		return put(c->secret, sizeof(c->secret), value);
	if (is(name, "aws_session_token") || is(name, "session_token"))
		return put(c->token, sizeof(c->token), value);
	return 0; /* region, output and the like: not ours */
}

int s3_creds_parse(const char *text, size_t len, const char *profile, struct s3_creds *ret,
		   struct err *e)
{
	unsigned int number = 0;
	bool ours = true;

	*ret = (struct s3_creds){ 0 };
	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		struct slice line = trim(text + at, n);
		const char *equal = memchr(line.at, '=', line.len);

		at += n + 1;
		number++;
		if (line.len == 0 || line.at[0] == '#' || line.at[0] == ';')
			continue;
		if (line.at[0] == '[') {
			ours = line.len > 1 && line.at[line.len - 1] == ']' &&
			       is(trim(line.at + 1, line.len - 2), profile ? profile : "default");
			continue;
		}
		if (!equal)
			return err_say(e, -EINVAL, "line %u: is not NAME = VALUE", number);
		size_t n_name = (size_t)(equal - line.at);

		if (ours &&
		    set(ret, trim(line.at, n_name), trim(equal + 1, line.len - n_name - 1)) < 0)
			return err_say(e, -EINVAL, "line %u: the value is not a valid key", number);
	}
	if (!ret->access[0] || !ret->secret[0])
		return err_say(e, -ENOENT,
			       "has no aws_access_key_id and aws_secret_access_key%s%.64s",
			       profile ? " in the section " : "", profile ? profile : "");
	return 0;
}

int s3_creds_fd(int fd, const char *profile, struct s3_creds *ret, struct err *e)
{
	char *text = private_alloc(KEYS_TEXT_MAX + 1);
	ssize_t n = text ? fd_pread_full(fd, text, KEYS_TEXT_MAX + 1, 0) : -ENOMEM;
	int r;

	if (n < 0)
		r = err_set(e, (int)n, "read it");
	else if (n > (ssize_t)KEYS_TEXT_MAX)
		r = err_say(e, -E2BIG, "is larger than 64 KiB");
	else
		r = s3_creds_parse(text, (size_t)n, profile, ret, e);
	private_free(text, KEYS_TEXT_MAX + 1);
	return r;
}

int s3_creds_file(const char *path, const char *profile, struct s3_creds *ret, struct err *e)
{
	_fd_ int fd = private_open(path, e);

	return fd < 0 ? fd : s3_creds_fd(fd, profile, ret, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.c - Addresses of servers, places in buckets, and keys, taken apart and put together.
 *
 * Addresses and places are the operator's words, keys may be a stranger's. Neither gets into a
 * request or a path of a file before it is checked here, so no text ends a header or leads out of a
 * tree.
 */
#include "s3/site.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define DEFAULT_REGION "us-east-1"

bool s3_bucket_ok(const char *s, size_t len)
{
	bool letter = false;

	if (len < 3 || len > S3_BUCKET_MAX || s[0] == '-' || s[0] == '.' || s[len - 1] == '-' ||
	    s[len - 1] == '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!memchr(LOWER DIGITS "-.", s[i], sizeof(LOWER DIGITS "-.") - 1))
			return false;
		if (s[i] == '.' && s[i + 1] == '.')
			return false;
		letter |= (s[i] >= 'a' && s[i] <= 'z') || s[i] == '-';
	}
	return letter; /* otherwise it could be an address */
}

static bool is_below(const char *host, const char *domain)
{
	size_t len = strlen(host), n = strlen(domain);

	return len > n && strcmp(host + len - n, domain) == 0;
}

/* A name or an address, and perhaps a port: no user, no space, nothing that could end a header. */
static bool host_ok(const char *s, size_t len)
{
	static const char plain[] = UPPER LOWER DIGITS "-._:[]";

	for (size_t i = 0; i < len; i++)
		if (!memchr(plain, s[i], sizeof(plain) - 1))
			return false;
	return len > 0 && len <= S3_HOST_MAX;
}

static int take_host(struct s3_site *ret, const char *host, size_t len, struct err *e)
{
	const char *own = ret->tls ? ":443" : ":80";
	size_t n = strlen(own);

	if (!host_ok(host, len))
		return err_say(e, -EINVAL, "has no host, as in https://s3.example.com");
	if (len > n && memcmp(host + len - n, own, n) == 0)
		len -= n;
	for (size_t i = 0; i < len; i++)
		ret->host[i] =
			(char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] - 'A' + 'a' : host[i]);
	ret->host[len] = '\0';
	return 0;
}

static int take_url(struct s3_site *ret, const char *url, struct err *e)
{
	size_t skip = strncmp(url, "https://", 8) == 0 ? 8 :
		      strncmp(url, "http://", 7) == 0  ? 7 :
							 0;
	size_t len = strcspn(url + skip, "/");
	const char *base = url + skip + len;
	size_t n_base = strlen(base);

	if (!skip)
		return err_say(e, -EINVAL, "must begin with https:// or http://");
	while (n_base > 0 && base[n_base - 1] == '/')
		n_base--;
	if (n_base >= sizeof(ret->base) || strspn(base, UPPER LOWER DIGITS "-._~/") < n_base)
		return err_say(e, -EINVAL, "has a query, or an invalid path");
	memcpy(ret->base, base, n_base);
	ret->base[n_base] = '\0';
	ret->tls = skip == 8;
	return take_host(ret, url + skip, len, e);
}

int s3_site_parse(const char *url, const char *region, enum s3_style style, struct s3_site *ret,
		  struct err *e)
{
	char amazon[S3_REGION_MAX + 40];
	size_t len;

	*ret = (struct s3_site){ 0 };
	region = region && *region ? region : DEFAULT_REGION;
	len = strlen(region);
	if (len > S3_REGION_MAX || strspn(region, LOWER UPPER DIGITS "-_") != len)
		return err_say(e, -EINVAL, "'%.64s' is not a valid name of a region", region);
	memcpy(ret->region, region, len + 1);
	(void)snprintf(amazon, sizeof(amazon), "https://s3.%s.amazonaws.com", region);
	int r = take_url(ret, url && *url ? url : amazon, e);

	ret->path_style = style == S3_STYLE_PATH ||
			  (style == S3_STYLE_AUTO && !is_below(ret->host, ".amazonaws.com") &&
			   !is_below(ret->host, ".amazonaws.com.cn"));
	return r;
}

int s3_place_parse(const char *text, struct s3_place *ret, struct err *e)
{
	static const char scheme[] = "s3://";
	const char *bucket = text + sizeof(scheme) - 1;

	*ret = (struct s3_place){ 0 };
	if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
		return err_say(e, -EINVAL, "must be s3://BUCKET or s3://BUCKET/PREFIX");
	size_t len = strcspn(bucket, "/");
	const char *prefix = bucket + len + (bucket[len] == '/');
	size_t n = strlen(prefix);

	if (!s3_bucket_ok(bucket, len))
		return err_say(e, -EINVAL, "'%.*s' is not a valid name of a bucket",
			       (int)(len > 64 ? 64 : len), bucket);
	if (n + 2 > sizeof(ret->prefix) || prefix[0] == '/' || strstr(prefix, "//"))
		return err_say(e, -EINVAL, "the prefix is too long, or has an empty part");
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)prefix[i] < ' ' || prefix[i] == 0x7f)
			return err_say(e, -EINVAL, "the prefix has control characters");
	memcpy(ret->bucket, bucket, len);
	(void)snprintf(ret->prefix, sizeof(ret->prefix), "%s%s", prefix,
		       n > 0 && prefix[n - 1] != '/' ? "/" : "");
	return 0;
}

void s3_host(const struct s3_site *s, const char *bucket, struct buf *out)
{
	if (!s->path_style)
		(void)buf_printf(out, "%s.", bucket);
	(void)buf_puts(out, s->host);
}

void s3_path(const struct s3_site *s, const char *bucket, const char *key, struct buf *out)
{
	(void)buf_puts(out, s->base);
	(void)buf_puts(out, "/");
	if (s->path_style) {
		(void)buf_puts(out, bucket);
		if (key)
			(void)buf_puts(out, "/");
	}
	if (key)
		buf_escape(out, key, "/");
}

/* ---- keys as names of files ---------------------------------------------------------------- */

static const char *part_problem(const char *part, size_t len)
{
	if (len == 0)
		return "has an empty part ('//', or '/' at its beginning)";
	if ((len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
		return "has '.' or '..' as a part";
	if (len > S3_PART_MAX)
		return "has a part of more than 255 bytes";
	return NULL;
}

const char *s3_key_problem(const char *key, size_t len)
{
	if (len == 0)
		return "is empty";
	if (len > S3_KEY_MAX)
		return "is longer than 1024 bytes";
	if (memchr(key, '\0', len))
		return "has a NUL byte";
	if (!utf8_valid(key, len))
		return "is not UTF-8";
	if (key[len - 1] == '/')
		len--;
	for (size_t at = 0; at <= len;) {
		const char *end = memchr(key + at, '/', len - at);
		size_t n = end ? (size_t)(end - key) - at : len - at;
		const char *problem = part_problem(key + at, n);

		if (problem)
			return problem;
		at += n + 1;
	}
	return NULL;
}

const char *s3_key_show(const char *key, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 4 < size; i++)
		out[n++] = (unsigned char)key[i] < ' ' || key[i] == 0x7f || key[i] == '\'' ? '?' :
											     key[i];
	if (n < len) {
		memcpy(out + n, "...", 3);
		n += 3;
	}
	out[n] = '\0';
	return out;
}

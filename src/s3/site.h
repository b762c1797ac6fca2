/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.h - An S3-compatible server, a place in one of its buckets, and the addresses that both
 * have.
 *
 * Pure functions over text. Keys are bytes; in addresses everything but letters, digits and "-._~"
 * is percent-encoded, in upper case, as the signature demands it (s3/sign.h).
 */
#ifndef CAISSON_S3_SITE_H
#define CAISSON_S3_SITE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

#define S3_BUCKET_MAX 63u
#define S3_KEY_MAX 1024u /* bytes; the protocol's own limit */
#define S3_REGION_MAX 63u
#define S3_HOST_MAX 300u
#define S3_URL_MAX (8u << 10)
#define S3_PART_MAX 255u /* bytes of a part of a key: the name of a file */

struct s3_site {
	bool tls;
	bool path_style;                /* https://host/bucket/key, not https://bucket.host/key */
	char host[S3_HOST_MAX + 1];     /* with its port, unless that is the scheme's own */
	char base[256];                 /* path before all others, without a slash at its end */
	char region[S3_REGION_MAX + 1]; /* as signatures name it */
};

struct s3_place {
	char bucket[S3_BUCKET_MAX + 1];
	char prefix[512]; /* of every key: empty, or ends with '/' */
};

enum s3_style { S3_STYLE_AUTO, S3_STYLE_PATH, S3_STYLE_VIRTUAL };

/*
 * s3_site_parse() - @url: http(s)://host[:port][/base]; NULL: Amazon's own, of the region.
 * @region: NULL: us-east-1. Without a style Amazon's servers are asked by virtual host, all others
 * by path. Return: 0, or -EINVAL with a message.
 */
int s3_site_parse(const char *url, const char *region, enum s3_style style, struct s3_site *ret,
		  struct err *e);

/* s3_place_parse() - "s3://bucket" or "s3://bucket/prefix". 0, or -EINVAL with a message. */
int s3_place_parse(const char *text, struct s3_place *ret, struct err *e);

/* s3_bucket_ok() - 3 to 63 of a-z, 0-9, '-' and '.'; no address, nothing odd at the ends. */
bool s3_bucket_ok(const char *s, size_t len);

/* s3_host() - The Host of requests to a bucket. */
void s3_host(const struct s3_site *s, const char *bucket, struct buf *out);
/* s3_path() - The path of a key, encoded; @key NULL: of the bucket. */
void s3_path(const struct s3_site *s, const char *bucket, const char *key, struct buf *out);

/*
 * s3_key_problem() - Why a key, without the prefix of its place, cannot be the path of a file;
 * NULL: it can. A key that ends with '/' names a directory.
 */
const char *s3_key_problem(const char *key, size_t len);

/* s3_key_show() - For messages: shortened, printable characters only. Return: @out. */
const char *s3_key_show(const char *key, size_t len, char *out, size_t size);

#endif

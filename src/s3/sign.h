/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign.h - The keys for a server, and AWS Signature Version 4 with them, in a header or in a query.
 *
 * Signing is pure except for the hash functions of libcrypto. The signature covers a request in its
 * canonical form: path and query encoded by buf_escape(), the query's members in the order of their
 * names, headers with lower-case names.
 */
#ifndef CAISSON_S3_SIGN_H
#define CAISSON_S3_SIGN_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define S3_HASH_HEX 64u /* digits of a SHA-256 */
#define S3_UNSIGNED "UNSIGNED-PAYLOAD"
#define S3_EXPIRES_MAX 604800u /* seconds: what servers accept */

struct s3_creds {
	char access[129];
	char secret[257];
	char token[4097]; /* of a session; empty: none */
};

struct s3_header {
	const char *name; /* lower case */
	const char *value;
};

#define S3_HEADERS_MAX 12u

struct s3_ask {
	const char *method;
	const char *host;  /* as the Host header has it */
	const char *path;  /* encoded */
	const char *query; /* canonical; "" without one */
	/* Besides host, which is always signed. Any order, each name once; without x-amz-date for a
	 * header's sake. */
	struct s3_header headers[S3_HEADERS_MAX];
	size_t n_headers;
	const char *payload; /* SHA-256 of the body in hexadecimal, or S3_UNSIGNED */
	int64_t now;         /* seconds since 1970 */
};

/* s3_stamp() - "20130524T000000Z". */
#define S3_STAMP_MAX 24u
void s3_stamp(int64_t now, char out[S3_STAMP_MAX]);

/*
 * s3_sign() - The value of Authorization. The ask's headers must be what is sent, with x-amz-date
 * (s3_stamp() of now), x-amz-content-sha256 and, with a token, x-amz-security-token among them.
 * Return: 0 or a negative errno.
 */
int s3_sign(const struct s3_creds *c, const char *region, const struct s3_ask *ask,
	    struct buf *out);

/*
 * s3_presign() - The query of an address that anybody may use for @expires seconds from ask->now.
 * The ask has no headers; its query comes first. Return: 0 or a negative errno.
 */
int s3_presign(const struct s3_creds *c, const char *region, const struct s3_ask *ask,
	       unsigned int expires, struct buf *out);

/*
 * ---- Keys, from a file as Amazon's tools have it, or from lines NAME=VALUE ---------------------
 *
 *	[default]
 *	aws_access_key_id = ...
 *	aws_secret_access_key = ...
 *	aws_session_token = ...
 *
 * The file is private (base/private.h). Messages name the line, never its content.
 */

/*
 * s3_creds_parse() - The section @profile (NULL: default) of @text; lines before any section count
 * too. Names are those above, in either case, or access_key and secret_key. Pure; the caller wipes
 * @text. Return: 0, -ENOENT when the two keys are not there, -EINVAL with a message.
 */
int s3_creds_parse(const char *text, size_t len, const char *profile, struct s3_creds *ret,
		   struct err *e);

/* s3_creds_file(), s3_creds_fd() - The same of a private file, or of the content of a
 * descriptor. */
int s3_creds_file(const char *path, const char *profile, struct s3_creds *ret, struct err *e);
int s3_creds_fd(int fd, const char *profile, struct s3_creds *ret, struct err *e);

#endif

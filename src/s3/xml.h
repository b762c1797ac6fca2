/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xml.h - The answers of S3 servers in XML: lists of objects, errors, single values. By expat.
 *
 * A server is a stranger: document types (and with them entities) are refused, depth and lengths
 * are bounded, and keys are handed out as bytes: s3_key_problem() decides whether a key can be the
 * name of a file.
 */
#ifndef CAISSON_S3_XML_H
#define CAISSON_S3_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define S3_ETAG_MAX 128u /* without the quotes that are around it in headers */

/* s3_etag() - One as we keep it: without quotes; empty when it is too long. */
void s3_etag(const char *text, size_t len, char out[S3_ETAG_MAX]);

struct s3_object {
	char *key; /* of key_len bytes, and a NUL; it may hold others */
	size_t key_len;
	uint64_t size;
	int64_t mtime; /* seconds since 1970; 0: not told */
	char etag[S3_ETAG_MAX];
};

/* One page of a list. */
struct s3_page {
	struct s3_object *list;
	size_t n, cap;
	bool more;
	char *token; /* what the next page is asked with; NULL: none */
};

/* s3_page_free() - Also of a zeroed one; it is empty then. */
void s3_page_free(struct s3_page *p);

/* s3_xml_list() - ListBucketResult with encoding-type=url. 0, or -EBADMSG (-ENOMEM) with a message.
 */
int s3_xml_list(const char *text, size_t len, struct s3_page *ret, struct err *e);

/* s3_xml_error() - <Error>: what is not in it, or no text of ours to show, is empty. */
void s3_xml_error(const char *text, size_t len, char code[64], char message[200]);

/* s3_xml_value() - The text of the first element @name below the root. False: none, or it does not
 * fit. */
bool s3_xml_value(const char *text, size_t len, const char *name, char *to, size_t size);

#endif

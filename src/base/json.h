/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - Write one JSON document into a struct buf.
 *
 * Commas, quotes and escapes are the writer's business; the result is valid JSON in UTF-8 whatever
 * bytes go in. Misuse (a value without a key in an object, a key in an array, an unbalanced end, a
 * second document, too deep) sets a sticky error and stops the writing; check json_finish() once.
 * Keys are not checked for being unique.
 */
#ifndef CAISSON_BASE_JSON_H
#define CAISSON_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define JSON_DEPTH_MAX 32

struct json {
	struct buf *out; /* not owned; the document is added at its end */
	int err;         /* 0, -EPROTO for misuse, -ELOOP for too deep */
	unsigned int depth;
	uint8_t level[JSON_DEPTH_MAX + 1]; /* what may come next at each depth; see json.c */
};

void json_init(struct json *j, struct buf *out);

/* json_finish() - 0 when exactly one whole document was written, -EPROTO, -ELOOP or out->err. */
int json_finish(struct json *j);

void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);

/*
 * json_strn() - Write @len bytes as a string; each byte that is not valid UTF-8 becomes U+FFFD.
 * Return: true when a byte was replaced, that is when the string is not the bytes that went in.
 */
bool json_strn(struct json *j, const char *s, size_t len);

/* json_str() - json_strn() of a C string; NULL is written as null. */
bool json_str(struct json *j, const char *s);

/* json_raw() - Put in a value that another writer has finished. Empty is a misuse. */
void json_raw(struct json *j, const char *json, size_t len);

/* json_buf() - json_raw() of a buffer. A value that could not be written whole fails this document
 * too. */
void json_buf(struct json *j, const struct buf *b);

/* json_base64() - Write @len bytes as a string in base64 (RFC 4648, padded, one line). */
void json_base64(struct json *j, const void *data, size_t len);

void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_bool(struct json *j, bool v);
void json_none(struct json *j);

/* json_double() - @v with @digits (0 to 9) after the point; null when @v is not finite. */
void json_double(struct json *j, double v, unsigned int digits);

/* Key and value in one call, for members of an object. */
void json_member_str(struct json *j, const char *key, const char *s);
void json_member_int(struct json *j, const char *key, int64_t v);
void json_member_uint(struct json *j, const char *key, uint64_t v);
void json_member_bool(struct json *j, const char *key, bool v);
void json_member_raw(struct json *j, const char *key, const char *json); /* see json_raw() */
void json_member_null(struct json *j, const char *key);
/* Key and the beginning of its value, which json_object_end() or json_array_end() ends. */
void json_member_object(struct json *j, const char *key);
void json_member_array(struct json *j, const char *key);

/*
 * json_quote() - Append @s in quotes. Each byte that is not part of a valid character becomes
 * U+FFFD; control characters, DEL and U+0080 to U+009F among them, are escaped. Return: whether a
 * byte was replaced.
 */
bool json_quote(struct buf *out, const char *s, size_t len);

#endif

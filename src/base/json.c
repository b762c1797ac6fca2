/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - The JSON writer.
 *
 * Theory of operation: the writer holds one byte of state per open container, and level[0] is the
 * document itself. Before each value, value_begin() checks that a value may stand here and writes
 * the comma; json_key() does the same for keys. After the first misuse nothing more is written, so
 * that a broken document is short and cannot be taken for a whole one: json_finish() fails.
 *
 * Strings are the business of json_quote.c.
 */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"

enum {
	LEVEL_OBJECT = 1 << 0,
	LEVEL_ARRAY = 1 << 1,
	LEVEL_FILLED = 1 << 2, /* holds a member: the next one needs a comma */
	LEVEL_KEYED = 1 << 3,  /* an object's key was written, its value is due */
};

static int misuse(struct json *j, int code)
{
	if (!j->err)
		j->err = code;
	return j->err;
}

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
}

int json_finish(struct json *j)
{
	if (!j->err && (j->depth > 0 || !(j->level[0] & LEVEL_FILLED)))
		(void)misuse(j, -EPROTO);
	return j->err ? j->err : j->out->err;
}

/* Make the place for one value. Return: 0 when it may be written. */
static int value_begin(struct json *j)
{
	uint8_t *level = &j->level[j->depth];

	if (j->err)
		return j->err;
	if (*level & LEVEL_OBJECT) {
		if (!(*level & LEVEL_KEYED))
			return misuse(j, -EPROTO);
	} else if (*level & LEVEL_FILLED) {
		if (!(*level & LEVEL_ARRAY))
			return misuse(j, -EPROTO);
		(void)buf_append(j->out, ",", 1);
	}
	*level = (uint8_t)((*level | LEVEL_FILLED) & ~LEVEL_KEYED);
	return 0;
}

static void container_begin(struct json *j, uint8_t kind, const char *open)
{
	/* Checked first, so that a refused container leaves no comma behind. */
	if (j->depth == JSON_DEPTH_MAX) {
		(void)misuse(j, -ELOOP);
		return;
	}
	if (value_begin(j) < 0)
		return;
	(void)buf_append(j->out, open, 1);
	j->level[++j->depth] = kind;
}

static void container_end(struct json *j, uint8_t kind, const char *close)
{
	uint8_t level = j->level[j->depth];

	if (j->err)
		return;
	if (!(level & kind) || level & LEVEL_KEYED) {
		(void)misuse(j, -EPROTO);
		return;
	}
	(void)buf_append(j->out, close, 1);
	j->depth--;
}

void json_object_begin(struct json *j)
{
	container_begin(j, LEVEL_OBJECT, "{");
}

void json_object_end(struct json *j)
{
	container_end(j, LEVEL_OBJECT, "}");
}

void json_array_begin(struct json *j)
{
	container_begin(j, LEVEL_ARRAY, "[");
}

void json_array_end(struct json *j)
{
	container_end(j, LEVEL_ARRAY, "]");
}

void json_key(struct json *j, const char *key)
{
	uint8_t *level = &j->level[j->depth];

	if (j->err)
		return;
	if (!(*level & LEVEL_OBJECT) || *level & LEVEL_KEYED) {
		(void)misuse(j, -EPROTO);
		return;
	}
	if (*level & LEVEL_FILLED)
		(void)buf_append(j->out, ",", 1);
	*level |= LEVEL_KEYED;
	(void)json_quote(j->out, key, strlen(key));
	(void)buf_append(j->out, ":", 1);
}

bool json_strn(struct json *j, const char *s, size_t len)
{
	if (value_begin(j) < 0)
		return false;
	return json_quote(j->out, s, len);
}

bool json_str(struct json *j, const char *s)
{
	if (s)
		return json_strn(j, s, strlen(s));
	json_none(j);
	return false;
}

void json_raw(struct json *j, const char *json, size_t len)
{
	if (len == 0) {
		j->err = j->err ? j->err : -EPROTO;
		return;
	}
	if (value_begin(j) == 0)
		(void)buf_append(j->out, json, len);
}

void json_buf(struct json *j, const struct buf *b)
{
	if (!b->err)
		json_raw(j, buf_str(b), b->len);
	else if (!j->out->err)
		j->out->err = b->err;
}

void json_base64(struct json *j, const void *data, size_t len)
{
	if (value_begin(j) < 0)
		return;
	(void)buf_append(j->out, "\"", 1);
	base64_encode(data, len, j->out);
	(void)buf_append(j->out, "\"", 1);
}

void json_int(struct json *j, int64_t v)
{
	if (value_begin(j) == 0)
		(void)buf_printf(j->out, "%" PRId64, v);
}

void json_uint(struct json *j, uint64_t v)
{
	if (value_begin(j) == 0)
		(void)buf_printf(j->out, "%" PRIu64, v);
}

void json_bool(struct json *j, bool v)
{
	if (value_begin(j) == 0)
		(void)buf_puts(j->out, v ? "true" : "false");
}

void json_none(struct json *j)
{
	if (value_begin(j) == 0)
		(void)buf_puts(j->out, "null");
}

void json_double(struct json *j, double v, unsigned int digits)
{
	/* The largest double has 309 digits before the point. */
	char text[352];
	bool pointed = false;

	if (!isfinite(v)) {
		json_none(j);
		return;
	}
	if (value_begin(j) < 0)
		return;
	(void)snprintf(text, sizeof(text), "%.*f", digits > 9 ? 9 : (int)digits, v);

	/* The point follows the locale, and may be several bytes; JSON's does not. */
	for (const char *s = text; *s; s++) {
		if ((*s >= '0' && *s <= '9') || *s == '-') {
			(void)buf_append(j->out, s, 1);
		} else if (!pointed) {
			(void)buf_append(j->out, ".", 1);
			pointed = true;
		}
	}
}

void json_member_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	(void)json_str(j, s);
}

void json_member_int(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_member_uint(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

void json_member_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

void json_member_raw(struct json *j, const char *key, const char *json)
{
	json_key(j, key);
	json_raw(j, json, strlen(json));
}

void json_member_null(struct json *j, const char *key)
{
	json_key(j, key);
	json_none(j);
}

void json_member_object(struct json *j, const char *key)
{
	json_key(j, key);
	json_object_begin(j);
}

void json_member_array(struct json *j, const char *key)
{
	json_key(j, key);
	json_array_begin(j);
}

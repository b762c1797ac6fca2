/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - Bounded capture of a stream. */
#include "front/output/capture.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

#define CHAR_BYTES_MAX 4u

void capture_init(struct capture *c, uint64_t chars)
{
	*c = (struct capture){ .bytes = 0 };
	buf_init(&c->kept, (size_t)chars * CHAR_BYTES_MAX);
}

void capture_add(struct capture *c, const char *data, size_t len)
{
	c->bytes += len;
	(void)buf_append_some(&c->kept, data, len);
}

void capture_free(struct capture *c)
{
	buf_free(&c->kept);
}

/* Bytes at the end of @s that may be the beginning of a character: at most three. */
static size_t unfinished(const char *s, size_t len)
{
	for (size_t n = 1; n <= 3 && n <= len; n++) {
		unsigned char c = (unsigned char)s[len - n];

		if ((c & 0xc0) == 0x80)
			continue;
		if (c < 0xc2 || c > 0xf4)
			return 0;
		size_t want = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		return n < want ? n : 0;
	}
	return 0;
}

/*
 * What can be given out of what waited and what came; the rest waits. Where something waited they
 * are put together in
 * @b, else it is @data itself.
 */
static const char *join(struct capture *c, const char *data, size_t len, bool end, struct buf *b,
			size_t *ret)
{
	if (c->n_tail > 0) {
		(void)buf_append(b, c->tail, c->n_tail);
		(void)buf_append(b, data, len);
		data = buf_str(b);
		len = b->len;
	}
	size_t keep = end ? 0 : unfinished(data, len);

	*ret = len - keep;
	for (size_t i = 0; i < keep; i++)
		c->tail[i] = data[*ret + i];
	c->n_tail = keep;
	return data;
}

void capture_data(struct capture *c, const char *data, size_t len, bool end, struct json *j)
{
	_buf_ struct buf b = BUF_INIT(16u << 20);
	size_t n;

	data = join(c, data, len, end, &b, &n);
	json_key(j, "data");
	if (json_strn(j, data, n)) {
		json_key(j, "data_base64");
		json_base64(j, data, n);
	}
}

bool capture_json(const struct capture *c, struct json *j, const char *key, uint64_t chars)
{
	char base64_key[32];
	size_t n = utf8_truncate(buf_str(&c->kept), c->kept.len, (size_t)chars);

	json_key(j, key);
	if (json_strn(j, buf_str(&c->kept), n)) {
		(void)snprintf(base64_key, sizeof(base64_key), "%s_base64", key);
		json_key(j, base64_key);
		json_base64(j, buf_str(&c->kept), n);
	}
	return c->bytes > n;
}

void capture_both_json(const struct capture *out, const struct capture *err, struct json *j,
		       uint64_t chars)
{
	size_t n_out = utf8_truncate(buf_str(&out->kept), out->kept.len, (size_t)chars);
	size_t n_err = utf8_truncate(buf_str(&err->kept), err->kept.len, (size_t)chars);
	_buf_ struct buf both = BUF_INIT(n_out + n_err);

	json_key(j, "output");
	if (n_out > 0 && n_err > 0) {
		(void)buf_append(&both, buf_str(&out->kept), n_out);
		(void)buf_append(&both, buf_str(&err->kept), n_err);
		(void)json_strn(j, buf_str(&both), both.len);
	} else {
		(void)json_strn(j, buf_str(n_out ? &out->kept : &err->kept), n_out + n_err);
	}
}

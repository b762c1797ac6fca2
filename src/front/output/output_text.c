/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_text.c - Output of a cell as text in JSON.
 *
 * The beginning of a stream is read from the memory of its spool alone, where spool_reserve() has
 * kept it. In a live stream, text_join() holds back the incomplete character at the end of a chunk.
 */
#include "front/output/output_text.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "front/output/spool.h"

#define CHAR_BYTES_MAX 4u

uint64_t output_reserve(uint64_t chars)
{
	return chars * CHAR_BYTES_MAX;
}

const char *output_head(const struct spool *s, uint64_t chars, size_t *ret_len)
{
	*ret_len = utf8_truncate(buf_str(&s->memory), s->memory.len, (size_t)chars);
	return buf_str(&s->memory);
}

bool output_json(const struct spool *s, struct json *j, const char *key, uint64_t chars)
{
	char base64_key[32];
	size_t n;
	const char *text = output_head(s, chars, &n);

	json_key(j, key);
	if (json_strn(j, text, n)) {
		(void)snprintf(base64_key, sizeof(base64_key), "%s_base64", key);
		json_key(j, base64_key);
		json_base64(j, text, n);
	}
	return s->bytes > n;
}

void output_both_json(const struct spool *out, const struct spool *err, struct json *j,
		      uint64_t chars)
{
	size_t n_out, n_err;
	const char *text = output_head(out, chars, &n_out);
	const char *errors = output_head(err, chars, &n_err);
	_buf_ struct buf both = BUF_INIT(n_out + n_err);

	json_key(j, "output");
	if (n_out > 0 && n_err > 0) {
		(void)buf_append(&both, text, n_out);
		(void)buf_append(&both, errors, n_err);
		(void)json_strn(j, buf_str(&both), both.len);
	} else {
		(void)json_strn(j, n_out ? text : errors, n_out + n_err);
	}
}

/* The number of bytes at the end of @s that may be an incomplete character: at most three. */
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

const char *text_join(struct text_joiner *t, const char *data, size_t len, bool end,
		      struct buf *room, size_t *ret_len)
{
	if (t->n_tail > 0) {
		(void)buf_append(room, t->tail, t->n_tail);
		(void)buf_append(room, data, len);
		data = buf_str(room);
		len = room->len;
	}
	size_t keep = end ? 0 : unfinished(data, len);

	*ret_len = len - keep;
	memcpy(t->tail, data + *ret_len, keep);
	t->n_tail = keep;
	return data;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.c - The table of offsets at the start of a Jupyter message: checked, read, written.
 *
 * Every offset is a stranger's number: check_table() compares all of them with the length before
 * one is used.
 */
#include "jupyter/frame.h"

#include <stdint.h>
#include <string.h>

/* Of FRAME_V1: channel, header, parent, metadata, content. */
#define V1_PARTS 5u

static uint64_t read_number(const char *at, size_t size, bool big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | (unsigned char)at[big ? i : size - 1 - i];
	return v;
}

static void append_le64(struct buf *out, uint64_t v)
{
	unsigned char b[8];

	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (unsigned char)(v >> 8 * i);
	(void)buf_append(out, b, sizeof(b));
}

/* The table at the start: a count, then so many offsets. */
struct table {
	const char *data;
	size_t len, size; /* of the whole, of one number */
	bool big;
	uint64_t n;
};

static uint64_t offset(const struct table *t, uint64_t i)
{
	return read_number(t->data + t->size * (size_t)(1 + i), t->size, t->big);
}

/* Offsets rise, begin behind the table, and end within the message. */
static const char *check_table(struct table *t, uint64_t least)
{
	if (t->len < t->size)
		return "a message is shorter than the number it begins with";
	t->n = read_number(t->data, t->size, t->big);
	if (t->n < least || t->n > least + FRAME_BUFFERS_MAX)
		return "a message has too few or too many parts";
	if (t->len / t->size < 1 + t->n)
		return "a message is shorter than its table of offsets";
	uint64_t before = t->size * (1 + t->n);

	for (uint64_t i = 0; i < t->n; i++) {
		if (offset(t, i) < before || offset(t, i) > t->len)
			return "an offset of a message points outside of it";
		before = offset(t, i);
	}
	return NULL;
}

static struct frame_part part(const struct table *t, uint64_t i)
{
	uint64_t from = offset(t, i), to = i + 1 < t->n ? offset(t, i + 1) : t->len;

	return (struct frame_part){ t->data + from, (size_t)(to - from) };
}

static const char *split_v1(const char *data, size_t len, struct frame *ret)
{
	struct table t = { .data = data, .len = len, .size = 8 };
	const char *why = check_table(&t, V1_PARTS);

	if (why)
		return why;
	ret->channel = part(&t, 0);
	ret->header = part(&t, 1);
	ret->parent = part(&t, 2);
	ret->metadata = part(&t, 3);
	ret->content = part(&t, 4);
	/* The last offset is the end, where the writer knows the rule; what is behind content are
	 * buffers. */
	ret->n_buffers = (size_t)t.n - V1_PARTS;
	if (t.n > V1_PARTS && offset(&t, t.n - 1) == len)
		ret->n_buffers--;
	return NULL;
}

const char *frame_split(enum frame_kind kind, bool text, const char *data, size_t len,
			struct frame *ret)
{
	*ret = (struct frame){ 0 };
	if (kind == FRAME_V1)
		return text ? "messages of this subprotocol are binary" : split_v1(data, len, ret);
	if (text) {
		ret->whole = (struct frame_part){ data, len };
		return NULL;
	}
	struct table t = { .data = data, .len = len, .size = 4, .big = true };
	const char *why = check_table(&t, 1);

	if (why)
		return why;
	ret->whole = part(&t, 0);
	ret->n_buffers = (size_t)t.n - 1;
	return NULL;
}

static void append_part(struct buf *out, const char *key, struct frame_part p)
{
	(void)buf_printf(out, ",\"%s\":", key);
	(void)buf_append(out, p.data, p.len);
}

int frame_join(enum frame_kind kind, const struct frame_message *m, struct buf *out)
{
	const struct frame_part parts[V1_PARTS] = {
		{ m->channel, strlen(m->channel) }, m->header, m->parent, m->metadata, m->content,
	};

	if (kind == FRAME_JSON) {
		(void)buf_printf(
			out,
			"{\"channel\":\"%s\",\"msg_id\":\"%s\",\"msg_type\":\"%s\",\"buffers\":[]",
			m->channel, m->id, m->type);
		append_part(out, "header", m->header);
		append_part(out, "parent_header", m->parent);
		append_part(out, "metadata", m->metadata);
		append_part(out, "content", m->content);
		return buf_puts(out, "}");
	}
	uint64_t at = 8 * (1 + V1_PARTS + 1);

	append_le64(out, V1_PARTS + 1);
	for (size_t i = 0; i < V1_PARTS; i++) {
		append_le64(out, at);
		at += parts[i].len;
	}
	append_le64(out, at);
	for (size_t i = 0; i < V1_PARTS; i++)
		(void)buf_append(out, parts[i].data, parts[i].len);
	return out->err;
}

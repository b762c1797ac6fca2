/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - The growable byte buffer. See buf.h for the contract.
 *
 * Capacity doubles, but never past max + 1 (the NUL), so a buffer with a small maximum never holds
 * more memory than that. Invariant: data is NULL and cap is 0, or len < cap, cap - 1 <= max and
 * data[len] is NUL.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_CAP_MIN 64

static int fail(struct buf *b, int code)
{
	if (!b->err)
		b->err = code;
	return b->err;
}

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_free(struct buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void buf_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_free(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->err = 0;
	if (b->data)
		b->data[0] = '\0';
}

static int grow(struct buf *b, size_t need)
{
	size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;

	if (cap < BUF_CAP_MIN)
		cap = BUF_CAP_MIN;
	if (cap - 1 > b->max)
		cap = b->max + 1;
	if (cap < need)
		cap = need;

	char *data = realloc(b->data, cap);

	if (!data)
		return fail(b, -ENOMEM);
	data[b->len] = '\0';
	b->data = data;
	b->cap = cap;
	return 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
	size_t want, need;

	if (b->err)
		return NULL;
	if (__builtin_add_overflow(b->len, n, &want) || want > b->max ||
	    __builtin_add_overflow(want, 1, &need)) {
		(void)fail(b, -EMSGSIZE);
		return NULL;
	}
	if (need > b->cap && grow(b, need) < 0)
		return NULL;
	return b->data + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
	if (b->err || n == 0)
		return;
	if (!b->data || n > b->cap - 1 - b->len) {
		(void)fail(b, -EINVAL);
		return;
	}
	b->len += n;
	b->data[b->len] = '\0';
}

int buf_append(struct buf *b, const void *data, size_t len)
{
	if (len == 0)
		return b->err;

	char *to = buf_reserve(b, len);

	if (!to)
		return b->err;
	memcpy(to, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

void buf_escape(struct buf *b, const char *s, const char *plain)
{
	static const char always[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *s; s++)
		if (strchr(always, *s) || strchr(plain, *s))
			(void)buf_append(b, s, 1);
		else
			(void)buf_printf(b, "%%%02X", (unsigned char)*s);
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

size_t buf_append_some(struct buf *b, const void *data, size_t len)
{
	size_t room = b->max - b->len;

	if (len > room)
		len = room;
	return buf_append(b, data, len) < 0 ? 0 : len;
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	size_t room = b->cap - b->len; /* with the NUL; 0 when nothing is allocated */
	va_list first;

	if (b->err)
		return b->err;

	/* Usually the text fits in what is there; only otherwise is it formatted twice. */
	va_copy(first, ap);
	int n = vsnprintf(b->data ? b->data + b->len : NULL, room, fmt, first);
	va_end(first);

	if (n < 0) {
		(void)fail(b, errno > 0 ? -errno : -EINVAL);
	} else if ((size_t)n >= room) {
		char *to = buf_reserve(b, (size_t)n);

		if (to)
			(void)vsnprintf(to, (size_t)n + 1, fmt, ap);
	}
	if (!b->err)
		b->len += (size_t)n;
	if (b->data)
		b->data[b->len] = '\0'; /* an attempt that did not fit left its beginning here */
	return b->err;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len + 1);
}

void buf_trim(struct buf *b)
{
	char *data = b->len > 0 ? realloc(b->data, b->len + 1) : NULL;

	if (data) {
		b->data = data;
		b->cap = b->len + 1;
	} else if (b->len == 0) {
		free(b->data);
		b->data = NULL;
		b->cap = 0;
	}
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

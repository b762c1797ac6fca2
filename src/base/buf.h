/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - A growable byte buffer with a hard maximum and a sticky error.
 *
 * Appending is all or nothing. An append beyond the maximum sets -EMSGSIZE, failed memory -ENOMEM;
 * from then on every append does nothing and returns that error, so a writer makes all its calls
 * and checks buf->err once, at the end. The content up to the failure stays readable.
 *
 * The bytes may be anything, including NUL; one NUL that is not counted always follows them.
 * Appending a part of a buffer to itself is not supported.
 */
#ifndef CAISSON_BASE_BUF_H
#define CAISSON_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NULL until the first byte; use buf_str() for a pointer that is never NULL */
	size_t len; /* bytes in use, always <= max */
	size_t cap; /* bytes allocated, more than len when data is not NULL */
	size_t max;
	int err; /* 0, or the first failure as negative errno */
};

/* A buffer on the stack that frees itself: `_buf_ struct buf b = BUF_INIT(64 * 1024);` */
#define BUF_INIT(max_)                                                                             \
	{                                                                                          \
		.max = (max_)                                                                      \
	}
#define _buf_ __attribute__((cleanup(buf_free)))

void buf_init(struct buf *b, size_t max);

/* buf_free() - Release the memory; the buffer is then empty, without error, with the same max. */
void buf_free(struct buf *b);

/* buf_wipe() - The same for secrets: the memory is overwritten first. */
void buf_wipe(struct buf *b);
#define _secret_ __attribute__((cleanup(buf_wipe)))

/* buf_clear() - Forget content and error, keep the memory. */
void buf_clear(struct buf *b);

/* buf_append() - Add @len bytes. Return: 0 or the sticky error. */
int buf_append(struct buf *b, const void *data, size_t len);

/* buf_puts() - buf_append() of a C string. */
int buf_puts(struct buf *b, const char *s);

/*
 * buf_append_some() - Add what fits below the maximum, for output that is kept up to a cap.
 * Return: how many bytes were added. Reaching the maximum is not an error; failed memory is.
 */
size_t buf_append_some(struct buf *b, const void *data, size_t len);

int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/*
 * buf_reserve() - Make room for @n more bytes, to read(2) into. Follow with buf_commit().
 * Return: where they go (valid until the next call on @b), or NULL with the sticky error set.
 */
char *buf_reserve(struct buf *b, size_t n);

/* buf_commit() - Count @n bytes written into the reserved room; more than there is sets -EINVAL. */
void buf_commit(struct buf *b, size_t n);

/* buf_escape() - Append @s for a URL: letters, digits, "-._~" and the characters of @plain as they
 * are, each other byte as %XX. */
void buf_escape(struct buf *b, const char *s, const char *plain);

/* buf_consume() - Drop the first @n bytes (all of them when there are fewer), moving the rest. */
void buf_consume(struct buf *b, size_t n);

/* buf_trim() - Give back the memory that the content does not need, if that succeeds. */
void buf_trim(struct buf *b);

/* buf_str() - The content, NUL-terminated, never NULL; owned by @b. */
const char *buf_str(const struct buf *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - One error idiom: a negative errno, and a caller-owned message.
 *
 * A function that can fail takes `struct err *e` last and returns a negative errno value. It fills
 * the message where the failure happened; callers add context with err_wrap() on the way up, and
 * only the edge (a main(), a request handler) prints. The struct holds no pointers, so it survives
 * fork and can be written to a pipe. Passing NULL is allowed and drops the message.
 */
#ifndef CAISSON_BASE_ERR_H
#define CAISSON_BASE_ERR_H

#include <stdint.h>

struct err {
	int code; /* negative errno, 0 when no error was set */
	char msg[504];
};

/*
 * err_set() - Record a failure and return its code, so that it can be `return`ed.
 * @code: negative errno; ": strerror" is appended to the message. Use err_say() where the errno
 *        adds nothing for the reader.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* err_say() - Like err_set(), but the message stands alone, without ": strerror". */
int err_say(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * err_wrap() - Put "context: " before the message of @e.
 * Return: e->code, or -EIO when nobody set one or @e is NULL; never 0.
 */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

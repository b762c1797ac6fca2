/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - Fill and wrap the caller-owned error. See err.h for the idiom. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 0))) static void fill(struct err *e, int code, const char *fmt,
						       va_list ap)
{
	char msg[sizeof(e->msg)]; /* the arguments may point into e->msg */

	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	memcpy(e->msg, msg, strlen(msg) + 1);
	e->code = code;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	if (e) {
		va_list ap;

		va_start(ap, fmt);
		fill(e, code, fmt, ap);
		va_end(ap);
		size_t len = strlen(e->msg);
		(void)snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", strerror(-code));
	}
	return code;
}

int err_say(struct err *e, int code, const char *fmt, ...)
{
	if (e) {
		va_list ap;

		va_start(ap, fmt);
		fill(e, code, fmt, ap);
		va_end(ap);
	}
	return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -EIO;
	/* A callee that failed without filling @e must not come out as success. */
	if (e->code >= 0)
		(void)err_say(e, -EIO, "unknown failure");

	char inner[sizeof(e->msg)];
	va_list ap;

	memcpy(inner, e->msg, sizeof(inner));
	va_start(ap, fmt);
	fill(e, e->code, fmt, ap);
	va_end(ap);
	size_t len = strlen(e->msg);
	(void)snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", inner);
	return e->code;
}

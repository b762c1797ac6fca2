/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.h - Why the daemon did not do what a client asked for.
 *
 * The core refuses with a kind, a code and words; it knows no wire. Each adapter translates the
 * kind: HTTP into a status (http/reply.c), MCP and Jupyter into results of their own.
 */
#ifndef CAISSON_FRONT_REFUSAL_H
#define CAISSON_FRONT_REFUSAL_H

#include <stdint.h>

struct buf;

enum refusal_kind {
	REFUSAL_NONE,        /* not refused */
	REFUSAL_MALFORMED,   /* the request cannot be read */
	REFUSAL_INVALID,     /* a value of the request is wrong */
	REFUSAL_FORBIDDEN,   /* a policy or a permission is against it */
	REFUSAL_NOT_FOUND,   /* the thing it names does not exist */
	REFUSAL_CONFLICT,    /* the state of the thing it names is against it */
	REFUSAL_TOO_LARGE,   /* it exceeds a size limit */
	REFUSAL_TOO_MANY,    /* it exceeds a limit on number or rate: try again later */
	REFUSAL_NO_SPACE,    /* the sandbox's disk or memory is full */
	REFUSAL_CANCELLED,   /* the client went away */
	REFUSAL_UNSUPPORTED, /* this daemon is not set up for it */
	REFUSAL_BAD_ANSWER,  /* a server or process that it depends on answered wrongly */
	REFUSAL_UNAVAILABLE, /* the daemon cannot do it now: try again later */
	REFUSAL_TIMEOUT,     /* a server or process that it depends on did not answer in time */
	REFUSAL_INTERNAL,    /* a fault of the daemon */
	REFUSAL_KINDS_
};

struct refusal {
	enum refusal_kind kind;
	const char *code;
	const char *field, *hint;
	unsigned int retry_after_s;
	/* The cell of the sandbox ended, with its files: why (NULL: it did not), and the epoch
	 * since then. */
	const char *lost_by;
	uint32_t epoch;
	/* REFUSAL_NO_SPACE: bytes that the request needs (0: not known before) and that are free,
	 * of how many; limit 0: unknown. */
	uint64_t needed, room, limit;
	char message[320];
};

/* refusal_set() - Fill @r. @field and @hint may be NULL; both must outlive @r. Return: -1. */
int refusal_set(struct refusal *r, enum refusal_kind kind, const char *code, const char *field,
		const char *hint, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* refusal_no_memory() - The daemon has no memory left, which the client did not cause. Return: -1.
 */
int refusal_no_memory(struct refusal *r);

/* error_json() - An error in its one shape, appended to @out. @field and @hint may be NULL. */
void error_json(struct buf *out, const char *code, const char *message, const char *field,
		const char *hint);
/* refusal_json() - The same of a refusal, with its loss and its numbers. */
void refusal_json(const struct refusal *r, struct buf *out);
/* error_unwritten() - The JSON text that stands for a result that could not be written. */
const char *error_unwritten(int err);

#endif

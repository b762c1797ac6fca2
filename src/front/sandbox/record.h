/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - What was done in a sandbox lately: output, events and result, to be asked for by id.
 *
 * Whoever runs something for a client that may ask later makes a record when it begins, feeds it,
 * and finishes it with the result. It then stays for 15 minutes (its events for 5), unless 32 newer
 * ones of the same sandbox push it out, or the sandbox is removed. Nothing is kept of what was
 * never asked for: a stream log exists from record_stream() on, a spool from its first byte.
 */
#ifndef CAISSON_FRONT_RECORD_H
#define CAISSON_FRONT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/output/spool.h"
#include "net/loop.h"

struct buf;
struct json;
struct record;
struct stream_bank;
struct stream_log;
struct stream_ops;

#define RECORDS_MAX 32u
#define RECORD_ID_MAX 33

/* Of one sandbox. Zero is empty, but needs records_init(). */
struct records {
	struct loop *loop;
	struct spool_bank *spools;
	struct stream_bank *streams;
	struct record *first, **tail; /* oldest first */
	size_t n;
	struct timer timer; /* the next one to be forgotten */
};

struct record {
	struct records *owner;
	struct record *next;
	char id[RECORD_ID_MAX];
	const char *kind;   /* static: a language, "exec", "shell" */
	const char *status; /* static: of the result; NULL while it runs */
	uint64_t asked_ms; /* since 1970, by the clock of files: it may run from now on; 0: it waits
			    */
	uint64_t started_ms;   /* that it runs was heard; 0: it waits */
	uint64_t ended_ms;     /* 0: it runs */
	uint64_t ended_ns;     /* clock_now_ns() scale */
	struct spool out, err; /* all that was said */
	struct spool result;   /* the answer, as JSON */
	bool streamed;
	struct stream_log *log; /* NULL: was not streamed, or is forgotten */
};

void records_init(struct records *rs, struct loop *loop, struct spool_bank *spools,
		  struct stream_bank *streams);
/* records_free() - Forget all. Whoever holds a running record must have let go of it. */
void records_free(struct records *rs);
struct record *records_find(const struct records *rs, const char *id);

/*
 * record_new() - Something will be done. @id: unique, a name without quotes. @kind: static.
 * @reserve: bytes of each stream that its result is made from (spool_reserve()). The record is the
 * table's, and valid until record_finish(). NULL without memory.
 */
struct record *record_new(struct records *rs, const char *id, const char *kind, uint64_t reserve);

/* record_stream() - From now on there is a log. False without memory. See stream_log_new(). */
bool record_stream(struct record *r, const struct stream_ops *ops, void *arg);

/* record_started() - It runs now: event `started`. */
void record_started(struct record *r);

/*
 * record_finish() - It is over. @result: the result object, which is kept. @event: that of the last
 * event, of @type `done` or `refused`. @status: static. The caller must not use @r afterwards.
 */
void record_finish(struct record *r, const char *type, const char *status, const char *result,
		   const char *event);

/* record_drop() - As if it had never been; an open log ends. */
void record_drop(struct record *r);

/* record_json() - Its members, without the result. */
void record_json(const struct record *r, struct json *j);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - Records of recent executions in a sandbox: output, events and result, which clients
 * request by id.
 *
 * A part that runs something for a client that may ask for it later makes a record when it begins,
 * feeds it, and finishes it with the result. The record then stays for 15 minutes (its events for
 * 5), unless 32 newer ones of the same sandbox push it out, or the sandbox is removed. Memory is
 * taken only when it is needed: a stream log exists from record_stream() on, a spool from its first
 * byte.
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

/* The records of one sandbox. A zeroed struct is empty, but needs records_init(). */
struct records {
	struct loop *loop;
	struct spool_bank *spools;
	struct stream_bank *streams;
	struct record *first, **tail; /* oldest first */
	size_t n;
	struct timer timer; /* for the next record to be forgotten */
};

struct record {
	struct records *owner;
	struct record *next;
	char id[RECORD_ID_MAX];
	const char *kind;   /* static: a language, "exec", "shell" */
	const char *status; /* static: of the result; NULL: it has not ended */
	/* Since 1970, by the clock of files: when it may have begun to run; 0: it waits. */
	uint64_t asked_ms;
	uint64_t started_ms;   /* when its start was reported; 0: it waits */
	uint64_t ended_ms;     /* 0: it has not ended */
	uint64_t ended_ns;     /* the same moment by clock_now_ns() */
	struct spool out, err; /* its output */
	struct spool result;   /* the answer, as JSON */
	bool streamed;
	struct stream_log *log; /* NULL: it was not streamed, or the log is forgotten */
};

void records_init(struct records *rs, struct loop *loop, struct spool_bank *spools,
		  struct stream_bank *streams);
/* records_free() - Forget all. The parts that feed running records must have let go of them. */
void records_free(struct records *rs);
struct record *records_find(const struct records *rs, const char *id);

/*
 * record_new() - Make a record of something that will run. @id: unique, a name without quotes.
 * @kind: static. @reserve: bytes of each stream that its result is made from (spool_reserve()). The
 * table owns the record, which is valid until record_finish(). NULL: no memory.
 */
struct record *record_new(struct records *rs, const char *id, const char *kind, uint64_t reserve);

/*
 * record_stream() - Keep a log of its events from now on; see stream_log_new(). False: no memory.
 */
bool record_stream(struct record *r, const struct stream_ops *ops, void *arg);

/* record_started() - It runs now: append the event `started`. */
void record_started(struct record *r);

/*
 * record_finish() - It is over. @result: the result object, which is kept. @event: the object of
 * the last event, of @type `done` or `refused`. @status: static. The caller must not use @r
 * afterwards.
 */
void record_finish(struct record *r, const char *type, const char *status, const char *result,
		   const char *event);

/* record_drop() - Remove the record, as if it had never existed; an open log ends. */
void record_drop(struct record *r);

/* record_json() - Write its members, without the result. */
void record_json(const struct record *r, struct json *j);

#endif

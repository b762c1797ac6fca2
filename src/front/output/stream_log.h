/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_log.h - What happened in one execution, as numbered events, for any number of readers.
 *
 * Events have ids from 1 without a gap. The newest are kept, up to a bound; older ones are
 * forgotten, and a reader who comes back for them is told so. A reader that is attached is not left
 * behind: what it has not read is kept, and the producer is asked to wait (stream_log_congested())
 * until it has. Only when that does not help either, at STREAM_HARD_BYTES, its events go:
 * stream_reader_next() says so.
 *
 * A log is counted by reference: whoever writes it, keeps it or reads it holds one. Everything here
 * is for the loop's thread alone.
 */
#ifndef CAISSON_FRONT_STREAM_LOG_H
#define CAISSON_FRONT_STREAM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct stream_log;
struct stream_reader;

#define STREAM_LOG_BYTES (4u << 20)
#define STREAM_LOG_EVENTS 10000u
#define STREAM_BEHIND_BYTES (256u << 10) /* a reader so far behind makes the producer wait */
#define STREAM_HARD_BYTES (128u << 20)   /* of what attached readers have not read */
#define STREAM_BANK_BYTES (UINT64_C(64) << 20)

/* All logs of the daemon: when they are too much together, the oldest that ended lose their events.
 */
struct stream_bank {
	uint64_t bytes, max;
	uint64_t peak;                   /* the most bytes since memory went back to the system */
	struct stream_log *first, *last; /* those that ended, in that order */
};

struct stream_event {
	uint64_t id;
	const char *type; /* static */
	size_t len;
	size_t size; /* of all of it in memory */
	char *json;  /* an object; NUL-terminated; text, or memory of its own */
	char text[];
};

struct stream_reader {
	/* There is something for stream_reader_next(), or the log has ended. May do anything to its
	 * own reader. */
	void (*wake)(struct stream_reader *r);
	void *arg;
	struct stream_log *log; /* a reference; NULL: not attached */
	struct stream_reader *prev, *next;
	uint64_t next_id;
	uint64_t behind; /* bytes */
	uint64_t woken;  /* by which append */
};

/* For the producer; both may be NULL, and neither is called after stream_log_end(). */
struct stream_ops {
	/* After stream_log_congested(): go on. Must not append yet. */
	void (*drained)(void *arg);
	/* The last reader went away. */
	void (*deserted)(void *arg);
};

/* stream_log_new() - One reference. @ops may be NULL. NULL without memory. */
struct stream_log *stream_log_new(struct stream_bank *bank, const struct stream_ops *ops,
				  void *arg);
struct stream_log *stream_log_ref(struct stream_log *l);
void stream_log_unref(struct stream_log *l); /* NULL is fine */

/* stream_log_limit() - Other bounds than the default ones. For tests. */
void stream_log_limit(struct stream_log *l, size_t bytes, size_t events);

/*
 * stream_log_append() - The next event. @type: static. Readers are woken before it returns. Without
 * memory the event is lost and its id with it: readers see a log that has no such event any more.
 */
void stream_log_append(struct stream_log *l, const char *type, const char *json, size_t len);
/* stream_log_take() - The same of what is in @b, which is empty then: much of it is taken over, not
 * copied. */
void stream_log_take(struct stream_log *l, const char *type, struct buf *b);
/* stream_log_end() - The last event was the last. Idempotent. */
void stream_log_end(struct stream_log *l);

bool stream_log_ended(const struct stream_log *l);
/* stream_log_congested() - Whether the producer should wait; `drained` will come. */
bool stream_log_congested(struct stream_log *l);
uint64_t stream_log_first(const struct stream_log *l); /* the oldest that is kept; last + 1: none */
uint64_t stream_log_last(const struct stream_log *l);  /* 0: none yet */
size_t stream_log_readers(const struct stream_log *l);

/*
 * stream_reader_attach() - Read the events after @cursor. r->wake and arg are the caller's.
 * Return: 0; -ESTALE when some of them are forgotten; -ERANGE when @cursor was not reached yet. It
 * is attached only with 0. Nothing is called.
 */
int stream_reader_attach(struct stream_reader *r, struct stream_log *l, uint64_t cursor);
void stream_reader_detach(struct stream_reader *r); /* idempotent */

/*
 * stream_reader_next() - The next event, valid until the log is used again; it counts as read.
 * NULL: none for now, or none any more (stream_log_ended()), or, with *@lost set, it is forgotten.
 */
const struct stream_event *stream_reader_next(struct stream_reader *r, bool *lost);

#endif

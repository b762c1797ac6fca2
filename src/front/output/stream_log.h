/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_log.h - The log of one execution: numbered events, for any number of readers.
 *
 * Events have ids from 1, without a gap. The log keeps the newest events, up to a bound, and
 * forgets older ones; a reader that comes back for a forgotten event gets an error. An attached
 * reader does not fall behind: the log keeps the events that it has not read, and asks the producer
 * to wait (stream_log_congested()) until it has read them. Only if these events still reach
 * STREAM_HARD_BYTES does the log forget them, and stream_reader_next() reports that.
 *
 * A log is counted by reference: its writer, each reader, and a table that keeps it hold one each.
 * All functions are for the thread of the loop alone.
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
/* A reader that is further behind makes the producer wait. */
#define STREAM_BEHIND_BYTES (256u << 10)
#define STREAM_HARD_BYTES (128u << 20) /* bytes that are kept for attached readers at most */
#define STREAM_READERS_MAX 64u         /* of one log */
#define STREAM_BANK_BYTES (UINT64_C(64) << 20)

/*
 * All logs of the daemon. When they take too many bytes together, the logs that ended first and
 * have no reader lose their events.
 */
struct stream_bank {
	uint64_t bytes, max;
	/* The most bytes since memory was last returned to the system. */
	uint64_t peak;
	struct stream_log *first, *last; /* logs that ended, the earliest first */
};

struct stream_event {
	uint64_t id;
	const char *type; /* static */
	size_t len;
	size_t size; /* bytes of memory that it takes */
	char *json;  /* an object, NUL-terminated; points to text, or to memory of its own */
	char text[];
};

struct stream_reader {
	/* Called when stream_reader_next() has an event, or the log has ended. May do anything to
	 * its own reader. */
	void (*wake)(struct stream_reader *r);
	void *arg;
	struct stream_log *log; /* a reference; NULL: not attached */
	struct stream_reader *prev, *next;
	uint64_t next_id;
	uint64_t behind; /* bytes that it has not read */
};

/* Functions of the producer. Both may be NULL, and neither is called after stream_log_end(). */
struct stream_ops {
	/* The producer that stream_log_congested() made wait may go on, but not append in this
	 * call. */
	void (*drained)(void *arg);
	/* The last reader was detached. */
	void (*deserted)(void *arg);
};

/*
 * stream_log_new() - Make a log, with one reference for the caller. @ops may be NULL. NULL: no
 * memory.
 */
struct stream_log *stream_log_new(struct stream_bank *bank, const struct stream_ops *ops,
				  void *arg);
struct stream_log *stream_log_ref(struct stream_log *l);
void stream_log_unref(struct stream_log *l); /* NULL is fine */

/* stream_log_limit() - Set other bounds than the default ones. For tests. */
void stream_log_limit(struct stream_log *l, size_t bytes, size_t events);

/*
 * stream_log_append() - Append an event, and wake the readers before it returns. @type: static.
 * Without memory the event is lost, and counts as forgotten, as do all events before it.
 */
void stream_log_append(struct stream_log *l, const char *type, const char *json, size_t len);
/*
 * stream_log_take() - Append the content of @b as an event, and empty @b: long content is taken
 * over, not copied.
 */
void stream_log_take(struct stream_log *l, const char *type, struct buf *b);
/* stream_log_end() - No event follows: wake the readers. Idempotent. */
void stream_log_end(struct stream_log *l);

bool stream_log_ended(const struct stream_log *l);
/* stream_log_congested() - Whether the producer should wait; if so, `drained` is called later. */
bool stream_log_congested(struct stream_log *l);
/* stream_log_first() - The id of the oldest kept event; last + 1 if the log keeps no event. */
uint64_t stream_log_first(const struct stream_log *l);
uint64_t stream_log_last(const struct stream_log *l); /* id of the newest event; 0: no event yet */
size_t stream_log_readers(const struct stream_log *l);

/*
 * stream_reader_attach() - Read the events after @cursor. The caller has set r->wake and r->arg.
 * Return: 0, and only then is the reader attached; -ESTALE if some of the events are forgotten;
 * -ERANGE if @cursor is after the last event; -EBUSY if the log has STREAM_READERS_MAX readers.
 * Calls no function of the reader.
 */
int stream_reader_attach(struct stream_reader *r, struct stream_log *l, uint64_t cursor);
void stream_reader_detach(struct stream_reader *r); /* idempotent */

/*
 * stream_reader_next() - The next event, which counts as read; valid until the log is used again.
 * NULL: no event for now, or no event will follow (stream_log_ended()), or, with *@lost set, the
 * log has forgotten the event.
 */
const struct stream_event *stream_reader_next(struct stream_reader *r, bool *lost);

#endif

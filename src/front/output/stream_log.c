/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_log.c - A ring of events, and its readers.
 *
 * The event with id n is at n modulo the ring's size, which is a power of two and doubles when the
 * events from first to last do not fit. Bytes are counted three times: the bytes that this log
 * keeps, the bytes that all logs keep, and the bytes that each reader has not read yet.
 *
 * A function that is called from here may do anything with its own reader or log: wake_all() holds
 * a reference meanwhile. A woken reader may detach others, so the log itself keeps the reader that
 * is woken next, and stream_reader_detach() moves on from one that leaves. Each event costs time
 * for each reader, so a log has few of them (STREAM_READERS_MAX).
 */
#include "front/output/stream_log.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/list.h"

#define RING_FIRST 16u
#define TAKE_MIN 4096u /* shorter content is copied, and wastes no memory */
#define TRIM_BYTES (8u << 20)

struct stream_log {
	unsigned int refs;
	struct stream_bank *bank;
	const struct stream_ops *ops;
	void *arg;
	struct stream_event **ring;
	size_t ring_len;
	/* Ids of the kept events; last + 1 == first: the log keeps no event. */
	uint64_t first, last;
	size_t bytes, bytes_max, events_max;
	struct stream_reader *readers;
	struct stream_reader *to_wake; /* the next one of wake_all(), or NULL */
	size_t n_readers;
	bool ended, waiting;
	struct stream_log *prev_ended, *next_ended;
};

static struct stream_event **slot(const struct stream_log *l, uint64_t id)
{
	return &l->ring[id & (l->ring_len - 1)];
}

/* ---- life ---------------------------------------------------------------------------------- */

struct stream_log *stream_log_new(struct stream_bank *bank, const struct stream_ops *ops, void *arg)
{
	static const struct stream_ops none;
	struct stream_log *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->refs = 1;
	l->bank = bank;
	l->ops = ops ? ops : &none;
	l->arg = arg;
	l->first = 1;
	stream_log_limit(l, STREAM_LOG_BYTES, STREAM_LOG_EVENTS);
	return l;
}

void stream_log_limit(struct stream_log *l, size_t bytes, size_t events)
{
	l->bytes_max = bytes;
	l->events_max = events;
}

struct stream_log *stream_log_ref(struct stream_log *l)
{
	l->refs++;
	return l;
}

static void free_event(struct stream_event *ev)
{
	if (ev && ev->json != ev->text)
		free(ev->json);
	free(ev);
}

/*
 * Events are small, and a younger allocation above them prevents malloc from returning their memory
 * to the system: request that when most of a large amount is free.
 */
static void return_memory(struct stream_bank *b)
{
	if (b->peak > TRIM_BYTES && b->bytes < b->peak / 4) {
		(void)malloc_trim(0);
		b->peak = b->bytes;
	}
}

static void drop_first(struct stream_log *l)
{
	struct stream_event *ev = *slot(l, l->first++);

	l->bytes -= ev->size;
	l->bank->bytes -= ev->size;
	free_event(ev);
}

static void drop_all(struct stream_log *l)
{
	while (l->first <= l->last)
		drop_first(l);
	free(l->ring);
	l->ring = NULL;
	l->ring_len = 0;
	return_memory(l->bank);
}

static void unlist(struct stream_log *l)
{
	struct stream_bank *b = l->bank;

	*(l->prev_ended ? &l->prev_ended->next_ended : &b->first) = l->next_ended;
	*(l->next_ended ? &l->next_ended->prev_ended : &b->last) = l->prev_ended;
}

void stream_log_unref(struct stream_log *l)
{
	if (!l || --l->refs > 0)
		return;
	if (l->ended)
		unlist(l);
	drop_all(l);
	free(l);
}

/* ---- room ---------------------------------------------------------------------------------- */

/* Whether an attached reader still needs the oldest event. */
static bool is_needed(const struct stream_log *l)
{
	for (const struct stream_reader *r = l->readers; r; r = r->next)
		if (r->next_id <= l->first)
			return true;
	return false;
}

static void make_room(struct stream_log *l, size_t size)
{
	while (l->first <= l->last &&
	       (l->bytes + size > l->bytes_max || l->last - l->first + 1 >= l->events_max)) {
		if (l->bytes + size <= STREAM_HARD_BYTES && is_needed(l))
			return;
		drop_first(l);
	}
}

/*
 * Return to the bounds after a reader that needed more is gone. The newest event stays, whatever
 * its size.
 */
static void settle(struct stream_log *l)
{
	while (l->first < l->last &&
	       (l->bytes > l->bytes_max || l->last - l->first + 1 > l->events_max) && !is_needed(l))
		drop_first(l);
}

/*
 * Logs that ended first and have no reader lose their events first. A log that grows has a bound of
 * its own.
 */
static void trim_bank(struct stream_bank *b)
{
	for (struct stream_log *l = b->first; l && b->bytes > b->max; l = l->next_ended)
		if (!l->readers)
			drop_all(l);
}

static bool grow(struct stream_log *l)
{
	size_t len = l->ring_len ? l->ring_len * 2 : RING_FIRST;
	struct stream_event **ring;

	if (l->last - l->first + 1 < l->ring_len)
		return true;
	ring = reallocarray(NULL, len, sizeof(struct stream_event *));
	if (!ring)
		return false;
	for (uint64_t id = l->first; id <= l->last; id++)
		ring[id & (len - 1)] = *slot(l, id);
	free(l->ring);
	l->ring = ring;
	l->ring_len = len;
	return true;
}

/* ---- writing ------------------------------------------------------------------------------- */

/*
 * A reader that is attached meanwhile is not woken: it comes first in the list, and reads at once.
 * A woken reader may append or end, and so call this function again. The inner call wakes all
 * readers and leaves none for the outer one.
 */
static void wake_all(struct stream_log *l)
{
	struct stream_reader *r;

	stream_log_ref(l);
	l->to_wake = l->readers;
	while ((r = l->to_wake)) {
		l->to_wake = r->next;
		r->wake(r);
	}
	stream_log_unref(l);
}

static void forget_next(struct stream_log *l)
{
	while (l->first <= l->last)
		drop_first(l);
	l->first = ++l->last + 1;
}

/* @ev: NULL if there was no memory for it. */
static void append(struct stream_log *l, struct stream_event *ev)
{
	if (l->ended) {
		free_event(ev);
		return;
	}
	make_room(l, ev ? ev->size : 0);
	if (!ev || !grow(l)) {
		free_event(ev);
		forget_next(l);
		wake_all(l);
		return;
	}
	ev->id = ++l->last;
	*slot(l, ev->id) = ev;
	l->bytes += ev->size;
	l->bank->bytes += ev->size;
	if (l->bank->bytes > l->bank->peak)
		l->bank->peak = l->bank->bytes;
	for (struct stream_reader *r = l->readers; r; r = r->next)
		r->behind += ev->size;
	trim_bank(l->bank);
	wake_all(l);
}

void stream_log_append(struct stream_log *l, const char *type, const char *json, size_t len)
{
	size_t size = sizeof(struct stream_event) + len + 1;
	struct stream_event *ev = malloc(size);

	if (ev) {
		*ev = (struct stream_event){ .type = type, .len = len, .size = size };
		ev->json = ev->text;
		memcpy(ev->text, json, len);
		ev->text[len] = '\0';
	}
	append(l, ev);
}

void stream_log_take(struct stream_log *l, const char *type, struct buf *b)
{
	struct stream_event *ev = b->len < TAKE_MIN ? NULL : malloc(sizeof(*ev));

	if (!ev) {
		stream_log_append(l, type, buf_str(b), b->len);
		buf_clear(b);
		return;
	}
	if (b->cap - b->len > b->len / 4)
		buf_trim(b);
	*ev = (struct stream_event){ .type = type, .len = b->len, .size = sizeof(*ev) + b->cap };
	ev->json = b->data;
	buf_init(b, b->max);
	append(l, ev);
}

void stream_log_end(struct stream_log *l)
{
	struct stream_bank *b = l->bank;

	if (l->ended)
		return;
	l->ended = true;
	l->prev_ended = b->last;
	*(b->last ? &b->last->next_ended : &b->first) = l;
	b->last = l;
	wake_all(l);
}

bool stream_log_ended(const struct stream_log *l)
{
	return l->ended;
}

static bool anybody_behind(const struct stream_log *l, size_t bytes)
{
	for (const struct stream_reader *r = l->readers; r; r = r->next)
		if (r->behind > bytes)
			return true;
	return false;
}

bool stream_log_congested(struct stream_log *l)
{
	if (!l->ended && anybody_behind(l, STREAM_BEHIND_BYTES))
		l->waiting = true;
	return l->waiting;
}

static void look_whether_drained(struct stream_log *l)
{
	if (!l->waiting || anybody_behind(l, STREAM_BEHIND_BYTES / 2))
		return;
	l->waiting = false;
	if (l->ops->drained && !l->ended)
		l->ops->drained(l->arg);
}

uint64_t stream_log_first(const struct stream_log *l)
{
	return l->first;
}

uint64_t stream_log_last(const struct stream_log *l)
{
	return l->last;
}

size_t stream_log_readers(const struct stream_log *l)
{
	return l->n_readers;
}

/* ---- reading ------------------------------------------------------------------------------- */

int stream_reader_attach(struct stream_reader *r, struct stream_log *l, uint64_t cursor)
{
	if (cursor > l->last)
		return -ERANGE;
	if (cursor + 1 < l->first)
		return -ESTALE;
	if (l->n_readers >= STREAM_READERS_MAX)
		return -EBUSY;
	r->log = stream_log_ref(l);
	r->next_id = cursor + 1;
	r->behind = 0;
	for (uint64_t id = r->next_id; id <= l->last; id++)
		r->behind += (*slot(l, id))->size;
	LIST_PUSH(l->readers, r);
	l->n_readers++;
	return 0;
}

void stream_reader_detach(struct stream_reader *r)
{
	struct stream_log *l = r->log;

	if (!l)
		return;
	if (l->to_wake == r)
		l->to_wake = r->next;
	LIST_DROP(l->readers, r);
	r->log = NULL;
	r->prev = r->next = NULL;
	l->n_readers--;
	settle(l);
	look_whether_drained(l);
	if (!l->readers && !l->ended && l->ops->deserted)
		l->ops->deserted(l->arg);
	stream_log_unref(l);
}

const struct stream_event *stream_reader_next(struct stream_reader *r, bool *lost)
{
	struct stream_log *l = r->log;

	*lost = l && r->next_id < l->first;
	if (!l || *lost || r->next_id > l->last)
		return NULL;
	const struct stream_event *ev = *slot(l, r->next_id++);

	r->behind -= ev->size;
	look_whether_drained(l);
	return ev;
}

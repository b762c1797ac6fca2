/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - The records of a sandbox.
 *
 * A table is a list, the oldest first. It has one timer, which fires when the next event log, or
 * the next record, is old enough to be removed. A record of something that still runs is never
 * pushed out; the part that runs it bounds how many run at once.
 */
#include "front/sandbox/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/output/stream_log.h"
#include "front/support/time_text.h"

#define RECORD_LIFE_NS (15 * 60 * CLOCK_NS_PER_S)
#define LOG_LIFE_NS (5 * 60 * CLOCK_NS_PER_S)

/* ---- forgetting ---------------------------------------------------------------------------- */

static void end_log(struct record *r)
{
	struct stream_log *l = r->log;

	r->log = NULL;
	if (l)
		stream_log_end(l);
	stream_log_unref(l);
}

static void forget(struct record **at)
{
	struct record *r = *at;
	struct records *rs = r->owner;

	*at = r->next;
	if (!*at)
		rs->tail = at;
	rs->n--;
	end_log(r);
	spool_free(&r->out);
	spool_free(&r->err);
	spool_free(&r->result);
	free(r);
}

static uint64_t due(const struct record *r)
{
	return r->ended_ns + (r->log ? LOG_LIFE_NS : RECORD_LIFE_NS);
}

static void set_timer(struct records *rs)
{
	uint64_t next = UINT64_MAX;

	for (const struct record *r = rs->first; r; r = r->next)
		if (r->ended_ms && due(r) < next)
			next = due(r);
	if (next == UINT64_MAX)
		timer_cancel(&rs->timer);
	else
		timer_set(rs->loop, &rs->timer, next);
}

static void on_timer(struct timer *t)
{
	struct records *rs = t->arg;
	uint64_t now = rs->loop->now_ns;
	struct record **at = &rs->first;

	while (*at) {
		struct record *r = *at;

		if (r->ended_ms && r->log && due(r) <= now)
			end_log(r);
		if (r->ended_ms && due(r) <= now)
			forget(at);
		else
			at = &r->next;
	}
	set_timer(rs);
}

/* ---- the table ----------------------------------------------------------------------------- */

void records_init(struct records *rs, struct loop *loop, struct spool_bank *spools,
		  struct stream_bank *streams)
{
	*rs = (struct records){ .loop = loop, .spools = spools, .streams = streams };
	rs->tail = &rs->first;
	rs->timer.fn = on_timer;
	rs->timer.arg = rs;
}

void records_free(struct records *rs)
{
	timer_cancel(&rs->timer);
	while (rs->first)
		forget(&rs->first);
}

struct record *records_find(const struct records *rs, const char *id)
{
	for (struct record *r = rs->first; r; r = r->next)
		if (strcmp(r->id, id) == 0)
			return r;
	return NULL;
}

static void push_out(struct records *rs)
{
	struct record **at = &rs->first;

	while (*at && rs->n >= RECORDS_MAX) {
		if ((*at)->ended_ms)
			forget(at);
		else
			at = &(*at)->next;
	}
}

/* ---- one record ---------------------------------------------------------------------------- */

struct record *record_new(struct records *rs, const char *id, const char *kind, uint64_t reserve)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	push_out(rs);
	r->owner = rs;
	r->kind = kind;
	(void)snprintf(r->id, sizeof(r->id), "%s", id);
	spool_init(&r->out, rs->spools, SPOOL_CAP);
	spool_init(&r->err, rs->spools, SPOOL_CAP);
	spool_init(&r->result, rs->spools, SPOOL_CAP);
	spool_reserve(&r->out, reserve);
	spool_reserve(&r->err, reserve);
	*rs->tail = r;
	rs->tail = &r->next;
	rs->n++;
	return r;
}

bool record_stream(struct record *r, const struct stream_ops *ops, void *arg)
{
	if (!r->log)
		r->log = stream_log_new(r->owner->streams, ops, arg);
	r->streamed = r->log != NULL;
	return r->streamed;
}

void record_started(struct record *r)
{
	char json[64];
	int n = snprintf(json, sizeof(json), "{\"execution_id\":\"%s\"}", r->id);

	if (!r->asked_ms)
		r->asked_ms = time_files_ms();
	r->started_ms = time_now_ms();
	if (r->log)
		stream_log_append(r->log, "started", json, (size_t)n);
}

void record_finish(struct record *r, const char *type, const char *status, const char *result,
		   const char *event)
{
	struct stream_log *l = r->log ? stream_log_ref(r->log) : NULL;

	spool_append(&r->result, result, strlen(result));
	spool_settle(&r->out);
	spool_settle(&r->err);
	r->status = status;
	r->ended_ms = time_now_ms();
	r->ended_ns = r->owner->loop->now_ns;
	if (!r->owner->timer.loop || due(r) < r->owner->timer.at_ns)
		timer_set(r->owner->loop, &r->owner->timer, due(r));
	/* Last, because a reader may request the record now, or remove it. */
	if (l) {
		stream_log_append(l, type, event, strlen(event));
		stream_log_end(l);
		stream_log_unref(l);
	}
}

void record_drop(struct record *r)
{
	for (struct record **at = &r->owner->first; *at; at = &(*at)->next)
		if (*at == r) {
			forget(at);
			return;
		}
}

void record_json(const struct record *r, struct json *j)
{
	json_member_str(j, "execution_id", r->id);
	json_member_str(j, "kind", r->kind);
	json_member_str(j, "state", r->ended_ms ? "done" : r->started_ms ? "running" : "queued");
	if (r->status)
		json_member_str(j, "status", r->status);
	if (r->started_ms)
		time_json(j, "started_at", r->started_ms);
	if (r->ended_ms)
		time_json(j, "ended_at", r->ended_ms);
	json_member_uint(j, "stdout_bytes", r->out.bytes);
	json_member_uint(j, "stderr_bytes", r->err.bytes);
	json_member_uint(j, "stdout_kept", r->out.kept);
	json_member_uint(j, "stderr_kept", r->err.kept);
	if (r->log)
		json_member_uint(j, "last_event_id", stream_log_last(r->log));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - Events of streams by number. An event has the id "<stream>-<number>"; number 0 is the
 * empty event that begins a stream. */
#include "front/mcp/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "front/mcp/mcp.h"
#include "front/mcp/session.h"
#include "mcp/message.h"
#include "net/http.h"

#define STREAMS_MAX 32u          /* of a session; the oldest that has ended makes room */
#define STREAM_BYTES (16u << 20) /* of one */
#define ALL_BYTES (128u << 20)   /* of all sessions */
#define KEPT_NS (5 * 60 * CLOCK_NS_PER_S)

struct event {
	struct event *next;
	size_t len;
	char text[];
};

struct mcp_replay {
	struct mcp_session *session;
	struct mcp_replay *next; /* the newest first */
	uint64_t number;
	struct event *events, **tail;
	size_t n, bytes;
	bool lost; /* not everything could be kept */
	void *speaker;
	struct timer end;
};

static void drop_events(struct mcp_replay *r)
{
	while (r->events) {
		struct event *e = r->events;

		r->events = e->next;
		free(e);
	}
	r->tail = &r->events;
	r->session->mcp->replay_bytes -= r->bytes;
	r->bytes = 0;
}

static void forget(struct mcp_replay *r)
{
	struct mcp_session *s = r->session;

	for (struct mcp_replay **p = &s->replays; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			break;
		}
	s->n_replays--;
	timer_cancel(&r->end);
	drop_events(r);
	free(r);
}

static void on_end(struct timer *t)
{
	forget(t->arg);
}

static void make_room(struct mcp_session *s)
{
	struct mcp_replay *oldest = NULL;

	for (struct mcp_replay *r = s->replays; r; r = r->next)
		if (!r->speaker)
			oldest = r;
	if (s->n_replays >= STREAMS_MAX && oldest)
		forget(oldest);
}

struct mcp_replay *mcp_replay_begin(struct mcp_session *s, void *speaker)
{
	struct mcp_replay *r;

	if (!s || !s->version || strcmp(s->version, MCP_LEGACY_VERSION) < 0)
		return NULL;
	make_room(s);
	if (s->n_replays >= STREAMS_MAX || !(r = calloc(1, sizeof(*r))))
		return NULL;
	r->session = s;
	r->speaker = speaker;
	r->number = ++s->streams;
	r->tail = &r->events;
	r->next = s->replays;
	s->replays = r;
	s->n_replays++;
	return r;
}

void mcp_replay_add(struct mcp_replay *r, const struct buf *json)
{
	struct mcp *m = r->session->mcp;
	struct event *e = NULL;

	r->n++;
	if (!r->lost && r->bytes + json->len <= STREAM_BYTES &&
	    m->replay_bytes + json->len <= ALL_BYTES)
		e = malloc(sizeof(*e) + json->len);
	if (!e) {
		r->lost = true;
		drop_events(r);
		return;
	}
	e->next = NULL;
	e->len = json->len;
	memcpy(e->text, buf_str(json), json->len);
	*r->tail = e;
	r->tail = &e->next;
	r->bytes += e->len;
	m->replay_bytes += e->len;
}

void mcp_replay_id(const struct mcp_replay *r, char id[MCP_EVENT_ID])
{
	(void)snprintf(id, MCP_EVENT_ID, "%" PRIu64 "-%zu", r->number, r->n);
}

void mcp_replay_end(struct mcp_replay *r)
{
	struct loop *l = r->session->mcp->loop;

	r->speaker = NULL;
	r->end.fn = on_end;
	r->end.arg = r;
	timer_after(l, &r->end, KEPT_NS);
}

struct mcp_replay *mcp_replay_find(struct mcp_session *s, const char *id, size_t *seen)
{
	char *end, again[MCP_EVENT_ID];
	uint64_t number = strtoull(id, &end, 10);

	*seen = *end == '-' ? strtoull(end + 1, NULL, 10) : 0;
	/* Only an id that mcp_replay_id() writes. */
	(void)snprintf(again, sizeof(again), "%" PRIu64 "-%zu", number, *seen);
	if (strcmp(again, id) != 0)
		return NULL;
	for (struct mcp_replay *r = s->replays; r; r = r->next)
		if (r->number == number)
			return r->lost || *seen > r->n ? NULL : r;
	return NULL;
}

void mcp_replay_send(const struct mcp_replay *r, struct http_exchange *x, size_t seen)
{
	size_t n = 0;

	for (const struct event *e = r->events; e; e = e->next) {
		char id[MCP_EVENT_ID];

		if (++n <= seen)
			continue;
		(void)snprintf(id, sizeof(id), "%" PRIu64 "-%zu", r->number, n);
		(void)sse_event(x, id, "message", e->text, e->len);
	}
}

void *mcp_replay_speaker(const struct mcp_replay *r)
{
	return r->speaker;
}

void mcp_replays_free(struct mcp_session *s)
{
	while (s->replays)
		forget(s->replays);
}

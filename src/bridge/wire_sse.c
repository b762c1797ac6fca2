/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_sse.c - The older pair (2024-11-05): one stream of events from the server, and an address
 * for POST that its first event names. Messages that are sent before wait. The address has to be of
 * the same origin: our headers go there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "bridge/config.h"
#include "bridge/event_stream.h"
#include "bridge/fetch.h"
#include "bridge/upstream.h"
#include "mcp/slice.h"

#define WAITING_MAX 512u
#define URL_MAX 8192u

struct sse_wire {
	struct wire wire;
	struct fetch *stream;
	struct event_stream events;
	char *endpoint; /* NULL: not known yet */
	struct letter *letters;
	size_t n_letters;
	char version[16];
};

/* A message on its way. */
struct letter {
	struct sse_wire *w;
	struct letter *next;
	uint64_t id;
	struct fetch *fetch; /* NULL: waits for the address */
	struct buf text;
};

static void free_letter(struct letter *l)
{
	for (struct letter **q = &l->w->letters; *q; q = &(*q)->next)
		if (*q == l) {
			*q = l->next;
			l->w->n_letters--;
			break;
		}
	if (l->fetch)
		fetch_stop(l->fetch);
	buf_free(&l->text);
	free(l);
}

static void bury(struct deferred *d)
{
	struct sse_wire *w = d->arg;

	event_stream_free(&w->events);
	free(w->endpoint);
	free(w);
}

static void close_wire(struct wire *wire)
{
	struct sse_wire *w = (struct sse_wire *)wire;

	while (w->letters)
		free_letter(w->letters);
	if (w->stream)
		fetch_stop(w->stream);
	wire_bury(wire, bury);
}

static void add_headers(const struct sse_wire *w, struct fetch *f)
{
	const struct server_config *s = w->wire.up->config;

	for (size_t i = 0; s->headers && s->headers[i]; i++)
		http_call_header(&f->http, "%s", s->headers[i]);
	if (w->version[0])
		http_call_header(&f->http, "MCP-Protocol-Version: %s", w->version);
}

/* ---- out ----------------------------------------------------------------------------------- */

static void on_delivered(struct fetch *f, const char *error)
{
	struct letter *l = f->arg;
	struct sse_wire *w = l->w;
	uint64_t id = l->id;
	char text[80];
	struct wire_failure failure = { .http = f->status, .message = text };
	bool good = !error && f->status < 300;

	(void)snprintf(text, sizeof(text), "answered with HTTP status %d", f->status);
	if (error)
		failure.message = "cannot be reached";
	free_letter(l);
	if (!good && id)
		answers_failure(w->wire.up, id, &failure);
}

static bool deliver(struct letter *l)
{
	struct fetch *f = fetch_new(l->w->wire.up->base.fetcher, "POST", l->w->endpoint);

	if (!f)
		return false;
	f->on_end = on_delivered;
	f->arg = l;
	add_headers(l->w, f);
	http_call_header(&f->http, "Content-Type: application/json");
	if (fetch_go(f, l->text.data, l->text.len) < 0)
		return false;
	l->fetch = f;
	return true;
}

static int send_message(struct wire *wire, const struct wire_message *m, struct err *e)
{
	struct sse_wire *w = (struct sse_wire *)wire;
	struct letter *l;

	if (w->n_letters >= WAITING_MAX)
		return err_say(e, -EBUSY, "does not take what it is sent");
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(e, -ENOMEM, "send it");
	l->w = w;
	l->id = m->id;
	buf_init(&l->text, BRIDGE_BODY_MAX + BRIDGE_PACKET_MAX);
	/* In the order in which they came. */
	struct letter **q = &w->letters;

	while (*q)
		q = &(*q)->next;
	*q = l;
	w->n_letters++;
	if (buf_append(&l->text, m->text, m->len) < 0 || (w->endpoint && !deliver(l))) {
		free_letter(l);
		return err_set(e, -ENOMEM, "send it");
	}
	return 0;
}

static void abandon(struct wire *wire, uint64_t id, bool answered)
{
	struct sse_wire *w = (struct sse_wire *)wire;

	/* A message that is under way goes on; its answer is dropped. */
	for (struct letter *l = w->letters; l; l = l->next)
		if (l->id == id && id) {
			l->id = 0;
			if (!l->fetch && !answered)
				free_letter(l);
			return;
		}
}

static void settle(struct wire *wire, const char *version, bool listen)
{
	struct sse_wire *w = (struct sse_wire *)wire;

	(void)listen;
	(void)snprintf(w->version, sizeof(w->version), "%s", version);
}

/* ---- in ------------------------------------------------------------------------------------ */

/* The absolute URL for messages. NULL: it is of another origin than the server. */
static char *resolve(const char *base, const char *reference)
{
	CURLU *u = curl_url();
	char *url = NULL, *ret = NULL;

	if (u && curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_URL, reference, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK && strlen(url) < URL_MAX &&
	    http_origin_is(base, url))
		ret = strdup(url);
	curl_free(url);
	curl_url_cleanup(u);
	return ret;
}

static bool on_endpoint(struct sse_wire *w, char *data, size_t len)
{
	if (w->endpoint)
		return true;
	data[len] = '\0'; /* a buffer has room for it */
	w->endpoint = resolve(w->wire.up->config->url, data);
	if (!w->endpoint) {
		wire_over(&w->wire, "names an address for messages that is not its own");
		return false;
	}
	for (struct letter *l = w->letters, *next; l; l = next) {
		next = l->next;
		if (!l->fetch && !deliver(l)) {
			wire_over(&w->wire, "could not be sent to: no memory");
			return false;
		}
	}
	return true;
}

static bool on_event(void *arg, const char *type, char *data, size_t len)
{
	struct sse_wire *w = arg;

	if (strcmp(type, "endpoint") == 0)
		return on_endpoint(w, data, len);
	if (strcmp(type, "message") == 0) {
		slice_one_line(data, len);
		answers_message(w->wire.up, data, len);
	}
	return !w->wire.dead;
}

static void on_head(struct fetch *f)
{
	struct sse_wire *w = f->arg;
	char text[80];

	(void)snprintf(text, sizeof(text), "answered with HTTP status %d", f->status);
	if (f->status == 401)
		wire_over(&w->wire, "wants other credentials (HTTP status 401)");
	else if (f->status != 200)
		wire_over(&w->wire, text);
	else if (strcmp(f->type, "text/event-stream") != 0)
		wire_over(&w->wire, "does not answer with a stream of events");
}

static void on_data(struct fetch *f, const char *data, size_t len)
{
	struct sse_wire *w = f->arg;

	if (!event_stream_feed(&w->events, data, len) && w->events.too_large)
		wire_over(&w->wire, "sent a message of more than 64 MiB");
}

static void on_end(struct fetch *f, const char *error)
{
	struct sse_wire *w = f->arg;
	char text[160];

	(void)snprintf(text, sizeof(text), "cannot be reached: %.120s", error ? error : "");
	wire_over(&w->wire, f->status ? "ended its stream of events" : text);
}

static const struct wire_ops ops = { send_message, abandon, settle, close_wire };

int wire_sse_open(struct upstream *u, struct err *e)
{
	struct sse_wire *w = calloc(1, sizeof(*w));
	struct fetch *f = w ? fetch_new(u->base.fetcher, "GET", u->config->url) : NULL;

	if (w) {
		w->wire = (struct wire){ .ops = &ops, .up = u };
		event_stream_init(&w->events, BRIDGE_MESSAGE_MAX + 64);
		w->events.on_event = on_event;
		w->events.arg = w;
	}
	if (f) {
		f->on_head = on_head;
		f->on_data = on_data;
		f->on_end = on_end;
		f->arg = w;
		add_headers(w, f);
		http_call_header(&f->http, "Accept: text/event-stream");
		if (fetch_go(f, NULL, 0) == 0) {
			w->stream = f;
			u->wire = &w->wire;
			return 0;
		}
	}
	if (w)
		event_stream_free(&w->events);
	free(w);
	return err_set(e, -ENOMEM, "open it");
}

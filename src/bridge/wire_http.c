/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_http.c - Streamable HTTP: each message is a POST, the answer is JSON or a stream of events.
 *
 * Legacy servers may have a session, whose name goes with every request; may end the stream of an
 * answer and go on with it when asked for what came after the last event (GET with Last-Event-ID,
 * after as long as they said); and may speak without being asked on a stream of its own, which is
 * opened after the handshake if their list of tools may change, and does not have to be there. With
 * modern servers none of this exists: closing the stream of an answer is how a call is cancelled.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "bridge/bridge_log.h"
#include "bridge/config.h"
#include "bridge/event_stream.h"
#include "bridge/fetch.h"
#include "bridge/upstream.h"
#include "mcp/message.h"
#include "mcp/slice.h"

#define RETRY_MS 1000u
#define RETRY_MAX_MS 60000u
#define ATTEMPTS_MAX 8u
#define GOODBYE_MS 1000L
#define LINGER_NS CLOCK_NS_PER_S /* for the end of a stream whose answer is here */

struct http_wire {
	struct wire wire;
	struct post *posts;
	char session[300]; /* "": none */
	char version[16];  /* of a legacy server, after the handshake */
};

/* A request of HTTP, and what follows from it. */
struct post {
	struct http_wire *w;
	struct post *prev, *next;
	uint64_t id;         /* of the request in it; 0: nothing answers it */
	struct fetch *fetch; /* NULL: waits to ask again */
	bool unasked;        /* the stream of notifications of a legacy server */
	bool modern, answered, streams;
	unsigned int attempts;
	struct buf body; /* an answer that is no stream */
	struct event_stream events;
	struct timer timer;
};

/* ---- ends ---------------------------------------------------------------------------------- */

static void free_post(struct post *p)
{
	LIST_DROP(p->w->posts, p);
	timer_cancel(&p->timer);
	if (p->fetch)
		fetch_stop(p->fetch);
	buf_free(&p->body);
	event_stream_free(&p->events);
	free(p);
}

static void bury(struct deferred *d)
{
	free(d->arg);
}

static void add_headers(struct fetch *f, char *const *lines)
{
	for (size_t i = 0; lines && lines[i]; i++)
		http_call_header(&f->http, "%s", lines[i]);
}

/* The server may forget the session. The answer is awaited for a moment only. */
static void end_session(struct http_wire *w)
{
	const struct server_config *s = w->wire.up->config;
	struct fetch *f = w->session[0] ? fetch_new(w->wire.up->base.fetcher, "DELETE", s->url) :
					  NULL;

	if (!f)
		return;
	http_call_header(&f->http, "Mcp-Session-Id: %s", w->session);
	if (w->version[0])
		http_call_header(&f->http, "MCP-Protocol-Version: %s", w->version);
	add_headers(f, s->headers);
	http_call_timeout(&f->http, GOODBYE_MS);
	(void)fetch_go(f, NULL, 0);
}

static void close_wire(struct wire *wire)
{
	struct http_wire *w = (struct http_wire *)wire;

	end_session(w);
	while (w->posts)
		free_post(w->posts);
	wire_bury(wire, bury);
}

/* The post is over, and its request, if any, without an answer. */
static void fail(struct post *p, struct wire_failure f)
{
	struct http_wire *w = p->w;
	uint64_t id = p->id;
	bool tell = id && !p->answered;

	free_post(p);
	if (tell)
		answers_failure(w->wire.up, id, &f);
}

/* ---- asking -------------------------------------------------------------------------------- */

static void on_head(struct fetch *f);
static void on_data(struct fetch *f, const char *data, size_t len);
static void on_end(struct fetch *f, const char *error);

static struct fetch *make_fetch(struct post *p, const char *method, const char *version)
{
	const struct server_config *s = p->w->wire.up->config;
	struct fetch *f = fetch_new(p->w->wire.up->base.fetcher, method, s->url);

	if (!f)
		return NULL;
	add_headers(f, s->headers);
	if (version)
		http_call_header(&f->http, "MCP-Protocol-Version: %s", version);
	if (p->w->session[0] && !p->modern)
		http_call_header(&f->http, "Mcp-Session-Id: %s", p->w->session);
	f->on_head = on_head;
	f->on_data = on_data;
	f->on_end = on_end;
	f->arg = p;
	return f;
}

static bool on_event(void *arg, const char *type, char *data, size_t len);

static struct post *make_post(struct http_wire *w, uint64_t id, bool modern)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->w = w;
	p->id = id;
	p->modern = modern;
	buf_init(&p->body, BRIDGE_MESSAGE_MAX);
	event_stream_init(&p->events, BRIDGE_MESSAGE_MAX + 64);
	p->events.on_event = on_event;
	p->events.arg = p;
	LIST_PUSH(w->posts, p);
	return p;
}

static int send_message(struct wire *wire, const struct wire_message *m, struct err *e)
{
	struct http_wire *w = (struct http_wire *)wire;
	struct post *p = make_post(w, m->id, m->modern);
	struct fetch *f = p ? make_fetch(p, "POST", m->version) : NULL;

	if (f) {
		http_call_header(&f->http, "Content-Type: application/json");
		http_call_header(&f->http, "Accept: application/json, text/event-stream");
		if (m->modern && m->method)
			http_call_header(&f->http, "Mcp-Method: %s", m->method);
		if (m->modern && m->name)
			http_call_header(&f->http, "Mcp-Name: %s", m->name);
		add_headers(f, m->headers);
	}
	if (f && fetch_go(f, m->text, m->len) == 0) {
		p->fetch = f;
		return 0;
	}
	if (p)
		free_post(p);
	return err_set(e, -ENOMEM, "send it");
}

/* ---- streams that are asked for again ------------------------------------------------------ */

static void get_stream(struct timer *t)
{
	struct post *p = t->arg;
	struct fetch *f = make_fetch(p, "GET", p->w->version[0] ? p->w->version : NULL);

	if (f)
		http_call_header(&f->http, "Accept: text/event-stream");
	if (f && p->events.id[0])
		http_call_header(&f->http, "Last-Event-ID: %s", p->events.id);
	if (f && fetch_go(f, NULL, 0) == 0) {
		p->fetch = f;
		return;
	}
	fail(p, (struct wire_failure){ .message = "could not be asked: no memory" });
}

/* True: the stream can go on, and will be asked for. */
static bool ask_again(struct post *p)
{
	uint64_t ms = p->events.has_retry ? p->events.retry_ms : RETRY_MS;

	if (p->modern || (p->id && !p->events.id[0]) || ++p->attempts > ATTEMPTS_MAX)
		return false;
	for (unsigned int i = 1; i < p->attempts && ms < RETRY_MAX_MS; i++)
		ms *= 2;
	if (ms > RETRY_MAX_MS)
		ms = RETRY_MAX_MS;
	event_stream_cut(&p->events);
	if (p->fetch)
		fetch_stop(p->fetch);
	p->fetch = NULL;
	p->timer = (struct timer){ .fn = get_stream, .arg = p };
	timer_set(p->w->wire.up->base.loop, &p->timer, clock_now_ns() + ms * CLOCK_NS_PER_MS);
	return true;
}

static void settle(struct wire *wire, const char *version, bool listen)
{
	struct http_wire *w = (struct http_wire *)wire;
	struct post *p = listen ? make_post(w, 0, false) : NULL;

	(void)snprintf(w->version, sizeof(w->version), "%s", version);
	if (!p)
		return;
	p->unasked = true;
	p->timer = (struct timer){ .fn = get_stream, .arg = p };
	timer_set(w->wire.up->base.loop, &p->timer, 0);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* False: the post is gone. */
static bool hand_on(struct post *p, char *text, size_t len)
{
	struct http_wire *w = p->w;

	slice_one_line(text, len);
	answers_message(w->wire.up, text, len);
	if (w->wire.dead)
		return false;
	for (struct post *q = w->posts; q; q = q->next)
		if (q == p)
			return true;
	return false;
}

static bool on_event(void *arg, const char *type, char *data, size_t len)
{
	struct post *p = arg;

	p->attempts = 0;
	return strcmp(type, "message") != 0 || hand_on(p, data, len);
}

static void on_head(struct fetch *f)
{
	struct post *p = f->arg;
	bool good = f->status < 300;

	p->streams = good && strcmp(f->type, "text/event-stream") == 0;
	if (good && !p->modern && f->session[0] && !p->w->session[0])
		memcpy(p->w->session, f->session, sizeof(p->w->session));
}

static void on_data(struct fetch *f, const char *data, size_t len)
{
	struct post *p = f->arg;
	const struct wire_failure large = { .http = f->status,
					    .message = "sent a message of more than 64 MiB",
					    .too_large = true };

	if (!p->streams) {
		if (buf_append(&p->body, data, len) < 0)
			fail(p, large);
		return;
	}
	/* A post that is gone has stopped its fetch. */
	if (!event_stream_feed(&p->events, data, len) && !f->stopped && p->events.too_large)
		fail(p, large);
}

/* An HTTP error whose body is an error of JSON-RPC: pass that on as a message. */
static bool hand_on_error(struct post *p)
{
	static const char *const keys[] = { "jsonrpc", "id", "error" };
	_buf_ struct buf text = BUF_INIT(BRIDGE_MESSAGE_MAX);
	struct slice s[3];

	if (!p->id || p->body.len == 0 ||
	    slice_members(p->body.data, p->body.len, keys, 3, s) < 0 || !s[0].at || !s[2].at ||
	    s[2].at[0] != '{' || (s[1].at && !slice_is(&s[1], "null") && slice_id(&s[1]) != p->id))
		return false;
	if (buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":",
		       (unsigned long long)p->id) < 0 ||
	    buf_append(&text, s[2].at, s[2].len) < 0 || buf_append(&text, "}", 1) < 0)
		return false;
	if (hand_on(p, text.data, text.len))
		free_post(p);
	return true;
}

/* The status is 404, or, of some servers, 400 with one of the codes that were in use for it. */
static bool lost_session(const struct post *p, int status)
{
	if (!p->w->session[0] || p->modern || !p->id)
		return false;
	if (status != 400)
		return status == 404;
	json_auto_t *body = json_loadb(buf_str(&p->body), p->body.len, 0, NULL);
	json_int_t code =
		json_integer_value(json_object_get(json_object_get(body, "error"), "code"));

	return code == MCP_BAD_SESSION || code == MCP_NO_SESSION;
}

static void refused(struct post *p, int status)
{
	struct wire_failure f = { .http = status };
	char text[80];

	(void)snprintf(text, sizeof(text), "answered with HTTP status %d", status);
	f.message = text;
	if (status == 401 || status == 403)
		f.message = status == 401 ? "wants other credentials (HTTP status 401)" :
					    "does not allow it (HTTP status 403)";
	else if (status >= 300 && status < 400)
		f.message = "moved to another address (HTTP redirect)";
	else if (lost_session(p, status))
		f.no_session = true;
	else if (hand_on_error(p))
		return;
	fail(p, f);
}

static void on_end(struct fetch *f, const char *error)
{
	struct post *p = f->arg;
	char text[160];

	if (error && f->http.error[0])
		log_text(LOG_DEBUG, "mcp_http", p->w->wire.up->config->name, "%s", f->http.error);
	if (f->status >= 300) {
		if (p->unasked && f->status >= 500 && ask_again(p))
			return;
		refused(p, f->status);
		return;
	}
	if (!error && !p->streams && p->body.len > 0 && !p->answered) {
		if (!hand_on(p, p->body.data, p->body.len))
			return;
		/* A message came, and it was not the answer. */
		if (p->id && !p->answered) {
			fail(p, (struct wire_failure){
					.http = f->status,
					.message = "gave another answer than the one asked for" });
			return;
		}
	}
	if (p->answered || (!p->id && !p->unasked)) {
		free_post(p);
		return;
	}
	if ((p->streams || (p->unasked && error)) && ask_again(p))
		return;
	(void)snprintf(text, sizeof(text), "cannot be reached: %.120s", error ? error : "");
	fail(p,
	     (struct wire_failure){ .http = f->status,
				    .message = !error    ? "ended its answer without a result" :
					       f->status ? "broke off in the middle of its answer" :
							   text });
}

static void stop_lingering(struct timer *t)
{
	free_post(t->arg);
}

static void abandon(struct wire *wire, uint64_t id, bool answered)
{
	struct http_wire *w = (struct http_wire *)wire;

	for (struct post *p = w->posts; p; p = p->next)
		if (p->id == id && !p->answered) {
			if (!answered || !p->fetch) {
				free_post(p);
				return;
			}
			/* The connection can be used again once the stream has ended. */
			p->answered = true;
			p->timer = (struct timer){ .fn = stop_lingering, .arg = p };
			timer_set(w->wire.up->base.loop, &p->timer, clock_now_ns() + LINGER_NS);
			return;
		}
}

static const struct wire_ops ops = { send_message, abandon, settle, close_wire };

int wire_http_open(struct upstream *u, struct err *e)
{
	struct http_wire *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(e, -ENOMEM, "open it");
	w->wire = (struct wire){ .ops = &ops, .up = u };
	u->wire = &w->wire;
	return 0;
}

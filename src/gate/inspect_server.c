/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_server.c - The server's side of a path that looks into HTTP: requests are written to it,
 * its answers are told to the client again. See inspect.c.
 */
#include "gate/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/box.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "net/tls.h"

#define HANDSHAKE_NS (15 * CLOCK_NS_PER_S)

/* ---- the answer ---------------------------------------------------------------------------- */

static void on_client_drain(struct http_exchange *x)
{
	struct inspect *i = http_config_of(x)->arg;

	uplink_pause(&i->up, false);
}

static void on_answer_head(struct answer *a)
{
	struct inspect *i = a->arg;
	const char *connection = answer_header(a, "connection");

	if (!i->x || a->status == 101)
		return;
	inspect_answer(i);
	if (i->last || (connection && strcasestr(connection, "close")) ||
	    a->parser.http_minor == 0 ||
	    (!a->has_length && !answer_header(a, "transfer-encoding"))) {
		i->closing = true;
		http_drain(&i->http); /* the client hears that it is the last one */
	}
	i->answering = true;
	if (a->has_length && a->status != 204 && a->status != 304) {
		i->left = a->length;
		http_stream_sized(i->x, a->status, NULL, a->length);
	} else {
		i->left = UINT64_MAX;
		http_stream(i->x, a->status, NULL);
	}
	http_stream_on_drain(i->x, on_client_drain);
}

static void on_answer_body(struct answer *a, const char *data, size_t len)
{
	struct inspect *i = a->arg;

	if (!i->x || len > i->left)
		return;
	i->left -= len;
	(void)http_stream_write(i->x, data, len);
}

static const struct answer_ops answer_ops = { .head = on_answer_head, .body = on_answer_body };

/*
 * An answer before the whole request was heard ends the connection, as it does for every server. A
 * connection that is to end is closed at once: the client gets nothing that the server sends after
 * this answer.
 */
static void finish(struct inspect *i)
{
	struct http_exchange *x = i->x;

	if (!i->whole) {
		i->closing = true;
		http_drain(&i->http);
	}
	if (i->closing)
		uplink_close(&i->up);
	inspect_forget(i);
	http_stream_end(x);
}

static void on_data(struct uplink *u, const char *data, size_t len)
{
	struct inspect *i = u->arg;
	size_t used = 0;

	if (!inspect_count(i))
		return;
	if (!i->x) {
		inspect_give_up(i, "the server spoke without being asked");
		return;
	}
	int r = answer_feed(&i->answer, data, len, &used);

	if (r < 0)
		inspect_give_up(i, "the server's answer is no HTTP");
	else if (r == 1 && i->answer.status == 101)
		inspect_join(i, data + used, len - used);
	else if (r == 1)
		finish(i);
	else if (i->x && i->answering && http_stream_congested(i->x))
		uplink_pause(u, true);
}

static void on_eof(struct uplink *u)
{
	struct inspect *i = u->arg;

	if (i->x && answer_eof(&i->answer) == 1) {
		i->closing = true;
		finish(i);
	} else {
		inspect_give_up(i, "the server closed the connection");
	}
}

void inspect_expect(struct inspect *i, bool to_head)
{
	answer_init(&i->answer, to_head, i->switches, &answer_ops, i);
}

/* ---- the request --------------------------------------------------------------------------- */

void inspect_put(struct inspect *i, const void *data, size_t len)
{
	if (uplink_is_open(&i->up) && uplink_write(&i->up, data, len) < 0)
		inspect_give_up(i, "the server does not read");
}

void inspect_send_head(struct inspect *i)
{
	inspect_put(i, i->head.data, i->head.len);
	if (i->head.data)
		explicit_bzero(i->head.data, i->head.len);
	buf_free(&i->head);
}

static void on_drain(struct uplink *u)
{
	struct inspect *i = u->arg;

	(void)inspect_count(i);
	if (i->x && !i->whole)
		http_pause_body(i->x, false);
}

/* ---- the connection ------------------------------------------------------------------------ */

static void on_connected(struct uplink *u)
{
	struct inspect *i = u->arg;

	i->ready = true;
	timer_cancel(&i->timer);
	if (!i->x)
		return;
	inspect_send_head(i);
	if (i->x && i->whole && i->chunked)
		inspect_put(i, "0\r\n\r\n", 5);
	else if (i->x && !i->whole)
		http_pause_body(i->x, false);
}

static void on_broken(struct uplink *u, int why)
{
	struct inspect *i = u->arg;
	char text[128];

	if (!i->flow)
		return;
	if (!i->ready)
		(void)snprintf(text, sizeof(text), "no TLS with the server: %s",
			       u->problem ? u->problem : strerror(-why));
	else
		(void)snprintf(text, sizeof(text), "the server broke the connection off");
	inspect_give_up(i, text);
}

static const struct uplink_ops uplink_ops = {
	.connected = on_connected,
	.data = on_data,
	.drain = on_drain,
	.eof = on_eof,
	.broken = on_broken,
};

static void on_late(struct timer *t)
{
	inspect_give_up(t->arg, "the server did not finish its TLS handshake in time");
}

int inspect_open_server(struct inspect *i, bool tls)
{
	struct flow *f = i->flow;
	struct gate *g = f->box->g;
	struct tls *session = NULL;

	const char *server = f->index && f->index->server ? f->index->server : f->host;

	if (tls && tls_connect(g->tls, server, &session) < 0)
		return -ENOMEM;
	int r = uplink_open(&i->up, &g->loop, TAKE_FD(f->outer.fd), &uplink_ops, i);

	if (r < 0)
		tls_free(session);
	else if (tls)
		uplink_tls(&i->up, session);
	i->timer = (struct timer){ .fn = on_late, .arg = i };
	if (r == 0)
		timer_set(&g->loop, &i->timer, g->loop.now_ns + HANDSHAKE_NS);
	return r;
}

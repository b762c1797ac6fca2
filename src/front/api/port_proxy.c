/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_proxy.c - One request through a port, event by event.
 *
 * The service is as hostile as anything in a sandbox. The relay (net/http_relay.h) parses its
 * answer and frames it anew, on the connection of the client that sent the request and on no other:
 * there is one connection to the service per request, so no answer can be taken for another's.
 *
 * Life: port_proxy_begin() -> waiting for a cell -> connecting (over IPv4, then over IPv6) ->
 * request -> answer, or tunnel -> over.
 */
#include "front/api/port_proxy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "front/cell/cell.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/ports/port_head.h"
#include "front/ports/ports.h"
#include "front/sandbox/sandbox.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/http_relay.h"
#include "wire/init.h"

#define HEAD_MAX (64u << 10)
#define BUSY_RETRY_S 1u

/* A document of the service gets an opaque origin of its own: see SECURITY.md. */
#define PAGE_POLICY                                                                                \
	"sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads "             \
	"allow-pointer-lock"

struct port_proxy {
	struct services *services;
	struct port *port;
	struct port_proxy *prev, *next; /* in the port's list */
	struct port_way way;
	struct entry entry;
	struct cell *cell; /* NULL: not inside */
	struct cell_command job;
	uint32_t family;
	struct relay relay;
	bool over;
	struct deferred reaper;
};

static struct port_proxy *of_job(struct cell_command *job)
{
	return (struct port_proxy *)((char *)job - offsetof(struct port_proxy, job));
}

static struct port_proxy *of_relay(struct relay *r)
{
	return (struct port_proxy *)((char *)r - offsetof(struct port_proxy, relay));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void leave_port(struct port_proxy *p)
{
	LIST_DROP(p->port->proxied, p);
	p->port->n_proxied--;
	p->services->n_proxied--;
	metric_set(G_PORT_CONNECTIONS, p->services->n_proxied);
	metric_add(M_PORT_BYTES, p->relay.up.taken + p->relay.up.given);
}

/* Release everything except the exchange and the client's connection. Idempotent. */
static void end(struct port_proxy *p)
{
	if (p->over)
		return;
	p->over = true;
	relay_close(&p->relay);
	if (p->cell)
		cell_forget(p->cell, &p->job);
	p->cell = NULL;
	leave_port(p);
	sandbox_leave(&p->entry);
	loop_free_later(p->services->loop, &p->reaper, p);
}

static void end_with(struct port_proxy *p, const struct refusal *why)
{
	struct http_exchange *x = relay_release(&p->relay);

	end(p);
	if (x)
		reply_refusal(x, why);
}

/* Reply with an error, or, when the answer has begun, cut the client's connection off. */
__attribute__((format(printf, 5, 6))) static void fail(struct port_proxy *p, enum refusal_kind kind,
						       const char *code, const char *hint,
						       const char *fmt, ...)
{
	struct refusal why = { .kind = kind, .code = code, .hint = hint };
	va_list ap;

	if (p->relay.answering || p->relay.conn) {
		struct conn *c = relay_release_conn(&p->relay);
		struct http_exchange *x = relay_release(&p->relay);

		end(p);
		if (x)
			http_stream_abort(x);
		if (c)
			conn_close(c, -ECONNABORTED);
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(why.message, sizeof(why.message), fmt, ap);
	va_end(ap);
	why.retry_after_s = kind == REFUSAL_UNAVAILABLE ? BUSY_RETRY_S : 0;
	end_with(p, &why);
}

static void cut(struct port_proxy *p)
{
	fail(p, REFUSAL_NOT_FOUND, "no_such_port", NULL, "the port was closed");
}

/* ---- the connection ------------------------------------------------------------------------ */

static void dial(struct port_proxy *p, uint32_t family);

static void not_there(struct port_proxy *p, int error)
{
	if (p->family == 4)
		dial(p, 6);
	else
		fail(p, REFUSAL_BAD_ANSWER, "port_closed",
		     "start the service, and let it listen on 127.0.0.1, ::1 or all addresses",
		     "nothing listens on port %u in the sandbox (%s)", p->way.number,
		     strerror(error));
}

static void on_socket(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct port_proxy *p = of_job(job);

	(void)pid;
	if (n_fds != 1 || relay_open(&p->relay, TAKE_FD(fds[0])) < 0)
		fail(p, REFUSAL_UNAVAILABLE, "sandbox_failed", NULL,
		     "the socket could not be watched");
}

static void on_no_socket(struct cell_command *job, const struct init_failed *f)
{
	not_there(of_job(job), f->error);
}

static void dial(struct port_proxy *p, uint32_t family)
{
	struct err e = { 0 };

	p->family = family;
	p->job = (struct cell_command){ .started = on_socket, .failed = on_no_socket };
	if (cell_connect(p->cell, &p->job, p->way.number, family, &e) < 0)
		fail(p, REFUSAL_UNAVAILABLE, "sandbox_failed", NULL, "%s", e.msg);
}

static void on_in(struct entry *en, struct cell *r)
{
	struct port_proxy *p = en->arg;

	p->cell = r;
	relay_start_timer(&p->relay);
	dial(p, 4);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	end_with(en->arg, why);
}

static void on_cell_gone(struct entry *en, const struct cell_usage *u)
{
	struct port_proxy *p = en->arg;

	(void)u;
	if (p->cell)
		cell_forget(p->cell, &p->job);
	p->cell = NULL;
	fail(p, REFUSAL_CONFLICT, "sandbox_ended", NULL,
	     "the sandbox's cell ended before the answer");
}

/* ---- the relay's hooks --------------------------------------------------------------------- */

/* A client that asked for PORT_BARE gets the bytes of the service, without HTTP. */
static void on_connected(struct relay *r)
{
	if (of_relay(r)->way.bare)
		relay_tunnel(r, PORT_BARE, NULL, 0);
}

static void on_answer_head(struct relay *r)
{
	struct port_proxy *p = of_relay(r);
	const struct answer *a = &r->answer;
	const char *connection = answer_header(a, "connection");
	_buf_ struct buf value = BUF_INIT(ANSWER_HEAD_MAX + PORT_PREFIX_MAX);

	for (size_t i = 0; i < a->n; i++)
		if (port_answer_header(&p->way, connection, answer_name(a, i), answer_value(a, i),
				       &value))
			http_add_header(r->x, answer_name(a, i), buf_str(&value));
	if (a->status == 101)
		return;
	http_add_header(r->x, "Content-Security-Policy", PAGE_POLICY);
	/* The token is in the address, which no other site may learn. */
	http_add_header(r->x, "Referrer-Policy", "no-referrer");
	if (p->way.own_page)
		http_add_header(r->x, "Access-Control-Allow-Origin", "*");
}

static void on_answered(struct relay *r)
{
	struct http_exchange *x = relay_release(r);

	end(of_relay(r));
	if (x)
		http_stream_end(x);
}

static void on_client_drain(struct http_exchange *x)
{
	struct port_proxy *p = context_of(x)->work;

	if (p)
		uplink_pause(&p->relay.up, false);
}

static void on_released(struct http_exchange *x)
{
	struct request_context *v = context_of(x);

	v->work = NULL;
	v->gone = NULL;
	v->body = NULL;
	v->body_end = NULL;
}

static void on_failed(struct relay *r, enum relay_failure failure, int error)
{
	struct port_proxy *p = of_relay(r);
	unsigned int port = p->way.number;

	switch (failure) {
	case RELAY_UNREACHABLE:
		not_there(p, error);
		return;
	case RELAY_LATE:
		fail(p, REFUSAL_TIMEOUT, "port_timeout", NULL,
		     "the service on port %u did not %s in time", port,
		     r->ready ? "answer" : "accept the connection");
		return;
	case RELAY_FULL:
		fail(p, REFUSAL_UNAVAILABLE, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	case RELAY_BROKEN:
		fail(p, REFUSAL_BAD_ANSWER, "bad_answer", NULL,
		     "the service on port %u broke the connection off before it answered", port);
		return;
	case RELAY_WRONG_PROTOCOL:
		fail(p, REFUSAL_BAD_ANSWER, "bad_answer", NULL,
		     "the service on port %u switches to a protocol that was not asked for", port);
		return;
	case RELAY_CLIENT_GONE:
		end(p);
		return;
	case RELAY_CLOSED:
	case RELAY_UNASKED:
	case RELAY_BAD_ANSWER:
		fail(p, REFUSAL_BAD_ANSWER, "bad_answer", NULL,
		     "the service on port %u sent an invalid answer: %s", port,
		     r->answer.why ? r->answer.why : "it is not HTTP");
	}
}

/* The client still gets the bytes that are queued for it. */
static void on_server_ended(struct relay *r, int why)
{
	struct conn *c = relay_release_conn(r);

	end(of_relay(r));
	if (why < 0)
		conn_close(c, why);
	else
		conn_finish(c);
}

static void on_client_closed(struct relay *r)
{
	end(of_relay(r));
}

static const struct relay_ops relay_ops = {
	.times = { .connect_ns = 10 * CLOCK_NS_PER_S,
		   .answer_ns = 120 * CLOCK_NS_PER_S,
		   .idle_ns = 3600 * CLOCK_NS_PER_S },
	.connected = on_connected,
	.answer_head = on_answer_head,
	.answered = on_answered,
	.client_drain = on_client_drain,
	.released = on_released,
	.failed = on_failed,
	.server_ended = on_server_ended,
	.client_closed = on_client_closed,
};

/* ---- the request --------------------------------------------------------------------------- */

static void on_body(struct request_context *v, const char *data, size_t len)
{
	relay_body(&((struct port_proxy *)v->work)->relay, data, len);
}

static void on_body_end(struct request_context *v)
{
	relay_body_end(&((struct port_proxy *)v->work)->relay);
}

static void on_client_gone(struct request_context *v)
{
	struct port_proxy *p = v->work;

	(void)relay_release(&p->relay);
	end(p);
}

static bool is_full(struct port *port, struct http_exchange *x)
{
	if (port_requests(port->sandbox) < PORT_REQUESTS_MAX)
		return false;
	metric_add(M_REJECTED_BUSY, 1);
	reply_retry(x, 503, BUSY_RETRY_S, "port_busy", NULL,
		    "%u connections go into this sandbox already", PORT_REQUESTS_MAX);
	return true;
}

static void join_port(struct port_proxy *p, struct port *port)
{
	p->port = port;
	LIST_PUSH(port->proxied, p);
	port->cut = cut;
	port->n_proxied++;
	port->requests++;
	p->services->n_proxied++;
	metric_set(G_PORT_CONNECTIONS, p->services->n_proxied);
	metric_add(M_PORT_REQUESTS, 1);
}

void port_proxy_begin(struct services *services, struct port *port, struct http_exchange *x,
		      const struct port_way *way)
{
	struct port_proxy *p;

	if (is_full(port, x))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		reply_no_memory(x);
		return;
	}
	p->services = services;
	p->way = *way;
	relay_init(&p->relay, p->services->loop, HEAD_MAX, &relay_ops);
	join_port(p, port);
	struct request_context *v = context_of(x);

	v->work = p;
	v->gone = on_client_gone;
	v->body = on_body;
	v->body_end = on_body_end;
	relay_request(&p->relay, x, way->switches); /* waits until the service is connected */
	int r = port_request_head(http_request(x), way, &p->relay.head);

	if (r == -ENOMEM) {
		fail(p, REFUSAL_UNAVAILABLE, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	if (r < 0) {
		(void)relay_release(&p->relay);
		end(p);
		reply_error(x, 431, "head_too_large", NULL, NULL,
			    "the head of the request is too large");
		return;
	}
	p->entry = (struct entry){
		.in = on_in, .refused = on_refused, .gone = on_cell_gone, .arg = p
	};
	sandbox_enter(port->sandbox, &p->entry);
}

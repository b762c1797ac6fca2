/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_proxy.c - One request through a port, event by event.
 *
 * The service is as hostile as anything in a sandbox. Its answer is parsed (net/answer.h) and told
 * again in our own framing, on the connection of the client who asked and of nobody else: there is
 * one connection to the service per request, so no answer can be taken for another's. An answer may
 * begin before all of the request was sent; then the rest of the request is not read any more, and
 * the client's connection is closed after the answer.
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
#include "front/api/find_sandbox.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/ports/ports.h"
#include "front/sandbox/execution.h"
#include "front/support/front.h"
#include "front/support/metrics.h"
#include "net/conn.h"
#include "net/http.h"

#define CONNECT_NS (10 * CLOCK_NS_PER_S)
#define ANSWER_NS (120 * CLOCK_NS_PER_S) /* without a byte either way, before the answer's head */
#define IDLE_NS (3600 * CLOCK_NS_PER_S)  /* the same, after it */
#define HEAD_MAX (64u << 10)
#define BUSY_RETRY_S 1u

/* A document of the service gets an origin of its own, which is nobody's: see SECURITY.md. */
#define PAGE_POLICY                                                                                \
	"sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads "             \
	"allow-pointer-lock"

static struct port_proxy *of_job(struct cell_command *job)
{
	return (struct port_proxy *)((char *)job - offsetof(struct port_proxy, job));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void reap(struct deferred *d)
{
	free(d->arg);
}

static void leave_port(struct port_proxy *p)
{
	if (p->prev)
		p->prev->next = p->next;
	else
		p->port->proxied = p->next;
	if (p->next)
		p->next->prev = p->prev;
	p->port->n_proxied--;
	p->f->n_proxied--;
	metric_set(G_PORT_CONNECTIONS, p->f->n_proxied);
	metric_add(M_PORT_BYTES, p->up.taken + p->up.given);
}

void port_proxy_end(struct port_proxy *p)
{
	if (p->over)
		return;
	p->over = true;
	timer_cancel(&p->timer);
	uplink_close(&p->up);
	answer_free(&p->answer);
	buf_free(&p->head);
	if (p->cell)
		cell_forget(p->cell, &p->job);
	p->cell = NULL;
	leave_port(p);
	sandbox_leave(&p->entry);
	p->reaper = (struct deferred){ .fn = reap, .arg = p };
	loop_defer(&p->f->loop, &p->reaper);
}

struct http_exchange *port_proxy_part(struct port_proxy *p)
{
	struct http_exchange *x = p->x;

	p->x = NULL;
	if (x) {
		struct request_context *v = context_of(x);

		v->work = NULL;
		v->gone = NULL;
		v->body = NULL;
		v->body_end = NULL;
	}
	return x;
}

struct conn *port_proxy_part_conn(struct port_proxy *p)
{
	static const struct conn_ops none;
	struct conn *c = p->conn;

	if (c)
		conn_set_ops(c, &none, NULL);
	p->conn = NULL;
	return c;
}

/* The client is left with what it has: an answer that is not whole, a connection that is cut. */
static void break_off(struct port_proxy *p)
{
	struct conn *c = port_proxy_part_conn(p);
	struct http_exchange *x = port_proxy_part(p);

	port_proxy_end(p);
	if (x)
		http_stream_abort(x);
	if (c)
		conn_close(c, -ECONNABORTED);
}

void port_proxy_fail(struct port_proxy *p, int status, const char *code, const char *hint,
		     const char *fmt, ...)
{
	struct refusal why = { .status = status, .code = code, .hint = hint };
	va_list ap;

	if (p->answering || p->conn) {
		break_off(p);
		return;
	}
	struct http_exchange *x = port_proxy_part(p);

	port_proxy_end(p);
	va_start(ap, fmt);
	(void)vsnprintf(why.message, sizeof(why.message), fmt, ap);
	va_end(ap);
	why.retry_after_s = status == 503 ? BUSY_RETRY_S : 0;
	if (x)
		reply_refusal(x, &why);
}

void port_proxy_cut(struct port_proxy *p)
{
	port_proxy_fail(p, 404, "no_such_port", NULL, "the port was closed");
}

static void bad_answer(struct port_proxy *p)
{
	port_proxy_fail(p, 502, "bad_answer", NULL,
			"what the service on port %u answered is wrong: %s", p->way.number,
			p->answer.why ? p->answer.why : "no HTTP");
}

/* ---- the answer ---------------------------------------------------------------------------- */

void port_proxy_add_headers(struct port_proxy *p)
{
	const struct answer *a = &p->answer;
	const char *connection = answer_header(a, "connection");
	_buf_ struct buf value = BUF_INIT(ANSWER_HEAD_MAX + PORT_PREFIX_MAX);

	for (size_t i = 0; i < a->n; i++)
		if (port_answer_header(&p->way, connection, answer_name(a, i), answer_value(a, i),
				       &value))
			http_add_header(p->x, answer_name(a, i), buf_str(&value));
}

static void on_client_drain(struct http_exchange *x)
{
	struct port_proxy *p = context_of(x)->work;

	if (p)
		uplink_pause(&p->up, false);
}

static void on_head(struct answer *a)
{
	struct port_proxy *p = a->arg;

	if (!p->x || a->status == 101)
		return;
	port_proxy_add_headers(p);
	http_add_header(p->x, "Content-Security-Policy", PAGE_POLICY);
	/* The token is in the address, which no other site shall be told. */
	http_add_header(p->x, "Referrer-Policy", "no-referrer");
	if (p->way.own_page)
		http_add_header(p->x, "Access-Control-Allow-Origin", "*");
	p->answering = true;
	if (a->has_length && a->status != 204 && a->status != 304) {
		p->left = a->length;
		http_stream_sized(p->x, a->status, NULL, a->length);
	} else {
		p->left = UINT64_MAX;
		http_stream(p->x, a->status, NULL);
	}
	http_stream_on_drain(p->x, on_client_drain);
}

static void on_answer_body(struct answer *a, const char *data, size_t len)
{
	struct port_proxy *p = a->arg;

	if (!p->x || len > p->left)
		return;
	p->left -= len;
	(void)http_stream_write(p->x, data, len);
}

static const struct answer_ops answer_ops = { .head = on_head, .body = on_answer_body };

static void finish(struct port_proxy *p)
{
	struct http_exchange *x = port_proxy_part(p);

	port_proxy_end(p);
	if (x)
		http_stream_end(x);
}

static void on_data(struct uplink *u, const char *data, size_t len)
{
	struct port_proxy *p = u->arg;
	size_t used = 0;
	int r = answer_feed(&p->answer, data, len, &used);

	if (r < 0)
		bad_answer(p);
	else if (r == 1 && p->answer.status == 101)
		port_proxy_switch(p, data + used, len - used);
	else if (r == 1)
		finish(p);
	else if (p->x && p->answering && http_stream_congested(p->x))
		uplink_pause(u, true);
}

static void on_eof(struct uplink *u)
{
	struct port_proxy *p = u->arg;

	if (answer_eof(&p->answer) == 1)
		finish(p);
	else
		bad_answer(p);
}

/* ---- the request --------------------------------------------------------------------------- */

static void put(struct port_proxy *p, const void *data, size_t len)
{
	if (!p->over && uplink_write(&p->up, data, len) < 0)
		port_proxy_fail(p, 503, "out_of_memory", NULL, "the daemon is out of memory");
}

static void on_body(struct request_context *v, const char *data, size_t len)
{
	struct port_proxy *p = v->work;
	char size[24];

	p->moved_ns = p->f->loop.now_ns;
	if (p->chunked) {
		int n = snprintf(size, sizeof(size), "%zx\r\n", len);

		put(p, size, (size_t)n);
	}
	put(p, data, len);
	if (p->chunked)
		put(p, "\r\n", 2);
	if (p->x && uplink_full(&p->up))
		http_pause_body(p->x, true);
}

static void on_body_end(struct request_context *v)
{
	struct port_proxy *p = v->work;

	p->body_over = true;
	if (p->chunked)
		put(p, "0\r\n\r\n", 5);
}

static void on_drain(struct uplink *u)
{
	struct port_proxy *p = u->arg;

	if (p->x && !p->answering)
		http_pause_body(p->x, false);
}

static void on_connected(struct uplink *u)
{
	struct port_proxy *p = u->arg;

	if (p->way.bare) {
		port_proxy_join(p, PORT_BARE, NULL, 0);
		return;
	}
	put(p, p->head.data, p->head.len);
	buf_free(&p->head);
	if (p->x && !p->body_over)
		http_pause_body(p->x, false);
}

/* ---- the way there ------------------------------------------------------------------------- */

static void dial(struct port_proxy *p, uint32_t family);

static void not_there(struct port_proxy *p, int error)
{
	if (p->family == 4)
		dial(p, 6);
	else
		port_proxy_fail(
			p, 502, "port_closed",
			"start the service, and let it listen on 127.0.0.1, ::1 or all addresses",
			"nothing listens on port %u in the sandbox (%s)", p->way.number,
			strerror(error));
}

static void on_broken(struct uplink *u, int why)
{
	struct port_proxy *p = u->arg;

	if (!u->connected)
		not_there(p, -why);
	else
		port_proxy_fail(
			p, 502, "bad_answer", NULL,
			"the service on port %u broke the connection off before it answered",
			p->way.number);
}

static const struct uplink_ops uplink_ops = {
	.connected = on_connected,
	.data = on_data,
	.drain = on_drain,
	.eof = on_eof,
	.broken = on_broken,
};

static void on_socket(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct port_proxy *p = of_job(job);

	(void)pid;
	if (n_fds != 1 || uplink_open(&p->up, &p->f->loop, TAKE_FD(fds[0]), &uplink_ops, p) < 0)
		port_proxy_fail(p, 503, "sandbox_failed", NULL, "the socket could not be watched");
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
		port_proxy_fail(p, 503, "sandbox_failed", NULL, "%s", e.msg);
}

static void on_in(struct entry *en, struct cell *r)
{
	struct port_proxy *p = en->arg;

	p->cell = r;
	p->moved_ns = p->f->loop.now_ns;
	timer_set(&p->f->loop, &p->timer, p->moved_ns + CONNECT_NS);
	dial(p, 4);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	struct port_proxy *p = en->arg;
	struct http_exchange *x = port_proxy_part(p);

	port_proxy_end(p);
	if (x)
		reply_refusal(x, why);
}

static void on_cell_gone(struct entry *en, const struct cell_usage *u)
{
	struct port_proxy *p = en->arg;

	(void)u;
	if (p->cell)
		cell_forget(p->cell, &p->job);
	p->cell = NULL;
	port_proxy_fail(p, 409, "sandbox_ended", NULL,
			"the sandbox's cell ended before the answer");
}

/* ---- time and the beginning ---------------------------------------------------------------- */

static uint64_t patience(const struct port_proxy *p)
{
	if (!p->up.connected)
		return CONNECT_NS;
	return p->answering || p->conn ? IDLE_NS : ANSWER_NS;
}

/* While the client does not read the service is not the one who is silent; http.h watches the
 * client. */
static void on_timer(struct timer *t)
{
	struct port_proxy *p = t->arg;
	uint64_t now = p->f->loop.now_ns, last = p->moved_ns;

	if (p->up.moved_ns > last)
		last = p->up.moved_ns;
	if (now < last + patience(p)) {
		timer_set(&p->f->loop, t, last + patience(p));
		return;
	}
	port_proxy_fail(p, 504, "port_timeout", NULL, "the service on port %u did not %s in time",
			p->way.number, p->up.connected ? "answer" : "accept the connection");
}

static void on_client_gone(struct request_context *v)
{
	struct port_proxy *p = v->work;

	(void)port_proxy_part(p);
	port_proxy_end(p);
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
	p->next = port->proxied;
	if (p->next)
		p->next->prev = p;
	port->proxied = p;
	port->cut = port_proxy_cut;
	port->n_proxied++;
	port->requests++;
	p->f->n_proxied++;
	metric_set(G_PORT_CONNECTIONS, p->f->n_proxied);
	metric_add(M_PORT_REQUESTS, 1);
}

void port_proxy_begin(struct port *port, struct http_exchange *x, const struct port_way *way)
{
	const struct http_request *q = http_request(x);
	struct port_proxy *p;

	if (is_full(port, x))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	p->f = port->sandbox->f;
	p->x = x;
	p->way = *way;
	p->chunked = http_header(x, "transfer-encoding");
	p->timer = (struct timer){ .fn = on_timer, .arg = p };
	buf_init(&p->head, HEAD_MAX);
	answer_init(&p->answer, strcmp(q->method, "HEAD") == 0, way->switches, &answer_ops, p);
	join_port(p, port);
	struct request_context *v = context_of(x);

	v->work = p;
	v->gone = on_client_gone;
	v->body = on_body;
	v->body_end = on_body_end;
	int r = port_request_head(q, way, &p->head);

	if (r == -ENOMEM) {
		port_proxy_fail(p, 503, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	if (r < 0) {
		port_proxy_fail(p, 431, "head_too_large", NULL,
				"the head of the request is too large");
		return;
	}
	http_pause_body(x, true); /* until the service is there */
	p->entry = (struct entry){
		.in = on_in, .refused = on_refused, .gone = on_cell_gone, .arg = p
	};
	sandbox_enter(port->sandbox, &p->entry);
}

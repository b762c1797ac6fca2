/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - A path that reads HTTP: the client's TLS ends here, and another TLS connection leads
 * to the server.
 *
 * Theory of operation. The cell trusts the sandbox's own certificate authority (ca.c), so the gate
 * can prove to be the host. To the server the gate is an ordinary client, which verifies the real
 * certificate, by name, against the certificates that the machine trusts. Requests are parsed
 * strictly (net/http.h), judged by the rules (inspect_judge.c), and written anew with the secrets
 * in their headers (inspect_head.c); the relay (net/http_relay.h) moves them and the answers. One
 * connection of the client is one to the server, with one request at a time.
 *
 * A server that does not read a body takes it for the next request, which was not judged. So a
 * request with a body is the last one of its connection: the gate sends `Connection: close` to the
 * server, and closes the connection after the first final answer.
 *
 * Without TLS the same happens in plain text, for every host: each request has to be for the host
 * that the client connected to. Values of secrets are not put in: they go over TLS alone.
 *
 * Ownership: the struct belongs to the flow until cut(), and after that to the client's connection,
 * which ends by itself; it is freed when both are done with it.
 */
#include "gate/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "gate/bindings.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"
#include "net/http_header.h"
#include "net/tls.h"

#define HEAD_MAX (64u << 10)
#define REQUEST_MAX (256u << 10) /* a head with values in it */
#define HANDSHAKE_NS (15 * CLOCK_NS_PER_S)
#define PATIENCE_NS (600 * CLOCK_NS_PER_S)

static struct inspect *of(const struct http_exchange *x)
{
	return http_config_of(x)->arg;
}

static struct inspect *of_relay(struct relay *r)
{
	return (struct inspect *)((char *)r - offsetof(struct inspect, relay));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void reap(struct deferred *d)
{
	inspect_forget_judged(d->arg);
	free(d->arg);
}

static void let_go(struct inspect *i, struct loop *l)
{
	if (i->flow || i->conn)
		return;
	i->reaper = (struct deferred){ .fn = reap, .arg = i };
	loop_defer(l, &i->reaper);
}

/* The request under way is over, or its client has left. */
static void forget(struct inspect *i)
{
	relay_forget(&i->relay);
	inspect_forget_judged(i);
}

/* The client's connection is over. */
static void on_end(void *arg)
{
	struct inspect *i = arg;
	struct loop *l = conn_loop(i->conn);

	i->conn = NULL;
	if (i->flow)
		flow_end(i->flow, NULL); /* calls cut() */
	else
		let_go(i, l);
}

static void on_early_close(struct conn *c, int why)
{
	struct inspect *i = conn_user(c);

	if (i->flow && why == -EPROTO) {
		i->conn = NULL;
		flow_end(i->flow, "the client did not accept the sandbox's certificate");
	} else {
		on_end(i);
	}
}

static void cut(struct flow *f)
{
	struct inspect *i = f->state;
	struct loop *l = &f->sandbox->g->loop;

	if (!i)
		return;
	f->state = NULL;
	i->flow = NULL;
	relay_close(&i->relay);
	if (i->conn)
		conn_close(i->conn, i->closing ? 0 : -ECONNABORTED);
	let_go(i, l);
}

/* ---- replies of the gate's own ------------------------------------------------------------- */

static void reply(struct http_exchange *x, int status, const char *code, const char *message)
{
	_buf_ struct buf b = BUF_INIT(8192);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_key(&j, "error");
	json_object_begin(&j);
	json_member_str(&j, "code", code);
	json_member_str(&j, "message", message);
	json_object_end(&j);
	json_object_end(&j);
	(void)json_finish(&j);
	http_add_header(x, "Via", "1.1 caisson-gate");
	http_reply(x, status, "application/json", buf_str(&b), b.len);
}

/* Answer the request under way, if it has no answer yet; then the connection ends. */
static void give_up(struct inspect *i, const char *message)
{
	struct http_exchange *x = i->relay.x;
	bool answering = i->relay.answering;

	i->closing = true;
	if (!i->problem[0])
		(void)snprintf(i->problem, sizeof(i->problem), "%s", message);
	relay_close(&i->relay);
	http_drain(&i->http);
	if (!x)
		return; /* the next request gets the problem, or the connection has ended */
	forget(i);
	if (answering)
		http_stream_abort(x);
	else
		reply(x, 502, "egress_failed", i->problem);
}

static int refuse(struct inspect *i, struct http_exchange *x, int status, const char *why)
{
	struct flow *f = i->flow;

	inspect_forget_judged(i);
	gate_sandbox_event(f->sandbox, GATE_REFUSED, f->host, f->port, why);
	reply(x, status, "egress_refused", why);
	return status;
}

/* ---- the server ---------------------------------------------------------------------------- */

static bool on_moved(struct relay *r)
{
	struct inspect *i = of_relay(r);
	uint64_t up = r->up.given - i->counted_up, down = r->up.taken - i->counted_down;

	if (!i->flow)
		return false;
	i->counted_up = r->up.given;
	i->counted_down = r->up.taken;
	return flow_moved(i->flow, up, down);
}

/* No further request goes to the server, and the client learns that this answer is the last. */
static void make_last(struct inspect *i)
{
	i->closing = true;
	http_drain(&i->http);
}

static void on_answer_head(struct relay *r)
{
	struct inspect *i = of_relay(r);
	const struct answer *a = &r->answer;
	const char *connection = answer_header(a, "connection");

	inspect_add_headers(i);
	if (a->status != 101 && (i->last || (connection && strcasestr(connection, "close")) ||
				 a->parser.http_minor == 0 ||
				 (!a->has_length && !answer_header(a, "transfer-encoding"))))
		make_last(i);
}

/*
 * An answer that ends before the whole request has come ends the connection, as with every server.
 * A connection that is to end is closed at once: the client gets no bytes that the server sends
 * after this answer.
 */
static void on_answered(struct relay *r)
{
	struct inspect *i = of_relay(r);
	struct http_exchange *x = r->x;

	if (!r->whole || r->up.eof)
		make_last(i);
	if (i->closing)
		uplink_close(&r->up);
	forget(i);
	http_stream_end(x);
}

static void on_client_drain(struct http_exchange *x)
{
	uplink_pause(&of(x)->relay.up, false);
}

static void on_failed(struct relay *r, enum relay_failure failure, int error)
{
	static const char *const texts[] = {
		[RELAY_UNREACHABLE] = "no TLS with the server",
		[RELAY_LATE] = "the server did not finish its TLS handshake in time",
		[RELAY_FULL] = "the server does not read",
		[RELAY_BROKEN] = "the server broke the connection off",
		[RELAY_CLOSED] = "the server closed the connection",
		[RELAY_UNASKED] = "the server sent bytes without a request",
		[RELAY_BAD_ANSWER] = "the server's answer is not valid HTTP",
		[RELAY_WRONG_PROTOCOL] = "the server switches to a protocol that was not asked for",
		[RELAY_CLIENT_GONE] = "the client is gone",
	};
	struct inspect *i = of_relay(r);
	const char *more = r->up.problem ? r->up.problem : strerror(error);
	bool unreachable = failure == RELAY_UNREACHABLE;
	char text[128];

	(void)snprintf(text, sizeof(text), "%s%s%s", texts[failure], unreachable ? ": " : "",
		       unreachable ? more : "");
	if (r->conn || failure == RELAY_WRONG_PROTOCOL || failure == RELAY_CLIENT_GONE)
		flow_end(i->flow, text);
	else
		give_up(i, text);
}

static void on_server_ended(struct relay *r, int why)
{
	struct inspect *i = of_relay(r);

	if (why < 0) {
		flow_end(i->flow, "one side broke the connection off");
		return;
	}
	i->closing = true;
	uplink_close(&r->up);
	conn_finish(i->conn); /* its end is the end of the flow */
}

static void on_client_closed(struct relay *r)
{
	on_end(of_relay(r));
}

static const struct relay_ops relay_ops = {
	.times = { .connect_ns = HANDSHAKE_NS }, /* the flow has a deadline for the rest */
	.moved = on_moved,
	.answer_head = on_answer_head,
	.answered = on_answered,
	.client_drain = on_client_drain,
	.failed = on_failed,
	.server_ended = on_server_ended,
	.client_closed = on_client_closed,
};

static int open_server(struct inspect *i)
{
	struct flow *f = i->flow;
	const char *server = f->index && f->index->server ? f->index->server : f->host;
	struct tls *session = NULL;

	if (i->secure && tls_connect(f->sandbox->g->tls, server, &session) < 0)
		return -ENOMEM;
	int r = relay_open(&i->relay, TAKE_FD(f->outer.fd));

	if (r < 0) {
		tls_free(session);
		return r;
	}
	if (session)
		uplink_tls(&i->relay.up, session);
	relay_start_timer(&i->relay);
	return 0;
}

/* ---- the request --------------------------------------------------------------------------- */

/* The answer to this request must not be given to the client's next request. */
static void on_gone(struct http_exchange *x)
{
	struct inspect *i = of(x);

	forget(i);
	i->closing = true;
	uplink_close(&i->relay.up);
}

static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	relay_body(&of(x)->relay, data, len);
}

static int on_head(struct http_exchange *x)
{
	struct inspect *i = of(x);
	const struct http_request *q = http_request(x);
	_buf_ struct buf why = BUF_INIT(4096);

	if (!i->flow || i->closing || !uplink_is_open(&i->relay.up)) {
		reply(x, 502, "egress_failed",
		      i->problem[0] ? i->problem : "the server closed the connection");
		return 502;
	}
	int r = inspect_judge(i, q, &why);

	if (r)
		return refuse(i, x, r, buf_str(&why));
	bool switches = header_switches(q) && !header_find(q, "content-length") &&
			strcasecmp(header_find(q, "upgrade"), "websocket") == 0;

	if (inspect_head(i, q, switches) < 0) {
		forget(i);
		reply(x, 431, "egress_refused", "the head of the request is too large");
		return 431;
	}
	http_set_user(x, i, on_gone);
	http_take_body(x, on_body);
	relay_request(&i->relay, x, switches);
	return 0;
}

static void on_request(struct http_exchange *x)
{
	struct inspect *i = of(x);

	if (i->relay.x == x)
		relay_body_end(&i->relay);
}

static void on_error(struct http_exchange *x, int status, const char *message)
{
	struct inspect *i = of(x);

	if (i->relay.x == x)
		forget(i);
	i->closing = true;
	reply(x, status, "bad_request", message);
}

static void on_done(struct http_exchange *x)
{
	(void)x;
}

/* ---- the beginning ------------------------------------------------------------------------- */

static bool on_accept(struct conn *c, void *arg)
{
	(void)arg;
	struct inspect *i = conn_user(c);

	http_serve(c, &i->http);
	return true;
}

/* The same for all connections. */
static const struct listener_config listener = {
	.queue_high = 256u << 10,
	.queue_low = 64u << 10,
	.queue_max = 4u << 20,
	.linger_ns = 30 * CLOCK_NS_PER_S,
	.on_accept = on_accept,
};

static const struct conn_ops early_ops = { .on_close = on_early_close };

static void begin(struct flow *f)
{
	struct gate *g = f->sandbox->g;
	struct inspect *i = calloc(1, sizeof(*i));
	bool tls = f->sniff.kind == SNIFF_TLS;
	struct tls_server *server =
		tls && f->sandbox->bindings.ca ? ca_server(f->sandbox->bindings.ca, f->host) : NULL;

	if (!i || (tls && !server)) {
		free(i);
		flow_end(f, "the gate is out of memory");
		return;
	}
	f->state = i;
	i->flow = f;
	i->secure = tls;
	i->http = (struct http_config){
		.head_max = HEAD_MAX,
		.target_max = HEAD_MAX / 2,
		.body_max = 1u << 20,
		.head_ns = 60 * CLOCK_NS_PER_S,
		.body_ns = PATIENCE_NS,
		.idle_ns = PATIENCE_NS,
		.write_ns = PATIENCE_NS,
		.on_head = on_head,
		.on_request = on_request,
		.on_error = on_error,
		.on_done = on_done,
		.on_end = on_end,
		.raw_path = true,
		.arg = i,
	};
	relay_init(&i->relay, &g->loop, REQUEST_MAX, &relay_ops);
	buf_init(&i->judged.overrides, INSPECT_OVERRIDES_MAX);
	buf_init(&i->judged.secrets, GATE_BINDS_MAX * sizeof(((struct gate_bind *)0)->placeholder));
	if (open_server(i) < 0) {
		flow_end(f, "the gate is out of memory");
		return;
	}
	i->conn = conn_open(&g->loop, TAKE_FD(f->inner.fd), server, &listener, &early_ops, i);
	if (!i->conn)
		flow_end(f, "the gate is out of memory");
}

/* ---- changed rules ------------------------------------------------------------------------- */

/* Rules and secrets changed: the request under way is judged now, and the next one when it
 * comes. */
static const char *objection(const struct flow *f)
{
	const struct inspect *i = f->state;
	_buf_ struct buf why = BUF_INIT(4096);

	if (!i->judged.path)
		return NULL;
	if (inspect_judge_again(i, &why))
		return "the rules do not allow its request any more";
	const char *at = buf_str(&i->judged.secrets), *end = at + i->judged.secrets.len;

	for (; at < end; at += strlen(at) + 1)
		if (!bindings_value(&f->sandbox->bindings, &f->sandbox->g->vault, at, f->host))
			return "a secret that the request was made with was withdrawn";
	return NULL;
}

const struct flow_path inspect_path = { .begin = begin, .cut = cut, .objection = objection };

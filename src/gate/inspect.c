/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - A path that looks into HTTP: the client's TLS ends here, and another one leads to the
 * server (inspect_server.c).
 *
 * Theory of operation. The cell trusts the sandbox's own authority (ca.h), so this side proves to
 * be the host; towards the server it is an ordinary client that verifies the real certificate, by
 * name, against what the machine trusts. Requests are parsed strictly (net/http.h), judged by the
 * rules, and written anew with the secrets in their headers; the framing is ours, so client and
 * server can not read different requests out of the same bytes. Answers are parsed (net/answer.h)
 * and told again. One connection of the client is one to the server, one request at a time.
 *
 * A server that does not read a body takes it for the next request, which nobody judged. So a
 * request with a body is the last one of its connection: the server is told `Connection: close`,
 * and the gate closes the connection after the first final answer.
 *
 * Without TLS the same happens in plain, for every host: each request has to be for the host that
 * was connected to. No secret is put in: values go over TLS alone.
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
#include "gate/box.h"
#include "gate/ca.h"
#include "gate/flow.h"
#include "gate/gate.h"

#define HEAD_MAX (64u << 10)
#define REQUEST_MAX (256u << 10) /* a head with values in it */
#define PATIENCE_NS (600 * CLOCK_NS_PER_S)

static struct inspect *of(const struct http_exchange *x)
{
	return http_config_of(x)->arg;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void reap(struct deferred *d)
{
	struct inspect *i = d->arg;

	buf_free(&i->head);
	inspect_forget_asked(i);
	free(i);
}

static void let_go(struct inspect *i, struct loop *l)
{
	if (i->flow || i->conn)
		return;
	i->reaper = (struct deferred){ .fn = reap, .arg = i };
	loop_defer(l, &i->reaper);
}

void inspect_forget(struct inspect *i)
{
	if (i->head.data)
		explicit_bzero(i->head.data, i->head.len);
	buf_clear(&i->head);
	answer_free(&i->answer);
	inspect_forget_asked(i);
	i->x = NULL;
	i->answering = i->switches = i->chunked = i->whole = false;
}

/* The client's connection is over. */
static void on_end(void *arg)
{
	struct inspect *i = arg;
	struct flow *f = i->flow;
	struct loop *l = conn_loop(i->conn);

	i->conn = NULL;
	if (f)
		flow_end(f, NULL); /* cuts */
	else
		let_go(i, l);
}

static void on_early_close(struct conn *c, int why)
{
	struct inspect *i = conn_user(c);

	if (i->flow && why == -EPROTO) {
		i->conn = NULL;
		flow_end(i->flow, "the client did not take the sandbox's certificate");
	} else {
		on_end(i);
	}
}

static void cut(struct flow *f)
{
	struct inspect *i = f->state;
	struct loop *l = &f->box->g->loop;

	if (!i)
		return;
	f->state = NULL;
	i->flow = NULL;
	timer_cancel(&i->timer);
	uplink_close(&i->up);
	if (i->conn)
		conn_close(i->conn, i->closing ? 0 : -ECONNABORTED);
	answer_free(&i->answer);
	let_go(i, l);
}

bool inspect_count(struct inspect *i)
{
	uint64_t up = i->up.given - i->counted_up, down = i->up.taken - i->counted_down;

	if (!i->flow)
		return false;
	i->counted_up = i->up.given;
	i->counted_down = i->up.taken;
	return flow_moved(i->flow, up, down);
}

/* ---- saying no ----------------------------------------------------------------------------- */

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

/* The request under way gets an answer of ours, if it has none yet; then the connection ends. */
void inspect_give_up(struct inspect *i, const char *message)
{
	struct http_exchange *x = i->x;
	bool answering = i->answering;

	i->closing = true;
	if (!i->problem[0])
		(void)snprintf(i->problem, sizeof(i->problem), "%s", message);
	uplink_close(&i->up);
	timer_cancel(&i->timer);
	if (i->tunnel) {
		flow_end(i->flow, message);
		return;
	}
	http_drain(&i->http);
	if (!x)
		return; /* the next request hears of it, or the drain has ended it */
	inspect_forget(i);
	if (answering)
		http_stream_abort(x);
	else
		reply(x, 502, "egress_failed", i->problem);
}

/* ---- the request --------------------------------------------------------------------------- */

static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	struct inspect *i = of(x);
	char size[24];

	if (i->chunked) {
		int n = snprintf(size, sizeof(size), "%zx\r\n", len);

		inspect_put(i, size, (size_t)n);
	}
	inspect_put(i, data, len);
	if (i->x && i->chunked)
		inspect_put(i, "\r\n", 2);
	if (i->x && uplink_full(&i->up))
		http_pause_body(x, true);
}

/* The name that a request is for must be the one that the connection is for; who names none gets it
 * (inspect_head()). */
static bool is_own_host(const struct flow *f, const char *host)
{
	size_t n = strcspn(host, ":");
	const char *colon = host + n;
	char port[8];

	if (!*host)
		return true;
	if (n > 1 && host[n - 1] == '.')
		n--;
	(void)snprintf(port, sizeof(port), "%u", f->port);
	return strlen(f->host) == n && strncasecmp(f->host, host, n) == 0 &&
	       (!*colon || strcmp(colon + 1, port) == 0);
}

static void on_gone(struct http_exchange *x)
{
	struct inspect *i = of(x);

	/* What it asked for must not be answered to its next request. */
	inspect_forget(i);
	i->closing = true;
	uplink_close(&i->up);
}

static int refuse(struct inspect *i, struct http_exchange *x, int status, const char *why)
{
	struct flow *f = i->flow;

	inspect_forget_asked(i);
	box_refuse(f->box, GATE_REFUSED, f->host, f->port, "", why);
	reply(x, status, "egress_refused", why);
	return status;
}

static int on_head(struct http_exchange *x)
{
	struct inspect *i = of(x);
	const struct http_request *q = http_request(x);
	_buf_ struct buf why = BUF_INIT(4096);

	if (!i->flow || i->closing || !uplink_is_open(&i->up)) {
		reply(x, 502, "egress_failed",
		      i->problem[0] ? i->problem : "the server closed the connection");
		return 502;
	}
	if (!is_own_host(i->flow, q->host))
		return refuse(i, x, 421, "the HTTP host is not the one that was connected to");
	int r = inspect_judge(i, q, &why);

	if (r)
		return refuse(i, x, r, buf_str(&why));
	i->x = x;
	i->chunked = http_header(x, "transfer-encoding") != NULL;
	i->switches = inspect_switches(i, q);
	http_set_user(x, i, on_gone);
	if (inspect_head(i, q) < 0) {
		inspect_forget(i);
		reply(x, 431, "egress_refused", "the head of the request is too large");
		return 431;
	}
	inspect_expect(i, strcmp(q->method, "HEAD") == 0);
	http_take_body(x, on_body);
	if (i->ready)
		inspect_send_head(i);
	else
		http_pause_body(x, true);
	return 0;
}

static void on_request(struct http_exchange *x)
{
	struct inspect *i = of(x);

	if (i->x != x)
		return;
	i->whole = true;
	if (i->chunked && i->ready)
		inspect_put(i, "0\r\n\r\n", 5);
}

static void on_error(struct http_exchange *x, int status, const char *message)
{
	struct inspect *i = of(x);

	if (i->x == x)
		inspect_forget(i);
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

/* Nothing of it is one connection's. */
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
	struct gate *g = f->box->g;
	struct inspect *i = calloc(1, sizeof(*i));
	bool tls = f->hello.kind == HELLO_TLS;
	struct tls_server *server = tls && f->box->binds.ca ? ca_server(f->box->binds.ca, f->host) :
							      NULL;

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
	buf_init(&i->head, REQUEST_MAX);
	buf_init(&i->asked.overrides, INSPECT_OVERRIDES_MAX);
	buf_init(&i->asked.secrets, GATE_BINDS_MAX * sizeof(((struct gate_bind *)0)->placeholder));
	if (inspect_open_server(i, tls) < 0) {
		flow_end(f, "the gate is out of memory");
		return;
	}
	i->conn = conn_open(&g->loop, TAKE_FD(f->inner.fd), server, &listener, &early_ops, i);
	if (!i->conn)
		flow_end(f, "the gate is out of memory");
}

/* ---- other rules --------------------------------------------------------------------------- */

/* A request that waits for the next one is judged then. */
static const char *objection(const struct flow *f)
{
	const struct inspect *i = f->state;
	_buf_ struct buf why = BUF_INIT(4096);

	if (!i->asked.path)
		return NULL;
	if (inspect_judge_again(i, &why))
		return "the rules do not allow its request any more";
	const char *at = buf_str(&i->asked.secrets), *end = at + i->asked.secrets.len;

	for (; at < end; at += strlen(at) + 1)
		if (!binds_value(&f->box->binds, &f->box->g->vault, at, f->host))
			return "a secret that it was made with was withdrawn";
	return NULL;
}

const struct flow_path inspect_path = { .begin = begin, .cut = cut, .objection = objection };

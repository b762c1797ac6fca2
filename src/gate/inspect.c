/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - A path that looks into HTTP: the client's TLS ends here, and another one leads to the server
 * (inspect_server.c).
 *
 * Theory of operation. The cell trusts the sandbox's own authority (ca.h), so this side proves to be the host;
 * towards the server it is an ordinary client that verifies the real certificate, by name, against what the
 * machine trusts. Requests are parsed strictly (net/http.h), judged by the rules, and written anew with the
 * secrets in their headers; the framing is ours, so client and server can not read different requests out of
 * the same bytes. Answers are parsed (net/answer.h) and told again. One connection of the client is one to
 * the server, one request at a time.
 *
 * A server that does not read a body takes it for the next request, which nobody judged. So a request with a body is
 * the last one of its connection: the server is told `Connection: close`, and the gate closes the connection after
 * the first final answer.
 *
 * Without TLS the same happens in plain, for every host: each request has to be for the host that was connected
 * to. No secret is put in: values go over TLS alone.
 *
 * Ownership: the struct belongs to the flow until cut(), and after that to the client's connection, which ends by
 * itself; it is freed when both are done with it.
 */
#include "gate/inspect.h"

#include <ctype.h>
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
#include "gate/http_rule.h"

#define HEAD_MAX (64u << 10)
#define REQUEST_MAX (256u << 10) /* a head with values in it */
#define OVERRIDES_MAX 64u        /* each is judged, and a name of a method is short */
#define PATIENCE_NS (600 * CLOCK_NS_PER_S)

static struct inspect *of(const struct http_exchange *x)
{
	return http_config_of(x)->arg;
}

/* ---- the end -------------------------------------------------------------------------------------------- */

static void forget_asked(struct inspect *i)
{
	free(i->asked.method);
	free(i->asked.path);
	buf_free(&i->asked.overrides);
	buf_free(&i->asked.secrets);
	i->asked.method = i->asked.path = NULL;
}

static void reap(struct deferred *d)
{
	struct inspect *i = d->arg;

	buf_free(&i->head);
	forget_asked(i);
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
	forget_asked(i);
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

/* ---- saying no ------------------------------------------------------------------------------------------- */

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

/* ---- the request ------------------------------------------------------------------------------------------ */

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

/* The name that a request is for must be the one that the connection is for; who names none gets it (inspect_head()). */
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

	forget_asked(i);
	box_refuse(f->box, GATE_REFUSED, f->host, f->port, "", why);
	reply(x, status, "egress_refused", why);
	return status;
}

/* By the rules of now: 0, or a status and why. */
static int judge(const struct inspect *i, const char *method, struct buf *why)
{
	const struct flow *f = i->flow;
	const struct names *n = &f->box->names;

	return http_judge(n->rules, n->n_rules, f->host, f->port, method, i->asked.path, why);
}

/* Servers that pass headers on as variables (CGI) read '_' and other signs in a name as '-'. */
static bool is_header(const char *name, const char *dashed)
{
	for (; *name && *dashed; name++, dashed++)
		if ((isalnum((unsigned char)*name) ? *name : '-') != *dashed)
			return false;
	return *name == *dashed;
}

/* The first header from @k on that has one of these names; q->n_headers: none. */
static size_t next_header(const struct http_request *q, size_t k, const char *const *names)
{
	for (; k < q->n_headers; k++)
		for (const char *const *n = names; *n; n++)
			if (is_header(q->headers[k].name, *n))
				return k;
	return k;
}

/* Every method that a header names: a server may go by any of them. */
static int judge_overrides(const struct inspect *i, struct buf *why)
{
	const char *at = buf_str(&i->asked.overrides), *end = at + i->asked.overrides.len;
	int r = 0;

	if (i->asked.overrides.err) {
		(void)buf_puts(why, "the headers name too many methods");
		return 403;
	}
	for (; r == 0 && at < end; at += strlen(at) + 1)
		r = judge(i, at, why);
	return r;
}

/* Of a host with rules: what could make a server read another request than the one that was judged. 0, or a status. */
static int judge_form(const struct inspect *i, const struct http_request *q, struct buf *why)
{
	static const char *const names[] = { "x-original-url",     "x-original-uri",
					     "x-original-method",  "x-rewrite-url",
					     "x-forwarded-uri",    "x-forwarded-path",
					     "x-forwarded-method", NULL };
	size_t k = next_header(q, 0, names);

	if (!box_is_ruled(i->flow->box, i->flow->host, i->flow->port))
		return 0;
	if (k < q->n_headers) {
		(void)buf_printf(why,
				 "the header %s could name another path or method to the server",
				 q->headers[k].name);
		return 403;
	}
	if (i->last && (strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0)) {
		(void)buf_printf(why,
				 "a %s request with a body could be read as two requests by a host "
				 "with rules; send it without a body",
				 q->method);
		return 403;
	}
	return 0;
}

/* The methods in the value of a header, which has several when it was repeated. */
static void keep_overrides(struct inspect *i, const char *value)
{
	struct buf *b = &i->asked.overrides;

	for (const char *at = value + strspn(value, ", \t"); *at; at += strspn(at, ", \t")) {
		size_t len = strcspn(at, ", \t");

		for (size_t k = 0; k < len; k++)
			(void)buf_append(b, &(char){ (char)toupper((unsigned char)at[k]) }, 1);
		(void)buf_append(b, "", 1);
		at += len;
	}
}

/* Keep what the request asks for. False: no memory. */
static bool keep_asked(struct inspect *i, const struct http_request *q)
{
	static const char *const names[] = { "x-http-method-override", "x-http-method",
					     "x-method-override", NULL };

	forget_asked(i);
	i->asked.method = strdup(q->method);
	i->asked.path = strndup(q->target, strcspn(q->target, "?"));
	for (size_t k = next_header(q, 0, names); k < q->n_headers;
	     k = next_header(q, k + 1, names))
		keep_overrides(i, q->headers[k].value);
	return i->asked.method && i->asked.path && i->asked.overrides.err != -ENOMEM;
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
	i->last = inspect_has_body(q);
	int r = keep_asked(i, q) ? judge(i, q->method, &why) : 503;

	if (r == 0)
		r = judge_overrides(i, &why);
	if (r == 0)
		r = judge_form(i, q, &why);
	if (r == 0 && inspect_misplaced(i, q, &why))
		r = 403;
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

/* ---- the beginning ----------------------------------------------------------------------------------------- */

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
	buf_init(&i->asked.overrides, OVERRIDES_MAX);
	buf_init(&i->asked.secrets, GATE_BINDS_MAX * sizeof(((struct gate_bind *)0)->placeholder));
	if (inspect_open_server(i, tls) < 0) {
		flow_end(f, "the gate is out of memory");
		return;
	}
	i->conn = conn_open(&g->loop, TAKE_FD(f->inner.fd), server, &listener, &early_ops, i);
	if (!i->conn)
		flow_end(f, "the gate is out of memory");
}

/* ---- other rules ------------------------------------------------------------------------------------------- */

/* A request that waits for the next one is judged then. */
static const char *objection(const struct flow *f)
{
	const struct inspect *i = f->state;
	_buf_ struct buf why = BUF_INIT(4096);

	if (!i->asked.path)
		return NULL;
	if (judge(i, i->asked.method, &why) || judge_overrides(i, &why))
		return "the rules do not allow its request any more";
	const char *at = buf_str(&i->asked.secrets), *end = at + i->asked.secrets.len;

	for (; at < end; at += strlen(at) + 1)
		if (!binds_value(&f->box->binds, &f->box->g->vault, at, f->host))
			return "a secret that it was made with was withdrawn";
	return NULL;
}

const struct flow_path inspect_path = { .begin = begin, .cut = cut, .objection = objection };

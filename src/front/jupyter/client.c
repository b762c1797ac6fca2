/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - One client of a kernel: its WebSocket.
 *
 * A client is an entry of the sandbox, so that the sandbox is not idle while a notebook is open.
 * When the cell ends and the sandbox does not, the client enters again. A client that does not read
 * slows the code down, as a terminal would. After SLOW_NS it is disconnected, so that it does not
 * slow down others for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandboxes.h"
#include "net/http.h"
#include "net/ws.h"

#define SLOW_NS (30 * CLOCK_NS_PER_S)

static void unlist(struct jclient *c)
{
	struct jkernel *k = c->kernel;

	LIST_DROP(k->clients, c);
	c->prev = c->next = NULL;
	k->n_clients--;
}

static bool is_connected(const struct jkernel *k, const char *session)
{
	for (const struct jclient *c = k->clients; c; c = c->next)
		if (strcmp(c->session, session) == 0)
			return true;
	return false;
}

/* The kernel goes on without it. */
static void leave(struct jclient *c)
{
	struct jkernel *k = c->kernel;

	if (!k)
		return;
	timer_cancel(&c->slow);
	unlist(c);
	c->kernel = NULL;
	jrequest_forget_client(k, c);
	if (!is_connected(k, c->session))
		jbacklog_begin(k, c->session);
	jrun_resume(k); /* this may be the client that did not read */
	sandbox_leave(&c->entry);
}

void jclient_end(struct jclient *c, int code, const char *why)
{
	leave(c);
	ws_close(c->ws, code, why);
}

static void on_slow(struct timer *t)
{
	jclient_end(t->arg, 1008, "the client has not read messages for too long");
}

void jclient_send(struct jclient *c, const struct frame_message *m)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);
	int r = frame_join(c->kind, m, &b);

	if (r == 0 || r == -ENOMEM)
		(void)ws_send_buf(c->ws, c->kind == FRAME_JSON, &b);
	if (!ws_congested(c->ws) || c->slow.loop)
		return;
	struct loop *loop = c->kernel->sandbox->sandboxes->loop;

	c->slow.fn = on_slow;
	c->slow.arg = c;
	timer_after(loop, &c->slow, SLOW_NS);
}

/* ---- the socket ---------------------------------------------------------------------------- */

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct jclient *c = ws_user(w);
	const char *why = c->kernel ? jrequest_take(c, text, data, len) : NULL;

	if (why)
		jclient_end(c, 1007, why);
}

static void on_drain(struct ws *w)
{
	struct jclient *c = ws_user(w);

	timer_cancel(&c->slow);
	if (c->kernel)
		jrun_resume(c->kernel);
}

static void on_close(struct ws *w, int code)
{
	struct jclient *c = ws_user(w);

	(void)code;
	leave(c);
	free(c);
}

static const struct ws_ops ops = { .on_message = on_message,
				   .on_drain = on_drain,
				   .on_close = on_close };

/* ---- in the sandbox ------------------------------------------------------------------------ */

static void on_in(struct entry *en, struct cell *r)
{
	(void)en;
	(void)r;
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	struct jclient *c = en->arg;

	if (c->kernel)
		jclient_end(c, 1011, why->message);
}

/* The cell is over, and its sandbox gets another. */
static void on_gone(struct entry *en, const struct cell_usage *u)
{
	const struct jclient *c = en->arg;
	struct sandbox *s = c->kernel ? c->kernel->sandbox : NULL;

	(void)u;
	if (s && s->state == SANDBOX_RUNNING && !s->ending && !s->stopping)
		sandbox_enter(s, en);
}

static void join(struct jkernel *k, struct jclient *c)
{
	c->kernel = k;
	LIST_PUSH(k->clients, c);
	k->n_clients++;
	c->entry = (struct entry){ .in = on_in, .refused = on_refused, .gone = on_gone, .arg = c };
	jbacklog_send(c);
	sandbox_enter(k->sandbox, &c->entry);
}

/* ---- the handshake ------------------------------------------------------------------------- */

static bool offers_v1(const struct http_exchange *x)
{
	static const char name[] = FRAME_V1_PROTOCOL;
	const char *at = http_header(x, "sec-websocket-protocol");

	while (at && *at) {
		at += strspn(at, ", \t");
		size_t n = strcspn(at, ", \t");

		if (n == sizeof(name) - 1 && memcmp(at, name, n) == 0)
			return true;
		at += n;
	}
	return false;
}

static void read_session(const struct http_exchange *x, struct jclient *c)
{
	_buf_ struct buf id = BUF_INIT(JUPYTER_SESSION_MAX - 1);

	if (http_query(x, "session_id", &id) && !memchr(buf_str(&id), '\0', id.len))
		memcpy(c->session, buf_str(&id), id.len);
}

bool jclient_open(struct jkernel *k, struct http_exchange *x)
{
	struct jclient *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->kind = offers_v1(x) ? FRAME_V1 : FRAME_JSON;
	read_session(x, c);
	if (c->kind == FRAME_V1)
		http_add_header(x, "Sec-WebSocket-Protocol", FRAME_V1_PROTOCOL);
	c->ws = http_upgrade_ws(x, &ops, c, (size_t)k->sandbox->sandboxes->daemon->config.max_body);
	if (c->ws)
		join(k, c);
	else
		free(c);
	return true;
}

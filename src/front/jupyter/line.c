/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - One client's WebSocket to a kernel.
 *
 * A line is somebody inside the sandbox, so that it is not idle while a notebook is open. When the
 * cell is over and the sandbox is not, it enters again. A client that does not read slows the code
 * down, as a terminal would; after a while it is dropped, so that it does not slow down others for
 * ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/support/front.h"
#include "net/http.h"
#include "net/ws.h"

#define SLOW_NS (30 * CLOCK_NS_PER_S)

static void unlist(struct jline *l)
{
	struct jkernel *k = l->kernel;

	if (l->prev)
		l->prev->next = l->next;
	else
		k->lines = l->next;
	if (l->next)
		l->next->prev = l->prev;
	l->prev = l->next = NULL;
	k->n_lines--;
}

static bool is_here(const struct jkernel *k, const char *session)
{
	for (const struct jline *l = k->lines; l; l = l->next)
		if (strcmp(l->session, session) == 0)
			return true;
	return false;
}

/* The kernel goes on without it. */
static void leave(struct jline *l)
{
	struct jkernel *k = l->kernel;

	if (!k)
		return;
	timer_cancel(&l->slow);
	unlist(l);
	l->kernel = NULL;
	jrequest_forget_line(k, l);
	if (!is_here(k, l->session))
		jheld_begin(k, l->session);
	jrun_resume(k); /* perhaps it was the one who did not read */
	sandbox_leave(&l->entry);
}

void jline_end(struct jline *l, int code, const char *why)
{
	leave(l);
	ws_close(l->ws, code, why);
}

static void on_slow(struct timer *t)
{
	jline_end(t->arg, 1008, "what the kernel says was not read for too long");
}

void jline_send(struct jline *l, const struct frame_message *m)
{
	_buf_ struct buf b = BUF_INIT(JUPYTER_MESSAGE_MAX);

	int r = frame_join(l->kind, m, &b);

	if (r == 0 || r == -ENOMEM)
		(void)ws_send_buf(l->ws, l->kind == FRAME_JSON, &b);
	if (!ws_congested(l->ws) || l->slow.loop)
		return;
	l->slow.fn = on_slow;
	l->slow.arg = l;
	timer_set(&l->kernel->sandbox->f->loop, &l->slow,
		  l->kernel->sandbox->f->loop.now_ns + SLOW_NS);
}

/* ---- the socket ---------------------------------------------------------------------------- */

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct jline *l = ws_user(w);
	const char *why = l->kernel ? jrequest_take(l, text, data, len) : NULL;

	if (why)
		jline_end(l, 1007, why);
}

static void on_drain(struct ws *w)
{
	struct jline *l = ws_user(w);

	timer_cancel(&l->slow);
	if (l->kernel)
		jrun_resume(l->kernel);
}

static void on_close(struct ws *w, int code)
{
	struct jline *l = ws_user(w);

	(void)code;
	leave(l);
	free(l);
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
	struct jline *l = en->arg;

	if (l->kernel)
		jline_end(l, 1011, why->message);
}

/* The cell is over. Out of memory ends a cell, and its sandbox gets another. */
static void on_gone(struct entry *en, const struct cell_usage *u)
{
	struct jline *l = en->arg;

	(void)u;
	if (!l->kernel)
		return;
	if (l->kernel->sandbox->state == SANDBOX_RUNNING && !l->kernel->sandbox->ending &&
	    !l->kernel->sandbox->stopping)
		sandbox_enter(l->kernel->sandbox, en);
}

static void give(const struct frame_message *m, void *arg)
{
	jline_send(arg, m);
}

/* What was said while this client was away. */
static void replay(struct jkernel *k, struct jline *l)
{
	_buf_ struct buf b = BUF_INIT(256);
	size_t dropped = jheld_give(k, l->session, give, l);

	if (dropped == 0)
		return;
	(void)buf_printf(
		&b,
		"{\"name\":\"stderr\",\"text\":\"[%zu messages are missing: too much was said "
		"while you were not connected]\\n\"}",
		dropped);
	jline_publish(l, "stream", &b);
}

static void join(struct jkernel *k, struct jline *l)
{
	l->kernel = k;
	l->next = k->lines;
	if (l->next)
		l->next->prev = l;
	k->lines = l;
	k->n_lines++;
	l->entry = (struct entry){ .in = on_in, .refused = on_refused, .gone = on_gone, .arg = l };
	replay(k, l);
	sandbox_enter(k->sandbox, &l->entry);
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

static void read_session(const struct http_exchange *x, struct jline *l)
{
	_buf_ struct buf id = BUF_INIT(JUPYTER_SESSION_MAX - 1);

	if (http_query(x, "session_id", &id) && !memchr(buf_str(&id), '\0', id.len))
		memcpy(l->session, buf_str(&id), id.len);
}

bool jline_open(struct jkernel *k, struct http_exchange *x)
{
	struct jline *l = calloc(1, sizeof(*l));

	if (!l)
		return false;
	l->kind = offers_v1(x) ? FRAME_V1 : FRAME_JSON;
	read_session(x, l);
	if (l->kind == FRAME_V1)
		http_add_header(x, "Sec-WebSocket-Protocol", FRAME_V1_PROTOCOL);
	l->ws = http_upgrade_ws(x, &ops, l, (size_t)k->sandbox->f->config.max_body);
	if (l->ws)
		join(k, l);
	else
		free(l);
	return true;
}

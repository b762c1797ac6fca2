/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.c - Requests to a server, of every kind: numbered, timed, written, given up.
 *
 * A request is in the list of its server from request_new() until request_free(), sent or not. Many
 * are under way at once; numbers are never used twice, so that a late answer is nobody's. Whoever
 * asked for it is told once: by its answer (answers.c), by request_fail(), or not at all if it is
 * the bridge's own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "bridge/config.h"
#include "bridge/outlet.h"
#include "bridge/upstream.h"
#include "mcp/era.h"

#define NOTICE_MAX (1u << 20)

void request_free(struct request *r)
{
	for (struct request **p = &r->up->requests; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			r->up->n_requests--;
			break;
		}
	timer_cancel(&r->timer);
	buf_free(&r->arguments);
	free(r->tool);
	free(r->state);
	free(r);
}

void request_fail(struct request *r, const char *code, const char *message, const char *hint)
{
	struct outlet *o = r->up->outlet;
	uint64_t id = r->front_id;

	request_free(r);
	if (id)
		outlet_error(o, id, code, message, hint);
}

void request_give_up(struct request *r, const char *reason)
{
	struct upstream *u = r->up;
	char params[160];

	if (!r->id || !u->wire)
		return;
	/* To a modern server over HTTP the end of the stream says it. */
	if (u->config->transport == BRIDGE_STDIO || !u->modern) {
		(void)snprintf(params, sizeof(params),
			       "{\"requestId\":%" PRIu64 ",\"reason\":\"%s\"", r->id, reason);
		notify(u, "notifications/cancelled", params);
	}
	u->wire->ops->abandon(u->wire, r->id, false);
}

static void on_timeout(struct timer *t)
{
	struct request *r = t->arg;
	struct upstream *u = r->up;
	char message[300];

	if (r->kind == ASK_DISCOVER || r->kind == ASK_INITIALIZE) {
		talk_silence(r);
		return;
	}
	(void)snprintf(message, sizeof(message), "%s: no answer in %" PRIu64 ".%03" PRIu64 " s%s",
		       u->config->name, r->timeout_ms / 1000, r->timeout_ms % 1000,
		       u->state == UP_STARTING ? ": the MCP server is still starting" : "");
	request_give_up(r, "timeout");
	if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, "timeout", message);
		return;
	}
	request_fail(r, "timeout", message, NULL);
}

struct request *request_new(struct upstream *u, enum ask kind, uint64_t front_id,
			    uint64_t timeout_ms)
{
	struct request *r = calloc(1, sizeof(*r)), **last = &u->requests;

	if (!r) {
		if (front_id)
			outlet_error(u->outlet, front_id, "internal", "no memory", NULL);
		return NULL;
	}
	r->up = u;
	r->kind = kind;
	r->front_id = front_id;
	r->timeout_ms = timeout_ms;
	r->timer = (struct timer){ .fn = on_timeout, .arg = r };
	buf_init(&r->arguments, BRIDGE_BODY_MAX);
	if (timeout_ms)
		timer_set(u->base.loop, &r->timer, clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS);
	while (*last)
		last = &(*last)->next;
	*last = r;
	u->n_requests++;
	return r;
}

static void put_meta(struct buf *out, const struct request *r)
{
	const struct upstream *u = r->up;
	bool token = r->kind == ASK_CALL && r->progress;

	if (!u->modern && !token)
		return;
	(void)buf_puts(out, ",\"_meta\":{");
	if (u->modern)
		(void)buf_printf(out,
				 "\"" MCP_META_VERSION "\":\"%s\",\"" MCP_META
				 "clientInfo\":{\"name\":\"caisson\",\"version\":\"" CAISSON_VERSION
				 "\"},\"" MCP_META_CAPABILITIES "\":{}%s",
				 u->version, token ? "," : "");
	if (token)
		(void)buf_printf(out, "\"progressToken\":%" PRIu64, r->id);
	(void)buf_puts(out, "}");
}

void request_send(struct request *r, const char *method, const char *params, const char *name,
		  char *const *headers)
{
	struct upstream *u = r->up;
	_buf_ struct buf text = BUF_INIT(REQUEST_TEXT_MAX);
	struct err e = { 0 };
	int code;

	r->id = ++u->last_id;
	(void)buf_printf(&text,
			 "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64 ",\"method\":\"%s\",\"params\":",
			 r->id, method);
	size_t begin = text.len;

	(void)buf_puts(&text, params ? params : "{");
	size_t filled = text.len - begin;

	put_meta(&text, r);
	/* A comma too many, when there is nothing in front of it. */
	if (filled == 1 && text.len > begin + 1 && !text.err)
		text.data[begin + 1] = ' ';
	(void)buf_puts(&text, "}}");
	const struct wire_message m = { .text = buf_str(&text),
					.len = text.len,
					.id = r->id,
					.method = method,
					.name = name,
					.headers = headers,
					.version = u->version[0] ? u->version : NULL,
					.modern = u->modern };

	code = text.err ? text.err : u->wire->ops->send(u->wire, &m, &e);
	if (code == 0)
		return;
	char message[400];

	(void)snprintf(message, sizeof(message), "%s: the MCP server %.200s", u->config->name,
		       text.err ? "can not be sent that much" : e.msg);
	request_fail(r,
		     text.err == -EMSGSIZE ? "too_large" :
		     code == -EBUSY        ? "busy" :
					     "unavailable",
		     message, NULL);
}

void say_to(struct upstream *u, const char *text, size_t len, const char *method)
{
	const struct wire_message m = { .text = text,
					.len = len,
					.method = method,
					.version = u->version[0] ? u->version : NULL,
					.modern = u->modern };

	if (u->wire)
		(void)u->wire->ops->send(u->wire, &m, NULL);
}

void notify(struct upstream *u, const char *method, const char *params)
{
	_buf_ struct buf text = BUF_INIT(NOTICE_MAX);

	(void)buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"%s%s%s}", method,
			 params ? ",\"params\":" : "", params ? params : "", params ? "}" : "");
	if (!text.err)
		say_to(u, text.data, text.len, method);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.c - Requests to a server, of every kind: numbered, timed, written, given up.
 *
 * A request is in the list of its server from request_new() until request_free(), sent or not. Many
 * are under way at once; numbers are never used twice, so a late answer belongs to no request. The
 * front is told the end of its request once: by the answer (answers.c) or by request_fail().
 *
 * A call of a tool waits in the list until the server is ready, and over HTTP of the modern era
 * until its tools are known; calls_dispatch() then sends all that wait. Arguments are passed on as
 * they came, as text.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "bridge/config.h"
#include "bridge/front_link.h"
#include "bridge/upstream.h"
#include "mcp/message.h"

#define NOTICE_MAX (1u << 20)
#define MESSAGE_MAX 1600u

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

void request_fail(struct request *r, const char *code, const char *hint, const char *fmt, ...)
{
	const struct upstream *u = r->up;
	char message[MESSAGE_MAX];
	int n = snprintf(message, sizeof(message), "%s: ", u->config->name);
	uint64_t id = r->front_id;
	va_list ap;

	va_start(ap, fmt); /* its texts may belong to the request */
	(void)vsnprintf(message + n, sizeof(message) - (size_t)n, fmt, ap);
	va_end(ap);
	request_free(r);
	if (id)
		front_link_error(u->front, id, code, message, hint);
}

struct request *request_find(const struct upstream *u, enum ask kind, bool sent)
{
	for (struct request *r = u->requests; r; r = r->next)
		if (r->kind == kind && (r->id != 0) == sent)
			return r;
	return NULL;
}

/* Cancel it at the server. The request stays the caller's. */
static void request_give_up(struct request *r, const char *reason)
{
	struct upstream *u = r->up;
	char params[160];

	if (!r->id || !u->wire)
		return;
	/* A modern server over HTTP takes the end of the stream for it. */
	if (u->config->transport == BRIDGE_STDIO || !u->modern) {
		(void)snprintf(params, sizeof(params),
			       "{\"requestId\":%" PRIu64 ",\"reason\":\"%s\"", r->id, reason);
		notify(u, "notifications/cancelled", params);
	}
	upstream_abandon(u, r->id, false);
}

static void on_timeout(struct timer *t)
{
	struct request *r = t->arg;
	struct upstream *u = r->up;
	char why[120];

	if (r->kind == ASK_DISCOVER || r->kind == ASK_INITIALIZE) {
		handshake_silence(r);
		return;
	}
	(void)snprintf(why, sizeof(why), "no answer in %" PRIu64 ".%03" PRIu64 " s%s",
		       r->timeout_ms / 1000, r->timeout_ms % 1000,
		       u->state == UP_STARTING ? ": the MCP server is still starting" : "");
	request_give_up(r, "timeout");
	if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, "timeout", why);
		return;
	}
	request_fail(r, "timeout", NULL, "%s", why);
}

struct request *request_new(struct upstream *u, enum ask kind, uint64_t front_id,
			    uint64_t timeout_ms)
{
	struct request *r = calloc(1, sizeof(*r)), **last = &u->requests;

	if (!r) {
		if (front_id)
			front_link_error(u->front, front_id, "internal", "no memory", NULL);
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
	/* The comma of _meta has nothing in front of it where there are no parameters. */
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
	request_fail(r,
		     text.err == -EMSGSIZE ? "too_large" :
		     code == -EBUSY        ? "busy" :
					     "unavailable",
		     NULL, "the MCP server %.200s", text.err ? "cannot be sent that much" : e.msg);
}

void upstream_abandon(struct upstream *u, uint64_t id, bool answered)
{
	if (u->wire && u->wire->ops->abandon)
		u->wire->ops->abandon(u->wire, id, answered);
}

void upstream_send(struct upstream *u, const char *text, size_t len, const char *method)
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
		upstream_send(u, text.data, text.len, method);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

void calls_send(struct request *r)
{
	struct upstream *u = r->up;
	_buf_ struct buf params = BUF_INIT(REQUEST_TEXT_MAX);
	_buf_ struct buf name = BUF_INIT(64u << 10);
	const json_t *tool = tools_find(u, r->tool);
	bool remote = u->modern && u->config->transport != BRIDGE_STDIO;

	if (u->tools && !tool) {
		request_fail(r, "unknown_tool", NULL, "there is no tool '%.128s'", r->tool);
		return;
	}
	(void)buf_puts(&params, "{\"name\":");
	(void)json_quote(&params, r->tool, strlen(r->tool));
	(void)buf_puts(&params, ",\"arguments\":");
	(void)buf_append(&params, buf_str(&r->arguments), r->arguments.len);
	if (r->state)
		(void)buf_printf(&params, ",\"requestState\":%s", r->state);
	char **headers = remote ? tools_headers(tool, buf_str(&r->arguments), r->arguments.len) :
				  NULL;

	if (params.err || (remote && (!headers || mcp_header_encode(r->tool, &name) < 0)))
		request_fail(r, "too_large", NULL, "the arguments are too large to be sent");
	else
		request_send(r, "tools/call", buf_str(&params), remote ? buf_str(&name) : NULL,
			     headers);
	mem_free_list(headers);
}

void calls_dispatch(struct upstream *u)
{
	/* The list of tools names the headers that a call must have. */
	bool list_first = u->modern && u->config->transport != BRIDGE_STDIO && !u->tools;
	bool wanted = false;

	for (struct request *r = u->requests; r; r = r->next)
		wanted |= r->kind == ASK_TOOLS || (list_first && r->kind == ASK_CALL && !r->id);
	if (wanted)
		tools_want(u);
	if (list_first && !u->tools)
		return;
	for (struct request *r; u->state == UP_READY && (r = request_find(u, ASK_CALL, false));)
		calls_send(r);
}

static bool admit(struct upstream *u, uint64_t front_id)
{
	char message[300];

	if (u->n_requests >= REQUESTS_MAX) {
		(void)snprintf(message, sizeof(message), "%s: %u calls wait already",
			       u->config->name, REQUESTS_MAX);
		front_link_error(u->front, front_id, "busy", message, "make fewer calls at once");
		return false;
	}
	if (u->state == UP_FAILED) {
		uint64_t now = clock_now_ns(), at = u->timer.at_ns;

		(void)snprintf(
			message, sizeof(message),
			"%s: the MCP server failed %u times in a row; it is tried again in %" PRIu64
			" s",
			u->config->name, u->failures,
			at > now ? (at - now) / CLOCK_NS_PER_S + 1 : 1);
		front_link_error(u->front, front_id, "unavailable", message, NULL);
		return false;
	}
	return true;
}

void upstream_call(struct upstream *u, uint64_t front_id, const char *tool, struct buf *arguments,
		   uint64_t timeout_ms, bool progress)
{
	struct request *r = admit(u, front_id) ? request_new(u, ASK_CALL, front_id, timeout_ms) :
						 NULL;

	if (!r)
		return;
	r->tool = strdup(tool);
	r->progress = progress;
	r->arguments = *arguments;
	*arguments = (struct buf){ .max = arguments->max };
	if (!r->tool) {
		request_fail(r, "internal", NULL, "no memory");
		return;
	}
	if (u->state == UP_READY)
		calls_dispatch(u);
	else
		upstream_start(u);
}

void upstream_tools(struct upstream *u, uint64_t front_id, uint64_t timeout_ms)
{
	if (tools_fresh(u)) {
		front_link_result(u->front, front_id, false, u->tools_text, u->tools_len);
		return;
	}
	if (!admit(u, front_id) || !request_new(u, ASK_TOOLS, front_id, timeout_ms))
		return;
	if (u->state == UP_READY)
		calls_dispatch(u);
	else
		upstream_start(u);
}

bool upstream_cancel(struct upstream *u, uint64_t front_id)
{
	for (struct request *r = u->requests; r; r = r->next)
		if (r->front_id == front_id) {
			request_give_up(r, "cancelled");
			request_free(r);
			return true;
		}
	return false;
}

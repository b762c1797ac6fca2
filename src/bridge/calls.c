/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - What the front wants of a server: calls of tools, and its list.
 *
 * A call waits in the list of requests until the server is ready, and over HTTP of the modern era
 * until its tools are known; calls_dispatch() then sends all that wait. Arguments are passed on as
 * they came, as text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_quote.h"
#include "bridge/config.h"
#include "bridge/outlet.h"
#include "bridge/upstream.h"
#include "mcp/header.h"

void calls_send(struct request *r)
{
	struct upstream *u = r->up;
	_buf_ struct buf params = BUF_INIT(REQUEST_TEXT_MAX);
	_buf_ struct buf name = BUF_INIT(64u << 10);
	const json_t *tool = tools_find(u, r->tool);
	bool remote = u->modern && u->config->transport != BRIDGE_STDIO;
	char message[400];

	if (u->tools && !tool) {
		(void)snprintf(message, sizeof(message), "%s: there is no tool '%.128s'",
			       u->config->name, r->tool);
		request_fail(r, "unknown_tool", message, NULL);
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
		request_fail(r, "too_large", "the arguments are too large to be sent", NULL);
	else
		request_send(r, "tools/call", buf_str(&params), remote ? buf_str(&name) : NULL,
			     headers);
	tools_free_headers(headers);
}

/* The oldest that is not sent yet; ASK_TOOLS never is. */
static struct request *next_unsent(const struct upstream *u)
{
	for (struct request *r = u->requests; r; r = r->next)
		if (r->kind == ASK_CALL && r->id == 0)
			return r;
	return NULL;
}

void calls_dispatch(struct upstream *u)
{
	/* Headers that a call has to have are in the list of tools. */
	bool list_first = u->modern && u->config->transport != BRIDGE_STDIO && !u->tools;
	bool wanted = false;

	for (struct request *r = u->requests; r; r = r->next)
		wanted |= r->kind == ASK_TOOLS || (list_first && r->kind == ASK_CALL && !r->id);
	if (wanted)
		tools_want(u);
	if (list_first && !u->tools)
		return;
	for (struct request *r; u->state == UP_READY && (r = next_unsent(u));)
		calls_send(r);
}

static bool admit(struct upstream *u, uint64_t front_id)
{
	char message[300];

	if (u->n_requests >= REQUESTS_MAX) {
		(void)snprintf(message, sizeof(message), "%s: %u calls wait already",
			       u->config->name, REQUESTS_MAX);
		outlet_error(u->outlet, front_id, "busy", message, "make fewer calls at once");
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
		outlet_error(u->outlet, front_id, "unavailable", message, NULL);
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
		request_fail(r, "internal", "no memory", NULL);
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
		outlet_result(u->outlet, front_id, false, u->tools_text, u->tools_len);
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

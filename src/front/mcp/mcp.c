/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.c - The server itself: its description of itself, the methods that are about the server, and
 * its end.
 */
#include "front/mcp/mcp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/mcp/call.h"
#include "front/mcp/prompts.h"
#include "front/mcp/session.h"
#include "front/mcp/subscribe.h"
#include "front/mcp/suspended.h"
#include "front/mcp/task.h"
#include "front/mcp/tool.h"
#include "front/operations/services.h"
#include "front/tool_calls/tool_calls.h"
#include "front/tool_calls/upstream.h"

#define INSTRUCTIONS_MAX 16384u
#define SERVERS_NAMED 32u
#define DISCOVER_TTL_MS (3600u * 1000u)

/* Weak: the program that the conformance suite tests defines its own. */
__attribute__((weak)) const struct mcp_additions mcp_additions;

/* ---- what the server tells of itself ------------------------------------------------------- */

static const char instructions[] =
	"Caisson runs code in sealed sandboxes: no network unless the operator allows it, limits on time, "
	"memory, processes and disk, nothing shared with the host.\n"
	"- execute_code keeps variables, imports and files between calls with the same session_id; choose any "
	"name, it is made by its first call. execute_python gets a fresh sandbox each time.\n"
	"- Files are below /workspace. Print what you want to see: only output, the value of a last expression, "
	"images and files come back. Long output is cut: the result says how to read the rest.\n"
	"- A result has `status`, and on failure `cause` and `hint`: follow the hint. `state` \"reset\" means that "
	"variables are gone: run your set-up again. After the end of the interpreter, as after out-of-memory, files are "
	"still there; when the sandbox itself had to be replaced they are gone too (`files_lost`).\n"
	"- `epoch` counts such losses: when it is not that of your last result, variables are gone; look with "
	"list_files what is there.\n"
	"- A session that was idle for some minutes is removed, with everything in it.";

/* Names are no secret: the error about an unknown server lists them. */
static void put_servers(const struct mcp *mcp, struct buf *b)
{
	const struct upstream *u;

	(void)buf_puts(
		b,
		"\n- run_python(code, servers) runs Python that calls tools of other MCP servers, "
		"`await mcp_<server>.<tool>(...)`, so that only what it prints comes back. Servers: ");
	for (size_t i = 0; i < SERVERS_NAMED && (u = upstream_at(mcp->services->tool_calls, i));
	     i++)
		(void)buf_printf(b, "%s%s", i ? ", " : "", u->name);
	(void)buf_puts(b, mcp->services->tool_calls->upstreams.n > SERVERS_NAMED ? ", and more; " :
										   "; ");
	(void)buf_puts(b, "`await mcp.runtime.search_tool_docs('words')` finds tools.");
}

static void write_instructions(const struct mcp *mcp, struct json *j)
{
	_buf_ struct buf b = BUF_INIT(INSTRUCTIONS_MAX);

	(void)buf_puts(&b, instructions);
	if (mcp->services->tool_calls->upstreams.n > 0 && mcp_tool_find(mcp, "run_python"))
		put_servers(mcp, &b);
	json_key(j, "instructions");
	(void)json_strn(j, buf_str(&b), b.len);
}

void mcp_server_info(struct json *j)
{
	json_object_begin(j);
	json_member_str(j, "name", "caisson");
	json_member_str(j, "title", "Caisson");
	json_member_str(j, "version", CAISSON_VERSION);
	json_object_end(j);
}

static void put_empty(struct json *j, const char *key)
{
	json_member_object(j, key);
	json_object_end(j);
}

static void put_list(const struct mcp *mcp, struct json *j, const char *key, enum mcp_list list)
{
	json_member_object(j, key);
	if (mcp_list_lives(mcp, list))
		json_member_bool(j, "listChanged", true);
	if (list == MCP_LIST_RESOURCES)
		json_member_bool(j, "subscribe", true);
	json_object_end(j);
}

static void put_extensions(struct json *j)
{
	json_member_object(j, "extensions");
	put_empty(j, MCP_TASKS);
	json_member_object(j, MCP_META "skills");
	json_member_bool(j, "directoryRead", true);
	json_object_end(j);
	json_object_end(j);
}

static void write_capabilities(const struct mcp *mcp, struct json *j, bool modern)
{
	json_object_begin(j);
	put_list(mcp, j, "tools", MCP_LIST_TOOLS);
	if (mcp_prompts_any())
		put_list(mcp, j, "prompts", MCP_LIST_PROMPTS);
	put_list(mcp, j, "resources", MCP_LIST_RESOURCES);
	put_empty(j, "completions");
	if (modern)
		put_extensions(j);
	else
		put_empty(j, "logging");
	json_object_end(j);
}

void mcp_note_json(struct buf *out, const char *method, const struct buf *params)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_str(&j, "method", method);
	if (params) {
		json_key(&j, "params");
		json_buf(&j, params);
	}
	json_object_end(&j);
	(void)json_finish(&j);
}

/* ---- methods ------------------------------------------------------------------------------- */

void mcp_method_initialize(struct mcp_call *c)
{
	const char *asked = json_string_value(json_object_get(c->m.params, "protocolVersion"));
	struct mcp_session *s = c->session;
	struct mcp_answer a;

	if (!asked) {
		mcp_fail(c, MCP_INVALID_PARAMS,
			 "params.protocolVersion must be a string, as in \"%s\"",
			 MCP_LEGACY_VERSION);
		return;
	}
	s->version = mcp_legacy_version(asked);
	if (!s->version)
		s->version = MCP_LEGACY_VERSION;
	json_decref(s->capabilities);
	s->capabilities = json_incref(json_object_get(c->m.params, "capabilities"));
	mcp_answer_begin(c, &a);
	json_member_str(&a.j, "protocolVersion", s->version);
	json_key(&a.j, "capabilities");
	write_capabilities(c->mcp, &a.j, false);
	json_key(&a.j, "serverInfo");
	mcp_server_info(&a.j);
	write_instructions(c->mcp, &a.j);
	mcp_answer_end(c, &a);
}

void mcp_method_discover(struct mcp_call *c)
{
	struct mcp_answer a;

	mcp_answer_begin(c, &a);
	json_member_array(&a.j, "supportedVersions");
	(void)json_str(&a.j, MCP_MODERN_VERSION);
	json_array_end(&a.j);
	json_key(&a.j, "capabilities");
	write_capabilities(c->mcp, &a.j, true);
	write_instructions(c->mcp, &a.j);
	mcp_answer_cache(c, &a, DISCOVER_TTL_MS, true);
	mcp_answer_end(c, &a);
}

void mcp_method_ping(struct mcp_call *c)
{
	mcp_answer_empty(c);
}

void mcp_method_set_level(struct mcp_call *c)
{
	const char *name = json_string_value(json_object_get(c->m.params, "level"));
	int level = mcp_log_level(name);

	if (level < 0) {
		mcp_fail(
			c, MCP_INVALID_PARAMS,
			"params.level must be debug, info, notice, warning, error, critical, alert or "
			"emergency");
		return;
	}
	c->session->log_level = level;
	mcp_answer_empty(c);
}

/* ---- notifications ------------------------------------------------------------------------- */

void mcp_notified(struct mcp *mcp, struct mcp_session *session, const void *at,
		  const struct mcp_message *m)
{
	struct mcp_call *c;

	if (session && strcmp(m->method, "notifications/initialized") == 0)
		session->initialized = true;
	if (strcmp(m->method, "notifications/cancelled") != 0)
		return;
	c = mcp_call_find(mcp, session, at, json_object_get(m->params, "requestId"));
	/* A handshake is not cancelled. */
	if (c && strcmp(c->m.method, "initialize") != 0)
		mcp_call_cancel(c);
}

/* ---- life ---------------------------------------------------------------------------------- */

void mcp_setup(struct mcp *mcp)
{
	if (getrandom(mcp->key, sizeof(mcp->key), 0) != (ssize_t)sizeof(mcp->key))
		abort();
}

static bool is_busy(const struct mcp *mcp, const struct mcp_session *s)
{
	for (const struct mcp_call *c = mcp->calls; c; c = c->next)
		if (c->session == s)
			return true;
	return false;
}

void mcp_drain(struct mcp *mcp)
{
	mcp_subscriptions_end(mcp);
	for (struct mcp_session *s = mcp->sessions, *next; s; s = next) {
		next = s->next;
		if (!is_busy(mcp, s))
			mcp_session_end(s);
	}
}

void mcp_end(struct mcp *mcp)
{
	mcp_tasks_end(mcp);
	timer_cancel(&mcp->news);
	while (mcp->sessions)
		mcp_session_end(mcp->sessions);
	while (mcp->calls)
		mcp_call_cancel(mcp->calls);
	mcp_suspended_end(mcp);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.c - What this server says of itself. */
#include "front/mcp/mcp.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/mcp/call.h"
#include "front/mcp/parked.h"
#include "front/mcp/prompt.h"
#include "front/mcp/session.h"
#include "front/mcp/subscribe.h"
#include "front/mcp/task.h"
#include "front/mcp/tool.h"
#include "front/support/front.h"
#include "front/tool_calls/upstream.h"

#define INSTRUCTIONS_MAX 16384u
#define SERVERS_NAMED 32u

static const char instructions[] =
	"Caisson runs code in sealed sandboxes: no network unless the operator allows it, limits on time, "
	"memory, processes and disk, nothing shared with the host.\n"
	"- execute_code keeps variables, imports and files between calls with the same session_id; choose any "
	"name, it is made by its first call. execute_python gets a fresh sandbox each time.\n"
	"- Files are below /workspace. Print what you want to see: only output, the value of a last expression, "
	"images and files come back. Long output is cut: the result says how to read the rest.\n"
	"- A result has `status`, and on failure `cause` and `hint`: follow the hint. `state` \"reset\" means that "
	"variables are gone: run your set-up again. After the end of the interpreter files are still there; when the "
	"sandbox itself had to be replaced, as after out-of-memory, they are gone too. The text says which it was.\n"
	"- `epoch` counts such losses: when it is not that of your last result, variables are gone; look with "
	"list_files what is there.\n"
	"- A session that nobody used for some minutes is removed; so is everything in it.";

/* Names are no secret: whoever asks for one that is not there is told those that are. */
static void put_servers(const struct front *f, struct buf *b)
{
	const struct upstream *u;

	(void)buf_puts(
		b,
		"\n- run_python(code, servers) runs Python that calls tools of other MCP servers, "
		"`await mcp_<server>.<tool>(...)`, so that only what it prints comes back. Servers: ");
	for (size_t i = 0; i < SERVERS_NAMED && (u = upstream_at(f, i)); i++)
		(void)buf_printf(b, "%s%s", i ? ", " : "", u->name);
	(void)buf_puts(b, f->upstreams->n > SERVERS_NAMED ? ", and more; " : "; ");
	(void)buf_puts(b, "`await mcp.runtime.search_tool_docs('words')` finds tools.");
}

void mcp_instructions(const struct front *f, struct json *j)
{
	_buf_ struct buf b = BUF_INIT(INSTRUCTIONS_MAX);

	(void)buf_puts(&b, instructions);
	if (f->upstreams->n > 0 && mcp_tool_find(f, "run_python"))
		put_servers(f, &b);
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
	json_key(j, key);
	json_object_begin(j);
	json_object_end(j);
}

static void put_list(const struct front *f, struct json *j, const char *key, enum mcp_list list)
{
	json_key(j, key);
	json_object_begin(j);
	if (mcp_list_lives(f, list))
		json_member_bool(j, "listChanged", true);
	if (list == MCP_LIST_RESOURCES)
		json_member_bool(j, "subscribe", true);
	json_object_end(j);
}

static void put_extensions(struct json *j)
{
	json_key(j, "extensions");
	json_object_begin(j);
	put_empty(j, MCP_TASKS);
	json_key(j, MCP_META "skills");
	json_object_begin(j);
	json_member_bool(j, "directoryRead", true);
	json_object_end(j);
	json_object_end(j);
}

void mcp_capabilities(const struct front *f, struct json *j, bool modern)
{
	json_object_begin(j);
	put_list(f, j, "tools", MCP_LIST_TOOLS);
	if (mcp_prompts_any())
		put_list(f, j, "prompts", MCP_LIST_PROMPTS);
	put_list(f, j, "resources", MCP_LIST_RESOURCES);
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
		json_raw(&j, buf_str(params), params->len);
	}
	json_object_end(&j);
	(void)json_finish(&j);
}

void mcp_setup(struct front *f)
{
	if (getrandom(f->mcp->key, sizeof(f->mcp->key), 0) != (ssize_t)sizeof(f->mcp->key))
		abort();
	mcp_tools_sandboxes_setup();
}

static bool is_busy(const struct front *f, const struct mcp_session *s)
{
	for (const struct mcp_call *c = f->mcp->calls; c; c = c->next)
		if (c->session == s)
			return true;
	return false;
}

void mcp_drain(struct front *f)
{
	mcp_subscriptions_end(f);
	for (struct mcp_session *s = f->mcp->sessions, *next; s; s = next) {
		next = s->next;
		if (!is_busy(f, s))
			mcp_session_end(s);
	}
}

void mcp_end(struct front *f)
{
	mcp_tasks_end(f);
	timer_cancel(&f->mcp->news);
	while (f->mcp->sessions)
		mcp_session_end(f->mcp->sessions);
	while (f->mcp->calls)
		mcp_call_cancel(f->mcp->calls);
	mcp_parked_end(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - Calls: their methods, their answers and their notifications, as both eras want them.
 */
#include "front/mcp/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "front/mcp/mcp.h"
#include "front/mcp/session.h"
#include "front/support/json_alloc.h"

#define NOTE_MAX (1u << 20)
#define NO_LEVEL (-1)

/* ---- life ---------------------------------------------------------------------------------- */

struct mcp_call *mcp_call_new(struct mcp *mcp, const char *owner, struct mcp_session *session,
			      enum mcp_era era, json_t *message, const struct mcp_message *m,
			      const struct mcp_line *line, void *at)
{
	struct mcp_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->mcp = mcp;
	c->session = session;
	c->era = era;
	c->message = json_incref(message);
	c->line = line;
	c->at = at;
	(void)snprintf(c->owner, sizeof(c->owner), "%s", owner);
	c->m = *m;
	LIST_PUSH(mcp->calls, c);
	return c;
}

static void end(struct mcp_call *c, int status, const struct buf *json)
{
	c->line->finish(c, status, json);
	LIST_DROP(c->mcp->calls, c);
	timer_cancel(&c->patience);
	json_decref(c->state);
	json_decref(c->message);
	free(c);
}

void mcp_call_move(struct mcp_call *c, const struct buf *json, const struct mcp_line *line,
		   void *at)
{
	c->line->finish(c, 200, json);
	c->line = line;
	c->at = at;
}

void mcp_call_cancel(struct mcp_call *c)
{
	if (c->cancel)
		c->cancel(c);
	end(c, 200, NULL);
}

struct mcp_call *mcp_call_find(struct mcp *mcp, const struct mcp_session *session, const void *at,
			       const json_t *id)
{
	for (struct mcp_call *c = mcp->calls; c; c = c->next)
		if ((session ? c->session == session : !c->session && c->at == at) &&
		    json_equal(c->m.id, id))
			return c;
	return NULL;
}

bool mcp_capable(const struct mcp_call *c, const char *capability, const char *extension)
{
	const json_t *all = c->session ? c->session->capabilities :
					 json_object_get(c->m.meta, MCP_META_CAPABILITIES);
	const json_t *one = json_object_get(all, capability);

	return json_is_object(extension ? json_object_get(one, extension) : one);
}

/* ---- methods ------------------------------------------------------------------------------- */

enum { LEGACY = 1u << MCP_LEGACY, MODERN = 1u << MCP_MODERN, BOTH = LEGACY | MODERN };

static const struct method {
	const char *name;
	unsigned int eras;
	mcp_method *fn;
} methods[] = {
	{ "initialize", LEGACY, mcp_method_initialize },
	{ "ping", LEGACY, mcp_method_ping },
	{ "logging/setLevel", LEGACY, mcp_method_set_level },
	{ "server/discover", MODERN, mcp_method_discover },
	{ "tools/list", BOTH, mcp_method_tools_list },
	{ "tools/call", BOTH, mcp_method_tools_call },
	{ "resources/list", BOTH, mcp_method_resources_list },
	{ "resources/templates/list", BOTH, mcp_method_templates_list },
	{ "resources/read", BOTH, mcp_method_resources_read },
	{ "resources/subscribe", LEGACY, mcp_method_resources_subscribe },
	{ "resources/unsubscribe", LEGACY, mcp_method_resources_unsubscribe },
	{ "resources/directory/read", MODERN, mcp_method_directory_read },
	{ "skills/list", MODERN, mcp_method_skills_list },
	{ "skills/get", MODERN, mcp_method_skills_get },
	{ "prompts/list", BOTH, mcp_method_prompts_list },
	{ "prompts/get", BOTH, mcp_method_prompts_get },
	{ "completion/complete", BOTH, mcp_method_complete },
	{ "subscriptions/listen", MODERN, mcp_method_listen },
	{ "tasks/get", MODERN, mcp_method_tasks_get },
	{ "tasks/update", MODERN, mcp_method_tasks_update },
	{ "tasks/cancel", MODERN, mcp_method_tasks_cancel },
};

void mcp_no_method(struct mcp_call *c)
{
	mcp_fail_data(c, c->era == MCP_MODERN ? 404 : 200, MCP_NO_METHOD, NULL,
		      "there is no method %.100s", c->m.method);
}

void mcp_call_run(struct mcp_call *c)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (methods[i].eras & 1u << c->era && strcmp(methods[i].name, c->m.method) == 0) {
			methods[i].fn(c);
			return;
		}
	mcp_no_method(c);
}

/* ---- answers ------------------------------------------------------------------------------- */

void mcp_answer_begin_as(const struct mcp_call *c, struct mcp_answer *a, const char *result_type)
{
	buf_init(&a->buf, MCP_ANSWER_MAX);
	json_init(&a->j, &a->buf);
	json_object_begin(&a->j);
	json_member_str(&a->j, "jsonrpc", "2.0");
	json_member_value(&a->j, "id", c->m.id);
	json_member_object(&a->j, "result");
	if (c->era == MCP_MODERN)
		json_member_str(&a->j, "resultType", result_type);
}

void mcp_answer_begin(const struct mcp_call *c, struct mcp_answer *a)
{
	mcp_answer_begin_as(c, a, "complete");
}

void mcp_answer_cache(const struct mcp_call *c, struct mcp_answer *a, uint64_t ttl_ms, bool public_)
{
	if (c->era != MCP_MODERN)
		return;
	json_member_uint(&a->j, "ttlMs", ttl_ms);
	json_member_str(&a->j, "cacheScope", public_ ? "public" : "private");
}

int mcp_answer_close(const struct mcp_call *c, struct mcp_answer *a)
{
	if (c->era == MCP_MODERN) {
		json_member_object(&a->j, "_meta");
		json_key(&a->j, MCP_META_SERVER);
		mcp_server_info(&a->j);
		if (c->listens)
			json_member_value(&a->j, MCP_META_SUBSCRIPTION, c->m.id);
		json_object_end(&a->j);
	}
	json_object_end(&a->j);
	json_object_end(&a->j);
	return json_finish(&a->j);
}

void mcp_answer_end(struct mcp_call *c, struct mcp_answer *a)
{
	if (mcp_answer_close(c, a) < 0) {
		buf_free(&a->buf);
		mcp_fail(c, MCP_INTERNAL, "the answer could not be written");
		return;
	}
	end(c, 200, &a->buf);
	buf_free(&a->buf);
}

void mcp_answer_text(struct mcp_call *c, const struct buf *json)
{
	end(c, 200, json);
}

void mcp_answer_with(struct mcp_call *c, json_t *response)
{
	_buf_ struct buf b = BUF_INIT(MCP_ANSWER_MAX);

	(void)json_object_set(response, "id", c->m.id);
	json_alloc_dump(&b, response);
	if (!b.err)
		end(c, 200, &b);
	else
		mcp_fail(c, MCP_INTERNAL, "the answer could not be written");
}

void mcp_answer_empty(struct mcp_call *c)
{
	struct mcp_answer a;

	mcp_answer_begin(c, &a);
	mcp_answer_end(c, &a);
}

static int write_error(struct buf *out, const json_t *id, int code, const json_t *data,
		       const char *message)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_value(&j, "id", id);
	json_member_object(&j, "error");
	json_member_int(&j, "code", code);
	json_member_str(&j, "message", message);
	if (data)
		json_member_value(&j, "data", data);
	json_object_end(&j);
	json_object_end(&j);
	return json_finish(&j);
}

void mcp_error_json(struct buf *out, const json_t *id, int code, const json_t *data,
		    const char *message)
{
	if (write_error(out, id, code, data, message) == 0)
		return;
	/* Both can be as long as a message. */
	buf_clear(out);
	if (write_error(out, id, code, NULL, message) == 0)
		return;
	buf_clear(out);
	(void)write_error(out, NULL, code, NULL, message);
}

void mcp_fail_data(struct mcp_call *c, int status, int code, json_t *data, const char *fmt, ...)
{
	_buf_ struct buf b = BUF_INIT(NOTE_MAX);
	char message[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	mcp_error_json(&b, c->m.id, code, data, message);
	end(c, status, &b);
	json_decref(data);
}

void mcp_fail_capability(struct mcp_call *c, const char *capability, const char *extension)
{
	json_t *one = json_object(), *all = json_object(), *data = json_object();

	if (extension)
		(void)json_object_set_new(one, extension, json_object());
	(void)json_object_set_new(all, capability, one);
	(void)json_object_set_new(data, "requiredCapabilities", all);
	mcp_fail_data(c, 400, MCP_NO_CAPABILITY, data,
		      "this needs the client capability %s%s%s, which the request does not declare",
		      capability, extension ? " " : "", extension ? extension : "");
}

/* ---- on the way ---------------------------------------------------------------------------- */

void mcp_notify(struct mcp_call *c, const char *method, const struct buf *params)
{
	_buf_ struct buf b = BUF_INIT(NOTE_MAX);

	mcp_note_json(&b, method, params);
	if (!b.err)
		c->line->send(c, &b);
}

bool mcp_wants_progress(const struct mcp_call *c)
{
	const json_t *token = json_object_get(c->m.meta, "progressToken");

	return json_is_string(token) || json_is_integer(token);
}

void mcp_progress(struct mcp_call *c, uint64_t progress, uint64_t total, const char *text,
		  size_t len)
{
	_buf_ struct buf b = BUF_INIT(NOTE_MAX);
	struct json j;

	/* It has to rise, and the first may be 0. */
	if (!mcp_wants_progress(c) || (c->progress && progress < c->progress))
		return;
	c->progress = progress + 1;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_value(&j, "progressToken", json_object_get(c->m.meta, "progressToken"));
	json_member_uint(&j, "progress", progress);
	if (total)
		json_member_uint(&j, "total", total);
	if (len) {
		json_key(&j, "message");
		(void)json_strn(&j, text, len);
	}
	json_object_end(&j);
	if (json_finish(&j) == 0)
		mcp_notify(c, "notifications/progress", &b);
}

static const char *const levels[] = { "debug", "info",     "notice", "warning",
				      "error", "critical", "alert",  "emergency" };

int mcp_log_level(const char *name)
{
	for (size_t i = 0; name && i < sizeof(levels) / sizeof(*levels); i++)
		if (strcmp(levels[i], name) == 0)
			return (int)i;
	return NO_LEVEL;
}

void mcp_log(struct mcp_call *c, unsigned int level, const char *logger, const char *text)
{
	_buf_ struct buf b = BUF_INIT(NOTE_MAX);
	struct json j;
	int asked = c->session ? c->session->log_level :
				 mcp_log_level(json_string_value(
					 json_object_get(c->m.meta, MCP_META_LOG_LEVEL)));

	if (asked == NO_LEVEL || (int)level < asked)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "level", levels[level]);
	json_member_str(&j, "logger", logger);
	json_member_str(&j, "data", text);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		mcp_notify(c, "notifications/message", &b);
}

/* ---- lists in pages ------------------------------------------------------------------------ */

#define CURSOR_FORM "p%zx"

bool mcp_page_begin(struct mcp_call *c, struct mcp_page *ret)
{
	const json_t *cursor = json_object_get(c->m.params, "cursor");
	const char *text = json_string_value(cursor);
	char again[32];

	*ret = (struct mcp_page){ 0 };
	if (!cursor || (text && !*text))
		return true;
	/* Only a cursor that mcp_page_end() writes. */
	if (text && text[0] == 'p') {
		ret->from = strtoul(text + 1, NULL, 16);
		(void)snprintf(again, sizeof(again), CURSOR_FORM, ret->from);
		if (strcmp(again, text) == 0)
			return true;
	}
	mcp_fail(c, MCP_INVALID_PARAMS,
		 "params.cursor is not a cursor of this daemon: begin without one");
	return false;
}

bool mcp_page_takes(struct mcp_page *p)
{
	size_t i = p->seen++;

	return i >= p->from && i - p->from < MCP_PAGE_MAX;
}

void mcp_page_end(const struct mcp_page *p, struct json *j)
{
	char text[32];

	if (p->seen <= p->from || p->seen - p->from <= MCP_PAGE_MAX)
		return;
	(void)snprintf(text, sizeof(text), CURSOR_FORM, p->from + MCP_PAGE_MAX);
	json_member_str(j, "nextCursor", text);
}

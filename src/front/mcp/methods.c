/* SPDX-License-Identifier: Apache-2.0 */
/*
 * methods.c - The table of methods, which differs between the eras, and those about the client
 * itself.
 */
#include "front/mcp/methods.h"

#include <string.h>

#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/mcp/session.h"
#include "front/support/front.h"

#define DISCOVER_TTL_MS (3600u * 1000u)

enum { LEGACY = 1u << MCP_LEGACY, MODERN = 1u << MCP_MODERN, BOTH = LEGACY | MODERN };

static const struct method {
	const char *name;
	unsigned int eras;
	void (*fn)(struct mcp_call *c);
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

/* ---- the client itself --------------------------------------------------------------------- */

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
	mcp_capabilities(c->f, &a.j, false);
	json_key(&a.j, "serverInfo");
	mcp_server_info(&a.j);
	mcp_instructions(c->f, &a.j);
	mcp_answer_end(c, &a);
}

void mcp_method_discover(struct mcp_call *c)
{
	struct mcp_answer a;

	mcp_answer_begin(c, &a);
	json_key(&a.j, "supportedVersions");
	json_array_begin(&a.j);
	(void)json_str(&a.j, MCP_MODERN_VERSION);
	json_array_end(&a.j);
	json_key(&a.j, "capabilities");
	mcp_capabilities(c->f, &a.j, true);
	mcp_instructions(c->f, &a.j);
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

void mcp_notified(struct front *f, struct mcp_session *session, const void *at,
		  const struct mcp_message *m)
{
	struct mcp_call *c;

	if (session && strcmp(m->method, "notifications/initialized") == 0)
		session->initialized = true;
	if (strcmp(m->method, "notifications/cancelled") != 0)
		return;
	c = mcp_call_find(f, session, at, json_object_get(m->params, "requestId"));
	/* A handshake is not cancelled. */
	if (c && strcmp(c->m.method, "initialize") != 0)
		mcp_call_cancel(c);
}

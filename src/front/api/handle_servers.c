/* SPDX-License-Identifier: Apache-2.0 */
/* handle_servers.c - GET /v1/servers: the MCP servers of the configuration, and their tools. */
#include "base/buf.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/operations/services.h"
#include "front/tool_calls/refused_tools.h"
#include "front/tool_calls/tool_calls.h"

#define LIST_MAX (4u << 20)

/* Nothing about tools until code has used the server: it is started then. */
static void write_server(const struct tool_calls *calls, const struct upstream *u, struct json *j)
{
	const struct tool_rules_layer operator_ = { &u->rules, NULL };
	_buf_ struct buf note = BUF_INIT(4096);
	size_t refused = refused_tools(u, &operator_, NULL, &note);

	json_object_begin(j);
	json_member_str(j, "name", u->name);
	json_member_str(j, "alias", u->alias);
	json_member_str(j, "description", u->description);
	json_member_str(j, "state", upstream_state(calls, u));
	if (u->tools) {
		json_member_uint(j, "tools", json_array_size(u->tools));
		json_member_uint(j, "refused", refused);
	}
	if (refused > 0)
		json_member_str(j, "note", buf_str(&note));
	json_object_end(j);
}

void handle_servers(struct services *services, struct http_exchange *x)
{
	const struct tool_calls *calls = services->tool_calls;
	struct reply answer;
	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_array(j, "servers");
	for (size_t i = 0; upstream_at(calls, i); i++)
		write_server(calls, upstream_at(calls, i), j);
	json_array_end(j);
	reply_end(&answer, x, 200);
}

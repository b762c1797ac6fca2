/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - Which kind of JSON-RPC message a value is. */
#include "mcp/message.h"

#include <string.h>

static void nonsense(struct mcp_message *m, const char *why)
{
	m->kind = MCP_NONSENSE;
	m->why = why;
}

static void read_response(json_t *value, struct mcp_message *m)
{
	m->result = json_object_get(value, "result");
	m->error = json_object_get(value, "error");
	if (!m->id)
		nonsense(m, "a message has a method, or an id with a result or an error");
	else if (!m->result == !m->error)
		nonsense(m, "a response has a result or an error, and not both");
	else if (m->error && !json_is_object(m->error))
		nonsense(m, "error must be an object");
	else
		m->kind = MCP_RESPONSE;
}

void mcp_message_read(json_t *value, struct mcp_message *ret)
{
	const char *version = json_string_value(json_object_get(value, "jsonrpc"));
	json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method");

	memset(ret, 0, sizeof(*ret));
	if (!json_is_object(value)) {
		nonsense(ret, "a message is a JSON object");
		return;
	}
	if (json_is_string(id) || json_is_integer(id))
		ret->id = id;
	ret->method = json_string_value(method);
	ret->params = json_object_get(value, "params");
	if (!version || strcmp(version, "2.0") != 0)
		nonsense(ret, "jsonrpc must be \"2.0\"");
	else if (id && !ret->id)
		nonsense(ret, "id must be a string or an integer");
	else if (method && !ret->method)
		nonsense(ret, "method must be a string");
	else if (ret->params && !json_is_object(ret->params))
		nonsense(ret, "params must be an object");
	else if (!method)
		read_response(value, ret);
	else
		ret->kind = id ? MCP_REQUEST : MCP_NOTIFICATION;
	if (!json_is_object(ret->params))
		ret->params = NULL;
	ret->meta = json_object_get(ret->params, "_meta");
	if (!json_is_object(ret->meta))
		ret->meta = NULL;
}

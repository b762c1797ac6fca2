/* SPDX-License-Identifier: Apache-2.0 */
/* test_message.c - The kinds of messages. */
#include "mcp/message.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static const struct row {
	const char *json;
	enum mcp_kind kind;
	const char *why; /* part of it */
} rows[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", MCP_REQUEST, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\",\"params\":{}}", MCP_REQUEST,
	  NULL },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", MCP_NOTIFICATION, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":null}", MCP_RESPONSE, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{}}", MCP_RESPONSE, NULL },
	{ "[]", MCP_NONSENSE, "object" },
	{ "3", MCP_NONSENSE, "object" },
	{ "{\"id\":1,\"method\":\"ping\"}", MCP_NONSENSE, "jsonrpc" },
	{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", MCP_NONSENSE, "jsonrpc" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"ping\"}", MCP_NONSENSE, "id" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_NONSENSE, "id" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"result\":1}", MCP_NONSENSE, "id" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", MCP_NONSENSE, "method" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", MCP_NONSENSE, "params" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}", MCP_NONSENSE,
	  "params" },
	{ "{\"jsonrpc\":\"2.0\",\"result\":1}", MCP_NONSENSE, "id" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_NONSENSE, "result" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}", MCP_NONSENSE, "both" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", MCP_NONSENSE, "error" },
};

TEST(kinds)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *v = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
		struct mcp_message m;

		assert_non_null(v);
		mcp_message_read(v, &m);
		if (m.kind != rows[i].kind)
			fail_msg("%s is of kind %d", rows[i].json, m.kind);
		if (rows[i].why && !strstr(m.why, rows[i].why))
			fail_msg("%s: %s", rows[i].json, m.why);
		json_decref(v);
	}
}

TEST(parts)
{
	json_t *v = json_loads("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\","
			       "\"params\":{\"_meta\":{\"k\":1}}}",
			       0, NULL);
	struct mcp_message m;

	mcp_message_read(v, &m);
	assert_string_equal(json_string_value(m.id), "a");
	assert_string_equal(m.method, "m");
	assert_int_equal(json_integer_value(json_object_get(m.meta, "k")), 1);
	json_decref(v);

	/* A fault in it does not hide the id of the request. */
	v = json_loads("{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"m\",\"params\":{\"_meta\":3}}",
		       0, NULL);
	mcp_message_read(v, &m);
	assert_int_equal(m.kind, MCP_NONSENSE);
	assert_int_equal(json_integer_value(m.id), 7);
	assert_null(m.meta);
	json_decref(v);
}

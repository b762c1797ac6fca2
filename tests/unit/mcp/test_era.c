/* SPDX-License-Identifier: Apache-2.0 */
/* test_era.c - Each step of the ladder, with headers and without. */
#include "mcp/message.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"

#define V "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define C "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define MSG(method, params)                                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define MODERN_LIST MSG("tools/list", "\"_meta\":{" V "," C "}")
#define MODERN_CALL MSG("tools/call", "\"name\":\"t\",\"_meta\":{" V "," C "}")
#define LEGACY_LIST MSG("tools/list", "")
#define NOW MCP_MODERN_VERSION

static const struct row {
	const char *message;
	bool bare; /* a wire without headers */
	struct mcp_headers h;
	enum mcp_era era;
	int http, code;
} rows[] = {
	{ LEGACY_LIST, true, { 0 }, MCP_LEGACY, 0, 0 },
	{ LEGACY_LIST, false, { 0 }, MCP_LEGACY, 0, 0 },
	{ LEGACY_LIST, false, { "2025-06-18", NULL, NULL }, MCP_LEGACY, 0, 0 },
	{ LEGACY_LIST, false, { "2025-06-19", NULL, NULL }, MCP_LEGACY, 400, MCP_BAD_SESSION },
	{ LEGACY_LIST, false, { "", NULL, NULL }, MCP_LEGACY, 400, MCP_BAD_SESSION },
	{ MSG("initialize", ""), false, { "1.0", NULL, NULL }, MCP_LEGACY, 0, 0 },
	{ LEGACY_LIST, false, { NOW, NULL, NULL }, MCP_MODERN, 400, MCP_INVALID_PARAMS },
	{ MODERN_LIST, true, { 0 }, MCP_MODERN, 0, 0 },
	{ MODERN_LIST, false, { NOW, "tools/list", NULL }, MCP_MODERN, 0, 0 },
	{ MODERN_LIST, false, { NULL, "tools/list", NULL }, MCP_MODERN, 400, MCP_BAD_HEADER },
	{ MODERN_LIST, false, { NOW, NULL, NULL }, MCP_MODERN, 400, MCP_BAD_HEADER },
	{ MODERN_LIST, false, { NOW, "tools/lis", NULL }, MCP_MODERN, 400, MCP_BAD_HEADER },
	{ MODERN_LIST,
	  false,
	  { "2025-11-2"
	    "5",
	    "tools/list", NULL },
	  MCP_MODERN,
	  400,
	  MCP_BAD_HEADER },
	{ MODERN_CALL, false, { NOW, "tools/call", "t" }, MCP_MODERN, 0, 0 },
	{ MODERN_CALL, false, { NOW, "tools/call", "=?base64?dA==?=" }, MCP_MODERN, 0, 0 },
	{ MODERN_CALL, false, { NOW, "tools/call", "T" }, MCP_MODERN, 400, MCP_BAD_HEADER },
	{ MODERN_CALL, false, { NOW, "tools/call", NULL }, MCP_MODERN, 400, MCP_BAD_HEADER },
	{ MODERN_CALL, true, { 0 }, MCP_MODERN, 0, 0 },
	{ MSG("tools/list", "\"_meta\":"
			    "{" V "}"),
	  true,
	  { 0 },
	  MCP_MODERN,
	  400,
	  MCP_INVALID_PARAMS },
	{ MSG("x", "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-29\"," C "}"),
	  true,
	  { 0 },
	  MCP_MODERN,
	  400,
	  MCP_NO_VERSION },
	{ MSG("x", "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":5," C "}"),
	  true,
	  { 0 },
	  MCP_MODERN,
	  400,
	  MCP_INVALID_PARAMS },
	/* Notifications need no envelope beyond the claim, responses none at all. */
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"_meta\":{" V "}}}",
	  false,
	  { NOW, NULL, NULL },
	  MCP_MODERN,
	  0,
	  0 },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", false, { NOW, NULL, NULL }, MCP_MODERN, 0, 0 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", false, { 0 }, MCP_LEGACY, 0, 0 },
};

TEST(ladder)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *row = &rows[i];
		json_t *v = json_loads(row->message, 0, NULL);
		struct mcp_message m;
		struct mcp_ruling r;

		assert_non_null(v);
		mcp_message_read(v, &m);
		mcp_rule(&m, row->bare ? NULL : &row->h, &r);
		if (r.era != row->era || r.http != row->http || r.code != row->code)
			fail_msg("row %zu %s: era %d, status %d, code %d: %s", i, row->message,
				 r.era, r.http, r.code, r.message);
		assert_true(!r.http == !r.message[0]);
		assert_true(!r.data == (r.code != MCP_NO_VERSION));
		json_decref(r.data);
		json_decref(v);
	}
}

TEST(versions)
{
	assert_string_equal(mcp_legacy_version("2024-11-05"), "2024-11-05");
	assert_null(mcp_legacy_version(MCP_MODERN_VERSION));
	assert_null(mcp_legacy_version(""));
	assert_null(mcp_legacy_version(NULL));
	assert_true(mcp_version_has_batches("2024-11-05"));
	assert_true(mcp_version_has_batches("2025-03-26"));
	assert_false(mcp_version_has_batches("2025-06-18"));
	assert_false(mcp_version_has_batches(MCP_LEGACY_VERSION));
	assert_string_equal(mcp_named("resources/read"), "uri");
	assert_string_equal(mcp_named("tasks/get"), "taskId");
	assert_null(mcp_named("tools/list"));
}

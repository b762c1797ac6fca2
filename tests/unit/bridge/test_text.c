/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c - Events in pieces of any size; headers that tools ask for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/fd.h"
#include "bridge/config.h"
#include "bridge/event_stream.h"
#include "bridge/upstream.h"
#include "mcp/message.h"

/* ---- events -------------------------------------------------------------------------------- */

static bool on_event(void *arg, const char *type, char *data, size_t len)
{
	assert_int_equal(strlen(data), len);
	(void)buf_printf(arg, "[%s:%s]", type, data);
	return true;
}

static void feed_events(const char *text, size_t piece, const char *expected, const char *id,
			bool whole)
{
	_buf_ struct buf out = BUF_INIT(4096);
	struct event_stream v;
	bool go_on = true;

	event_stream_init(&v, 60);
	v.on_event = on_event;
	v.arg = &out;
	for (size_t at = 0, len = strlen(text); go_on && at < len; at += piece)
		go_on = event_stream_feed(&v, text + at, len - at < piece ? len - at : piece);
	assert_int_equal(go_on, whole);
	assert_int_equal(v.too_large, !whole);
	assert_string_equal(buf_str(&out), expected);
	assert_string_equal(v.id, id);
	event_stream_free(&v);
}

TEST(events)
{
	for (size_t piece = 1; piece < 80; piece++) {
		feed_events("\xef\xbb\xbf"
			    "data: a\n\ndata:b\rdata: c\r\r",
			    piece, "[message:a][message:b\nc]", "", true);
		feed_events(": note\r\nevent: endpoint\r\ndata: /x\r\n\r\n", piece, "[endpoint:/x]",
			    "", true);
		feed_events("id: 5\nretry: 10\ndata: \n\nid: 6\n\ndata: cut off", piece, "", "6",
			    true);
		feed_events("event\ndata\nother: x\n\ndata: y\n\n", piece, "[message:y]", "", true);
		feed_events(
			"data: 012345678901234567890123456789012345678901234567890123456789012345"
			"6789\n\n",
			piece, "", "", false);
	}
}

/* ---- headers ------------------------------------------------------------------------------- */

static json_t *tool(const char *properties)
{
	_buf_ struct buf text = BUF_INIT(4096);

	(void)buf_printf(&text,
			 "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":%s}}",
			 properties);
	json_t *t = json_loads(buf_str(&text), 0, NULL);

	assert_non_null(t);
	return t;
}

TEST(headers)
{
	static const char *const bad[] = {
		"{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}",
		"{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}",
		"{\"a\":{\"x-mcp-header\":\"A\"}}",
		"{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A b\"}}",
		"{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}",
		"{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":{\"type\":\"string\","
		"\"x-mcp-header\":\"a\"}}",
	};
	static const char arguments[] =
		"{\"a\":\"\\u00e4\",\"b\":{\"c\":7},\"d\":null,\"e\":true,\"f\":\"\"}";
	json_t *t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t = tool(bad[i]);
		if (tools_check_headers(t))
			fail_msg("%s", bad[i]);
		json_decref(t);
	}
	t = tool("{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":{\"type\":\"object\","
		 "\"properties\":{\"c\":{"
		 "\"type\":\"integer\",\"x-mcp-header\":\"C\"}}},\"d\":{\"type\":\"string\","
		 "\"x-mcp-header\":\"D\"},"
		 "\"e\":{\"type\":\"boolean\",\"x-mcp-header\":\"E\"},\"f\":{\"type\":\"string\","
		 "\"x-mcp-header\":\"F\"}}");
	assert_true(tools_check_headers(t));
	char **list = tools_headers(t, arguments, strlen(arguments));

	assert_string_equal(list[0], "Mcp-Param-A: =?base64?w6Q=?=");
	assert_string_equal(list[1], "Mcp-Param-C: 7");
	assert_string_equal(list[2], "Mcp-Param-E: true");
	assert_string_equal(list[3], "Mcp-Param-F: ");
	assert_null(list[4]);
	mem_free_list(list);
	json_decref(t);
}

TEST(encode)
{
	static const char *const rows[][2] = {
		{ "plain text", "plain text" },
		{ " a", "=?base64?IGE=?=" },
		{ "a\n", "=?base64?YQo=?=" },
		{ "=?base64?x", "=?base64?PT9iYXNlNjQ/eA==?=" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_buf_ struct buf out = BUF_INIT(100), back = BUF_INIT(100);

		assert_int_equal(mcp_header_encode(rows[i][0], &out), 0);
		assert_string_equal(buf_str(&out), rows[i][1]);
		assert_int_equal(mcp_header_decode(buf_str(&out), &back), 0);
		assert_string_equal(buf_str(&back), rows[i][0]);
	}
}

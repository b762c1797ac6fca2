/* SPDX-License-Identifier: Apache-2.0 */
/* test_mirrors.c - Arguments that are repeated as headers, and which methods repeat a name. */
#include <string.h>

#include "../unit.h"
#include "mcp/message.h"

/* value: JSON text, or NULL: absent. */
static const struct row {
	const char *header, *value;
	bool same;
} rows[] = {
	{ NULL, NULL, true },
	{ NULL, "null", true },
	{ "", NULL, false },
	{ "null", "null", false },
	{ NULL, "\"x\"", false },
	{ NULL, "0", false },
	{ "x", "\"x\"", true },
	{ "", "\"\"", true },
	{ "X", "\"x\"", false },
	{ "xy", "\"x\"", false },
	{ "=?base64?w7w=?=", "\"\xc3\xbc\"", true },
	{ "=?base64?w7w?=", "\"\xc3\xbc\"", false },
	{ "=?BASE64?w7w=?=", "\"\xc3\xbc\"", false },
	{ "=?base64?eA==?=", "\"x\"", true },
	{ "x", "\"x\\u0000y\"", false },
	{ "7", "7", true },
	{ "-7", "-7", true },
	{ "07", "7", true },
	{ "7.0", "7", false },
	{ "7 ", "7", false },
	{ "", "0", false },
	{ "9223372036854775807", "9223372036854775807", true },
	{ "9223372036854775808", "9223372036854775807", false },
	{ "true", "true", true },
	{ "false", "false", true },
	{ "false", "true", false },
	{ "1", "true", false },
	{ "1.5", "1.5", false }, /* numbers that are no integers are not mirrored */
	{ "[]", "[]", false },
	{ "{}", "{}", false },
};

TEST(values)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *v = rows[i].value ? json_loads(rows[i].value,
						       JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) :
					    NULL;

		assert_true(!rows[i].value == !v);
		if (mcp_header_mirrors(rows[i].header, v) != rows[i].same)
			fail_msg("row %zu: %s, %s", i, rows[i].header, rows[i].value);
		json_decref(v);
	}
}

TEST(named)
{
	assert_string_equal(mcp_named("tools/call"), "name");
	assert_string_equal(mcp_named("prompts/get"), "name");
	assert_string_equal(mcp_named("resources/read"), "uri");
	assert_string_equal(mcp_named("tasks/get"), "taskId");
	assert_string_equal(mcp_named("tasks/update"), "taskId");
	assert_string_equal(mcp_named("tasks/cancel"), "taskId");
	/* Removed methods are unknown, whatever their headers are. */
	assert_null(mcp_named("tasks/result"));
	assert_null(mcp_named("tasks/list"));
	assert_null(mcp_named("tools/list"));
	assert_null(mcp_named(""));
}

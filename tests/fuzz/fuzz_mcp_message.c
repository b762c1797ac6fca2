/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mcp_message.c - Messages and headers of strangers: each message has one kind and the members
 * of that kind, and is accepted or refused with an error that is a message itself.
 *
 * The first three lines are the headers (an empty one is absent), the rest is the body.
 */
#include "base/buf.h"
#include "front/mcp/call.h"
#include "front/support/schema.h"
#include "fuzz.h"
#include "mcp/message.h"

static void check_error(const json_t *id, int code, const json_t *data, const char *text)
{
	_buf_ struct buf b = BUF_INIT(64u << 20);
	struct mcp_message m;
	json_t *v;

	mcp_error_json(&b, id, code, data, text);
	require(!b.err);
	v = json_loadb(buf_str(&b), b.len, JSON_ALLOW_NUL, NULL);
	require(v);
	require(json_integer_value(json_object_get(json_object_get(v, "error"), "code")) == code);
	require(!id || json_equal(json_object_get(v, "id"), id));
	mcp_message_read(v, &m);
	require(m.kind == (id ? MCP_RESPONSE : MCP_NONSENSE)); /* has no request */
	json_decref(v);
}

static void check_kind(const struct mcp_message *m)
{
	switch (m->kind) {
	case MCP_REQUEST:
		require(m->id && m->method && !m->result && !m->error);
		break;
	case MCP_NOTIFICATION:
		require(!m->id && m->method);
		break;
	case MCP_RESPONSE:
		require(m->id && !m->method && !m->result != !m->error);
		break;
	case MCP_NONSENSE:
		require(m->why && m->why[0]);
		check_error(m->id, MCP_INVALID_REQUEST, NULL, m->why);
		return;
	}
	require(!m->why && (!m->params || json_is_object(m->params)));
	require(!m->meta || json_is_object(m->meta));
}

static void check_ruling(const struct mcp_message *m, const struct mcp_headers *h)
{
	struct mcp_ruling r;

	mcp_rule(m, h, &r);
	require(r.http == 0 || r.http == 400);
	require((r.http != 0) == (r.code != 0));
	if (r.http)
		check_error(m->id, r.code, r.data, r.message);
	else
		require(!r.data);
	/* A claim is never overlooked. */
	if (json_object_get(m->meta, MCP_META_VERSION))
		require(r.era == MCP_MODERN);
	json_decref(r.data);
}

static char *take_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (!end) {
		*at = line + strlen(line);
		return NULL;
	}
	*end = '\0';
	*at = end + 1;
	return *line ? line : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *at = text;
	struct mcp_headers h;
	struct schema_error e;
	struct mcp_message m;
	json_t *v;

	h.version = take_line(&at);
	h.method = take_line(&at);
	h.name = take_line(&at);
	v = schema_load(at, size - (size_t)(at - text), &e);
	if (v) {
		mcp_message_read(v, &m);
		check_kind(&m);
		if (m.kind != MCP_NONSENSE) {
			check_ruling(&m, &h);
			check_ruling(&m, NULL);
		}
	}
	json_decref(v);
	free(text);
	return 0;
}

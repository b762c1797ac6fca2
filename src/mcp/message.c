/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - Which kind of JSON-RPC message a value is, and the checks of its era; the first that
 * fails decides the answer.
 *
 * The order is the protocol's: the claimed version, whether header and body agree, whether the
 * version is known, whether the message is complete, and then the headers that repeat its method
 * and its name.
 */
#include "mcp/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/utf8.h"

#define NAME_MAX_BYTES 8192u
#define BEGIN "=?base64?"
#define END "?="
#define VALUE_MAX (64u << 10)

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

/* ---- headers: the one escape that their values have ---------------------------------------- */

int mcp_header_decode(const char *value, struct buf *out)
{
	size_t len = strlen(value), begin = sizeof(BEGIN) - 1, end = sizeof(END) - 1;
	size_t before = out->len;

	if (len < begin + end || strncmp(value, BEGIN, begin) != 0 ||
	    strcmp(value + len - end, END) != 0)
		return buf_append(out, value, len);
	if (!base64_decode(value + begin, len - begin - end, out))
		return out->err == -ENOMEM ? -ENOMEM : -EINVAL;
	if (memchr(buf_str(out) + before, '\0', out->len - before) ||
	    !utf8_valid(buf_str(out) + before, out->len - before))
		return -EINVAL;
	return 0;
}

int mcp_header_encode(const char *value, struct buf *out)
{
	size_t len = strlen(value), begin = sizeof(BEGIN) - 1;
	bool plain = len == 0 || (value[0] != ' ' && value[len - 1] != ' ');

	for (size_t i = 0; plain && i < len; i++)
		plain = value[i] >= 0x20 && value[i] < 0x7f;
	if (plain && strncmp(value, BEGIN, begin) != 0)
		return buf_append(out, value, len);
	(void)buf_puts(out, BEGIN);
	base64_encode(value, len, out);
	return buf_puts(out, END);
}

static bool same_integer(const char *text, json_int_t value)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && n == value;
}

bool mcp_header_mirrors(const char *header, const json_t *value)
{
	_buf_ struct buf text = BUF_INIT(VALUE_MAX);

	if (!header || !value || json_is_null(value))
		return !header && (!value || json_is_null(value));
	if (mcp_header_decode(header, &text) < 0)
		return false;
	if (json_is_boolean(value))
		return strcmp(buf_str(&text), json_is_true(value) ? "true" : "false") == 0;
	if (json_is_integer(value))
		return same_integer(buf_str(&text), json_integer_value(value));
	return json_is_string(value) && text.len == json_string_length(value) &&
	       memcmp(buf_str(&text), json_string_value(value), text.len) == 0;
}

/* ---- eras ---------------------------------------------------------------------------------- */

static const char *const legacy[] = { MCP_LEGACY_VERSION, "2025-06-18", "2025-03-26", "2024-11-05",
				      "2024-10-07" };

const char *mcp_legacy_version(const char *version)
{
	for (size_t i = 0; version && i < sizeof(legacy) / sizeof(*legacy); i++)
		if (strcmp(legacy[i], version) == 0)
			return legacy[i];
	return NULL;
}

bool mcp_version_has_batches(const char *version)
{
	return strcmp(version, "2025-03-26") <= 0; /* they are dates */
}

const char *mcp_named(const char *method)
{
	if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
		return "name";
	if (strcmp(method, "resources/read") == 0)
		return "uri";
	if (strcmp(method, "tasks/get") == 0 || strcmp(method, "tasks/update") == 0 ||
	    strcmp(method, "tasks/cancel") == 0)
		return "taskId";
	return NULL;
}

__attribute__((format(printf, 4, 5))) static void refuse(struct mcp_ruling *r, int http, int code,
							 const char *fmt, ...)
{
	va_list ap;

	r->http = http;
	r->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
}

/* Versions are dates: a later one than the last with a handshake has none. */
static bool is_modern(const char *version)
{
	return strcmp(version, MCP_MODERN_VERSION) >= 0 && version[0] == '2';
}

/* ---- modern -------------------------------------------------------------------------------- */

static void check_version(const struct mcp_headers *h, const char *claim, struct mcp_ruling *r)
{
	if (h && h->version && strcmp(h->version, claim) != 0) {
		refuse(r, 400, MCP_BAD_HEADER,
		       "header MCP-Protocol-Version is %.40s, and " MCP_META_VERSION " is %.40s",
		       h->version, claim);
		return;
	}
	if (strcmp(claim, MCP_MODERN_VERSION) == 0)
		return;
	refuse(r, 400, MCP_NO_VERSION, "protocol version %.40s is not supported", claim);
	r->data = json_pack("{s:[s],s:s}", "supported", MCP_MODERN_VERSION, "requested", claim);
}

static void check_name(const struct mcp_message *m, const char *header, struct mcp_ruling *r)
{
	const char *member = mcp_named(m->method), *value;
	_buf_ struct buf name = BUF_INIT(NAME_MAX_BYTES);

	if (!member)
		return;
	value = json_string_value(json_object_get(m->params, member));
	if (!value)
		return; /* the method itself refuses wrong parameters */
	if (!header) {
		refuse(r, 400, MCP_BAD_HEADER, "header Mcp-Name is missing: it repeats params.%s",
		       member);
		return;
	}
	int got = mcp_header_decode(header, &name);

	if (got == -ENOMEM)
		refuse(r, 503, MCP_INTERNAL, "out of memory");
	else if (got < 0 || strcmp(buf_str(&name), value) != 0)
		refuse(r, 400, MCP_BAD_HEADER, "header Mcp-Name is not params.%s", member);
}

static void check_headers(const struct mcp_message *m, const struct mcp_headers *h,
			  struct mcp_ruling *r)
{
	if (!h->version)
		refuse(r, 400, MCP_BAD_HEADER, "header MCP-Protocol-Version is missing");
	else if (!h->method)
		refuse(r, 400, MCP_BAD_HEADER, "header Mcp-Method is missing");
	else if (strcmp(h->method, m->method) != 0)
		refuse(r, 400, MCP_BAD_HEADER,
		       "header Mcp-Method is %.60s, and the method is %.60s", h->method, m->method);
	else
		check_name(m, h->name, r);
}

static void rule_modern(const struct mcp_message *m, const struct mcp_headers *h,
			const json_t *claim, struct mcp_ruling *r)
{
	r->era = MCP_MODERN;
	if (!json_is_string(claim)) {
		refuse(r, 400, MCP_INVALID_PARAMS, "params._meta[\"" MCP_META_VERSION "\"] %s",
		       claim ? "must be a string" : "is missing");
		return;
	}
	check_version(h, json_string_value(claim), r);
	if (r->http)
		return;
	if (m->kind != MCP_REQUEST)
		return;
	if (!json_is_object(json_object_get(m->meta, MCP_META_CAPABILITIES))) {
		refuse(r, 400, MCP_INVALID_PARAMS,
		       "params._meta[\"" MCP_META_CAPABILITIES "\"] must be an object");
		return;
	}
	if (h)
		check_headers(m, h, r);
}

/* ---- both ---------------------------------------------------------------------------------- */

void mcp_rule(const struct mcp_message *m, const struct mcp_headers *headers,
	      struct mcp_ruling *ret)
{
	const char *version = headers ? headers->version : NULL;
	const json_t *claim = json_object_get(m->meta, MCP_META_VERSION);

	memset(ret, 0, sizeof(*ret));
	if (claim) {
		rule_modern(m, headers, claim, ret);
		return;
	}
	if (version && is_modern(version) && m->kind != MCP_RESPONSE) {
		/* There are no notifications to be made sense of on that wire: they are taken. */
		ret->era = MCP_MODERN;
		if (m->kind == MCP_REQUEST)
			rule_modern(m, headers, NULL, ret);
		return;
	}
	if (version && !mcp_legacy_version(version) &&
	    !(m->method && strcmp(m->method, "initialize") == 0)) {
		refuse(ret, 400, MCP_BAD_SESSION,
		       "header MCP-Protocol-Version: %.40s is not supported", version);
	}
}

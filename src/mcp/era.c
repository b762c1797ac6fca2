/* SPDX-License-Identifier: Apache-2.0 */
/*
 * era.c - The checks of a message; the first that fails decides the answer.
 *
 * The order is the protocol's: the claimed version, whether header and body agree, whether the
 * version is known, whether the message is complete, and then the headers that repeat its method
 * and its name.
 */
#include "mcp/era.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "mcp/header.h"

#define NAME_MAX_BYTES 8192u

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

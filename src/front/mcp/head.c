/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - Accept, Content-Type, and errors with a status. */
#include "front/mcp/head.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "front/http/reply.h"
#include "front/mcp/call.h"
#include "net/http.h"

#define ERROR_MAX 8192u

void mcp_refuse(struct http_exchange *x, int status, const json_t *id, int code, const json_t *data,
		const char *message)
{
	_buf_ struct buf b = BUF_INIT(ERROR_MAX);

	mcp_error_json(&b, id, code, data, message);
	reply_json(x, status, &b);
}

bool mcp_accepts(const struct http_exchange *x, const char *type)
{
	const char *accept = http_header(x, "accept");

	return !accept || strcasestr(accept, type) || strstr(accept, "*/*");
}

bool mcp_head_ok(struct http_exchange *x)
{
	const char *type = http_header(x, "content-type");

	if (type && strncasecmp(type, "application/json", 16) != 0)
		mcp_refuse(x, 415, NULL, MCP_BAD_SESSION, NULL,
			   "Content-Type must be application/json");
	else if (!mcp_accepts(x, "application/json"))
		mcp_refuse(x, 406, NULL, MCP_BAD_SESSION, NULL,
			   "Accept must name application/json and " MCP_EVENTS);
	else
		return true;
	return false;
}

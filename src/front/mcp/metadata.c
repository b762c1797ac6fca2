/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.c - The document that names the authorization server, and its address.
 *
 * The document is for clients without a token: GET /.well-known/oauth-protected-resource, and the
 * same with /mcp behind it. It names the resource by the address that the client used: the Host
 * header, which auth.h has checked, or --mcp-url behind a proxy that ends TLS.
 */
#include "front/mcp/metadata.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/mcp/mcp.h"
#include "front/support/daemon.h"
#include "net/conn.h"
#include "net/http.h"

#define DOCUMENT_MAX 8192u
#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* Up to the path; of --mcp-url, or as the client calls us. */
static void put_origin(const struct mcp *mcp, const struct http_exchange *x, struct buf *out)
{
	const char *url = mcp->daemon->config.mcp_url;

	if (url)
		(void)buf_append(out, url,
				 (size_t)(strstr(url, "://") - url) + 3 +
					 strcspn(strstr(url, "://") + 3, "/"));
	else
		(void)buf_printf(out, "%s://%s", conn_is_tls(http_conn(x)) ? "https" : "http",
				 http_request(x)->host);
}

void mcp_metadata_url(const struct mcp *mcp, const struct http_exchange *x, struct buf *out)
{
	const char *path = http_request(x)->path;

	if (!mcp->daemon->config.mcp_auth_server || strncmp(path, "/mcp", 4) != 0 ||
	    (path[4] && path[4] != '/'))
		return;
	put_origin(mcp, x, out);
	(void)buf_puts(out, WELL_KNOWN "/mcp");
}

static void write_document(const struct mcp *mcp, const struct http_exchange *x, struct buf *out)
{
	_buf_ struct buf resource = BUF_INIT(2048);
	struct json j;

	if (mcp->daemon->config.mcp_url) {
		(void)buf_puts(&resource, mcp->daemon->config.mcp_url);
	} else {
		put_origin(mcp, x, &resource);
		(void)buf_puts(&resource, "/mcp");
	}
	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "resource", buf_str(&resource));
	json_member_array(&j, "authorization_servers");
	(void)json_str(&j, mcp->daemon->config.mcp_auth_server);
	json_array_end(&j);
	json_member_array(&j, "bearer_methods_supported");
	(void)json_str(&j, "header");
	json_array_end(&j);
	json_member_str(&j, "resource_name", "Caisson");
	json_object_end(&j);
	(void)json_finish(&j);
}

void handle_mcp_metadata(struct mcp *mcp, struct http_exchange *x)
{
	_buf_ struct buf b = BUF_INIT(DOCUMENT_MAX);

	if (!mcp->daemon->config.mcp_auth_server) {
		reply_error(x, 404, "not_found", NULL,
			    "ask the operator for a token; --mcp-auth-server names such a server",
			    "no authorization server is named here");
		return;
	}
	write_document(mcp, x, &b);
	reply_json(x, 200, &b);
}

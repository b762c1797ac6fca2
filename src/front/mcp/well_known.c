/* SPDX-License-Identifier: Apache-2.0 */
/* well_known.c - GET /.well-known/oauth-protected-resource, and its /mcp: for who has no token yet.
 */
#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/mcp/metadata.h"
#include "front/support/front.h"
#include "net/http.h"

#define DOCUMENT_MAX 8192u

void handle_mcp_metadata(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	_buf_ struct buf b = BUF_INIT(DOCUMENT_MAX);

	(void)p;
	if (!f->config.mcp_auth_server) {
		reply_error(x, 404, "not_found", NULL,
			    "ask the operator for a token; --mcp-auth-server names such a server",
			    "no authorization server is named here");
		return;
	}
	mcp_metadata_json(f, x, &b);
	reply_json(x, 200, &b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* handle_docs.c - The routes that describe the daemon: documentation, OpenAPI, metrics. */
#include "base/buf.h"
#include "front/api/handlers.h"
#include "front/http/docs.h"
#include "front/http/reply.h"
#include "front/http/route.h"
#include "front/support/metrics.h"
#include "net/http.h"

#define TEXT_MAX (4u << 20)

void handle_root(struct services *services, struct http_exchange *x)
{
	(void)services;
	http_add_header(x, "Location", "/docs");
	reply_empty(x, 307);
}

void handle_docs(struct services *services, struct http_exchange *x)
{
	struct docs_asset asset;

	(void)services;
	if (!docs_find(http_request(x)->path, &asset)) {
		reply_error(x, 404, "not_found", NULL, "see /docs", "there is no such file");
		return;
	}
	reply_headers(x);
	http_add_header(x, "Cross-Origin-Resource-Policy", "same-origin");
	http_add_header(x, "Referrer-Policy", "no-referrer");
	if (asset.policy)
		http_add_header(x, "Content-Security-Policy", asset.policy);
	http_reply_kept(x, 200, asset.content_type, asset.data, asset.len);
}

void handle_openapi(struct services *services, struct http_exchange *x)
{
	/* Written once, because anybody may ask for it; the table of routes never changes. */
	static struct buf document = BUF_INIT(TEXT_MAX);

	(void)services;
	if (document.len == 0)
		openapi_write(&document);
	if (document.err) {
		reply_json(x, 200, &document);
		buf_free(&document);
		return;
	}
	reply_headers(x);
	http_reply_kept(x, 200, "application/json", buf_str(&document), document.len);
}

void handle_metrics(struct services *services, struct http_exchange *x)
{
	_buf_ struct buf out = BUF_INIT(TEXT_MAX);

	(void)services;
	metrics_write(&out);
	if (out.err) {
		reply_json(x, 200, &out); /* 503 without memory, otherwise 500 */
		return;
	}
	reply_headers(x);
	http_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&out), out.len);
}

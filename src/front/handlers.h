/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers.h - What the routes call: one function per row of routes[].
 *
 * A handler is called when the request is complete, the caller was let in, and the query holds only
 * declared parameters. It answers exactly once, now or later (net/http.h). @p is valid during the
 * call only.
 */
#ifndef CAISSON_FRONT_HANDLERS_H
#define CAISSON_FRONT_HANDLERS_H

struct front;
struct http_exchange;
struct route_params;

#define HANDLER(name)                                                                              \
	void name(struct front *f, struct http_exchange *x, const struct route_params *p)

HANDLER(handle_execute);
HANDLER(handle_execute_ws);
HANDLER(handle_pip_install);
HANDLER(handle_sessions);          /* GET /sessions */
HANDLER(handle_session_end);       /* DELETE /sessions/{session_id} */
HANDLER(handle_session_interrupt); /* POST /sessions/{session_id}/interrupt */
HANDLER(handle_health);

/* These need no state of the daemon (handle_docs.c). */
HANDLER(handle_root);
HANDLER(handle_docs); /* the page and its assets */
HANDLER(handle_openapi);
HANDLER(handle_metrics);

#endif

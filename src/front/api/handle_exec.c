/* SPDX-License-Identifier: Apache-2.0 */
/* handle_exec.c - A program, or a script of the shell, in a named sandbox. */
#include "front/api/exec.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/http/idempotency.h"
#include "front/http/request.h"
#include "front/http/serve.h"
#include "front/http/stream_out.h"
#include "net/http.h"

static void run(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);
	struct sandbox *s = body ? own_sandbox(services, x, p) : NULL;

	if (s && idempotency_begin_once(
			 x,
			 stream_format_of(x, json_is_true(json_object_get(body, "stream"))) !=
				 STREAM_NONE))
		exec_begin(x, s, body);
	json_decref(body);
}

void handle_exec(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	run(services, x, p);
}

void handle_shell(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	run(services, x, p);
}

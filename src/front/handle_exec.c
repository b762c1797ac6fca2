/* SPDX-License-Identifier: Apache-2.0 */
/* handle_exec.c - A program, or a script of the shell, in a named sandbox. */
#include "front/exec.h"
#include "front/handlers.h"
#include "front/idem.h"
#include "front/own.h"
#include "front/reply.h"
#include "front/request.h"
#include "front/serve.h"
#include "front/stream_out.h"
#include "net/http.h"

/* A stream has an answer of its own kind: it is resumed, not repeated. */
static bool may_begin(struct front *f, struct http_exchange *x, const json_t *body)
{
	bool stream = stream_format_of(x, json_is_true(json_object_get(body, "stream"))) !=
		      STREAM_NONE;

	if (stream && http_header(x, "idempotency-key")) {
		reply_error(x, 422, "unsupported_field", "Idempotency-Key",
			    "resume a stream by its execution id, or leave out `stream`",
			    "a stream can not be answered again");
		return false;
	}
	return idem_begin(f, x);
}

static void run(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, visit_of(x)->route);
	struct sandbox *s = body ? own_sandbox(f, x, p) : NULL;

	if (s && may_begin(f, x, body))
		exec_begin(x, s, body);
	json_decref(body);
}

void handle_exec(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	run(f, x, p);
}

void handle_shell(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	run(f, x, p);
}

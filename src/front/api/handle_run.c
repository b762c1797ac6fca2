/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_run.c - Code in a kernel: of a session (POST /execute), of a named sandbox, and of a
 * sandbox that is made for it and ends after it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "front/api/exec.h"
#include "front/api/execute_request.h"
#include "front/api/execution_reply.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/request.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/output/tail.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "net/http.h"

static enum stream_format format_of(const struct http_exchange *x, const json_t *body)
{
	return stream_format_of(x, json_is_true(json_object_get(body, "stream")));
}

static bool may_begin(struct http_exchange *x, const json_t *body)
{
	return idempotency_begin_once(x, format_of(x, body) != STREAM_NONE);
}

/* POST /execute: in the session that it names, which is made if need be, or in a new sandbox. */
static void run_in_session(struct services *services, struct http_exchange *x, const json_t *body)
{
	const char *owner = context_of(x)->owner;
	char image[IMAGE_OPENER_REF_MAX] = "";
	struct execution *e = NULL;
	struct sandbox *s = NULL;
	struct refusal why;
	int has_image = sandbox_spec_image(services->sandboxes->admission, body, image, &why);

	if (has_image >= 0)
		e = ask_execution(services->sandboxes, owner, body, NULL, NULL, &why);
	if (e)
		s = sandbox_obtain(services->sandboxes, owner, ask_session(body), has_image ? image : NULL, &why);
	if (s) {
		e->write_result = execution_json;
		execution_reply(x, s, e, format_of(x, body));
		return;
	}
	if (e)
		execution_free(e);
	reply_refusal(x, &why);
}

void handle_execute(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);

	(void)p;
	if (body && may_begin(x, body))
		run_in_session(services, x, body);
	json_decref(body);
}

void handle_sandbox_execute(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);
	struct sandbox *s = body ? own_sandbox(services, x, p) : NULL;
	struct refusal why;

	if (s && may_begin(x, body)) {
		struct execution *e = ask_execution(services->sandboxes, s->owner, body, NULL, NULL, &why);

		if (e)
			execution_reply(x, s, e, format_of(x, body));
		else
			reply_refusal(x, &why);
	}
	json_decref(body);
}

/* In a sandbox of its own, which has no name and ends with it. */
static void run_once(struct services *services, struct http_exchange *x, json_t *body)
{
	struct sandbox_spec spec;
	struct refusal why;
	struct sandbox *s = NULL;

	if (sandbox_spec_parse(services->sandboxes->admission, context_of(x)->owner, body, &spec, &why) < 0) {
		reply_refusal(x, &why);
		return;
	}
	struct execution *e = ask_execution(services->sandboxes, context_of(x)->owner, body, NULL, NULL, &why);

	if (e)
		s = sandbox_create(services->sandboxes, context_of(x)->owner, NULL, &spec, &why);
	if (s) {
		execution_reply(x, s, e, format_of(x, body));
		return;
	}
	if (e)
		execution_free(e);
	sandbox_spec_free(&spec);
	reply_refusal(x, &why);
}

/* The kernel of bash has its code where others have their input: a script that reads is a shell of
 * its own. */
static void run_shell_once(struct services *services, struct http_exchange *x, const json_t *body)
{
	struct sandbox_spec spec;
	struct refusal why;

	if (sandbox_spec_parse(services->sandboxes->admission, context_of(x)->owner, body, &spec, &why) < 0) {
		reply_refusal(x, &why);
		return;
	}
	struct sandbox *s = sandbox_create(services->sandboxes, context_of(x)->owner, NULL, &spec, &why);

	if (!s) {
		sandbox_spec_free(&spec);
		reply_refusal(x, &why);
		return;
	}
	exec_begin(x, s, body);
	sandbox_step(s); /* what was refused leaves it empty, and it ends here */
}

void handle_run_python(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);

	(void)p;
	if (body && may_begin(x, body))
		run_once(services, x, body);
	json_decref(body);
}

void handle_run_shell(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, context_of(x)->route);

	(void)p;
	if (!body || !may_begin(x, body)) {
		json_decref(body);
		return;
	}
	if (json_object_get(body, "stdin"))
		run_shell_once(services, x, body);
	else if (json_object_set(body, "code", json_object_get(body, "script")) == 0 &&
		 json_object_set_new(body, "language", json_string("bash")) == 0)
		run_once(services, x, body);
	else
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
	json_decref(body);
}

/* ---- what was said ------------------------------------------------------------------------- */

#define LOG_MAX (TAIL_MAX + 1)

void handle_sandbox_logs(struct services *services, struct http_exchange *x, const struct route_params *p)
{
	_buf_ struct buf b = BUF_INIT(LOG_MAX);
	json_t *query = request_query(x, context_of(x)->route);
	struct sandbox *s = query ? own_sandbox(services, x, p) : NULL;
	const json_t *lines = json_object_get(query, "tail");
	char bytes[24];

	if (s) {
		tail_read(&s->log, lines ? (size_t)json_integer_value(lines) : SIZE_MAX, &b);
		reply_headers(x);
		/* Where this ends in all that was written: who asks again knows what is new. */
		(void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)s->log.bytes);
		http_add_header(x, "X-Log-Bytes", bytes);
		http_reply(x, 200, "text/plain", buf_str(&b), b.len);
	}
	json_decref(query);
}

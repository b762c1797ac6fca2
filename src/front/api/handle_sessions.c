/* SPDX-License-Identifier: Apache-2.0 */
/* handle_sessions.c - The caller's own sessions: list, interrupt, end. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"

#define LIST_MAX (4u << 20)

static double seconds_since(uint64_t then_ns)
{
	return (double)(clock_now_ns() - then_ns) / (double)CLOCK_NS_PER_S;
}

static void write_session(struct json *j, const struct sandbox *s)
{
	json_object_begin(j);
	json_member_str(j, "session_id", s->name);
	json_member_str(j, "state", s->running ? "busy" : s->head ? "starting" : "idle");
	json_member_uint(j, "epoch", s->epoch);
	json_member_uint(j, "executions", s->executions);
	json_member_uint(j, "queued", s->n_queued);
	json_key(j, "age_seconds");
	json_double(j, seconds_since(s->created_ns) + (double)s->aged_ns / (double)CLOCK_NS_PER_S,
		    3);
	json_key(j, "idle_seconds");
	json_double(j, s->head ? 0 : seconds_since(s->used_ns), 3);
	json_object_end(j);
}

void handle_sessions(struct services *services, struct http_exchange *x)
{
	struct reply answer;
	const struct request_context *v = context_of(x);
	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_array(j, "sessions");
	for (const struct sandbox *s = services->sandboxes->first; s; s = s->next)
		if (s->name[0] && s->state == SANDBOX_RUNNING && strcmp(s->owner, v->owner) == 0)
			write_session(j, s);
	json_array_end(j);
	reply_end(&answer, x, 200);
}

static struct sandbox *own(struct services *services, struct http_exchange *x)
{
	struct sandbox *s =
		sandbox_find(services->sandboxes, context_of(x)->owner, context_param(x, 0));

	if (!s)
		reply_error(x, 404, "no_such_session", "session_id", "see GET /sessions",
			    "there is no such session");
	return s;
}

void handle_session_end(struct services *services, struct http_exchange *x)
{
	struct sandbox *s = own(services, x);

	if (!s)
		return;
	sandbox_end(s, "removed by its owner");
	reply_empty(x, 204);
}

void handle_session_interrupt(struct services *services, struct http_exchange *x)
{
	struct sandbox *s = own(services, x);

	if (!s)
		return;
	if (!s->head) {
		reply_error(x, 404, "nothing_runs", "session_id", NULL,
			    "nothing runs in this session");
		return;
	}
	execution_interrupt(s->head); /* which may be its end, and the session's next one's
					 beginning */
	reply_empty(x, 202);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* handle_sandboxes.c - Named sandboxes over HTTP: make, list, extend, kill, interrupt, remove. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/api/execute.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandbox_json.h"
#include "front/spec/judge.h"
#include "front/support/time_text.h"

#define ONE_MAX (1u << 20)
#define LIST_MAX (16u << 20)
#define PAGE 100

static void reply_sandbox(struct http_exchange *x, int status, const struct sandbox *s)
{
	struct reply answer;

	sandbox_json(s, NULL, reply_begin(&answer, ONE_MAX));
	reply_end(&answer, x, status);
}

/* ---- making -------------------------------------------------------------------------------- */

static void on_made(struct http_exchange *x, struct sandbox *s, bool fresh, json_t *arg)
{
	(void)arg;
	reply_sandbox(x, fresh ? 201 : 200, s);
}

/* A second request with the same name and spec is for the same sandbox. */
static void create_again(struct http_exchange *x, struct sandbox *s, struct sandbox_spec *spec)
{
	struct refusal why;
	bool same = sandbox_spec_same(&s->spec, spec, &why);

	sandbox_spec_free(spec);
	if (!same)
		reply_refusal(x, &why);
	else if (s->state != SANDBOX_RUNNING)
		reply_error(x, 409, "sandbox_stopped", "name", "remove it first",
			    "a sandbox of this name exists and is %s: %s",
			    sandbox_state_name(s->state), s->reason);
	else
		wait_for_cell(x, s, false, NULL, on_made, NULL);
}

void handle_sandbox_create(struct services *services, struct http_exchange *x)
{
	const char *name = context_text(x, "name");
	enum stream_format format;
	struct sandbox_spec spec;
	struct refusal why;

	if (!ask_format(x, context_of(x)->fields, &format))
		return;
	/* Its only event is the last one, after those of its image. */
	if (format != STREAM_NONE && context_of(x)->prelude == STREAM_NONE)
		stream_out_prelude(x, format);
	if (sandbox_spec_parse(services->sandboxes->admission, context_of(x)->owner,
			       context_of(x)->fields, &spec, &why) < 0) {
		reply_refusal(x, &why);
		return;
	}
	struct sandbox *s = sandbox_find(services->sandboxes, context_of(x)->owner, name);

	if (s) {
		create_again(x, s, &spec);
		return;
	}
	if (services->daemon->draining) {
		sandbox_spec_free(&spec);
		reply_retry(x, 503, 5, "draining", NULL, "the daemon is shutting down");
		return;
	}
	s = sandbox_create(services->sandboxes, context_of(x)->owner, name, &spec, &why);
	if (!s) {
		sandbox_spec_free(&spec);
		reply_refusal(x, &why);
		return;
	}
	wait_for_cell(x, s, true, NULL, on_made, NULL);
}

/* ---- listing ------------------------------------------------------------------------------- */

/* Sandboxes of @owner with these labels, after @cursor, by name. The array is the caller's. */
static struct sandbox **select_sandboxes(struct services *services, const char *owner,
					 const json_t *labels, const char *cursor, size_t *ret_n)
{
	size_t n_all, n = 0;
	struct sandbox **all = sandboxes_of(services->sandboxes, owner, cursor, &n_all);

	for (size_t i = 0; i < n_all; i++)
		if (labels_match(all[i]->spec.labels, labels))
			all[n++] = all[i];
	*ret_n = n;
	return all;
}

/* False: answered. */
static bool labels_ok(struct http_exchange *x, const json_t *labels)
{
	size_t i;
	json_t *label;

	json_array_foreach(labels, i, label)
	{
		const char *text = json_string_value(label);

		if (strchr(text, '=') && text[0] != '=')
			continue;
		reply_error(x, 422, "invalid_value", "label", "as in label=team=red",
			    "a label has a name and a value, with '=' between them");
		return false;
	}
	return true;
}

void handle_sandbox_list(struct services *services, struct http_exchange *x)
{
	struct reply answer;
	const json_t *labels = json_object_get(context_of(x)->fields, "label");
	size_t n = 0;

	if (!labels_ok(x, labels))
		return;
	size_t most = context_number(x, "limit", PAGE);
	struct sandbox **all = select_sandboxes(services, context_of(x)->owner, labels,
						context_text(x, "cursor"), &n);

	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_array(j, "sandboxes");
	for (size_t i = 0; i < n && i < most; i++)
		sandbox_json(all[i], NULL, j);
	json_array_end(j);
	if (n > most)
		json_member_str(j, "next_cursor", all[most - 1]->name);
	free(all);
	reply_end(&answer, x, 200);
}

/* ---- changing ------------------------------------------------------------------------------ */

void handle_sandbox_remove(struct sandbox *s, struct http_exchange *x)
{
	sandbox_end(s, "removed by its owner");
	reply_empty(x, 204);
}

void handle_sandbox_extend(struct sandbox *s, struct http_exchange *x)
{
	uint64_t seconds = context_number(x, "seconds", 0), now = time_now_ms();
	uint64_t age_s = now > s->created_ms ? (now - s->created_ms) / 1000 : 0;
	struct refusal why;

	if (s->state != SANDBOX_RUNNING) {
		reply_error(x, 409, "sandbox_stopped", "name", "remove it and make another",
			    "the sandbox is %s: %s", sandbox_state_name(s->state), s->reason);
	} else if (policy_extend(s->sandboxes->admission, s->owner, age_s, seconds, &why) < 0) {
		reply_refusal(x, &why);
	} else {
		sandbox_expire(s, seconds);
		audit_changed(s);
		reply_sandbox(x, 200, s);
	}
}

void handle_sandbox_kill(struct sandbox *s, struct http_exchange *x)
{
	sandbox_halt(s, SANDBOX_STOPPED, "killed by its owner");
	reply_sandbox(x, 200, s);
}

void handle_sandbox_interrupt(struct sandbox *s, struct http_exchange *x)
{
	if (!s->head) {
		reply_error(x, 404, "nothing_runs", "name", NULL,
			    "no code runs or waits in this sandbox");
		return;
	}
	execution_interrupt(s->head);
	reply_empty(x, 202);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* handle_sandboxes.c - Named sandboxes over HTTP: make, list, extend, kill, interrupt, remove. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/http/idempotency.h"
#include "front/http/reply.h"
#include "front/http/request.h"
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
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct json j;

	json_init(&j, &b);
	sandbox_json(s, NULL, &j);
	reply_written(x, status, &j);
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
	bool same = sandbox_spec_equal(&s->spec, spec);

	sandbox_spec_free(spec);
	if (!same)
		reply_error(x, 409, "spec_conflict", "name",
			    "remove it first, take another name, or ask for the same",
			    "a sandbox of this name exists with another spec");
	else if (s->state != SANDBOX_RUNNING)
		reply_error(x, 409, "sandbox_stopped", "name", "remove it first",
			    "a sandbox of this name exists and is %s: %s",
			    sandbox_state_name(s->state), s->reason);
	else
		wait_for_cell(x, s, false, NULL, on_made, NULL);
}

void handle_sandbox_create(struct services *services, struct http_exchange *x)
{
	json_t *body = request_json(x, context_of(x)->route);
	struct sandbox_spec spec;
	struct refusal why;
	char name[SANDBOX_NAME_MAX + 1];

	if (!body || !idempotency_begin(x)) {
		json_decref(body);
		return;
	}
	(void)snprintf(name, sizeof(name), "%s", json_string_value(json_object_get(body, "name")));
	int r = sandbox_spec_parse(services->sandboxes->admission, context_of(x)->owner, body,
				   &spec, &why);

	json_decref(body);
	if (r < 0) {
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
	_buf_ struct buf b = BUF_INIT(LIST_MAX);
	json_t *query = request_query(x, context_of(x)->route);
	struct json j;
	size_t n = 0;

	if (!query || !labels_ok(x, json_object_get(query, "label"))) {
		json_decref(query);
		return;
	}
	const json_t *limit = json_object_get(query, "limit");
	size_t most = limit ? (size_t)json_integer_value(limit) : PAGE;
	struct sandbox **all =
		select_sandboxes(services, context_of(x)->owner, json_object_get(query, "label"),
				 json_string_value(json_object_get(query, "cursor")), &n);

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_array(&j, "sandboxes");
	for (size_t i = 0; i < n && i < most; i++)
		sandbox_json(all[i], NULL, &j);
	json_array_end(&j);
	if (n > most)
		json_member_str(&j, "next_cursor", all[most - 1]->name);
	json_object_end(&j);
	free(all);
	json_decref(query);
	reply_written(x, 200, &j);
}

/* ---- changing ------------------------------------------------------------------------------ */

void handle_sandbox_remove(struct services *services, struct http_exchange *x)
{
	struct sandbox *s = own_sandbox(services, x);

	if (!s)
		return;
	sandbox_end(s, "removed by its owner");
	reply_empty(x, 204);
}

static bool is_running(struct http_exchange *x, const struct sandbox *s)
{
	if (s->state == SANDBOX_RUNNING)
		return true;
	reply_error(x, 409, "sandbox_stopped", "name", "remove it and make another",
		    "the sandbox is %s: %s", sandbox_state_name(s->state), s->reason);
	return false;
}

void handle_sandbox_extend(struct services *services, struct http_exchange *x)
{
	json_t *body = request_json(x, context_of(x)->route);
	struct sandbox *s = body ? own_sandbox(services, x) : NULL;
	uint64_t seconds = (uint64_t)json_integer_value(json_object_get(body, "seconds"));
	struct refusal why;

	if (s && is_running(x, s)) {
		uint64_t now = time_now_ms();
		uint64_t age_s = now > s->created_ms ? (now - s->created_ms) / 1000 : 0;

		if (policy_extend(services->sandboxes->admission, s->owner, age_s, seconds, &why) ==
		    0) {
			sandbox_expire(s, seconds);
			audit_changed(s);
			reply_sandbox(x, 200, s);
		} else {
			reply_refusal(x, &why);
		}
	}
	json_decref(body);
}

void handle_sandbox_kill(struct services *services, struct http_exchange *x)
{
	struct sandbox *s = own_sandbox(services, x);

	if (!s)
		return;
	sandbox_halt(s, SANDBOX_STOPPED, "killed by its owner");
	reply_sandbox(x, 200, s);
}

void handle_sandbox_interrupt(struct services *services, struct http_exchange *x)
{
	struct sandbox *s = own_sandbox(services, x);

	if (!s)
		return;
	if (!s->head) {
		reply_error(x, 404, "nothing_runs", "name", NULL,
			    "no code runs or waits in this sandbox");
		return;
	}
	execution_interrupt(s->head);
	reply_empty(x, 202);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - Questions to the interpreter that are not code of the user: completion, inspection,
 * whether code is complete, and user_expressions.
 *
 * Answering them evaluates the user's objects, which may run any code; so a query has its turn, its
 * limits and its line in the ledger like an execution. Its answer is a bundle with one member. Only
 * python answers; for other languages the reply is the empty answer of the protocol.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/support/json_alloc.h"

#define QUERY_MS 5000u
#define QUERY_MAX (8u << 20)
#define NAME_MAX_BYTES 32
#define ANSWER "application/vnd.caisson.answer+json"

/* The reply without an answer: no matches, not found, unknown. */
static void no_answer(const struct jrequest *r, struct buf *out)
{
	json_int_t at = json_integer_value(json_object_get(r->content, "cursor_pos"));

	if (strcmp(r->type, "complete_request") == 0)
		(void)buf_printf(out,
				 "{\"status\":\"ok\",\"matches\":[],\"cursor_start\":%lld,"
				 "\"cursor_end\":%lld,\"metadata\":{}}",
				 (long long)at, (long long)at);
	else if (strcmp(r->type, "inspect_request") == 0)
		(void)buf_puts(out,
			       "{\"status\":\"ok\",\"found\":false,\"data\":{},\"metadata\":{}}");
	else
		(void)buf_puts(out, "{\"status\":\"unknown\"}");
}

/* "complete" of "complete_request", with @end in place of the last word. */
static void name_of(const struct jrequest *r, const char *end, char ret[NAME_MAX_BYTES])
{
	int len = (int)(strlen(r->type) - strlen("_request"));

	(void)snprintf(ret, NAME_MAX_BYTES, "%.*s%s", len, r->type, end);
}

static void reply(struct jrequest *r, const struct buf *answer)
{
	_buf_ struct buf none = BUF_INIT(256);
	char type[NAME_MAX_BYTES];

	name_of(r, "_reply", type);
	no_answer(r, &none);
	jrequest_reply(r, type, answer && answer->len > 0 ? answer : &none);
}

/* The member of the bundle, as text. */
static void answer_of(const struct execution *x, struct buf *out)
{
	json_t *bundle = x->result.len > 0 ? json_alloc_load(buf_str(&x->result), x->result.len,
							     JSON_ALLOW_NUL, NULL) :
					     NULL;
	const json_t *member = json_object_get(bundle, ANSWER);
	char *text = json_is_object(member) ? json_dumps(member, JSON_COMPACT) : NULL;

	if (text && !x->refusal.kind)
		(void)buf_puts(out, text);
	json_alloc_free(text);
	json_decref(bundle);
}

static void on_answer(struct execution *x)
{
	_buf_ struct buf b = BUF_INIT(QUERY_MAX);
	struct jrequest *r = x->user;

	r->running = NULL;
	answer_of(x, &b);
	reply(r, &b);
}

static void on_expressions(struct execution *x)
{
	_buf_ struct buf b = BUF_INIT(QUERY_MAX);
	struct jrequest *r = x->user;

	r->running = NULL;
	jrun_note(r, x);
	answer_of(x, &b);
	jrun_reply(r, &b);
}

static const struct sink answering = { .done = on_answer, .errors_apart = true };
static const struct sink expressing = { .done = on_expressions, .errors_apart = true };

/* @query is taken. */
static bool ask(struct jrequest *r, json_t *query, const struct sink *sink)
{
	struct jkernel *k = r->kernel;
	char *text = query ? json_dumps(query, JSON_COMPACT) : NULL;

	json_decref(query);
	if (text && strlen(text) < QUERY_MAX)
		r->running = execution_new(k->sandbox->sandboxes, k->language, text, strlen(text),
					   QUERY_MS, sink, r);
	json_alloc_free(text);
	if (!r->running)
		return false;
	r->running->is_query = true;
	sandbox_queue(k->sandbox, r->running);
	return true;
}

void jquery_ask(struct jrequest *r)
{
	json_t *q = r->kernel->language->id == LANG_PYTHON ? json_copy(r->content) : NULL;
	char op[NAME_MAX_BYTES];

	name_of(r, "", op);
	if (q && json_object_set_new(q, "op", json_string(op)) < 0) {
		json_decref(q);
		q = NULL;
	}
	if (!q || !ask(r, q, &answering))
		reply(r, NULL);
}

void jquery_expressions(struct jrequest *r, json_t *expressions)
{
	json_t *q = json_pack("{s:s, s:O}", "op", "expressions", "expressions", expressions);

	if (!ask(r, q, &expressing))
		jrun_reply(r, NULL);
}

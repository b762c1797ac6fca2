/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc.c - Requests from cells: admission, dispatch, answers in parts.
 *
 * The kernel's line has been parsed with its bounds (kernel.c). Ids are the kernel's own: one that
 * is in flight already is a mistake or a forgery, and refused. An answer that a kernel does not
 * read stays here, bounded, and is sent piece by piece as it reads, so that other messages come in
 * between.
 */
#include "front/tool_calls/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/list.h"
#include "front/cell/cell.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/schema.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/ops.h"

#define MESSAGE_BYTES (RPC_PART_MAX * 6 + 4096)
#define ID_MAX (INT64_C(1) << 53)
#define REFUSALS_MAX 10000u /* of one execution; then it is no mistake any more */

/* ---- messages to the kernel ---------------------------------------------------------------- */

static void begin_response(struct json *j, struct buf *b, int64_t id, bool ok)
{
	json_init(j, b);
	json_object_begin(j);
	json_member_str(j, "type", "rpc_response");
	json_member_int(j, "id", id);
	json_member_bool(j, "ok", ok);
}

static void send_error(struct kernel *s, int64_t id, const char *code, const char *hint,
		       const char *message)
{
	_buf_ struct buf b = BUF_INIT(16384);
	struct json j;

	begin_response(&j, &b, id, false);
	json_member_object(&j, "error");
	json_member_str(&j, "code", code);
	json_member_str(&j, "message", message);
	if (hint)
		json_member_str(&j, "hint", hint);
	json_object_end(&j);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		kernel_pipes_send(&s->pipes, &b);
}

static void send_result(struct kernel *s, int64_t id, const char *json, size_t len)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);
	struct json j;

	begin_response(&j, &b, id, true);
	if (json) {
		json_key(&j, "result");
		json_raw(&j, json, len);
	}
	json_object_end(&j);
	if (json_finish(&j) == 0)
		kernel_pipes_send(&s->pipes, &b);
}

static void send_part(struct kernel *s, int64_t id, const char *text, size_t len)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "rpc_part");
	json_member_int(&j, "id", id);
	json_key(&j, "text");
	(void)json_strn(&j, text, len);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		kernel_pipes_send(&s->pipes, &b);
}

/* ---- life of one --------------------------------------------------------------------------- */

static struct rpc *rpc_new(struct execution *x, struct kernel *s, int64_t id)
{
	struct rpc *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct rpc){ .x = x, .kernel = s, .id = id };
	LIST_PUSH(x->rpcs, r);
	x->n_rpcs++;
	return r;
}

static void rpc_free(struct rpc *r)
{
	struct execution *x = r->x;

	if (x->sandbox->code)
		x->sandbox->code->held -= r->out.len;
	LIST_DROP(x->rpcs, r);
	x->n_rpcs--;
	buf_free(&r->out);
	free(r);
}

static struct rpc *find(const struct execution *x, const struct kernel *s, int64_t id)
{
	struct rpc *r = x->rpcs;

	while (r && (r->id != id || r->kernel != s))
		r = r->next;
	return r;
}

/* Not in the middle of a character. */
static size_t part_length(const struct rpc *r)
{
	size_t left = r->out.len - r->sent, n = left < RPC_PART_MAX ? left : RPC_PART_MAX;
	const char *at = r->out.data + r->sent;

	while (n < left && n > 1 && ((unsigned char)at[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* As many parts as the kernel takes at once. Return: whether that was all, and r is gone. */
static bool send_parts(struct rpc *r)
{
	struct kernel_pipes *k = &r->kernel->pipes;

	while (r->sent < r->out.len) {
		size_t n = part_length(r);

		if (k->over || k->pending.len > 0)
			return false;
		send_part(r->kernel, r->id, r->out.data + r->sent, n);
		r->sent += n;
	}
	send_result(r->kernel, r->id, NULL, 0);
	rpc_free(r);
	return true;
}

void rpc_answer(struct rpc *r, const char *json, size_t len)
{
	struct code *c = r->x->sandbox->code;

	r->cancel = NULL;
	if (len <= RPC_PART_MAX) {
		send_result(r->kernel, r->id, json, len);
		rpc_free(r);
		return;
	}
	buf_init(&r->out, len);
	if (c->held + len > RPC_HELD_MAX || buf_append(&r->out, json, len) < 0) {
		buf_free(&r->out);
		rpc_fail(r, "too_large", "ask for less at once",
			 "results of %zu bytes wait for this sandbox already", c->held);
		return;
	}
	c->held += len;
	(void)send_parts(r);
}

void rpc_fail(struct rpc *r, const char *code, const char *hint, const char *fmt, ...)
{
	char message[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	send_error(r->kernel, r->id, code, hint, message);
	rpc_free(r);
}

void rpc_drained(struct execution *x, struct kernel *s)
{
	struct rpc *next;

	for (struct rpc *r = x->rpcs; r && s->pipes.pending.len == 0; r = next) {
		next = r->next;
		if (r->kernel == s && r->out.len > 0)
			(void)send_parts(r);
	}
}

static void let_go(struct rpc *r)
{
	if (r->cancel)
		r->cancel(r);
	r->cancel = NULL;
}

void rpc_end(struct execution *x, bool tell)
{
	while (x->rpcs) {
		struct rpc *r = x->rpcs;

		let_go(r);
		if (tell)
			rpc_fail(r, "cancelled", NULL, "the execution was interrupted");
		else
			rpc_free(r);
	}
}

/* ---- admission ----------------------------------------------------------------------------- */

static int64_t id_of(const json_t *m)
{
	const json_t *id = json_object_get(m, "id");
	json_int_t v = json_integer_value(id);

	return json_is_integer(id) && v >= 1 && v <= ID_MAX ? v : 0;
}

static void refuse(struct execution *x, struct kernel *s, int64_t id, const char *code,
		   const char *message)
{
	send_error(s, id, code, NULL, message);
	if (++x->rpc_refused < REFUSALS_MAX)
		return;
	log_event(LOG_LEVEL_WARNING, "rpc_flood", F_STR("owner", x->sandbox->owner),
		  F_STR("session", x->sandbox->name));
	s->why = "the code flooded the host with requests";
	cell_kill_all(x->sandbox->cell);
}

static void on_request(struct execution *x, struct kernel *s, int64_t id, const json_t *m)
{
	struct code *c = code_open(x->sandbox);
	struct rpc *r;

	if (!c)
		refuse(x, s, id, "refused",
		       "this sandbox was made without servers: it has no tools");
	else if (x->phase != X_RUNNING)
		refuse(x, s, id, "cancelled", "the execution is ending");
	else if (find(x, s, id))
		refuse(x, s, id, "bad_request", "a request with this id waits already");
	else if (x->n_rpcs >= RPC_IN_FLIGHT_MAX)
		refuse(x, s, id, "busy", "64 requests of this sandbox wait already");
	else if (!code_may_ask(c, x->sandboxes->loop->now_ns))
		refuse(x, s, id, "busy", "too many requests in a second");
	else if (!(r = rpc_new(x, s, id)))
		refuse(x, s, id, "internal", "the daemon is out of memory");
	else
		ops_run(r, m);
}

void rpc_message(struct execution *x, struct kernel *s, const char *type, const json_t *m)
{
	int64_t id = id_of(m);
	struct rpc *r;

	if (strcmp(type, "rpc_request") == 0) {
		if (id)
			on_request(x, s, id, m);
		else
			refuse(x, s, 0, "bad_request", "'id' must be a number from 1 to 2^53");
		return;
	}
	r = find(x, s, id);
	if (!r)
		return;
	let_go(r);
	rpc_fail(r, "cancelled", NULL, "the code cancelled it");
}

void rpc_stray(struct kernel *s, const json_t *m)
{
	send_error(s, id_of(m), "refused", NULL,
		   "nothing runs in this kernel: a request needs an execution that waits for it");
}

const char *rpc_text(const json_t *m, const char *key, size_t *ret_len, const char **why)
{
	const json_t *v = json_object_get(m, key);
	const char *text = json_string_value(v);
	size_t len = json_string_length(v);
	json_t *parsed;
	bool object;

	*why = "must be the JSON text of an object";
	if (!text)
		return NULL;
	*why = "is larger than 8 MiB, deeper than 64 levels, or has more than 200,000 values";
	if (len > RPC_TEXT_MAX || !schema_depth_ok(text, len, RPC_DEPTH_MAX) ||
	    !schema_values_ok(text, len, RPC_VALUES_MAX))
		return NULL;
	*why = "must be the JSON text of an object, on one line and without keys that come twice";
	parsed = memchr(text, '\n', len) ?
			 NULL :
			 json_alloc_load(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	object = json_is_object(parsed);
	json_decref(parsed);
	*ret_len = len;
	return object ? text : NULL;
}

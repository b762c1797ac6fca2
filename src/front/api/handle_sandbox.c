/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_sandbox.c - Two requests about one sandbox whose answers take a while: GET, for which the
 * warden reads a receipt from the running processes, and stop, which is answered when everything in
 * the sandbox has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "client/receipt.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/cell/cell.h"
#include "front/egress/egress.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandbox_json.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"

#define ONE_MAX (4u << 20)
#define RECEIPT_MAX (2u << 20)
#define RULES_MAX (256u << 10)
#define GRACE_S 5

static void reply_one(struct http_exchange *x, const struct sandbox *s, const struct buf *receipt)
{
	struct reply answer;

	sandbox_json(s, receipt, reply_begin(&answer, ONE_MAX));
	reply_end(&answer, x, 200);
}

/* ---- looking ------------------------------------------------------------------------------- */

struct look {
	struct warden_call call;
	struct http_exchange *x;
	struct sandboxes *sandboxes;
	char name[SANDBOX_NAME_MAX + 1];
};

static void look_gone(struct request_context *v)
{
	struct look *l = v->work;

	warden_link_forget(l->sandboxes->cells->link, &l->call);
	free(l);
	v->work = NULL;
}

/* As far as the front knows: processes that a dead kernel left behind are not counted. */
static bool anything_runs(const struct cell *r)
{
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].attached)
			return true;
	return r->commands != NULL;
}

/* The rules of the gate and of the operator, put before the last brace: the Linux kernel, from
 * which the rest of the receipt comes, does not know them. */
static void add_rules(const struct sandbox *s, struct buf *receipt)
{
	_buf_ struct buf rules = BUF_INIT(RULES_MAX);
	struct json j;

	json_init(&j, &rules);
	json_object_begin(&j);
	egress_force_json(s, &j);
	json_member_list(&j, "secrets", s->spec.secrets);
	json_member_str(&j, "policy", s->spec.policy[0] ? s->spec.policy : NULL);
	json_object_end(&j);
	if (json_finish(&j) < 0 || !receipt->len) {
		buf_clear(receipt);
		return;
	}
	receipt->len--;
	if (buf_printf(receipt, ",\"rules\":%s}", buf_str(&rules)) < 0)
		buf_clear(receipt);
}

/* By name again: the sandbox may be gone, or another one of that name may be there. */
static void on_evidence(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	_buf_ struct buf receipt = BUF_INIT(RECEIPT_MAX);
	struct look *l = c->arg;
	struct http_exchange *x = context_done(l->x);
	struct request_context *v = context_of(x);
	struct sandbox *s = sandbox_find(l->sandboxes, v->owner, l->name);
	struct cell_spec spec = l->sandboxes->cells->spec;
	struct err e = { 0 };

	free(l);
	if (!s) {
		reply_no_sandbox(x, context_param(x, 0));
		return;
	}
	spec.limits = s->spec.limits;
	/* The receipt shows a missing layer. A cell that is gone meanwhile has no receipt. */
	if (reply->code == 0 && n == 1 && s->cell &&
	    receipt_write(fds[0], &spec, &s->cell->layers, anything_runs(s->cell), &receipt, &e) ==
		    -EBADMSG)
		buf_clear(&receipt);
	add_rules(s, &receipt);
	reply_one(x, s, &receipt);
}

void handle_sandbox_get(struct sandbox *s, struct http_exchange *x)
{
	_buf_ struct buf none = BUF_INIT(1);
	struct look *l = s->cell && s->cell->sealed ? calloc(1, sizeof(*l)) : NULL;

	if (l) {
		*l = (struct look){ .x = x, .sandboxes = s->sandboxes };
		memcpy(l->name, s->name, sizeof(l->name));
		l->call.fn = on_evidence;
		l->call.arg = l;
		context_wait(x, l, look_gone);
		if (warden_link_ask_cell(s->sandboxes->cells->link, &l->call, WARDEN_EVIDENCE,
					 s->cell->handle, 0, NULL) == 0)
			return;
		(void)context_done(x);
		free(l);
	}
	reply_one(x, s, &none);
}

/* ---- stopping ------------------------------------------------------------------------------ */

struct stop_wait {
	struct sandbox_waiter waiter;
	struct http_exchange *x;
};

static void on_over(struct sandbox_waiter *w, struct sandbox *s)
{
	struct stop_wait *a = w->arg;
	struct http_exchange *x = context_done(a->x);

	free(a);
	reply_one(x, s, NULL);
}

static void stop_gone(struct request_context *v)
{
	struct stop_wait *a = v->work;

	sandbox_unwait(&a->waiter);
	free(a);
	v->work = NULL;
}

void handle_sandbox_stop(struct sandbox *s, struct http_exchange *x)
{
	uint64_t grace_s = context_number(x, "grace_seconds", GRACE_S);
	struct stop_wait *a = s->state == SANDBOX_RUNNING ? calloc(1, sizeof(*a)) : NULL;

	if (!a) {
		if (s->state == SANDBOX_RUNNING)
			reply_no_memory(x);
		else /* stopped or lost already */
			reply_one(x, s, NULL);
		return;
	}
	*a = (struct stop_wait){ .waiter = { .over = on_over, .arg = a }, .x = x };
	context_wait(x, a, stop_gone);
	sandbox_wait(s, &a->waiter);
	sandbox_stop(s, grace_s * 1000);
}

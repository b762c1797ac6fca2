/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_sandbox.c - The sandbox of a request.
 *
 * Another owner's sandbox is answered like one that does not exist. A request that needs a cell is
 * an entry of the sandbox and the work of its exchange until one of them is over.
 */
#include "front/api/find_sandbox.h"

#include <stdio.h>
#include <stdlib.h>

#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/sandbox.h"
#include "front/support/time_text.h"

void reply_no_sandbox(struct http_exchange *x, const char *name)
{
	reply_error(x, 404, "no_such_sandbox", "name",
		    "see GET /v1/sandboxes; a sandbox ends when it was idle for longer than its "
		    "idle_seconds",
		    "there is no such sandbox: '%.64s'", name);
}

struct sandbox *own_sandbox(struct services *services, struct http_exchange *x)
{
	struct sandbox *s =
		sandbox_find(services->sandboxes, context_of(x)->owner, context_param(x, 0));

	if (!s)
		reply_no_sandbox(x, context_param(x, 0));
	return s;
}

void reply_missing(struct http_exchange *x, const struct sandbox *s, const char *code,
		   const char *field, const char *hint, const char *message)
{
	char at[STAMP_MAX], text[320];

	time_text(at, s->adopted_ms);
	(void)snprintf(text, sizeof(text),
		       "%s; the daemon's front was restarted at %s, and processes, ports and "
		       "executions from before that are gone",
		       hint, at);
	reply_error(x, 404, code, field, s->adopted_ms ? text : hint, "%s", message);
}

/* ---- waiting for a cell -------------------------------------------------------------------- */

struct cell_wait {
	struct entry entry;
	struct sandbox *sandbox;
	struct http_exchange *x; /* NULL: the client is gone */
	void (*entered)(struct sandbox *s);
	void (*made)(struct http_exchange *x, struct sandbox *s, bool fresh, json_t *arg);
	json_t *arg;
	bool fresh;
};

static void release(struct cell_wait *w)
{
	json_decref(w->arg);
	free(w);
}

static void on_in(struct entry *en, struct cell *r)
{
	struct cell_wait *w = en->arg;
	struct http_exchange *x = context_done(w->x);

	(void)r;
	sandbox_leave(en);
	if (w->entered)
		w->entered(w->sandbox);
	if (x)
		w->made(x, w->sandbox, w->fresh, w->arg);
	release(w);
}

/* A sandbox that never had a cell is not kept. */
static void on_refused(struct entry *en, const struct refusal *why)
{
	struct cell_wait *w = en->arg;
	struct http_exchange *x = context_done(w->x);

	if (x)
		reply_refusal(x, why);
	if (w->fresh)
		sandbox_end(w->sandbox, "it could not be made");
	release(w);
}

static void on_gone(struct request_context *v)
{
	struct cell_wait *w = v->work;

	w->x = NULL;
	v->work = NULL;
}

void wait_for_cell(struct http_exchange *x, struct sandbox *s, bool fresh,
		   void (*entered)(struct sandbox *s),
		   void (*made)(struct http_exchange *x, struct sandbox *s, bool fresh,
				json_t *arg),
		   json_t *arg)
{
	struct cell_wait *w = calloc(1, sizeof(*w));

	if (!w) {
		if (fresh)
			sandbox_end(s, "out of memory");
		reply_no_memory(x);
		return;
	}
	*w = (struct cell_wait){ .entry = { .in = on_in, .refused = on_refused, .arg = w },
				 .sandbox = s,
				 .x = x,
				 .entered = entered,
				 .made = made,
				 .arg = json_incref(arg),
				 .fresh = fresh };
	context_wait(x, w, on_gone);
	sandbox_enter(s, &w->entry);
}

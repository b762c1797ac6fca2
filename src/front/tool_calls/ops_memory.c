/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_memory.c - memory.* and tool.*: whose notes they are is known by the sandbox that asks.
 *
 * The store is read and written here and now, and everybody waits for it. So each sandbox has its
 * share of bytes in a second, of which a written one costs more than a read one; who is beyond it
 * is told to wait.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"
#include "front/support/time_text.h"
#include "front/tool_calls/code.h"
#include "front/tool_calls/memory.h"
#include "front/tool_calls/ops.h"
#include "front/tool_calls/rpc.h"

#define BYTES_PER_S (8 << 20)
#define BYTES_BURST (32 << 20)
#define BYTES_EACH 4096 /* whatever it is */
#define WRITTEN 4       /* one that is written counts as so many */

/* Whether there is something left of its share. */
static bool may_go(struct code *c, uint64_t now_ns)
{
	uint64_t since_ms = c->notes_ns ? (now_ns - c->notes_ns) / CLOCK_NS_PER_MS : 60000;

	if (since_ms > 60000)
		since_ms = 60000;
	if (since_ms > 0) {
		c->notes += (int64_t)since_ms * (BYTES_PER_S / 1000);
		c->notes_ns = now_ns;
	}
	if (c->notes > BYTES_BURST)
		c->notes = BYTES_BURST;
	return c->notes > 0;
}

static int64_t written(const json_t *m)
{
	return (int64_t)(json_string_length(json_object_get(m, "value")) +
			 json_string_length(json_object_get(m, "source")));
}

struct memory_place ops_place(const struct sandbox *s)
{
	const char *project = json_string_value(s->spec.project);

	return (struct memory_place){ s->f->store, s->owner, project ? project : MEMORY_PROJECT };
}

void ops_memory(struct rpc *r, const char *op, const json_t *m)
{
	const struct memory_place place = ops_place(r->x->sandbox);
	_buf_ struct buf b = BUF_INIT(MEMORY_ANSWER_MAX);
	struct code *c = r->x->sandbox->code;
	struct memory_refusal why;

	if (!may_go(c, r->x->f->loop.now_ns)) {
		rpc_fail(r, "rate", "wait a second",
			 "this sandbox keeps and reads too much at once");
		return;
	}
	c->notes -= BYTES_EACH + WRITTEN * written(m);
	if (memory_run(&place, op, m, (int64_t)time_now_ms(), &b, &why) == 0) {
		c->notes -= (int64_t)b.len;
		rpc_answer(r, buf_str(&b), b.len);
	} else {
		rpc_fail(r, why.code, NULL, "%s", why.message);
	}
}

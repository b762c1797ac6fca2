/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_image.c - A call of a tool, and its wait for an image that is pulled.
 *
 * The progress of the pull is that of the call. A client that knows tasks gets one after a while.
 */
#include "front/mcp/tool_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/images/pulls.h"
#include "front/mcp/mcp.h"
#include "front/mcp/task.h"
#include "front/mcp/tool.h"
#include "front/operations/services.h"
#include "front/support/refusal.h"

struct await {
	struct pull_wait wait;
	struct mcp_call *c;
	const struct mcp_tool *tool;
};

static void on_progress(struct pull_wait *w, const struct pull_progress *now)
{
	const struct await *a = w->arg;
	/* It has to grow with each message, also while nothing is loaded any more. */
	uint64_t n = now->done > a->c->progress ? now->done : a->c->progress;

	mcp_progress(a->c, n, n <= now->total ? now->total : 0, now->text, strlen(now->text));
}

static void let_go(struct await *a)
{
	a->c->work = NULL;
	a->c->cancel = NULL;
	free(a);
}

static void on_done(struct pull_wait *w, const struct refusal *why)
{
	struct await *a = w->arg;
	struct mcp_call *c = a->c;
	const struct mcp_tool *t = a->tool;

	let_go(a);
	if (why)
		mcp_output_refuse(c, why);
	else
		t->run(c, json_object_get(c->m.params, "arguments"));
}

static void on_cancel(struct mcp_call *c)
{
	struct await *a = c->work;

	pull_leave(&a->wait);
	let_go(a);
}

bool mcp_tool_ready(struct mcp_call *c, const struct mcp_tool *t, json_t *args)
{
	const char *image = json_string_value(json_object_get(args, "image"));
	bool takes = image && field_named(t->op->fields, IN_TOOL, "image");
	struct await *a = takes ? calloc(1, sizeof(*a)) : NULL;
	struct refusal why;

	if (!takes)
		return true;
	(void)refusal_no_memory(&why);
	if (!a) {
		mcp_output_refuse(c, &why);
		return false;
	}
	a->wait = (struct pull_wait){ .progress = on_progress, .done = on_done, .arg = a };
	a->c = c;
	a->tool = t;
	int r = pulls_wait(c->mcp->services->pulls, c->owner, image, &a->wait, &why);

	if (r != 0) {
		free(a);
		if (r < 0)
			mcp_output_refuse(c, &why);
		return r > 0;
	}
	c->work = a;
	c->cancel = on_cancel;
	if (!t->task)
		mcp_task_later(c);
	return false;
}

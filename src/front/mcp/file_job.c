/* SPDX-License-Identifier: Apache-2.0 */
/* file_job.c - Between a file call and a call of the protocol. */
#include "front/mcp/file_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/mcp/mcp.h"
#include "front/sandbox/sandboxes.h"

static void reap(struct deferred *d)
{
	struct file_job *j = d->arg;

	if (j->free_arg)
		j->free_arg(j->arg);
	buf_free(&j->data);
	free(j);
}

/* Not before the end of the round: it may be what calls us. */
static void let_go(struct file_job *j)
{
	const char *outcome = j->call.refusal.code;

	file_note_end(&j->note, outcome ? outcome : j->call.ended ? NULL : "cancelled");
	file_call_release(&j->call);
	j->reaper.fn = reap;
	j->reaper.arg = j;
	loop_defer(j->call.sandboxes->loop, &j->reaper);
}

static void on_stat(struct file_call *call, const struct files_stat *st, struct files_text name,
		    struct files_text target)
{
	struct file_job *j = call->owner;

	(void)target;
	if (j->entry) {
		j->entry(j, st, name);
		return;
	}
	j->stat = *st;
	j->has_stat = true;
}

static void on_data(struct file_call *call, const char *data, size_t len)
{
	struct file_job *j = call->owner;

	file_note_data(&j->note, data, len);
	(void)buf_append_some(&j->data, data, len);
}

static void on_feed(struct file_call *call)
{
	struct file_job *j = call->owner;

	file_note_data(&j->note, buf_str(&j->data), j->data.len);
	if (j->data.len > 0)
		file_call_give(call, buf_str(&j->data), j->data.len);
	buf_clear(&j->data);
	file_call_finish(call);
}

static void on_done(struct file_call *call)
{
	struct file_job *j = call->owner;
	struct mcp_call *c = j->c;

	c->work = NULL;
	c->cancel = NULL;
	j->done(j);
	let_go(j);
}

static void on_cancel(struct mcp_call *c)
{
	let_go(c->work);
}

static const struct file_call_ops ops = { .stat = on_stat, .data = on_data, .done = on_done };
static const struct file_call_ops write_ops = { .stat = on_stat, .feed = on_feed, .done = on_done };

struct file_job *file_job_new(struct mcp_call *c, const char *path, size_t max, struct refusal *why)
{
	struct file_job *j = calloc(1, sizeof(*j));

	if (!j) {
		(void)refusal_no_memory(why);
		return NULL;
	}
	j->c = c;
	j->call.owner = j;
	(void)snprintf(j->call.path, sizeof(j->call.path), "%s", path);
	buf_init(&j->data, max);
	return j;
}

void file_job_run(struct file_job *j, enum files_op op, struct sandbox *s)
{
	j->call.sandboxes = j->c->mcp->sandboxes;
	j->call.q.op = op;
	j->call.ops = op == FILES_WRITE ? &write_ops : &ops;
	j->c->work = j;
	j->c->cancel = on_cancel;
	if (file_note_begin(&j->note, s, &j->call, &j->call.refusal) < 0)
		on_done(&j->call);
	else
		file_call_run(&j->call, s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - Messages to clients: with a header, in each client's framing, or kept for whoever comes
 * back. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/support/random_id.h"
#include "front/support/time_text.h"
#include "net/ws.h"

static const char *const channels[] = { "shell", "control", "stdin", "iopub" };

static struct frame_part part_of(const struct buf *b)
{
	return (struct frame_part){ buf_str(b), b->len };
}

static void write_header(const struct jkernel *k, const char *id, const char *type, struct buf *out)
{
	char kernel[JUPYTER_ID_MAX];
	struct json j;

	jkernel_id(k->sandbox, kernel);
	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "msg_id", id);
	json_member_str(&j, "msg_type", type);
	json_member_str(&j, "username", "caisson");
	json_member_str(&j, "session", kernel);
	jupyter_stamp(&j, "date", time_now_ms());
	json_member_str(&j, "version", "5.3");
	json_object_end(&j);
	(void)json_finish(&j);
}

struct saying {
	char id[33];
	struct buf header;
	struct frame_message m;
};

static bool prepare(struct saying *s, const struct jkernel *k, const struct jrequest *parent,
		    enum jchannel channel, const char *type, const struct buf *content)
{
	static const char empty[] = "{}";

	random_id(s->id);
	buf_init(&s->header, 1024);
	write_header(k, s->id, type, &s->header);
	s->m = (struct frame_message){
		.channel = channels[channel],
		.type = type,
		.id = s->id,
		.header = part_of(&s->header),
		.parent = { parent ? parent->header : empty,
			    parent ? strlen(parent->header) : sizeof(empty) - 1 },
		.metadata = { empty, sizeof(empty) - 1 },
		.content = part_of(content),
	};
	return !s->header.err && !content->err;
}

void jkernel_publish(struct jkernel *k, const struct jrequest *parent, const char *type,
		     const struct buf *content)
{
	struct saying s;

	k->active_ms = time_now_ms();
	if (prepare(&s, k, parent, JCHANNEL_IOPUB, type, content)) {
		struct jline *next;

		for (struct jline *l = k->lines; l; l = next) {
			next = l->next;
			jline_send(l, &s.m);
		}
		jheld_add(k, NULL, &s.m);
	}
	buf_free(&s.header);
}

void jline_publish(struct jline *l, const char *type, const struct buf *content)
{
	struct saying s;

	if (prepare(&s, l->kernel, NULL, JCHANNEL_IOPUB, type, content))
		jline_send(l, &s.m);
	buf_free(&s.header);
}

void jkernel_status(struct jkernel *k, const struct jrequest *parent, const char *state)
{
	_buf_ struct buf b = BUF_INIT(64);

	(void)buf_printf(&b, "{\"execution_state\":\"%s\"}", state);
	jkernel_publish(k, parent, "status", &b);
}

/* The line that asked; else one of the same client, that came back. */
static struct jline *line_of(const struct jrequest *r)
{
	if (r->line)
		return r->line;
	for (struct jline *l = r->kernel->lines; l; l = l->next)
		if (l->session[0] && strcmp(l->session, r->session) == 0)
			return l;
	return NULL;
}

void jrequest_say(const struct jrequest *r, enum jchannel channel, const char *type,
		  const struct buf *content)
{
	struct jkernel *k = r->kernel;
	struct jline *l = line_of(r);
	struct saying s;

	if (prepare(&s, k, r, channel, type, content)) {
		if (l)
			jline_send(l, &s.m);
		else
			jheld_add(k, r->session, &s.m);
	}
	buf_free(&s.header);
}

bool jkernel_congested(const struct jkernel *k)
{
	for (const struct jline *l = k->lines; l; l = l->next)
		if (ws_congested(l->ws))
			return true;
	return false;
}

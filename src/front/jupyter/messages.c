/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - Messages from a kernel to its clients, and backlogs for clients that are away.
 *
 * A message gets a header and goes to each client in the framing of that client. Clients lose their
 * connections: a laptop sleeps, a proxy restarts. So for each session that has left, messages are
 * kept in a backlog until it comes back, whether or not other clients are connected. A kernel has
 * backlogs for the SESSIONS_MAX sessions that left last. Messages that find no room are counted,
 * and the client gets the number when it is back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/jupyter/jupyter.h"
#include "front/support/name.h"
#include "front/support/time_text.h"
#include "net/ws.h"

#define SESSIONS_MAX 4u
#define MESSAGES_MAX 2000u        /* of one backlog */
#define BACKLOG_BYTES (16u << 20) /* of all backlogs of a kernel */

/* ---- backlogs ------------------------------------------------------------------------------ */

struct jbacklog_message {
	struct jbacklog_message *next;
	struct frame_message m; /* points into text */
	size_t size;
	char text[];
};

struct jbacklog {
	struct jbacklog *next;
	struct jbacklog_message *first, **last;
	size_t n, dropped;
	char session[JUPYTER_SESSION_MAX];
};

static struct jbacklog **find(struct jkernel *k, const char *session)
{
	struct jbacklog **at = &k->backlogs;

	while (*at && strcmp((*at)->session, session) != 0)
		at = &(*at)->next;
	return at;
}

static const char *copy(char **at, const char *data, size_t len)
{
	char *to = *at;

	memcpy(to, data, len);
	to[len] = '\0';
	*at += len + 1;
	return to;
}

static void add(struct jkernel *k, struct jbacklog *h, const struct frame_message *m)
{
	size_t size = strlen(m->channel) + strlen(m->type) + strlen(m->id) + m->header.len +
		      m->parent.len + m->metadata.len + m->content.len + 7;
	struct jbacklog_message *one = NULL;

	if (h->n < MESSAGES_MAX && size <= BACKLOG_BYTES - k->backlog_bytes)
		one = malloc(sizeof(*one) + size);
	if (!one) {
		h->dropped++;
		return;
	}
	char *at = one->text;

	one->next = NULL;
	one->size = size;
	one->m = *m;
	one->m.channel = copy(&at, m->channel, strlen(m->channel));
	one->m.type = copy(&at, m->type, strlen(m->type));
	one->m.id = copy(&at, m->id, strlen(m->id));
	one->m.header.data = copy(&at, m->header.data, m->header.len);
	one->m.parent.data = copy(&at, m->parent.data, m->parent.len);
	one->m.metadata.data = copy(&at, m->metadata.data, m->metadata.len);
	one->m.content.data = copy(&at, m->content.data, m->content.len);
	*h->last = one;
	h->last = &one->next;
	h->n++;
	k->backlog_bytes += size;
}

/* @session NULL: to all backlogs. */
static void add_to_backlogs(struct jkernel *k, const char *session, const struct frame_message *m)
{
	for (struct jbacklog *h = k->backlogs; h; h = h->next)
		if (!session || strcmp(h->session, session) == 0)
			add(k, h, m);
}

/* Takes the backlog out of the list first: sending may make clients come and go. @c NULL: drop it.
 */
static size_t take(struct jkernel *k, struct jbacklog **at, struct jclient *c)
{
	struct jbacklog *h = *at;
	size_t dropped = h->dropped;

	*at = h->next;
	for (struct jbacklog_message *one = h->first, *next; one; one = next) {
		next = one->next;
		k->backlog_bytes -= one->size;
		if (c)
			jclient_send(c, &one->m);
		free(one);
	}
	free(h);
	return dropped;
}

void jbacklog_begin(struct jkernel *k, const char *session)
{
	struct jbacklog *h = session[0] && !*find(k, session) ? calloc(1, sizeof(*h)) : NULL;
	struct jbacklog **at = &k->backlogs;

	if (!h)
		return;
	h->last = &h->first;
	memcpy(h->session, session, strlen(session) + 1);
	h->next = k->backlogs;
	k->backlogs = h;
	for (size_t i = 0; *at && i < SESSIONS_MAX; i++)
		at = &(*at)->next;
	if (*at)
		(void)take(k, at, NULL);
}

void jbacklog_free(struct jkernel *k)
{
	while (k->backlogs)
		(void)take(k, &k->backlogs, NULL);
}

/* ---- messages ------------------------------------------------------------------------------ */

static const char *const channels[] = { "shell", "control", "stdin", "iopub" };

static struct frame_part part_of(const struct buf *b)
{
	return (struct frame_part){ buf_str(b), b->len };
}

static void write_header(const struct jkernel *k, const char *id, const char *type, struct buf *out)
{
	char kernel_id[JUPYTER_ID_MAX];
	struct json j;

	jkernel_id(k->sandbox, kernel_id);
	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "msg_id", id);
	json_member_str(&j, "msg_type", type);
	json_member_str(&j, "username", "caisson");
	json_member_str(&j, "session", kernel_id);
	jupyter_stamp(&j, "date", time_now_ms());
	json_member_str(&j, "version", "5.3");
	json_object_end(&j);
	(void)json_finish(&j);
}

struct outgoing {
	char id[33];
	struct buf header;
	struct frame_message m;
};

/* False: there was no memory for the header or the content. */
static bool prepare(struct outgoing *o, const struct jkernel *k, const struct jrequest *parent,
		    enum jchannel channel, const char *type, const struct buf *content)
{
	static const char empty[] = "{}";

	random_id(o->id);
	buf_init(&o->header, 1024);
	write_header(k, o->id, type, &o->header);
	o->m = (struct frame_message){
		.channel = channels[channel],
		.type = type,
		.id = o->id,
		.header = part_of(&o->header),
		.parent = { parent ? parent->header : empty,
			    parent ? strlen(parent->header) : sizeof(empty) - 1 },
		.metadata = { empty, sizeof(empty) - 1 },
		.content = part_of(content),
	};
	return !o->header.err && !content->err;
}

void jkernel_publish(struct jkernel *k, const struct jrequest *parent, const char *type,
		     const struct buf *content)
{
	struct outgoing o;

	k->active_ms = time_now_ms();
	if (prepare(&o, k, parent, JCHANNEL_IOPUB, type, content)) {
		struct jclient *next;

		for (struct jclient *c = k->clients; c; c = next) {
			next = c->next;
			jclient_send(c, &o.m);
		}
		add_to_backlogs(k, NULL, &o.m);
	}
	buf_free(&o.header);
}

void jkernel_status(struct jkernel *k, const struct jrequest *parent, const char *state)
{
	_buf_ struct buf b = BUF_INIT(64);

	(void)buf_printf(&b, "{\"execution_state\":\"%s\"}", state);
	jkernel_publish(k, parent, "status", &b);
}

/* The client that sent the request, or one that has come back in the same session. */
static struct jclient *client_of(const struct jrequest *r)
{
	if (r->client)
		return r->client;
	for (struct jclient *c = r->kernel->clients; c; c = c->next)
		if (c->session[0] && strcmp(c->session, r->session) == 0)
			return c;
	return NULL;
}

void jrequest_send(const struct jrequest *r, enum jchannel channel, const char *type,
		   const struct buf *content)
{
	struct jclient *c = client_of(r);
	struct outgoing o;

	if (prepare(&o, r->kernel, r, channel, type, content)) {
		if (c)
			jclient_send(c, &o.m);
		else
			add_to_backlogs(r->kernel, r->session, &o.m);
	}
	buf_free(&o.header);
}

bool jkernel_congested(const struct jkernel *k)
{
	for (const struct jclient *c = k->clients; c; c = c->next)
		if (ws_congested(c->ws))
			return true;
	return false;
}

void jbacklog_send(struct jclient *c)
{
	_buf_ struct buf b = BUF_INIT(256);
	struct jkernel *k = c->kernel;
	struct jbacklog **at = find(k, c->session);
	size_t dropped = *at ? take(k, at, c) : 0;
	struct outgoing o;

	if (dropped == 0)
		return;
	(void)buf_printf(&b,
			 "{\"name\":\"stderr\",\"text\":\"[%zu messages are missing: too much was "
			 "sent while you were not connected]\\n\"}",
			 dropped);
	if (prepare(&o, k, NULL, JCHANNEL_IOPUB, "stream", &b))
		jclient_send(c, &o.m);
	buf_free(&o.header);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jrequest.c - Requests of clients: from a WebSocket message to the turn and the end of a request.
 *
 * A client is not trusted: its header, session and content are only sent back to it, as the parent
 * of the messages about its request. JSON is parsed within the bounds of every other request
 * (schema.h). A request of an unknown type gets `busy` and `idle` and no answer, as in other
 * kernels.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/support/json_alloc.h"
#include "front/support/schema.h"
#include "front/support/time_text.h"

static void on_shutdown(struct jrequest *r);
static void on_interrupt(struct jrequest *r);
static void on_comm_info(struct jrequest *r);
static void on_comm_open(struct jrequest *r);

/* Each answer() calls jrequest_end(), now or later. */
static const struct kind {
	const char *type;
	void (*answer)(struct jrequest *r);
	bool runs; /* in the interpreter: it waits for its turn, whatever its channel is */
} kinds[] = {
	{ "execute_request", jrun_execute, true },   { "kernel_info_request", jinfo_reply },
	{ "complete_request", jquery_ask, true },    { "inspect_request", jquery_ask, true },
	{ "is_complete_request", jquery_ask, true }, { "history_request", jhistory_reply },
	{ "comm_info_request", on_comm_info },       { "comm_open", on_comm_open },
	{ "interrupt_request", on_interrupt },       { "shutdown_request", on_shutdown },
};

/* ---- memory -------------------------------------------------------------------------------- */

static void request_free(struct jrequest *r)
{
	json_alloc_free(r->header);
	json_decref(r->message_header);
	json_decref(r->content);
	buf_free(&r->error);
	free(r);
}

void jrequest_free_all(struct jkernel *k)
{
	struct jrequest *r;

	while ((r = k->first)) {
		k->first = r->next;
		if (r->running)
			execution_cancel(r->running);
		request_free(r);
	}
	k->last = &k->first;
	k->n_requests = k->bytes = 0;
}

void jrequest_forget_client(struct jkernel *k, const struct jclient *c)
{
	for (struct jrequest *r = k->first; r; r = r->next)
		if (r->client == c)
			r->client = NULL;
}

/* ---- turns --------------------------------------------------------------------------------- */

static const struct kind *kind_of(const struct jrequest *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].type, r->type) == 0)
			return &kinds[i];
	return NULL;
}

static void begin(struct jrequest *r)
{
	const struct kind *kind = kind_of(r);

	r->begun = true;
	jkernel_status(r->kernel, r, "busy");
	if (kind)
		kind->answer(r);
	else
		jrequest_end(r);
}

void jrequest_next(struct jkernel *k)
{
	if (k->first && !k->first->begun && !k->restarting)
		begin(k->first);
}

void jrequest_reply(struct jrequest *r, const char *type, const struct buf *content)
{
	jrequest_send(r, r->channel, type, content);
	jrequest_end(r);
}

void jrequest_end(struct jrequest *r)
{
	struct jkernel *k = r->kernel;
	bool queued = r->queued, cut = r == k->cut;

	jkernel_status(k, r, "idle");
	if (queued) {
		k->first = r->next;
		if (!k->first)
			k->last = &k->first;
		k->n_requests--;
		k->bytes -= r->size;
	}
	request_free(r);
	if (cut)
		jkernel_cut_ended(k);
	else if (queued)
		jrequest_next(k);
}

static void abort_one(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(64);

	(void)buf_puts(&b, "{\"status\":\"aborted\"}");
	jkernel_status(r->kernel, r, "busy");
	jrequest_send(r, r->channel, "execute_reply", &b);
	jkernel_status(r->kernel, r, "idle");
}

void jrequest_abort_rest(struct jkernel *k)
{
	struct jrequest **at = k->first && k->first->begun ? &k->first->next : &k->first, *r;

	while ((r = *at)) {
		if (strcmp(r->type, "execute_request") != 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		k->n_requests--;
		k->bytes -= r->size;
		abort_one(r);
		request_free(r);
	}
	k->last = at;
}

/* ---- small answers ------------------------------------------------------------------------- */

static void on_comm_info(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(64);

	(void)buf_puts(&b, "{\"status\":\"ok\",\"comms\":{}}");
	jrequest_reply(r, "comm_info_reply", &b);
}

/* comm_close is the protocol's answer for an unknown target. */
static void on_comm_open(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(4096);
	const char *id = json_string_value(json_object_get(r->content, "comm_id"));
	json_t *content = json_pack("{s:s, s:{}}", "comm_id", id ? id : "", "data");

	json_alloc_dump(&b, content);
	json_decref(content);
	if (id)
		jkernel_publish(r->kernel, r, "comm_close", &b);
	jrequest_end(r);
}

static void on_interrupt(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(64);
	struct sandbox *s = r->kernel->sandbox;

	(void)buf_puts(&b, "{\"status\":\"ok\"}");
	jrequest_reply(r, "interrupt_reply", &b);
	if (s->head)
		execution_interrupt(s->head);
}

/* Without `restart` it ends the kernel, as DELETE does. */
static void on_shutdown(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(64);
	struct jkernel *k = r->kernel;
	bool restart = json_is_true(json_object_get(r->content, "restart"));

	(void)buf_printf(&b, "{\"status\":\"ok\",\"restart\":%s}", restart ? "true" : "false");
	jrequest_reply(r, "shutdown_reply", &b);
	if (restart)
		jkernel_restart(k, NULL, NULL);
	else
		jkernel_end(k->sandbox, "shut down over its Jupyter channel");
}

/* ---- arrival ------------------------------------------------------------------------------- */

/* The parts of a message, each parsed and owned. */
struct message_parts {
	json_t *whole, *header, *content;
	const char *channel;
	char name[16];
};

static json_t *load(struct frame_part p)
{
	struct schema_error bad;

	return p.len > 0 ? schema_load(p.data, p.len, &bad) : json_object();
}

static bool open_parts(enum frame_kind kind, const struct frame *f, struct message_parts *p)
{
	if (kind == FRAME_JSON) {
		p->whole = load(f->whole);
		p->header = json_incref(json_object_get(p->whole, "header"));
		p->content = json_incref(json_object_get(p->whole, "content"));
		p->channel = json_string_value(json_object_get(p->whole, "channel"));
	} else {
		p->header = load(f->header);
		p->content = load(f->content);
		if (f->channel.len < sizeof(p->name)) {
			memcpy(p->name, f->channel.data, f->channel.len);
			p->channel = p->name;
		}
	}
	p->channel = p->channel ? p->channel : "shell";
	return json_is_object(p->header) && json_is_object(p->content) &&
	       json_is_string(json_object_get(p->header, "msg_type")) &&
	       json_is_string(json_object_get(p->header, "msg_id"));
}

static void close_parts(struct message_parts *p)
{
	json_decref(p->whole);
	json_decref(p->header);
	json_decref(p->content);
}

static struct jrequest *request_new(struct jclient *c, struct message_parts *p,
				    enum jchannel channel, size_t size)
{
	struct jrequest *r = calloc(1, sizeof(*r));

	if (!r || !(r->header = json_dumps(p->header, JSON_COMPACT))) {
		free(r);
		return NULL;
	}
	r->kernel = c->kernel;
	r->client = c;
	r->channel = channel;
	memcpy(r->session, c->session, sizeof(r->session));
	r->size = size;
	r->message_header = json_incref(p->header);
	r->content = json_incref(p->content);
	r->type = json_string_value(json_object_get(r->message_header, "msg_type"));
	buf_init(&r->error, 2u << 20);
	return r;
}

/* An execute_request that finds no room is aborted, as one behind an error is. */
static void enqueue(struct jkernel *k, struct jrequest *r)
{
	bool room = k->n_requests < JUPYTER_REQUESTS_MAX &&
		    r->size <= JUPYTER_REQUESTS_BYTES - k->bytes;

	if (!room) {
		if (strcmp(r->type, "execute_request") == 0)
			abort_one(r);
		request_free(r);
		return;
	}
	*k->last = r;
	k->last = &r->next;
	k->n_requests++;
	k->bytes += r->size;
	jrequest_next(k);
}

static void dispatch(struct jclient *c, struct message_parts *p, size_t size)
{
	struct jkernel *k = c->kernel;
	bool control = strcmp(p->channel, "control") == 0;

	k->active_ms = time_now_ms();
	if (strcmp(p->channel, "stdin") == 0) {
		jrun_answer(k, p->content);
		return;
	}
	if (!control && strcmp(p->channel, "shell") != 0)
		return;
	struct jrequest *r = request_new(c, p, control ? JCHANNEL_CONTROL : JCHANNEL_SHELL, size);

	if (!r)
		return;
	const struct kind *kind = kind_of(r);

	r->queued = !control || (kind && kind->runs);
	if (r->queued)
		enqueue(k, r);
	else
		begin(r);
}

const char *jrequest_take(struct jclient *c, bool text, const char *data, size_t len)
{
	struct message_parts p = { 0 };
	struct frame f;
	const char *why = frame_split(c->kind, text, data, len, &f);

	if (why)
		return why;
	if (open_parts(c->kind, &f, &p))
		dispatch(c, &p, len);
	else
		why = "not a Jupyter message: header and content must be objects, and the header "
		      "must have msg_id and msg_type";
	close_parts(&p);
	return why;
}

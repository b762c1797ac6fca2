/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge_link.c - One socket to the bridge, and the list of calls that wait for an answer.
 *
 * The bridge's worker may be killed and replaced: the next hello tells so, and every waiting call
 * gets the answer that it is lost. When the bridge itself is gone nothing restarts it, because no
 * process in a jail can: calls are refused from then on, and the rest of the daemon goes on.
 */
#include "front/tool_calls/bridge_link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "wire/bridge.h"

#define HELLO_MS 30000
#define WAITING_MAX (128u << 20) /* bytes that the bridge has not read yet */
#define ROUND_MAX 32             /* messages: others have a right to be heard too */

static const char gone_text[] = "the bridge to the MCP servers is gone";

/* ---- who waits ----------------------------------------------------------------------------- */

static struct bridge_call *find(const struct bridge_link *l, uint64_t id)
{
	struct bridge_call *c = l->calls;

	while (c && c->id != id)
		c = c->next;
	return c;
}

static bool unlist(struct bridge_link *l, struct bridge_call *c)
{
	for (struct bridge_call **p = &l->calls; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			c->id = 0;
			c->next = NULL;
			return true;
		}
	return false;
}

static void lose_calls(struct bridge_link *l, const char *message, const char *hint)
{
	const struct bridge_answer lost = { .code = "internal", .message = message, .hint = hint };
	uint64_t last = l->last_id;

	/* Calls that a caller makes while it gets this answer are not among the lost. */
	for (struct bridge_call *c = l->calls, *next; c; c = next) {
		next = c->next;
		if (c->id > last)
			continue;
		unlist(l, c);
		c->done(c, &lost);
		next = l->calls;
	}
}

static void forget_servers(struct bridge_link *l)
{
	for (size_t i = 0; i < l->n_servers; i++)
		json_decref(l->servers[i].source);
	free(l->servers);
	l->servers = NULL;
	l->n_servers = 0;
}

static void gone(struct bridge_link *l)
{
	loop_del(&l->watch);
	l->watch.fd = fd_close(l->watch.fd);
	packet_queue_free(&l->out);
	for (size_t i = 0; i < l->n_servers; i++)
		l->servers[i].state = "failed";
	log_event(LOG_LEVEL_ERROR, "bridge_gone",
		  F_STR("what", "MCP servers cannot be called any more"));
	lose_calls(l, gone_text, "start the daemon again");
}

/* ---- messages ------------------------------------------------------------------------------ */

static const char *text_of(const json_t *head, const char *key)
{
	return json_string_value(json_object_get(head, key));
}

static const char *state_of(const char *s)
{
	static const char *const states[] = { "idle", "starting", "ready", "failed" };

	for (size_t i = 0; s && i < ARRAY_SIZE(states); i++)
		if (strcmp(s, states[i]) == 0)
			return states[i];
	return "failed";
}

static int take_servers(struct bridge_link *l, json_t *list)
{
	size_t n = json_array_size(list);
	struct bridge_server *servers = calloc(n ? n : 1, sizeof(*servers));

	if (!servers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_t *s = json_array_get(list, i);
		const char *description = text_of(s, "description");

		servers[i] = (struct bridge_server){
			.name = text_of(s, "name"),
			.alias = text_of(s, "alias"),
			.description = description ? description : "",
			.transport = text_of(s, "transport"),
			.state = state_of(text_of(s, "state")),
			.rules = json_object_get(s, "rules"),
		};
		if (!servers[i].name || !servers[i].alias || !servers[i].transport) {
			free(servers);
			return -EPROTO;
		}
	}
	for (size_t i = 0; i < n; i++)
		servers[i].source = json_incref(json_array_get(list, i));
	forget_servers(l);
	l->servers = servers;
	l->n_servers = n;
	return 0;
}

static int on_hello(struct bridge_link *l, const json_t *head)
{
	json_t *body = json_loadb(l->body.data ? l->body.data : "", l->body.len,
				  JSON_REJECT_DUPLICATES, NULL);
	json_t *list = json_object_get(body, "servers");
	bool again = l->life > 0;
	int r = json_is_array(list) ? take_servers(l, list) : -EPROTO;

	json_decref(body);
	if (r < 0)
		return r;
	l->life = (uint64_t)json_integer_value(json_object_get(head, "life"));
	if (again) {
		log_event(LOG_LEVEL_WARNING, "bridge_restarted", F_UINT("life", l->life));
		lose_calls(l, "the bridge to the MCP servers was restarted in mid-call",
			   "whether the tool ran is not known");
		if (l->on_changed)
			l->on_changed(l, NULL);
	}
	return 0;
}

static void on_end(struct bridge_link *l, struct bridge_call *c, const json_t *head, bool ok)
{
	const struct bridge_answer a = {
		.ok = ok,
		.text = &l->body,
		.is_error = json_is_true(json_object_get(head, "is_error")),
		.code = text_of(head, "code"),
		.message = text_of(head, "message"),
		.hint = text_of(head, "hint"),
	};

	if (!ok && (!a.code || !a.message))
		return;
	unlist(l, c);
	c->done(c, &a);
	/* A large one is not kept for the next, whether it was taken or not. */
	size_t max = BRIDGE_BODY_MAX;

	buf_free(&l->body);
	buf_init(&l->body, max);
}

static void on_server(struct bridge_link *l, const json_t *head, bool changed)
{
	const char *name = text_of(head, "server"), *message = text_of(head, "message");

	for (size_t i = 0; name && i < l->n_servers; i++) {
		struct bridge_server *s = &l->servers[i];

		if (strcmp(s->name, name) != 0)
			continue;
		if (changed) {
			if (l->on_changed)
				l->on_changed(l, s);
			return;
		}
		s->state = state_of(text_of(head, "state"));
		log_event(strcmp(s->state, "failed") == 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG,
			  "mcp_server", F_STR("server", name), F_STR("state", s->state),
			  F_STR("message", message ? message : ""));
		return;
	}
}

/* 0, or -errno: nothing that follows can be believed. */
static int on_message(struct bridge_link *l)
{
	json_t *head = json_loadb(buf_str(&l->head), l->head.len, JSON_REJECT_DUPLICATES, NULL);
	const char *event = text_of(head, "event");
	/* NULL: cancelled meanwhile. */
	struct bridge_call *c = find(l, (uint64_t)json_integer_value(json_object_get(head, "id")));
	int r = 0;

	if (!event)
		r = -EPROTO;
	else if (strcmp(event, "hello") == 0)
		r = on_hello(l, head);
	else if (strcmp(event, "state") == 0 || strcmp(event, "changed") == 0)
		on_server(l, head, event[0] == 'c');
	else if (c && (strcmp(event, "result") == 0 || strcmp(event, "error") == 0))
		on_end(l, c, head, event[0] == 'r');
	json_decref(head);
	return r;
}

static void on_event(struct watch *w, uint32_t events)
{
	struct bridge_link *l = w->arg;
	int r = events & EPOLLOUT ? packet_flush(&l->out, w->fd) : 0;

	if (events & EPOLLOUT && r == 0)
		loop_mod(w, EPOLLIN);
	for (int i = 0; i < ROUND_MAX && r >= 0 && l->watch.fd >= 0; i++) {
		r = packet_recv(l->watch.fd, &l->head, &l->body);
		if (r == -EAGAIN)
			return;
		r = r == 1 ? on_message(l) : r == 0 ? -EPIPE : r;
	}
	if (r < 0 && l->watch.fd >= 0)
		gone(l);
}

/* ---- asking -------------------------------------------------------------------------------- */

static int send_head(struct bridge_link *l, json_t *head, const char *body, size_t len,
		     struct err *e)
{
	char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
	int r = text ? packet_put(&l->out, l->watch.fd, text, strlen(text), body, len) : -ENOMEM;

	json_alloc_free(text);
	json_decref(head);
	if (r == 1)
		loop_mod(&l->watch, EPOLLIN | EPOLLOUT);
	/* A bridge that is gone is noticed by the next event; until then everybody waits as usual.
	 */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_set(e, r, "ask the bridge");
	return 0;
}

static int ask(struct bridge_link *l, struct bridge_call *c, json_t *head, const char *body,
	       size_t len, struct err *e)
{
	uint64_t id = l->last_id + 1;
	int r = 0;

	if (l->watch.fd < 0)
		r = err_say(e, -EPIPE, "%s",
			    l->configured ? gone_text : "no MCP servers are configured");
	else if (l->out.bytes > WAITING_MAX)
		r = err_say(e, -EBUSY, "too much is waiting for the bridge to the MCP servers");
	else if (!head || json_object_set_new(head, "id", json_integer((json_int_t)id)) < 0)
		r = err_set(e, -ENOMEM, "ask the bridge");
	if (r < 0) {
		json_decref(head);
		return r;
	}
	r = send_head(l, head, body, len, e);
	if (r < 0)
		return r;
	l->last_id = id;
	c->id = id;
	c->next = l->calls;
	l->calls = c;
	return 0;
}

int bridge_tools(struct bridge_link *l, struct bridge_call *c, const char *server,
		 uint64_t timeout_ms, struct err *e)
{
	json_t *head = json_pack("{s:s, s:s, s:I}", "op", "tools", "server", server, "timeout_ms",
				 (json_int_t)timeout_ms);

	return ask(l, c, head, NULL, 0, e);
}

int bridge_call(struct bridge_link *l, struct bridge_call *c, const char *server, const char *tool,
		const char *arguments, size_t len, uint64_t timeout_ms, struct err *e)
{
	json_t *head = json_pack("{s:s, s:s, s:s, s:I}", "op", "call", "server", server, "tool",
				 tool, "timeout_ms", (json_int_t)timeout_ms);

	return ask(l, c, head, arguments, len, e);
}

void bridge_cancel(struct bridge_link *l, struct bridge_call *c)
{
	json_t *head;

	if (c->id == 0)
		return;
	head = json_pack("{s:s, s:I}", "op", "cancel", "id", (json_int_t)c->id);
	(void)unlist(l, c);
	if (l->watch.fd >= 0)
		(void)send_head(l, head, NULL, 0, NULL);
	else
		json_decref(head);
}

const struct bridge_server *bridge_server(const struct bridge_link *l, const char *name)
{
	for (size_t i = 0; i < l->n_servers; i++)
		if (strcmp(l->servers[i].name, name) == 0)
			return &l->servers[i];
	for (size_t i = 0; i < l->n_servers; i++)
		if (strcmp(l->servers[i].alias, name) == 0)
			return &l->servers[i];
	return NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

/* The first message: hello, or why there will be none. */
static int await_hello(struct bridge_link *l, struct err *e)
{
	struct pollfd p = { .fd = l->watch.fd, .events = POLLIN };
	int r;

	do
		r = poll(&p, 1, HELLO_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_say(e, -ETIMEDOUT, "caisson-bridge does not start");
	r = packet_recv(l->watch.fd, &l->head, &l->body);
	if (r <= 0)
		return err_say(e, -EPIPE, "caisson-bridge ended right after its start");
	json_t *head = json_loadb(buf_str(&l->head), l->head.len, JSON_REJECT_DUPLICATES, NULL);
	const char *event = text_of(head, "event"), *message = text_of(head, "message");

	if (event && strcmp(event, "refused") == 0)
		r = err_say(e, -EINVAL, "%s", message ? message : "caisson-bridge refuses");
	else if (!event || strcmp(event, "hello") != 0 || on_hello(l, head) < 0)
		r = err_say(e, -EPROTO,
			    "caisson and caisson-bridge are of different versions; "
			    "reinstall both");
	json_decref(head);
	return r < 0 ? r : 0;
}

int bridge_link_init(struct bridge_link *l, struct loop *loop, int fd, struct err *e)
{
	*l = (struct bridge_link){
		.loop = loop,
		.configured = fd >= 0,
		.watch = { .fd = fd, .events = EPOLLIN, .fn = on_event },
	};
	l->watch.arg = l;
	packet_queue_init(&l->out);
	buf_init(&l->head, BRIDGE_HEAD_MAX);
	buf_init(&l->body, BRIDGE_BODY_MAX);
	if (fd < 0)
		return 0;
	int r = await_hello(l, e);

	if (r < 0)
		return r;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the bridge's socket");
	return loop_add(loop, &l->watch, e);
}

void bridge_link_free(struct bridge_link *l)
{
	if (!l->loop)
		return;
	loop_del(&l->watch);
	l->watch.fd = fd_close(l->watch.fd);
	packet_queue_free(&l->out);
	while (l->calls)
		(void)unlist(l, l->calls);
	forget_servers(l);
	buf_free(&l->head);
	buf_free(&l->body);
}

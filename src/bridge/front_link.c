/* SPDX-License-Identifier: Apache-2.0 */
/* front_link.c - Packets from and to the front. */
#include "bridge/front_link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "base/fd.h"
#include "wire/bridge.h"

#define ROUND_MAX 32
#define WAITING_MAX (256u << 20)

static void on_event(struct watch *w, uint32_t events)
{
	struct front_link *o = w->arg;
	int r = events & EPOLLOUT ? packet_flush(&o->out, w->fd) : 0;

	if (events & EPOLLOUT && r == 0)
		loop_mod(w, EPOLLIN);
	for (int i = 0; i < ROUND_MAX && r >= 0 && w->loop; i++) {
		r = packet_recv(w->fd, &o->head, &o->body);
		if (r == -EAGAIN)
			return;
		if (r == 0)
			r = -EPIPE;
		if (r < 0)
			break;
		json_auto_t *head =
			json_loadb(buf_str(&o->head), o->head.len, JSON_REJECT_DUPLICATES, NULL);

		if (head)
			o->on_request(o, head, &o->body);
		else
			r = -EPROTO;
		if (o->body.cap > BRIDGE_PACKET_MAX)
			buf_free(&o->body);
	}
	if (r < 0 && w->loop) {
		loop_del(w);
		o->on_end(o);
	}
}

int front_link_open(struct front_link *o, struct loop *loop, int fd, struct err *e)
{
	o->watch = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = on_event, .arg = o };
	packet_queue_init(&o->out);
	buf_init(&o->head, BRIDGE_HEAD_MAX);
	buf_init(&o->body, BRIDGE_BODY_MAX);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the front's socket");
	return loop_add(loop, &o->watch, e);
}

void front_link_close(struct front_link *o)
{
	loop_del(&o->watch);
	packet_queue_free(&o->out);
	buf_free(&o->head);
	buf_free(&o->body);
}

static int put(struct front_link *o, json_t *head, const char *body, size_t len)
{
	_mem_ char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
	int r = text ? packet_put(&o->out, o->watch.fd, text, strlen(text), body, len) : -ENOMEM;

	json_decref(head);
	if (r == 1)
		loop_mod(&o->watch, EPOLLIN | EPOLLOUT);
	return r;
}

void front_link_send(struct front_link *o, json_t *head, const char *body, size_t len)
{
	(void)put(o, head, body, len);
}

void front_link_error(struct front_link *o, uint64_t id, const char *code, const char *message,
		      const char *hint)
{
	(void)put(o,
		  json_pack("{s:s, s:I, s:s, s:s, s:s*}", "event", "error", "id", (json_int_t)id,
			    "code", code, "message", message, "hint", hint),
		  NULL, 0);
}

void front_link_result(struct front_link *o, uint64_t id, bool is_error, const char *text,
		       size_t len)
{
	if (o->out.bytes > 0 && o->out.bytes + len > WAITING_MAX) {
		front_link_error(o, id, "busy", "too many large results wait to be read",
				 "make fewer calls at once");
		return;
	}
	int r = put(o,
		    json_pack("{s:s, s:I, s:b}", "event", "result", "id", (json_int_t)id,
			      "is_error", is_error),
		    text, len);

	if (r == -EMSGSIZE)
		front_link_error(o, id, "too_large", "the result is larger than 64 MiB", NULL);
	else if (r < 0 && r != -EPIPE)
		front_link_error(o, id, "internal", "no memory for the result", NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_link.c - The warden as a service (service_link.h), and the cleanup of replies that no
 * caller waits for.
 */
#include "front/cell/warden_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* More than the requests of all cells together: 4,000 sandboxes with a dozen each. */
#define QUEUE_MAX 65536

static void fail(struct service_call *call, int code, const char *why)
{
	struct warden_call *c = (struct warden_call *)call;
	struct warden_reply r = { .code = code };

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	c->fn(c, &r, NULL, 0);
}

static void gone(struct service_link *s)
{
	struct warden_link *l = (struct warden_link *)s;

	service_link_fail(s, UINT64_MAX, -EPIPE, "the warden is gone");
	if (l->on_gone)
		l->on_gone(l);
}

static void receive(struct service_link *s, void *message, int *fds, size_t n_fds)
{
	struct warden_link *l = (struct warden_link *)s;
	struct warden_reply *r = message;
	struct warden_call *c = (struct warden_call *)service_link_take(s, r->seq);

	r->msg[sizeof(r->msg) - 1] = '\0';
	if (c)
		c->fn(c, r, fds, n_fds);
	else if (r->code == 0 && r->op == WARDEN_CREATE)
		warden_link_drop_cell(l, r->cell); /* its caller has gone */
	else if (r->code == 0 && r->op == WARDEN_ZYGOTE)
		(void)warden_link_ask_cell(l, NULL, WARDEN_RETIRE, 0, r->zygote, NULL);
}

static const struct service warden_service = {
	.name = "the warden",
	.version = WARDEN_VERSION,
	.request_size = sizeof(struct warden_req),
	.message_size = sizeof(struct warden_reply),
	.seq_at = offsetof(struct warden_reply, seq),
	.fds_max = WARDEN_REPLY_FDS_MAX,
	.loses_fds = true,
	.queue_max = QUEUE_MAX,
	.receive = receive,
	.fail = fail,
	.gone = gone,
};

_Static_assert(offsetof(struct warden_req, seq) == offsetof(struct warden_reply, seq) &&
		       sizeof(struct warden_reply) <= SERVICE_MESSAGE_MAX &&
		       WARDEN_REPLY_FDS_MAX <= SERVICE_FDS_MAX,
	       "as service_link.h has them");

int warden_link_init(struct warden_link *l, struct loop *loop, int fd, uint32_t life, struct err *e)
{
	*l = (struct warden_link){ 0 };
	service_link_init(&l->link, &warden_service, fd);
	l->link.seq = (uint64_t)life << 32;
	return service_link_start(&l->link, loop, e);
}

void warden_link_free(struct warden_link *l)
{
	service_link_free(&l->link);
}

int warden_link_ask(struct warden_link *l, struct warden_call *c, struct warden_req *q,
		    const int *fds, size_t n_fds, struct err *e)
{
	return service_link_ask(&l->link, c ? &c->call : NULL, q, fds, n_fds, e);
}

int warden_link_ask_cell(struct warden_link *l, struct warden_call *c, enum warden_op op,
			 uint32_t cell, uint32_t zygote, struct err *e)
{
	static struct warden_req q;

	memset(&q, 0, sizeof(q));
	q.op = op;
	q.cell = cell;
	q.zygote = zygote;
	return warden_link_ask(l, c, &q, NULL, 0, e);
}

void warden_link_drop_cell(struct warden_link *l, uint32_t cell)
{
	(void)warden_link_ask_cell(l, NULL, WARDEN_DESTROY, cell, 0, NULL);
}

void warden_link_forget(struct warden_link *l, struct warden_call *c)
{
	service_link_forget(&l->link, &c->call);
}

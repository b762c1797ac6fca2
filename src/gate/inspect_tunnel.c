/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_tunnel.c - After a 101: two connections as one, of bytes that mean nothing to us.
 *
 * What one side says is queued for the other up to a mark, and then not read any more until it is
 * out. The end of the client's stream is passed on; that of the server's is the end.
 */
#include <errno.h>
#include <strings.h>

#include "gate/flow.h"
#include "gate/inspect.h"

/* ---- the client ---------------------------------------------------------------------------- */

static void on_client_data(struct conn *c, const char *data, size_t len)
{
	struct inspect *i = conn_user(c);

	if (!i->flow)
		return;
	if (uplink_write(&i->up, data, len) < 0)
		flow_end(i->flow, "the server does not read");
	else if (inspect_count(i) && uplink_full(&i->up))
		conn_pause(c, true);
}

static void on_client_drain(struct conn *c)
{
	struct inspect *i = conn_user(c);

	uplink_pause(&i->up, false);
}

static void on_client_eof(struct conn *c)
{
	struct inspect *i = conn_user(c);

	uplink_finish(&i->up);
}

static void on_client_close(struct conn *c, int why)
{
	struct inspect *i = conn_user(c);

	(void)why;
	i->http.on_end(i);
}

static const struct conn_ops client_ops = {
	.on_data = on_client_data,
	.on_drain = on_client_drain,
	.on_eof = on_client_eof,
	.on_close = on_client_close,
};

/* ---- the server ---------------------------------------------------------------------------- */

static void on_data(struct uplink *u, const char *data, size_t len)
{
	struct inspect *i = u->arg;

	if (!inspect_count(i))
		return;
	(void)conn_write(i->conn, data, len); /* of a failure on_close tells */
	if (conn_congested(i->conn))
		uplink_pause(u, true);
}

static void on_drain(struct uplink *u)
{
	struct inspect *i = u->arg;

	conn_pause(i->conn, false);
}

static void on_eof(struct uplink *u)
{
	struct inspect *i = u->arg;

	i->closing = true;
	uplink_close(&i->up);
	conn_finish(i->conn); /* on_close ends the flow */
}

static void on_broken(struct uplink *u, int why)
{
	struct inspect *i = u->arg;

	(void)why;
	flow_end(i->flow, "one side broke it off");
}

static const struct uplink_ops tunnel_ops = {
	.data = on_data,
	.drain = on_drain,
	.eof = on_eof,
	.broken = on_broken,
};

/* ---- the switch ---------------------------------------------------------------------------- */

void inspect_join(struct inspect *i, const char *early, size_t len)
{
	struct buf ahead = BUF_INIT(0);
	const char *to = answer_header(&i->answer, "upgrade");
	struct http_exchange *x = i->x;

	if (!to || strcasecmp(to, "websocket") != 0) {
		flow_end(i->flow, "the server switches to a protocol that was not asked for");
		return;
	}
	inspect_answer(i);
	i->x = NULL;
	struct conn *c = http_upgrade(x, "websocket", &ahead);

	if (!c) {
		flow_end(i->flow, "the client is gone");
		return;
	}
	i->tunnel = true;
	conn_set_ops(c, &client_ops, i);
	i->up.ops = &tunnel_ops;
	if (len > 0)
		(void)conn_write(c, early, len);
	if (ahead.len > 0)
		on_client_data(c, ahead.data, ahead.len);
	buf_free(&ahead);
}

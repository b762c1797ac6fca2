/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_tunnel.c - A proxied request after 101: two connections as one, of bytes that mean nothing
 * to us.
 *
 * What one side says is queued for the other up to a mark, and then not read any more until it is
 * out. The end of the client's stream is passed on, and the service may still answer; the end of
 * the service's is the end: what is left is written out, and the client's connection closed.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "front/api/port_proxy.h"
#include "front/support/front.h"
#include "net/conn.h"
#include "net/http.h"

/* ---- the client ---------------------------------------------------------------------------- */

static void give(struct port_proxy *p, const char *data, size_t len)
{
	if (uplink_write(&p->up, data, len) < 0)
		port_proxy_fail(p, 0, NULL, NULL, "too much is queued");
	else if (uplink_full(&p->up))
		conn_pause(p->conn, true);
}

static void on_client_data(struct conn *c, const char *data, size_t len)
{
	give(conn_user(c), data, len);
}

static void on_client_drain(struct conn *c)
{
	struct port_proxy *p = conn_user(c);

	uplink_pause(&p->up, false);
}

static void on_client_eof(struct conn *c)
{
	struct port_proxy *p = conn_user(c);

	uplink_finish(&p->up);
}

static void on_client_close(struct conn *c, int why)
{
	struct port_proxy *p = conn_user(c);

	(void)why;
	p->conn = NULL;
	port_proxy_end(p);
}

static const struct conn_ops client_ops = {
	.on_data = on_client_data,
	.on_drain = on_client_drain,
	.on_eof = on_client_eof,
	.on_close = on_client_close,
};

/* ---- the service --------------------------------------------------------------------------- */

static void on_data(struct uplink *u, const char *data, size_t len)
{
	struct port_proxy *p = u->arg;

	(void)conn_write(p->conn, data, len); /* of a failure on_close tells */
	if (conn_congested(p->conn))
		uplink_pause(u, true);
}

static void on_drain(struct uplink *u)
{
	struct port_proxy *p = u->arg;

	conn_pause(p->conn, false);
}

static void on_eof(struct uplink *u)
{
	struct port_proxy *p = u->arg;
	struct conn *c = port_proxy_part_conn(p);

	port_proxy_end(p);
	conn_finish(c);
}

static void on_broken(struct uplink *u, int why)
{
	struct port_proxy *p = u->arg;
	struct conn *c = port_proxy_part_conn(p);

	port_proxy_end(p);
	conn_close(c, why);
}

static const struct uplink_ops tunnel_ops = {
	.data = on_data,
	.drain = on_drain,
	.eof = on_eof,
	.broken = on_broken,
};

/* ---- the switch ---------------------------------------------------------------------------- */

void port_proxy_join(struct port_proxy *p, const char *protocol, const char *early, size_t len)
{
	struct buf ahead = BUF_INIT(0);
	struct http_exchange *x = port_proxy_part(p);

	p->conn = http_upgrade(x, protocol, &ahead);
	if (!p->conn) {
		port_proxy_end(p);
		return;
	}
	conn_set_ops(p->conn, &client_ops, p);
	p->up.ops = &tunnel_ops;
	if (len > 0)
		(void)conn_write(p->conn, early, len);
	if (ahead.len > 0)
		give(p, ahead.data, ahead.len);
	buf_free(&ahead);
}

void port_proxy_switch(struct port_proxy *p, const char *early, size_t len)
{
	const char *to = answer_header(&p->answer, "upgrade");
	const char *asked = http_header(p->x, "upgrade");

	if (strcasecmp(to, asked) != 0) {
		port_proxy_fail(
			p, 502, "bad_answer", NULL,
			"the service on port %u switches to a protocol that was not asked for",
			p->way.number);
		return;
	}
	port_proxy_add_headers(p);
	port_proxy_join(p, to, early, len);
}

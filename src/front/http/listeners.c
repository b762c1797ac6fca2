/* SPDX-License-Identifier: Apache-2.0 */
/* listeners.c - Get listening sockets, and serve the connections to them. */
#include "front/http/listeners.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/cell/keep.h"
#include "front/http/serve.h"
#include "front/support/daemon.h"
#include "front/support/metrics.h"
#include "net/conn.h"
#include "net/conn_int.h"
#include "net/http.h"
#include "net/tls.h"

#define CONNS_MAX 10240u
#define STRANGERS_PART 8 /* of one address, before a request was admitted */
#define QUEUE_HIGH (256u << 10)
#define QUEUE_LOW (64u << 10)
#define QUEUE_MAX (160u << 20) /* one whole answer */

/* A socket of the former front is still bound, and clients that connected meanwhile wait in it. */
static int take_listener(struct keep *k, enum keeper_key key)
{
	_fd_ int fd = keep_take_one(k, key);
	int listens = 0;
	socklen_t len = sizeof(listens);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || !listens)
		return -1;
	return TAKE_FD(fd);
}

/* Rules about addresses apply to sockets that were handed over. */
static void take_addresses(struct daemon *daemon, const struct systemd_sockets *given)
{
	if (given->tcp >= 0) {
		(void)snprintf(daemon->address, sizeof(daemon->address), "%s", given->address);
		daemon->config.listen = daemon->address;
	}
	if (given->local >= 0)
		daemon->config.socket = given->path[0] ? given->path : "none";
}

int listeners_take(struct server *server, struct listeners *d, struct err *e)
{
	int r = systemd_sockets(server->keep->pid, &d->given, e);

	d->tcp = d->given.tcp;
	d->local = d->given.local;
	d->tls = NULL;
	if (r == 0)
		take_addresses(server->daemon, &d->given);
	return r;
}

/* --listen asked for any free port: put the real one in its place. */
static int real_port(struct daemon *daemon, int tcp, struct err *e)
{
	const char *colon = strrchr(daemon->config.listen, ':');
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (tcp < 0 || !colon || strcmp(colon, ":0") != 0)
		return 0;
	if (getsockname(tcp, (struct sockaddr *)&at, &len) < 0)
		return err_set(e, -errno, "--listen: find the port");
	in_port_t port = at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port :
						    ((struct sockaddr_in *)&at)->sin_port;

	(void)snprintf(daemon->address, sizeof(daemon->address), "%.*s:%u",
		       (int)(colon - daemon->config.listen), daemon->config.listen, ntohs(port));
	daemon->config.listen = daemon->address;
	return 0;
}

/* Every front inherits the sockets of a service manager; the keeper has the others. */
static int bind_all(struct server *server, struct listeners *d, struct err *e)
{
	const struct config *c = &server->daemon->config;

	if (d->given.tcp < 0 && strcmp(c->listen, "none") != 0) {
		if ((d->tcp = take_listener(server->keep, KEEPER_TCP)) < 0 &&
		    (d->tcp = listener_tcp(c->listen, e)) < 0)
			return d->tcp;
		keep_put(server->keep, KEEPER_TCP, &d->tcp, 1);
	}
	if (d->given.local < 0 && strcmp(c->socket, "none") != 0) {
		if ((d->local = take_listener(server->keep, KEEPER_LOCAL)) < 0 &&
		    (d->local = listener_unix(c->socket, 0660, e)) < 0)
			return d->local;
		keep_put(server->keep, KEEPER_LOCAL, &d->local, 1);
	}
	return 0;
}

int listeners_bind(struct server *server, struct listeners *d, struct err *e)
{
	const struct config *c = &server->daemon->config;
	int r = c->tls_cert ? tls_server_new(c->tls_cert, c->tls_key, &d->tls, e) : 0;

	if (r < 0 || (r = bind_all(server, d, e)) < 0)
		return r;
	return real_port(server->daemon, d->tcp, e);
}

static bool on_accept(struct conn *c, void *arg)
{
	struct server *server = arg;

	metric_add(M_HTTP_CONNECTIONS, 1);
	http_serve(c, &server->http);
	return true;
}

void listeners_share(struct daemon *daemon)
{
	struct rlimit l = { .rlim_cur = 1024 };

	fd_many(); /* a dozen per sandbox, one per connection */
	(void)getrlimit(RLIMIT_NOFILE, &l);
	daemon->files_max = (size_t)l.rlim_cur;
	daemon->conns_max = daemon->files_max / 4 < CONNS_MAX ? daemon->files_max / 4 : CONNS_MAX;
}

int listeners_open(struct server *server, const struct listeners *d, struct err *e)
{
	/* For a person who typed http:// with a port that has TLS. */
	static const char plain[] =
		"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
		"Connection: close\r\n\r\n"
		"{\"error\":{\"code\":\"https_required\",\"message\":\"this port speaks HTTPS, and "
		"this request came without TLS\",\"hint\":\"use https:// in the URL\"}}";
	struct listener_config config = {
		.plain_answer = plain,
		.max_conns = server->daemon->conns_max,
		.max_strangers = server->daemon->conns_max / STRANGERS_PART,
		.queue_high = QUEUE_HIGH,
		.queue_low = QUEUE_LOW,
		.queue_max = QUEUE_MAX,
		.linger_ns = 5 * CLOCK_NS_PER_S,
		.on_accept = on_accept,
		.arg = server,
	};
	int r = 0;

	if (d->tcp >= 0)
		r = listener_start(server->loop, d->tcp, d->tls, &config, &server->listeners[0], e);
	if (r == 0 && d->local >= 0)
		r = listener_start(server->loop, d->local, NULL, &config, &server->listeners[1], e);
	return r;
}

void listeners_close(struct server *server)
{
	for (size_t i = 0; i < ARRAY_SIZE(server->listeners); i++)
		if (server->listeners[i])
			listener_stop(server->listeners[i]);
	keep_drop(server->keep, KEEPER_TCP);
	keep_drop(server->keep, KEEPER_LOCAL);
}

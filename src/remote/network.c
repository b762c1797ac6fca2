/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - `caisson net`: hosts that a sandbox may reach, its connections, and what was refused;
 * and `caisson port`: open, list, forward and close its ports.
 *
 * With --listen, TCP connections to a local port are carried to the sandbox. One process per
 * connection waits for the two ends of it and for nothing else; the daemon bounds how many there
 * may be. They end with their connection. Ctrl-C ends them together with us, since they are of one
 * process group.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "remote/list.h"
#include "remote/tunnel.h"
#include "remote/verb.h"

#define PROTOCOL "caisson-tcp"
#define PIECE 16384

/* ---- net ----------------------------------------------------------------------------------- */

static bool is_allowed(const json_t *name)
{
	return json_is_true(json_object_get(name, "allowed"));
}

static void put_host(struct table *t, const json_t *name)
{
	table_cell(t, is_allowed(name) ? STYLE_PLAIN : STYLE_BAD, list_text(name, "host"));
}

static void put_allowed(struct table *t, const json_t *name)
{
	table_cell(t, STYLE_DIM, is_allowed(name) ? "allowed" : "refused");
}

static void put_port(struct table *t, const json_t *refusal)
{
	unsigned long long port = list_uint(refusal, "port");

	if (port)
		table_printf(t, "%llu", port);
	else
		table_cell(t, STYLE_DIM, "-");
}

static const struct list_column connections[] = {
	{ "HOST", .key = "host" },
	{ "PORT", LIST_NUMBER, .key = "port" },
	{ "ADDRESS", .key = "address", .style = STYLE_DIM },
	{ "STATE", .key = "state" },
	{ "OUT", LIST_SIZE, .key = "bytes_out" },
	{ "IN", LIST_SIZE, .key = "bytes_in" },
	{ "AGE", LIST_MS, .key = "age_ms" },
};

static const struct list_column names[] = {
	{ "ASKED FOR", .put = put_host },
	{ "TIMES", LIST_NUMBER, .key = "count" },
	{ "", .put = put_allowed },
};

static const struct list_column refusals[] = {
	{ "REFUSED", .key = "host", .style = STYLE_BAD },
	{ "PORT", LIST_NUMBER, .put = put_port },
	{ "WHY", .key = "why" },
	{ "WHEN", .key = "at", .style = STYLE_DIM },
};

static void print_more(const struct list_column *columns, size_t n, const json_t *rows)
{
	if (json_array_size(rows) == 0)
		return;
	(void)printf("\n");
	list_print(columns, n, rows);
}

static void print_net(const struct session *s, const json_t *net)
{
	static const struct {
		const char *key, *text;
	} totals[] = {
		{ "opened", "connections opened, " },
		{ "refused", "refused, " },
		{ "failed", "failed; " },
		{ "names_asked", "names asked for, " },
		{ "names_refused", "refused; " },
		{ "bytes_out", "bytes out, " },
		{ "bytes_in", "in\n" },
	};

	(void)s;
	list_print(connections, ARRAY_SIZE(connections), json_object_get(net, "connections"));
	print_more(names, ARRAY_SIZE(names), json_object_get(net, "names"));
	print_more(refusals, ARRAY_SIZE(refusals), json_object_get(net, "refusals"));
	(void)printf("\n");
	for (size_t i = 0; i < ARRAY_SIZE(totals); i++)
		(void)printf("%llu %s", (unsigned long long)list_uint(net, totals[i].key),
			     totals[i].text);
}

static void print_egress(const struct session *s, const json_t *v)
{
	const json_t *entry;
	size_t i;

	(void)s;
	json_array_foreach(json_object_get(v, "egress"), i, entry)
	{
		(void)printf("%s\n", json_string_value(entry));
	}
}

int remote_net(struct session *s)
{
	/* `--egress none` is an empty list. */
	json_t *list = remote_options_list(s->o.egress, true);
	json_t *body = list ? json_pack("{s:o}", "egress", list) : NULL;

	return session_show(s,
			    api_sandbox(&s->api, body ? "PUT" : "GET", s->o.rest[0],
					body ? "/egress" : "/net", body, &s->problem),
			    list ? print_egress : print_net);
}

/* ---- where to listen ----------------------------------------------------------------------- */

static int parse_address(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
			 struct err *e)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	char host[64] = "127.0.0.1";
	uint64_t n = 0;

	if (colon)
		(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	*ret = (struct sockaddr_storage){ 0 };
	if (num_parse_u64(port, 0, 65535, &n, e) < 0)
		return err_wrap(e, "--listen");
	size_t len = strlen(host);

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)n);
		*ret_len = sizeof(*v4);
		return 0;
	}
	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1) {
			v6->sin6_family = AF_INET6;
			v6->sin6_port = htons((uint16_t)n);
			*ret_len = sizeof(*v6);
			return 0;
		}
	}
	return err_say(e, -EINVAL,
		       "--listen: invalid address '%.64s'; give PORT, 127.0.0.1:PORT or [::1]:PORT",
		       text);
}

static int listen_on(const char *text, struct err *e)
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	int on = 1;

	if (parse_address(text, &at, &len, e) < 0)
		return e->code;
	_fd_ int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, len) < 0 || listen(fd, 64) < 0)
		return err_set(e, -errno, "--listen: %.64s", text);
	return TAKE_FD(fd);
}

static void print_address(int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
	bool six;
	char text[INET6_ADDRSTRLEN] = "";

	(void)getsockname(fd, (struct sockaddr *)&at, &len);
	six = at.ss_family == AF_INET6;
	(void)inet_ntop(at.ss_family, six ? (const void *)&v6->sin6_addr : &v4->sin_addr, text,
			sizeof(text));
	(void)printf(six ? "[%s]:%u\n" : "%s:%u\n", text,
		     ntohs(six ? v6->sin6_port : v4->sin_port));
	(void)fflush(stdout);
}

/* ---- one connection ------------------------------------------------------------------------ */

struct half {
	char data[PIECE];
	size_t len, at;
	bool ended; /* nothing more comes */
	bool told;  /* the other side was told */
};

static bool is_empty(const struct half *h)
{
	return h->at == h->len;
}

/* @n bytes were read or, with @out, written. 1: something moved, 0: not now, -1: it broke. */
static int moved(struct half *h, ssize_t n, bool out)
{
	if (n < 0)
		return n == -EAGAIN ? 0 : -1;
	h->ended |= !out && n == 0;
	h->len = out ? h->len : (size_t)n;
	h->at = out ? h->at + (size_t)n : 0;
	return 1;
}

static ssize_t result(ssize_t n)
{
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

static int step_up(struct half *h, int fd, struct tunnel *l)
{
	if (is_empty(h) && !h->ended)
		return moved(h, result(recv(fd, h->data, sizeof(h->data), MSG_DONTWAIT)), false);
	if (!is_empty(h))
		return moved(h, tunnel_send(l, h->data + h->at, h->len - h->at), true);
	if (!h->told)
		tunnel_finish(l);
	h->told = true;
	return 0;
}

static int step_down(struct half *h, int fd, struct tunnel *l)
{
	if (is_empty(h) && !h->ended)
		return moved(h, tunnel_recv(l, h->data, sizeof(h->data)), false);
	if (!is_empty(h))
		return moved(h,
			     result(send(fd, h->data + h->at, h->len - h->at,
					 MSG_DONTWAIT | MSG_NOSIGNAL)),
			     true);
	h->told = true;
	return 0;
}

/* Until the sandbox has closed its side and all of its bytes are delivered. */
static void carry(int fd, struct tunnel *l)
{
	static struct half up, down;

	while (!down.told) {
		int a = step_up(&up, fd, l), b = step_down(&down, fd, l);

		if (a < 0 || b < 0)
			return;
		if (a > 0 || b > 0 || down.told)
			continue;
		struct pollfd p[] = {
			{ .fd = fd,
			  .events = (short)((is_empty(&up) && !up.ended ? POLLIN : 0) |
					    (is_empty(&down) ? 0 : POLLOUT)) },
			{ .fd = l->fd,
			  .events = (short)((is_empty(&down) && !down.ended ? POLLIN : 0) |
					    (is_empty(&up) ? 0 : POLLOUT)) },
		};

		if (!p[0].events)
			p[0].fd = -1; /* poll() would report a hang-up again and again */
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return;
	}
}

static _Noreturn void serve(struct session *s, const char *path, int fd)
{
	struct problem p = { 0 };
	struct tunnel l;

	if (tunnel_open(&l, &s->api, path, PROTOCOL, "", NULL, &p) < 0) {
		(void)fprintf(stderr, "caisson: %s\n", p.message);
		_exit(1);
	}
	carry(fd, &l);
	tunnel_close(&l);
	_exit(0);
}

/* Until a signal ends us. Prints the address when it listens. Return: -1 with s->problem. */
static int forward(struct session *s, const char *path)
{
	struct err e = { 0 };
	_fd_ int at = listen_on(s->o.listen, &e);

	if (at < 0)
		return problem_ours(&s->problem, &e);
	(void)signal(SIGCHLD, SIG_IGN);
	print_address(at);
	for (;;) {
		_fd_ int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		pid_t pid = fd < 0 ? -1 : fork();

		if (pid == 0)
			serve(s, path, fd);
		if (pid < 0) {
			(void)err_set(&e, -errno, "take a connection");
			return problem_ours(&s->problem, &e);
		}
	}
}

/* ---- port ------------------------------------------------------------------------------ */

/* A daemon that listens on no address answers with paths alone. */
static void print_url(const struct session *s, const json_t *port)
{
	const char *url = list_text(port, "url");

	(void)printf("%s%s\n", url[0] == '/' ? s->api.url.base : "", url);
}

static void print_all(const struct session *s, const json_t *list)
{
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(list, "ports"), i, port)
	{
		(void)printf("%llu ", (unsigned long long)list_uint(port, "port"));
		print_url(s, port);
	}
}

static int parse(struct session *s, uint64_t *ret_port)
{
	const struct remote_options *o = &s->o;
	struct err e = { 0 };

	if ((o->close || o->listen) && o->n_rest < 2)
		return problem_wrong(&s->problem, "--%s: PORT is missing",
				     o->close ? "close" : "listen");
	if (o->close && o->listen)
		return problem_wrong(&s->problem, "--close and --listen do not go together");
	if (o->n_rest == 2 && num_parse_u64(o->rest[1], 1, 65535, ret_port, &e) < 0) {
		(void)err_wrap(&e, "PORT");
		return problem_ours(&s->problem, &e);
	}
	return 0;
}

int remote_port(struct session *s)
{
	_buf_ struct buf path = BUF_INIT(1024);
	uint64_t number = 0;

	if (parse(s, &number) < 0)
		return -1;
	url_sandbox(&path, s->o.rest[0], "/ports");
	if (number)
		(void)buf_printf(&path, "/%u", (unsigned int)number);
	json_auto_t *v = api_json(&s->api,
				  s->o.close ? "DELETE" :
				  number     ? "POST" :
					       "GET",
				  buf_str(&path), NULL, &s->problem);
	if (!s->o.close && !s->o.listen)
		return session_show(s, json_incref(v), number ? print_url : print_all);
	if (!v || s->o.close)
		return v ? 0 : -1;
	(void)buf_puts(&path, "/"); /* the port's own path carries connections */
	return forward(s, buf_str(&path));
}

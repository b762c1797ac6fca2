/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.c - Where connections come from. See conn.h for the contract.
 *
 * Theory of operation: a listening descriptor is watched; each round accepts at most ACCEPT_BUDGET
 * connections, so that a flood of new ones does not starve the present ones. When admitted peers
 * have every place, a connection is accepted and closed: in the backlog it would wait without an
 * answer.
 *
 * When accepting fails because the process lacks something (descriptors, memory), the connection
 * stays in the backlog and the descriptor stays readable: going on would spin. The watch is
 * disabled for BACK_OFF_NS, and a timer enables it again.
 *
 * Strangers are connections whose peer has not proved who it is. A small hash table has them per
 * address, in the order in which they came; an entry lives as long as there is a stranger of its
 * address, so the table is bounded by max_conns. The newest comes in and the oldest goes: a proxy's
 * clients, or all users of this machine, share an address with an attacker who opens connections
 * and sends nothing. A second list has the strangers of all addresses in the same order: an
 * attacker with many addresses (any local user has 127.0.0.0/8) fills all places, and then the
 * oldest stranger of all makes room for the newcomer.
 *
 * A connection that was evicted is in the listener's list until the end of the round, but its
 * descriptor is closed at once; `count` leaves it out.
 *
 * A listener owns its connections: they point to its copy of the config, and listener_free() ends
 * those that are left.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/conn_int.h"
#include "net/loop.h"

#define ACCEPT_BUDGET 64
#define BACK_OFF_NS (100 * CLOCK_NS_PER_MS)
#define BUCKETS 256

struct strangers {
	struct strangers *next;
	size_t count;
	TAILQ_HEAD(strangers_conns, conn) conns; /* the oldest first */
	char net[sizeof(((struct peer *)0)->net)];
};

struct listener {
	struct loop *loop;
	struct listener_config config;
	struct tls_server *tls;
	struct watch watch;
	struct timer back_off;
	LIST_HEAD(listener_conns, conn) conns;
	size_t count;
	uint64_t refused;
	struct strangers *strangers[BUCKETS];
	TAILQ_HEAD(listener_strangers, conn) all_strangers; /* of all addresses, the oldest first */
};

/* ---- strangers ----------------------------------------------------------------------------- */

static struct strangers **find_strangers(struct listener *ls, const char *net)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *p = net; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619u;
	struct strangers **at = &ls->strangers[hash % BUCKETS];

	while (*at && strcmp((*at)->net, net) != 0)
		at = &(*at)->next;
	return at;
}

void listener_admit(struct conn *c)
{
	struct strangers *s = c->strangers;

	if (!s)
		return;
	TAILQ_REMOVE(&s->conns, c, in_net);
	TAILQ_REMOVE(&c->listener->all_strangers, c, in_all);
	c->strangers = NULL;
	if (--s->count == 0) {
		struct strangers **at = find_strangers(c->listener, s->net);

		*at = s->next;
		free(s);
	}
}

static void evict(struct listener *ls, struct conn *c)
{
	listener_admit(c); /* takes it out of the lists */
	c->evicted = true;
	ls->count--;
	ls->refused++;
	conn_end(c, -EUSERS);
}

/* Closes the oldest stranger of the same address when there are too many. False: no memory. */
static bool add_stranger(struct listener *ls, struct conn *c)
{
	if (c->peer.is_unix || ls->config.max_strangers == 0)
		return true;
	struct strangers **at = find_strangers(ls, c->peer.net), *s = *at;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return false;
		memcpy(s->net, c->peer.net, sizeof(s->net));
		TAILQ_INIT(&s->conns);
		*at = s;
	}
	c->strangers = s;
	TAILQ_INSERT_TAIL(&s->conns, c, in_net);
	TAILQ_INSERT_TAIL(&ls->all_strangers, c, in_all);
	if (++s->count > ls->config.max_strangers)
		evict(ls, TAILQ_FIRST(&s->conns));
	return true;
}

/* ---- accepting ----------------------------------------------------------------------------- */

/* A peer whose machine or cable is gone sends nothing; keep-alive finds and ends it. */
static void set_tcp_options(int fd)
{
	const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 }, { IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
				 sizeof(options[i].value));
}

static void describe(int fd, const struct sockaddr_storage *from, struct peer *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	*ret = (struct peer){ .uid = (uid_t)-1, .pid = -1 };
	if (from->ss_family != AF_UNIX) {
		addr_peer(from, ret);
		return;
	}
	bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0;

	*ret = (struct peer){ .text = "unix",
			      .host = "unix",
			      .net = "unix",
			      .is_unix = true,
			      .uid = known ? cred.uid : (uid_t)-1,
			      .pid = known ? cred.pid : -1 };
}

/* Takes the descriptor. */
static void welcome(struct listener *ls, int fd, const struct sockaddr_storage *from)
{
	struct peer peer;

	describe(fd, from, &peer);
	if (ls->count >= ls->config.max_conns) {
		if (TAILQ_EMPTY(&ls->all_strangers)) {
			ls->refused++;
			fd_close(fd);
			return;
		}
		evict(ls, TAILQ_FIRST(&ls->all_strangers));
	}
	if (!peer.is_unix)
		set_tcp_options(fd);
	struct conn *c = conn_new(ls->loop, fd, ls->tls, &ls->config, &peer);

	if (!c) {
		ls->refused++;
		return;
	}
	c->listener = ls;
	LIST_INSERT_HEAD(&ls->conns, c, link);
	ls->count++;
	if (add_stranger(ls, c))
		conn_start(c);
	else
		conn_end(c, -ENOMEM);
}

void listener_forget(struct conn *c)
{
	struct listener *ls = c->listener;

	LIST_REMOVE(c, link);
	if (!c->evicted)
		ls->count--;
	listener_admit(c);
}

/* Errors of the one connection that was first in the backlog; the next may succeed. */
static bool is_passing(int code)
{
	static const int codes[] = { ECONNABORTED, EINTR,     EPROTO,     ENETDOWN,
				     ENOPROTOOPT,  EHOSTDOWN, ENONET,     EHOSTUNREACH,
				     EOPNOTSUPP,   EPERM,     ENETUNREACH };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

static void on_back_off(struct timer *t)
{
	struct listener *ls = t->arg;

	loop_mod(&ls->watch, EPOLLIN);
}

static void on_acceptable(struct watch *w, uint32_t events)
{
	struct listener *ls = w->arg;

	(void)events;
	for (int i = 0; i < ACCEPT_BUDGET && w->loop; i++) {
		struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
		socklen_t len = sizeof(from);
		int fd = accept4(w->fd, (struct sockaddr *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			welcome(ls, fd, &from);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (is_passing(errno))
			continue;
		loop_mod(w, 0);
		timer_set(ls->loop, &ls->back_off, clock_now_ns() + BACK_OFF_NS);
		return;
	}
}

int listener_start(struct loop *l, int fd, struct tls_server *tls,
		   const struct listener_config *config, struct listener **ret, struct err *e)
{
	_fd_ int owned = fd;
	struct listener *ls = calloc(1, sizeof(*ls));

	if (!ls)
		return err_set(e, -ENOMEM, "start a listener");
	*ls = (struct listener){ .loop = l, .config = *config, .tls = tls };
	TAILQ_INIT(&ls->all_strangers);
	ls->watch = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = on_acceptable, .arg = ls };
	ls->back_off = (struct timer){ .fn = on_back_off, .arg = ls };
	int r = loop_add(l, &ls->watch, e);

	if (r < 0) {
		free(ls);
		return r;
	}
	(void)TAKE_FD(owned);
	*ret = ls;
	return 0;
}

void listener_stop(struct listener *ls)
{
	timer_cancel(&ls->back_off);
	loop_del(&ls->watch);
	ls->watch.fd = fd_close(ls->watch.fd);
}

size_t listener_count(const struct listener *ls)
{
	return ls->count;
}

uint64_t listener_refused(const struct listener *ls)
{
	return ls->refused;
}

void listener_free(struct listener *ls)
{
	struct conn *c;

	if (!ls)
		return;
	listener_stop(ls);
	while ((c = LIST_FIRST(&ls->conns))) {
		conn_end(c, -ESHUTDOWN);
		loop_undefer(ls->loop, &c->end);
		conn_gone(c);
	}
	free(ls);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.c - c-ares on the event loop.
 *
 * c-ares opens its sockets itself and reports which events it needs; each socket gets a watch. A
 * query of c-ares cannot be cancelled, so its callback gets a struct that outlives the caller.
 */
#include "gate/lookup.h"

#include <ares.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "gate/address.h"

#define SOCKETS_MAX 64
#define TIMEOUT_MS 2000
#define TRIES 2
#define KEPT_MAX 256u
#define HOSTS_FILE_MAX (64u << 10)
#define HOSTS_ROWS_MAX 1024u

/* An answer that is kept until it expires. */
struct kept {
	char host[GATE_HOST_MAX];
	uint64_t until_ns;
	size_t n;
	struct in6_addr addresses[LOOKUP_ADDRESSES];
};

struct lookups {
	struct loop *loop;
	ares_channel channel;
	struct watch sockets[SOCKETS_MAX]; /* fd -1: free */
	struct timer timer;
	struct hosts_file hosts;
	struct kept kept[KEPT_MAX]; /* by hash: a newer answer replaces an older one */
};

struct lookup_call {
	struct lookups *all;
	struct lookup *caller; /* NULL: cancelled */
	char host[GATE_HOST_MAX];
};

/* ---- the hosts file ------------------------------------------------------------------------- */

static void add_host(struct hosts_file *h, const struct in6_addr *a, const char *host)
{
	if (h->n >= HOSTS_ROWS_MAX || mem_grow(&h->rows, &h->cap, h->n + 1, sizeof(*h->rows)) < 0)
		return;
	h->rows[h->n] = (struct host_row){ .host = strdup(host), .address = *a };
	if (h->rows[h->n].host)
		h->n++;
}

void hosts_file_parse(struct hosts_file *h, char *text)
{
	char *line_end = NULL;

	for (char *line = strtok_r(text, "\n", &line_end); line;
	     line = strtok_r(NULL, "\n", &line_end)) {
		char *word_end = NULL, *word;
		struct prefix p;

		line[strcspn(line, "#")] = '\0';
		word = strtok_r(line, " \t\r", &word_end);
		if (!word || strchr(word, '/') || !prefix_parse(word, &p))
			continue;
		while ((word = strtok_r(NULL, " \t\r", &word_end)))
			add_host(h, &p.net, word);
	}
}

/* An unreadable file counts as empty, and so does a larger one. */
static void read_hosts(struct hosts_file *h)
{
	_mem_ char *text = malloc(HOSTS_FILE_MAX);

	if (text && fd_read_file(AT_FDCWD, "/etc/hosts", text, HOSTS_FILE_MAX) > 0)
		hosts_file_parse(h, text);
}

size_t hosts_file_find(const struct hosts_file *h, const char *host, struct in6_addr *ret,
		       size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n && n < max; i++)
		if (strcasecmp(h->rows[i].host, host) == 0)
			ret[n++] = h->rows[i].address;
	return n;
}

void hosts_file_free(struct hosts_file *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->rows[i].host);
	free(h->rows);
	*h = (struct hosts_file){ 0 };
}

/* ---- c-ares and the loop ------------------------------------------------------------------- */

static void arm(struct lookups *l)
{
	struct timeval most = { 5, 0 }, room, *tv = ares_timeout(l->channel, &most, &room);
	uint64_t ns = (uint64_t)tv->tv_sec * CLOCK_NS_PER_S + (uint64_t)tv->tv_usec * 1000;

	for (size_t i = 0; i < SOCKETS_MAX; i++)
		if (l->sockets[i].fd >= 0) {
			timer_set(l->loop, &l->timer, clock_now_ns() + ns);
			return;
		}
	timer_cancel(&l->timer);
}

static void on_timer(struct timer *t)
{
	struct lookups *l = t->arg;

	ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm(l);
}

static void on_socket(struct watch *w, uint32_t events)
{
	struct lookups *l = w->arg;
	bool in = events & (EPOLLIN | EPOLLERR | EPOLLHUP), out = events & EPOLLOUT;

	ares_process_fd(l->channel, in ? w->fd : ARES_SOCKET_BAD, out ? w->fd : ARES_SOCKET_BAD);
	arm(l);
}

static void on_interest(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct lookups *l = arg;
	struct watch *w = NULL;
	uint32_t events = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);

	for (size_t i = 0; i < SOCKETS_MAX && !w; i++)
		if (l->sockets[i].fd == fd)
			w = &l->sockets[i];
	if (w) {
		loop_del(w);
		w->fd = -1;
	}
	for (size_t i = 0; i < SOCKETS_MAX && !w; i++)
		if (l->sockets[i].fd < 0)
			w = &l->sockets[i];
	if (!events || !w) /* a query on a socket without a watch times out */
		return;
	*w = (struct watch){ .fd = fd, .events = events, .fn = on_socket, .arg = l };
	if (loop_add(l->loop, w, NULL) < 0)
		w->fd = -1;
}

int lookups_open(struct loop *loop, const char *servers, bool local, struct lookups **ret,
		 struct err *e)
{
	struct lookups *l = calloc(1, sizeof(*l));
	char dns_only[] = "b";
	struct ares_options o = {
		.flags = ARES_FLAG_NOALIASES | (local ? 0 : ARES_FLAG_NOSEARCH),
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.lookups = dns_only,
		.sock_state_cb = on_interest,
		.sock_state_cb_data = l,
	};
	const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
			 ARES_OPT_SOCK_STATE_CB;

	if (!l)
		return err_set(e, -ENOMEM, "prepare DNS lookups");
	l->loop = loop;
	l->timer = (struct timer){ .fn = on_timer, .arg = l };
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		l->sockets[i].fd = -1;
	int r = ares_library_init(ARES_LIB_INIT_ALL);

	if (r == ARES_SUCCESS)
		r = ares_init_options(&l->channel, &o, mask);
	if (r == ARES_SUCCESS && servers)
		r = ares_set_servers_ports_csv(l->channel, servers);
	if (r != ARES_SUCCESS) {
		free(l);
		return err_say(e, -EINVAL, "prepare DNS lookups: %s", ares_strerror(r));
	}
	if (!servers || local)
		read_hosts(&l->hosts);
	*ret = l;
	return 0;
}

void lookups_close(struct lookups *l)
{
	if (!l)
		return;
	ares_destroy(l->channel);
	timer_cancel(&l->timer);
	hosts_file_free(&l->hosts);
	free(l);
	ares_library_cleanup();
}

/* ---- answers that are kept ----------------------------------------------------------------- */

static struct kept *place_of(struct lookups *l, const char *host)
{
	uint32_t h = 2166136261u;

	for (; *host; host++)
		h = (h ^ (uint8_t)*host) * 16777619u;
	return &l->kept[h % KEPT_MAX];
}

static bool recall(struct lookups *all, struct lookup *l, const char *host)
{
	const struct kept *k = place_of(all, host);

	if (k->until_ns <= clock_now_ns() || strcmp(k->host, host) != 0)
		return false;
	memcpy(l->addresses, k->addresses, sizeof(l->addresses));
	l->n = k->n;
	return true;
}

static void remember(struct lookups *all, const char *host, const struct lookup *l, uint64_t ttl_s)
{
	struct kept *k = place_of(all, host);

	if (ttl_s > LOOKUP_KEEP_S)
		ttl_s = LOOKUP_KEEP_S;
	memcpy(k->host, host, strlen(host) + 1);
	k->until_ns = clock_now_ns() + ttl_s * CLOCK_NS_PER_S;
	k->n = l->n;
	memcpy(k->addresses, l->addresses, sizeof(k->addresses));
}

/* ---- queries ------------------------------------------------------------------------------- */

static uint64_t take_addresses(struct lookup *l, const struct ares_addrinfo *info)
{
	uint64_t ttl = LOOKUP_KEEP_S;

	for (const struct ares_addrinfo_node *n = info->nodes; n && l->n < LOOKUP_ADDRESSES;
	     n = n->ai_next) {
		if (!address_of(n->ai_addr, &l->addresses[l->n]))
			continue;
		l->n++;
		if (n->ai_ttl >= 0 && (uint64_t)n->ai_ttl < ttl)
			ttl = (uint64_t)n->ai_ttl;
	}
	return ttl;
}

static int code_of(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
		return -ENOENT;
	case ARES_ETIMEOUT:
		return -ETIMEDOUT;
	default:
		return -EHOSTUNREACH;
	}
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct lookup_call *c = arg;
	struct lookup *l = c->caller;
	int code = code_of(status);

	(void)timeouts;
	if (l) {
		uint64_t ttl = info ? take_addresses(l, info) : 0;

		if (code == 0 && l->n == 0)
			code = -ENOENT;
		if (code == 0)
			remember(c->all, c->host, l, ttl);
		l->call = NULL;
	}
	if (info)
		ares_freeaddrinfo(info);
	free(c);
	if (l)
		l->done(l, code);
}

void lookup_begin(struct lookups *all, struct lookup *l, const char *host)
{
	/* Not sorted: sorting asks the Linux kernel about each address, and the owner of the name
	 * chose the order. */
	static const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
							  .ai_flags = ARES_AI_NOSORT };
	struct lookup_call *c;

	l->n = hosts_file_find(&all->hosts, host, l->addresses, LOOKUP_ADDRESSES);
	if (l->n > 0 || recall(all, l, host)) {
		l->done(l, 0);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		l->done(l, -ENOMEM);
		return;
	}
	c->all = all;
	c->caller = l;
	memcpy(c->host, host, strlen(host) + 1);
	l->call = c;
	ares_getaddrinfo(all->channel, host, NULL, &hints, on_answer, c);
	arm(all);
}

void lookup_cancel(struct lookup *l)
{
	if (l->call)
		l->call->caller = NULL;
	l->call = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets.c - Start caisson-bucket before the jail, and send it jobs: as many at a time as it
 * takes, the others wait for their turn.
 *
 * At its start it gets words that name the buckets, the descriptor with the keys of the environment
 * (which `caisson serve` took out of it), the variables of proxies, and its directory. The front
 * itself never reads a key.
 */
#include "front/buckets/buckets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/support/config.h"
#include "front/support/daemon.h"
#include "front/support/log.h"
#include "front/support/service_link.h"
#include "vault/source.h"

#define BUCKET_NAME "caisson-bucket"
#define KEYS_FD 5 /* behind those of wire/bucket.h */
#define START_MS 20000
#define WORDS_MAX (16 + CONFIG_LIST_MAX)

_Static_assert(sizeof(struct bucket_reply) <= PIPE_BUF, "answers are written in one piece");

/* ---- the start ----------------------------------------------------------------------------- */

struct words {
	char *list[WORDS_MAX + 1];
	size_t n;
	struct buf text[WORDS_MAX];
};

static void add(struct words *w, const char *name, const char *value)
{
	struct buf *b = &w->text[w->n];

	if (!value || w->n == WORDS_MAX)
		return;
	buf_init(b, 8192);
	(void)buf_printf(b, "%s%s", name, value);
	w->list[w->n++] = b->data;
}

/* --s3-bucket may be a bare name. */
static void add_artifacts(struct words *w, const char *bucket)
{
	char text[640];

	(void)snprintf(text, sizeof(text), BUCKETS_ARTIFACTS "=%s%s",
		       strncmp(bucket, "s3://", 5) == 0 ? "" : "s3://", bucket);
	add(w, "--place=", text);
}

static void put_words(struct words *w, const struct config *c, bool keys)
{
	add(w, "", BUCKET_NAME);
	add(w, "--endpoint=", c->s3_endpoint);
	add(w, "--region=", c->s3_region);
	add(w, "--style=", c->s3_style);
	add(w, "--ca=", c->s3_ca);
	add(w, "--credentials=", c->s3_credentials);
	add(w, "--profile=", c->s3_profile);
	add(w, "--keys=", keys ? "5" : NULL);
	if (c->s3_bucket)
		add_artifacts(w, c->s3_bucket);
	for (size_t i = 0; c->workspace_buckets[i]; i++)
		add(w, "--place=/", c->workspace_buckets[i]);
}

/* Keys that `caisson serve` took out of the environment. -1: none. */
static int inherited_keys(void)
{
	const char *number = getenv(SOURCE_FD_S3);
	uint64_t fd = 0;

	return number && num_parse_u64(number, 3, 1024, &fd, NULL) == 0 ? (int)fd : -1;
}

static int wait_ready(int fd, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	static struct bucket_reply r;
	size_t no_fds = 0;

	if (poll(&p, 1, START_MS) != 1 ||
	    fd_recv(fd, &r, sizeof(r), NULL, &no_fds) != (ssize_t)sizeof(r) ||
	    r.version != BUCKET_VERSION || r.say != BUCKET_READY)
		return err_say(e, -EPROTO, BUCKET_NAME " did not start; its own message says why");
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? err_set(e, -errno, "set up its socket") : 0;
}

int buckets_start(struct buckets *b, struct err *e)
{
	/* Variables that it inherits: proxies. */
	static const char *const names[] = {
		"HTTPS_PROXY=", "https_proxy=", "http_proxy=", "NO_PROXY=",
		"no_proxy=",    "ALL_PROXY=",   "all_proxy=",  NULL
	};
	static struct words w;
	const struct config *c = &b->daemon->config;
	char *envp[ARRAY_SIZE(names)];
	struct spawn s = { .argv = w.list, .envp = envp, .n_fds = 2 };
	/* The keeper has them for the next front. This front closes them before its jail. */
	_fd_ int keys = inherited_keys();

	b->artifacts = c->s3_bucket;
	if (!c->s3_bucket && !c->workspace_buckets[0])
		return 0;
	_fd_ int dir = service_open_dir(c->state, "buckets", e);

	if (dir < 0)
		return dir;
	s.fds[0] = (struct spawn_fd){ dir, BUCKET_DIR_FD };
	s.fds[1] = (struct spawn_fd){ keys, KEYS_FD };
	spawn_pick_env(environ, names, envp, ARRAY_SIZE(envp));
	put_words(&w, c, keys >= 0);
	_fd_ int ours = program_start(&s, BUCKET_FD, NULL, e);
	int r = ours < 0 ? ours : wait_ready(ours, e);

	for (size_t i = 0; i < w.n; i++)
		buf_free(&w.text[i]);
	if (r == 0)
		b->fd = TAKE_FD(ours);
	return r;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void begin_waiting(struct buckets *b);

/* It is over, or was never begun: nothing of it is left. */
static void let_go(struct bucket_job *j)
{
	struct buckets *b = j->all;

	for (struct bucket_job **p = &b->waiting; *p; p = &(*p)->next)
		if (*p == j) {
			*p = j->next;
			break;
		}
	if (j->begun) {
		loop_del(&j->watch);
		j->watch.fd = fd_close(j->watch.fd);
		b->live--;
	}
	for (size_t i = 0; i < j->n_fds; i++)
		fd_close(j->fds[i]);
	j->n_fds = 0;
	j->begun = false;
	j->all = NULL;
}

static void finish(struct bucket_job *j, const struct bucket_reply *r)
{
	struct buckets *b = j->all;

	let_go(j);
	j->done(j, r); /* may be the end of it */
	begin_waiting(b);
}

static void fail(struct bucket_job *j, int code, const char *why)
{
	struct bucket_reply r = { .say = BUCKET_DONE, .code = code };

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	finish(j, &r);
}

static void on_answer(struct watch *w, uint32_t events)
{
	struct bucket_job *j = w->arg;
	static struct bucket_reply r;
	ssize_t n = read(w->fd, &r, sizeof(r));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(r) || r.version != BUCKET_VERSION) {
		fail(j, -EPIPE, "the transfer was broken off");
		return;
	}
	/* caisson-bucket reads answers of servers, so it may have been taken over. */
	r.link[sizeof(r.link) - 1] = r.msg[sizeof(r.msg) - 1] = '\0';
	if (r.say == BUCKET_DONE)
		finish(j, &r);
	else if (j->moved)
		j->moved(j, &r);
}

static void gone(struct buckets *b)
{
	b->fd = fd_close(b->fd);
	log_event(LOG_LEVEL_ERROR, "buckets_gone",
		  F_STR("what", "no bucket can be reached until the daemon is restarted"));
}

static int begin(struct bucket_job *j)
{
	struct buckets *b = j->all;
	int pair[2], fds[3] = { -1, j->fds[0], j->fds[1] };

	if (b->fd < 0)
		return -EPIPE;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	_fd_ int ours = pair[0], theirs = pair[1];

	fds[0] = theirs;
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	int r = fd_send(b->fd, &j->q, sizeof(j->q), fds, 1 + j->n_fds);

	if (r == -EPIPE || r == -ECONNRESET)
		gone(b);
	if (r < 0)
		return r;
	j->watch = (struct watch){ .fd = ours, .events = EPOLLIN, .fn = on_answer, .arg = j };
	r = loop_add(b->loop, &j->watch, NULL);
	if (r < 0)
		return r;
	(void)TAKE_FD(ours);
	for (size_t i = 0; i < j->n_fds; i++)
		fd_close(j->fds[i]);
	j->n_fds = 0;
	j->begun = true;
	b->live++;
	return 0;
}

static void begin_waiting(struct buckets *b)
{
	while (b->waiting && b->live < BUCKET_JOBS_MAX) {
		struct bucket_job *j = b->waiting;

		b->waiting = j->next;
		j->next = NULL;
		int r = begin(j);

		if (r == 0)
			continue;
		fail(j, r, "caisson-bucket is gone, so no bucket can be reached");
		return; /* that one has seen to the rest */
	}
}

int bucket_ask(struct buckets *b, struct bucket_job *j, const struct bucket_req *q, int *fds,
	       size_t n)
{
	struct bucket_job **last = &b->waiting;
	int r = 0;

	j->all = b;
	j->q = *q;
	j->q.version = BUCKET_VERSION;
	j->next = NULL;
	j->begun = false;
	j->n_fds = n;
	for (size_t i = 0; i < n; i++)
		j->fds[i] = TAKE_FD(fds[i]);
	if (b->live < BUCKET_JOBS_MAX && !b->waiting) {
		r = begin(j);
		if (r < 0)
			let_go(j);
		return r;
	}
	while (*last)
		last = &(*last)->next;
	*last = j;
	return 0;
}

void bucket_stop(struct bucket_job *j)
{
	struct buckets *b = j->all;

	if (!b)
		return;
	let_go(j);
	begin_waiting(b);
}

void buckets_free(struct buckets *b)
{
	b->fd = fd_close(b->fd);
}

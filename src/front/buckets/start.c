/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - Start caisson-bucket, before the jail.
 *
 * It gets what concerns it: words that say where the buckets are, the descriptor with the keys of
 * the environment (which `caisson serve` took out of it), proxies, and its directory. The front
 * itself never reads a key.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/buckets/buckets.h"
#include "front/support/config.h"
#include "front/support/service_link.h"
#include "vault/hide.h"

#define BUCKET_NAME "caisson-bucket"
#define KEYS_FD 5 /* behind those of wire/bucket.h */
#define START_MS 20000
#define WORDS_MAX (16 + CONFIG_LIST_MAX)

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

bool buckets_wanted(const struct config *c)
{
	return c->s3_bucket || c->workspace_buckets[0];
}

/* A bare name of a bucket is a place too. */
static void add_artifacts(struct words *w, const char *bucket)
{
	char text[640];

	(void)snprintf(text, sizeof(text), BUCKETS_ARTIFACTS "=%s%s",
		       strncmp(bucket, "s3://", 5) == 0 ? "" : "s3://", bucket);
	add(w, "--place=", text);
}

static void say_all(struct words *w, const struct config *c, bool keys)
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

/* Keys that stood in our environment. -1: none. */
static int inherited_keys(void)
{
	const char *number = getenv(HIDE_FD_S3);
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

int buckets_start(struct buckets *b, const struct config *c, struct loop *loop, struct err *e)
{
	/* Of our environment it gets what concerns the way out. */
	static const char *const names[] = {
		"HTTPS_PROXY=", "https_proxy=", "http_proxy=", "NO_PROXY=",
		"no_proxy=",    "ALL_PROXY=",   "all_proxy=",  NULL
	};
	static struct words w;
	char *envp[ARRAY_SIZE(names)];
	struct spawn s = { .argv = w.list, .envp = envp, .n_fds = 2 };
	/* The keeper has it, too, for the next front. None may read it from this one, later. */
	_fd_ int keys = inherited_keys();

	*b = (struct buckets){ .loop = loop, .fd = -1, .artifacts = c->s3_bucket };
	if (!buckets_wanted(c))
		return 0;
	_fd_ int dir = service_open_dir(c->state, "buckets", e);

	if (dir < 0)
		return dir;
	s.fds[0] = (struct spawn_fd){ dir, BUCKET_DIR_FD };
	s.fds[1] = (struct spawn_fd){ keys, KEYS_FD };
	spawn_pick_env(environ, names, envp, ARRAY_SIZE(envp));
	say_all(&w, c, keys >= 0);
	_fd_ int ours = program_start(&s, BUCKET_FD, NULL, e);
	int r = ours < 0 ? ours : wait_ready(ours, e);

	for (size_t i = 0; i < w.n; i++)
		buf_free(&w.text[i]);
	if (r == 0)
		b->fd = TAKE_FD(ours);
	return r;
}

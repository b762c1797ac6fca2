/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - Start caisson-bucket, before the jail.
 *
 * It gets what concerns it: words that say where the buckets are, the descriptor with the keys of the environment (which
 * `caisson serve` took out of it), proxies, and its directory. The front itself never reads a key.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "client/program.h"
#include "front/buckets/buckets.h"
#include "front/support/config.h"
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

static int open_dir(const char *state, struct err *e)
{
	_fd_ int top = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0 || (mkdirat(top, "buckets", 0700) < 0 && errno != EEXIST))
		return err_set(e, -errno, "--state: make %s/buckets", state);
	int fd = openat(top, "buckets", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "--state: open %s/buckets", state) : fd;
}

/* Of our environment it gets what concerns the way out. */
static void pick_env(char **ret, size_t max)
{
	static const char *const names[] = { "HTTPS_PROXY=", "https_proxy=", "http_proxy=",
					     "NO_PROXY=",    "no_proxy=",    "ALL_PROXY=",
					     "all_proxy=" };
	size_t n = 0;

	for (char **at = environ; at && *at; at++)
		for (size_t i = 0; i < ARRAY_SIZE(names) && n < max; i++)
			if (strncmp(*at, names[i], strlen(names[i])) == 0)
				ret[n++] = *at;
	ret[n] = NULL;
}

static int spawn(char *const *argv, int sock, int dir, int keys, struct err *e)
{
	posix_spawn_file_actions_t actions;
	char path[4096], *envp[8];
	pid_t pid;
	int r = program_find(BUCKET_NAME, path, sizeof(path), e);

	if (r < 0)
		return r;
	pick_env(envp, ARRAY_SIZE(envp) - 1);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, sock, BUCKET_FD);
	(void)posix_spawn_file_actions_adddup2(&actions, dir, BUCKET_DIR_FD);
	if (keys >= 0)
		(void)posix_spawn_file_actions_adddup2(&actions, keys, KEYS_FD);
	(void)posix_spawn_file_actions_addclosefrom_np(&actions, KEYS_FD + (keys >= 0));
	r = posix_spawn(&pid, path, &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r ? err_set(e, -r, "start %s", path) : 0;
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

/* Numbers above those that the child is given, so that the copies lose close-on-exec. */
static int above(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, KEYS_FD + 1);
}

int buckets_start(struct buckets *b, const struct config *c, struct loop *loop, struct err *e)
{
	static struct words w;
	int pair[2], inherited = inherited_keys();

	*b = (struct buckets){ .loop = loop, .fd = -1, .artifacts = c->s3_bucket };
	if (inherited >= 0)
		(void)fcntl(inherited, F_SETFD, FD_CLOEXEC); /* nobody else's */
	if (!buckets_wanted(c))
		return 0;
	_fd_ int opened = open_dir(c->state, e);

	if (opened < 0)
		return opened;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	_fd_ int ours = pair[0], theirs = above(pair[1]), dir = above(opened);
	_fd_ int keys = above(inherited);

	fd_close(pair[1]);
	if (theirs < 0 || dir < 0)
		return err_set(e, -errno, "start " BUCKET_NAME);
	say_all(&w, c, keys >= 0);
	int r = spawn(w.list, theirs, dir, keys, e);

	theirs = fd_close(theirs);
	if (r == 0)
		r = wait_ready(ours, e);
	for (size_t i = 0; i < w.n; i++)
		buf_free(&w.text[i]);
	if (r == 0)
		b->fd = TAKE_FD(ours);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.c - caisson-package-store: keeps installed packages, and has no other power.
 *
 * Theory of operation. Cells share trees of packages; somebody has to write them, and what is
 * written comes from a cell in which a stranger's build ran. So it is a process of its own, that
 * can make and remove files below one directory and nothing else: own user (as root), no
 * capability, Landlock, and a filter without sockets, programs and processes
 * (policy/package-store.policy). It is asked by the front alone, on descriptor 3, and ends when
 * that ends. One thread; up to PACKAGE_STORE_JOBS_MAX trees at a time.
 *
 * A front in its jail can start no other one. So what was started only gives up its privileges,
 * makes the one that works, and another when that is killed: it reads nothing, and has no more
 * rights than its child before the filter.
 *
 * usage: caisson-package-store UID GID    (0 0: stay who we are)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "base/supervise.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "package_store/check.h"
#include "package_store/intake.h"
#include "package_store/package_dir.h"
#include "package_store_filter.h"
#include "wire/package_store.h"

#define DEATHS_MAX 100u
#define AGAIN_MS 100u

/* ---- the jail ------------------------------------------------------------------------------ */

static int leave_privilege(uid_t uid, gid_t gid, struct err *e)
{
	const struct power_user user = { .uid = uid, .gid = gid };

	if (power_root(PACKAGE_STORE_DIR_FD, e) < 0 || power_leave(&user, e) < 0)
		return e->code;
	if (fchmod(PACKAGE_STORE_DIR_FD, PACKAGE_DIR_MODE) < 0)
		return err_set(e, -errno, "set the mode of the packages' directory");
	return power_settle(e);
}

static int enter_jail(struct err *e)
{
	const struct landlock_dir store_dir = { PACKAGE_STORE_DIR_FD,
						LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE |
							LANDLOCK_READ_DIR | LANDLOCK_REMOVE_DIR |
							LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR |
							LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SYM |
							LANDLOCK_TRUNCATE };

	return power_confine(&store_dir, 1, PACKAGE_STORE_FILTER, ARRAY_SIZE(PACKAGE_STORE_FILTER),
			     e);
}

/* ---- what the front knows ------------------------------------------------------------------ */

/* Sorted only when it is asked; a front knows some hundred trees at most. */
static struct kept {
	char (*keys)[PACKAGE_STORE_KEY_LEN + 1];
	size_t n, cap;
} kept;

static int keep(const char *key)
{
	if (kept.n == kept.cap) {
		size_t cap = kept.cap ? 2 * kept.cap : 64;
		void *grown = realloc(kept.keys, cap * sizeof(*kept.keys));

		if (!grown)
			return -ENOMEM;
		kept.keys = grown;
		kept.cap = cap;
	}
	memcpy(kept.keys[kept.n++], key, sizeof(*kept.keys));
	return 0;
}

static bool is_kept(const char *key, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < kept.n; i++)
		if (strcmp(kept.keys[i], key) == 0)
			return true;
	return false;
}

/* It is what it was, or it is not kept. The seal is cheap; where it differs the content has the
 * last word. */
static int take_back(const struct package_store_req *q, struct package_store_reply *r,
		     struct err *e)
{
	_fd_ int root = openat(PACKAGE_STORE_DIR_FD, q->key,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char hash[65];

	if (root < 0)
		return err_set(e, errno == ENOTDIR || errno == ELOOP ? -ENOENT : -errno, "%s",
			       q->key);
	if (check_seal(root, r->seal, e) < 0)
		return e->code;
	if (strcmp(r->seal, q->seal) != 0) {
		if (check_hash(root, hash, e) < 0)
			return e->code;
		if (strcmp(hash, q->sha256) != 0)
			return err_say(e, -EBADMSG, "its content has the hash %s", hash);
	}
	return keep(q->key);
}

/* ---- requests ------------------------------------------------------------------------------ */

static struct intake jobs[PACKAGE_STORE_JOBS_MAX];

static void answer(struct package_store_reply *r)
{
	r->version = PACKAGE_STORE_VERSION;
	if (fd_send(PACKAGE_STORE_FD, r, sizeof(*r), NULL, 0) < 0)
		_exit(1);
}

static void store(const struct package_store_req *q, int fd)
{
	struct package_store_reply r = { .op = q->op, .seq = q->seq };
	struct intake *in = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(jobs) && !in; i++)
		in = jobs[i].seq ? NULL : &jobs[i];
	if (!in || fd < 0) {
		r.code = fd < 0 ? -EBADF : -EBUSY;
		fd_close(fd);
		answer(&r);
	} else if (intake_begin(in, PACKAGE_STORE_DIR_FD, q, fd) < 0) {
		intake_end(in, &r);
		answer(&r);
	}
}

static void say(struct package_store_reply *r, int code, const struct err *e)
{
	r->code = code < 0 ? code : 0;
	if (code < 0)
		(void)snprintf(r->msg, sizeof(r->msg), "%.255s", e->msg);
	answer(r);
}

static void serve(struct package_store_req *q, int fd)
{
	struct package_store_reply r = { .op = q->op, .seq = q->seq };
	struct err e = { 0 };
	int code = -EINVAL;

	q->key[sizeof(q->key) - 1] = q->sha256[sizeof(q->sha256) - 1] = '\0';
	q->seal[sizeof(q->seal) - 1] = '\0';
	if (q->op == PACKAGE_STORE_STORE && q->seq) {
		store(q, fd);
		return;
	}
	fd_close(fd);
	if (q->op == PACKAGE_STORE_SWEEP)
		code = package_dir_sweep(PACKAGE_STORE_DIR_FD, is_kept, NULL, &e);
	else if (q->op == PACKAGE_STORE_DROP && package_dir_key_ok(q->key))
		code = package_dir_drop(PACKAGE_STORE_DIR_FD, q->key, false, &e);
	else if (q->op == PACKAGE_STORE_KEEP && package_dir_key_ok(q->key))
		code = take_back(q, &r, &e);
	else
		(void)err_say(&e, code, "no such request");
	say(&r, code, &e);
}

/* False: the front is gone. */
static bool receive(void)
{
	struct package_store_req q;
	int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(PACKAGE_STORE_FD, &q, sizeof(q), &fd, &n_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n != (ssize_t)sizeof(q) || q.version != PACKAGE_STORE_VERSION)
		return false;
	serve(&q, n_fds ? fd : -1);
	return true;
}

static void work(struct intake *in)
{
	struct package_store_reply r = { .op = PACKAGE_STORE_STORE, .seq = in->seq };

	if (!intake_read(in))
		return;
	intake_end(in, &r);
	answer(&r);
}

static int run(void)
{
	for (;;) {
		struct pollfd p[1 + PACKAGE_STORE_JOBS_MAX] = { { .fd = PACKAGE_STORE_FD,
								  .events = POLLIN } };

		for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
			p[1 + i] = (struct pollfd){ .fd = jobs[i].seq ? jobs[i].fd : -1,
						    .events = POLLIN };
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return 1;
		for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
			if (p[1 + i].revents && jobs[i].seq)
				work(&jobs[i]);
		if (p[0].revents && !receive())
			break;
	}
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct package_store_reply ignored = { 0 };

		if (!jobs[i].seq)
			continue;
		(void)err_say(&jobs[i].err, -ECANCELED, "the daemon ends");
		intake_end(&jobs[i], &ignored);
	}
	return 0;
}

/* ---- one after the other ------------------------------------------------------------------- */

static bool is_whole(const char *key, void *arg)
{
	(void)key, (void)arg;
	return true;
}

/* What its predecessor had begun is nobody's any more: the sweep leaves only what has its name. */
static int work_again(void)
{
	struct package_store_reply r = { .op = PACKAGE_STORE_AGAIN };
	struct err e = { 0 };

	if (package_dir_sweep(PACKAGE_STORE_DIR_FD, is_whole, NULL, &e) < 0)
		(void)fprintf(stderr, "caisson-package-store: %s\n", e.msg);
	answer(&r);
	return run();
}

static int work_for_life(void *arg, uint32_t life)
{
	struct err e = { 0 };

	(void)arg;
	if (enter_jail(&e) < 0) {
		(void)fprintf(stderr, "caisson-package-store: %s\n", e.msg);
		return 1;
	}
	return life > 0 ? work_again() : run();
}

int main(int argc, char **argv)
{
	static const struct supervise workers = {
		.work = work_for_life, .lives_max = DEATHS_MAX, .failed = 1, .pause_ms = AGAIN_MS
	};
	struct err e = { 0 };

	(void)foreign_init();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group; the front says when */
	(void)signal(SIGTERM, SIG_IGN);
	(void)umask(022);
	if (argc != 3 || fcntl(PACKAGE_STORE_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(PACKAGE_STORE_DIR_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr,
			      "caisson-package-store: started by caisson serve, not by hand\n");
		return 2;
	}
	if (leave_privilege((uid_t)strtoul(argv[1], NULL, 10), (gid_t)strtoul(argv[2], NULL, 10),
			    &e) < 0) {
		(void)fprintf(stderr, "caisson-package-store: %s\n", e.msg);
		return 1;
	}
	return supervise(&workers);
}

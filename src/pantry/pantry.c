/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pantry.c - caisson-pantry: keeps installed packages, and has no other power.
 *
 * Theory of operation. Cells share trees of packages; somebody has to write them, and what is written comes
 * from a cell in which a stranger's build ran. So it is a process of its own, that can make and remove files
 * below one directory and nothing else: own user (as root), no capability, Landlock, and a filter without
 * sockets, programs and processes (policy/pantry.policy). It is asked by the front alone, on descriptor 3,
 * and ends when that ends. One thread; up to PANTRY_JOBS_MAX trees at a time.
 *
 * A front in its jail can start no other one. So what was started only gives up its privileges, makes the one that
 * works, and another when that is killed: it reads nothing, and has no more rights than its child before the filter.
 *
 * usage: caisson-pantry UID GID    (0 0: stay who we are)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "pantry/check.h"
#include "pantry/intake.h"
#include "pantry/shelf.h"
#include "pantry_filter.h"
#include "wire/pantry.h"

#define DEATHS_MAX 100u
#define AGAIN_US 100000u

/* ---- the jail --------------------------------------------------------------------------------------------- */

static int leave_privilege(uid_t uid, gid_t gid, struct err *e)
{
	const struct power_user user = { .uid = uid, .gid = gid };

	if (power_root(PANTRY_DIR_FD, e) < 0 || power_leave(&user, e) < 0)
		return e->code;
	if (fchmod(PANTRY_DIR_FD, SHELF_MODE) < 0)
		return err_set(e, -errno, "set the mode of the packages' directory");
	return power_settle(e);
}

static int enter_jail(struct err *e)
{
	const struct landlock_dir shelf = { PANTRY_DIR_FD,
					    LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE |
						    LANDLOCK_READ_DIR | LANDLOCK_REMOVE_DIR |
						    LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR |
						    LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SYM |
						    LANDLOCK_TRUNCATE };

	return power_confine(&shelf, 1, PANTRY_FILTER, ARRAY_SIZE(PANTRY_FILTER), e);
}

/* ---- what the front knows --------------------------------------------------------------------------------- */

/* Sorted only when it is asked; a front knows some hundred trees at most. */
static struct kept {
	char (*keys)[PANTRY_KEY_LEN + 1];
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

/* It is what it was, or it is not kept. The seal is cheap; where it differs the content has the last word. */
static int take_back(const struct pantry_req *q, struct pantry_reply *r, struct err *e)
{
	_fd_ int root =
		openat(PANTRY_DIR_FD, q->key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

/* ---- requests --------------------------------------------------------------------------------------------- */

static struct intake jobs[PANTRY_JOBS_MAX];

static void answer(struct pantry_reply *r)
{
	r->version = PANTRY_VERSION;
	if (fd_send(PANTRY_FD, r, sizeof(*r), NULL, 0) < 0)
		_exit(1);
}

static void store(const struct pantry_req *q, int fd)
{
	struct pantry_reply r = { .op = q->op, .seq = q->seq };
	struct intake *in = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(jobs) && !in; i++)
		in = jobs[i].seq ? NULL : &jobs[i];
	if (!in || fd < 0) {
		r.code = fd < 0 ? -EBADF : -EBUSY;
		fd_close(fd);
		answer(&r);
	} else if (intake_begin(in, PANTRY_DIR_FD, q, fd) < 0) {
		intake_end(in, &r);
		answer(&r);
	}
}

static void say(struct pantry_reply *r, int code, const struct err *e)
{
	r->code = code < 0 ? code : 0;
	if (code < 0)
		(void)snprintf(r->msg, sizeof(r->msg), "%.255s", e->msg);
	answer(r);
}

static void serve(struct pantry_req *q, int fd)
{
	struct pantry_reply r = { .op = q->op, .seq = q->seq };
	struct err e = { 0 };
	int code = -EINVAL;

	q->key[sizeof(q->key) - 1] = q->sha256[sizeof(q->sha256) - 1] = '\0';
	q->seal[sizeof(q->seal) - 1] = '\0';
	if (q->op == PANTRY_STORE && q->seq) {
		store(q, fd);
		return;
	}
	fd_close(fd);
	if (q->op == PANTRY_SWEEP)
		code = shelf_sweep(PANTRY_DIR_FD, is_kept, NULL, &e);
	else if (q->op == PANTRY_DROP && shelf_key_ok(q->key))
		code = shelf_drop(PANTRY_DIR_FD, q->key, false, &e);
	else if (q->op == PANTRY_KEEP && shelf_key_ok(q->key))
		code = take_back(q, &r, &e);
	else
		(void)err_say(&e, code, "no such request");
	say(&r, code, &e);
}

/* False: the front is gone. */
static bool receive(void)
{
	struct pantry_req q;
	int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(PANTRY_FD, &q, sizeof(q), &fd, &n_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n != (ssize_t)sizeof(q) || q.version != PANTRY_VERSION)
		return false;
	serve(&q, n_fds ? fd : -1);
	return true;
}

static void work(struct intake *in)
{
	struct pantry_reply r = { .op = PANTRY_STORE, .seq = in->seq };

	if (!intake_read(in))
		return;
	intake_end(in, &r);
	answer(&r);
}

static int run(void)
{
	for (;;) {
		struct pollfd p[1 + PANTRY_JOBS_MAX] = { { .fd = PANTRY_FD, .events = POLLIN } };

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
		struct pantry_reply ignored = { 0 };

		if (!jobs[i].seq)
			continue;
		(void)err_say(&jobs[i].err, -ECANCELED, "the daemon ends");
		intake_end(&jobs[i], &ignored);
	}
	return 0;
}

/* ---- one after the other ------------------------------------------------------------------------------------ */

static bool is_whole(const char *key, void *arg)
{
	(void)key, (void)arg;
	return true;
}

/* What its predecessor had begun is nobody's any more: the sweep leaves only what has its name. */
static int work_again(void)
{
	struct pantry_reply r = { .op = PANTRY_AGAIN };
	struct err e = { 0 };

	if (shelf_sweep(PANTRY_DIR_FD, is_whole, NULL, &e) < 0)
		(void)fprintf(stderr, "caisson-pantry: %s\n", e.msg);
	answer(&r);
	return run();
}

static int work_for_life(bool again)
{
	struct err e = { 0 };

	if (enter_jail(&e) < 0) {
		(void)fprintf(stderr, "caisson-pantry: %s\n", e.msg);
		return 1;
	}
	return again ? work_again() : run();
}

/* Until one of them ends by itself, or too many have not. */
static int supervise(void)
{
	int status = 0;

	for (unsigned int i = 0; i < DEATHS_MAX; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(work_for_life(i > 0));
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		(void)usleep(AGAIN_US);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };

	(void)foreign_init();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group; the front says when */
	(void)signal(SIGTERM, SIG_IGN);
	(void)umask(022);
	if (argc != 3 || fcntl(PANTRY_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(PANTRY_DIR_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "caisson-pantry: started by caisson serve, not by hand\n");
		return 2;
	}
	if (leave_privilege((uid_t)strtoul(argv[1], NULL, 10), (gid_t)strtoul(argv[2], NULL, 10),
			    &e) < 0) {
		(void)fprintf(stderr, "caisson-pantry: %s\n", e.msg);
		return 1;
	}
	return supervise();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.c - caisson-shelf: keeps workspaces, and has no other power.
 *
 * Theory of operation. A workspace outlives the sandboxes that use it, so somebody has to write what they
 * commit; and that comes from cells, as archives of whatever code made there. So it is a process of its own, that can
 * make and remove files below one directory and nothing else: own user (as root), no capability, Landlock,
 * and a filter without sockets and programs (policy/shelf.policy). It is asked by the front alone, on
 * descriptor 3, and ends when that ends. Each request has a process of its own, which may take as long as it
 * takes, and dies alone of what it reads; it ends with the shelf too, and leaves a workspace that is as it was.
 * As root its parent is the porter (porter.h), which mounts file systems for it.
 *
 * usage: caisson-shelf UID GID    (0 0: stay who we are)
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/seccomp.h"
#include "shelf_filter.h"
#include "wire/shelf.h"
#include "workspace/job.h"
#include "workspace/porter.h"
#include "workspace/ward.h"

#ifdef CAISSON_SANITIZED
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---- the jail --------------------------------------------------------------------------------------------- */

static int leave_privilege(uid_t uid, gid_t gid, struct err *e)
{
	int r = uid ? caps_bound(0) : 0;

	if (r == 0 && uid &&
	    (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
	     setresuid(uid, uid, uid) < 0))
		r = -errno;
	if (r == 0)
		r = caps_drop();
	if (r == 0 && uid && setresuid(0, 0, 0) == 0)
		r = -EPERM;
	return r < 0 ? err_set(e, r, "become user %u", uid) : 0;
}

static int enter_jail(uid_t uid, gid_t gid, struct err *e)
{
	const struct landlock_dir dir = {
		SHELF_DIR_FD, LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_DIR |
				      LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE |
				      LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_FIFO |
				      LANDLOCK_MAKE_SYM | LANDLOCK_REFER | LANDLOCK_TRUNCATE
	};
	const struct rlimit no_core = { 0, 0 };
	int r = leave_privilege(uid, gid, e);

	if (r < 0)
		return r;
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0)
		return err_set(e, -errno, "enter the jail");
	(void)umask(0);
	r = SANITIZED ? 0 : landlock_deny_all_but(&dir, 1);
	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	return SANITIZED ? 0 : seccomp_install_program(SHELF_FILTER, ARRAY_SIZE(SHELF_FILTER), e);
}

/* ---- requests --------------------------------------------------------------------------------------------- */

static struct {
	pid_t pid; /* 0: free */
	uint32_t op;
	uint64_t seq;
} jobs[SHELF_JOBS_MAX];
static size_t n_jobs;

static void answer(struct shelf_reply *r, int fd)
{
	r->version = SHELF_VERSION;
	if (fd_send(SHELF_FD, r, sizeof(*r), &fd, fd >= 0 ? 1 : 0) < 0)
		_exit(1);
}

/*
 * What the porter has to do with it comes first, and here: it is asked by one process. That costs the others a
 * moment when a workspace is made.
 */
static int porter = -1;

static int create_volume(const char *key, const struct shelf_req *q)
{
	int r = porter_ask(porter, PORTER_MAKE, key, q->max_bytes, q->max_files);

	if (r == 0)
		r = porter_ask(porter, PORTER_MOUNT, key, 0, 0);
	if (r < 0)
		(void)porter_ask(porter, PORTER_REMOVE, key, 0, 0);
	return r;
}

static void create(const struct shelf_req *q)
{
	struct shelf_reply r = { .op = q->op, .seq = q->seq, .generation = 1 };
	char key[SHELF_KEY_LEN + 1];
	struct err e = { 0 };

	r.code = ward_make(SHELF_DIR_FD, key, &e);
	if (r.code == 0) {
		/* Without loop devices or mke2fs it is a directory, whose quota is kept when it is committed to. */
		r.volume = create_volume(key, q) == 0;
		r.code = ward_fill(SHELF_DIR_FD, key, &e);
		memcpy(r.key, key, sizeof(key));
	}
	if (r.code < 0)
		(void)snprintf(r.msg, sizeof(r.msg), "%.255s", e.msg);
	answer(&r, -1);
}

/* All that are known; those that have no file are directories. */
static void mount_all(int fd)
{
	struct stat st;
	_mem_ char *known = fd < 0 || fstat(fd, &st) < 0 ? NULL : calloc(1, (size_t)st.st_size + 1);
	char key[SHELF_KEY_LEN + 1];

	if (!known || pread(fd, known, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return;
	for (const char *s = known; strlen(s) >= SHELF_KEY_LEN; s += strcspn(s, "\n") + 1) {
		(void)snprintf(key, sizeof(key), "%.32s", s);
		int r = porter_ask(porter, PORTER_MOUNT, key, 0, 0);

		if (r < 0 && r != -ENOENT)
			(void)fprintf(stderr, "caisson-shelf: mount workspace %s: %s\n", key,
				      strerror(-r));
		if (!strchr(s, '\n'))
			break;
	}
}

static _Noreturn void work(const struct shelf_req *q, int fd, pid_t parent)
{
	static struct shelf_reply r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	r.op = q->op;
	r.seq = q->seq;
	answer(&r, job_run(SHELF_DIR_FD, q, fd, &r));
	_exit(0);
}

static void begin(const struct shelf_req *q, int fd)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		work(q, fd, parent);
	if (pid < 0) {
		struct shelf_reply r = { .op = q->op, .seq = q->seq, .code = -errno };

		(void)snprintf(r.msg, sizeof(r.msg), "no process for it: %s", strerror(errno));
		answer(&r, -1);
	}
	for (size_t i = 0; pid > 0 && i < ARRAY_SIZE(jobs); i++)
		if (!jobs[i].pid) {
			jobs[i].pid = pid;
			jobs[i].op = q->op;
			jobs[i].seq = q->seq;
			n_jobs++;
			break;
		}
	fd_close(fd);
}

/* One that was killed in the middle has not answered: its workspace is as it was, or as it was to be. */
static void bury(pid_t pid, int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct shelf_reply r = { .op = jobs[i].op, .seq = jobs[i].seq, .code = -EPIPE };

		if (jobs[i].pid != pid)
			continue;
		jobs[i].pid = 0;
		n_jobs--;
		(void)snprintf(r.msg, sizeof(r.msg), "a worker of the shelf was killed");
		if (!WIFEXITED(status))
			answer(&r, -1);
	}
}

static void reap(bool wait)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, wait ? 0 : WNOHANG)) > 0) {
		bury(pid, status);
		wait = false;
	}
}

/* False: the front is gone. */
static bool receive(void)
{
	struct shelf_req q;
	int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(SHELF_FD, &q, sizeof(q), &fd, &n_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n != (ssize_t)sizeof(q) || q.version != SHELF_VERSION)
		return false;
	if (n_fds == 0)
		fd = -1;
	if (q.op == SHELF_SWEEP)
		mount_all(fd);
	if (q.op == SHELF_REMOVE && memchr(q.key, '\0', sizeof(q.key)) && ward_key_ok(q.key))
		(void)porter_ask(porter, PORTER_REMOVE, q.key, 0, 0);
	if (q.op == SHELF_CREATE) {
		create(&q);
		fd_close(fd);
	} else {
		begin(&q, fd);
	}
	return true;
}

static void on_child(int signo)
{
	(void)signo; /* only to wake poll() */
}

static int run(void)
{
	const struct sigaction act = { .sa_handler = on_child };

	if (sigaction(SIGCHLD, &act, NULL) < 0)
		return 1;
	for (;;) {
		struct pollfd p = { .fd = SHELF_FD, .events = POLLIN };

		reap(n_jobs >= SHELF_JOBS_MAX);
		if (poll(&p, 1, n_jobs ? 1000 : -1) < 0 && errno != EINTR)
			return 1;
		if (p.revents && !receive())
			return 0;
	}
}

int main(int argc, char **argv)
{
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group; the front says when */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (argc != 3 || fcntl(SHELF_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(SHELF_DIR_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "caisson-shelf: started by caisson serve, not by hand\n");
		return 2;
	}
	porter = porter_start(&e);
	if (porter < -1) {
		(void)fprintf(stderr, "caisson-shelf: %s\n", e.msg);
		return 1;
	}
	if (enter_jail((uid_t)strtoul(argv[1], NULL, 10), (gid_t)strtoul(argv[2], NULL, 10), &e) <
	    0) {
		(void)fprintf(stderr, "caisson-shelf: %s\n", e.msg);
		return 1;
	}
	return run();
}

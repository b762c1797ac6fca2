/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_store.c - caisson-workspace-store: keeps workspaces, and has no other power.
 *
 * Theory of operation. A workspace outlives the sandboxes that use it, so somebody has to write
 * what they commit; and that comes from cells, as archives of whatever code made there. So it is a
 * process of its own, that can make and remove files below one directory and nothing else: own user
 * (as root), no capability, Landlock, and a filter without sockets and programs
 * (policy/workspace-store.policy). It is asked by the front alone, on descriptor 3, and ends when
 * that ends. Each request has a process of its own, which may take as long as it takes, and dies
 * alone of what it reads; it ends with the workspace store too, and leaves a workspace that is as
 * it was. As root its parent is the mounter (mounter.h), which mounts file systems for it.
 *
 * A front in its jail can start no other one. So what was started only gives up its privileges,
 * makes the one that works, and another when that is killed: it reads nothing, and has no more
 * rights than its child before the filter. The next one begins when every process of the one before
 * is gone, and takes no request until the front, which has given up all that it had asked, has said
 * again what is known (WORKSPACE_STORE_AGAIN): what was begun is removed then.
 *
 * usage: caisson-workspace-store UID GID    (0 0: stay who we are)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/supervise.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "wire/workspace_store.h"
#include "workspace_store/handover.h"
#include "workspace_store/job.h"
#include "workspace_store/tree.h"
#include "workspace_store/volume_mounter.h"
#include "workspace_store/workspace_dir.h"
#include "workspace_store_filter.h"

#define DEATHS_MAX 100u
#define AGAIN_MS 100u

/* ---- the jail ------------------------------------------------------------------------------ */

static int leave_privilege(uid_t uid, gid_t gid, struct err *e)
{
	const struct power_user user = { .uid = uid, .gid = gid };

	/* Directories that may not be read are mended by their descriptor, for which an older
	 * kernel needs /proc. */
	if (tree_can_mend() && power_root(WORKSPACE_STORE_DIR_FD, e) < 0)
		return e->code;
	if (power_leave(&user, e) < 0 || power_settle(e) < 0)
		return e->code;
	(void)umask(0);
	return 0;
}

static int enter_jail(struct err *e)
{
	const struct landlock_dir dir = {
		WORKSPACE_STORE_DIR_FD,
		LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_DIR | LANDLOCK_REMOVE_DIR |
			LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG |
			LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_SYM | LANDLOCK_REFER | LANDLOCK_TRUNCATE
	};

	return power_confine(&dir, 1, WORKSPACE_STORE_FILTER, ARRAY_SIZE(WORKSPACE_STORE_FILTER),
			     e);
}

/* ---- requests ------------------------------------------------------------------------------ */

static struct {
	pid_t pid; /* 0: free */
	uint32_t op;
	uint64_t seq;
} jobs[WORKSPACE_STORE_JOBS_MAX];
static size_t n_jobs;

static void answer(struct workspace_store_reply *r, int fd)
{
	r->version = WORKSPACE_STORE_VERSION;
	if (fd_send(WORKSPACE_STORE_FD, r, sizeof(*r), &fd, fd >= 0 ? 1 : 0) < 0)
		_exit(1);
}

/*
 * What the mounter has to do with it comes first, and here: it is asked by one process. That costs
 * the others a moment when a workspace is made.
 */
static int mounter = -1;

static struct handover *handover; /* of the workspace store before us, and for the one after us */
static uint32_t life;             /* how many workers there were before us */
static bool is_synced;            /* the front knows that we are another */

static int create_volume(const char *key, const struct workspace_store_req *q)
{
	int r = volume_ask(mounter, VOLUME_MAKE, key, q->max_bytes, q->max_files);

	if (r == 0)
		r = volume_ask(mounter, VOLUME_MOUNT, key, 0, 0);
	if (r < 0)
		(void)volume_ask(mounter, VOLUME_REMOVE, key, 0, 0);
	return r;
}

static void create(const struct workspace_store_req *q)
{
	struct workspace_store_reply r = { .op = q->op, .seq = q->seq, .generation = 1 };
	char key[WORKSPACE_STORE_KEY_LEN + 1];
	struct err e = { 0 };

	r.code = workspace_dir_make(WORKSPACE_STORE_DIR_FD, key, &e);
	if (r.code == 0) {
		memcpy(handover->made, key, sizeof(key));
		/* Without loop devices or mke2fs it is a directory, whose quota is kept when it is
		 * committed to. */
		r.volume = create_volume(key, q) == 0;
		r.code = workspace_dir_fill(WORKSPACE_STORE_DIR_FD, key, &e);
		memcpy(r.key, key, sizeof(key));
	}
	if (r.code < 0)
		(void)snprintf(r.msg, sizeof(r.msg), "%.255s", e.msg);
	answer(&r, -1);
}

/* All that are known; those that have no file are directories. */
static void mount_all(const char *known)
{
	char key[WORKSPACE_STORE_KEY_LEN + 1];

	for (const char *s = known; strlen(s) >= WORKSPACE_STORE_KEY_LEN;
	     s += strcspn(s, "\n") + 1) {
		(void)snprintf(key, sizeof(key), "%.32s", s);
		int r = volume_ask(mounter, VOLUME_MOUNT, key, 0, 0);

		if (r < 0 && r != -ENOENT)
			(void)fprintf(stderr, "caisson-workspace-store: mount workspace %s: %s\n",
				      key, strerror(-r));
		if (!strchr(s, '\n'))
			break;
	}
}

/* The one that it was making is in no answer that the front has got: it is nobody's, and empty. */
static void forget_made(const char *known)
{
	if (!handover->made[0] || strstr(known, handover->made))
		return;
	(void)volume_ask(mounter, VOLUME_REMOVE, handover->made, 0, 0);
	(void)tree_remove(WORKSPACE_STORE_DIR_FD, handover->made);
	handover->made[0] = '\0';
}

/* What the mounter has mounted is mounted still when it is not the first time. */
static void before_sweep(int fd)
{
	struct stat st;
	_mem_ char *known = fd < 0 || fstat(fd, &st) < 0 ? NULL : calloc(1, (size_t)st.st_size + 1);

	if (!known || pread(fd, known, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return;
	if (life == 0)
		mount_all(known);
	else
		forget_made(known);
}

static _Noreturn void work(const struct workspace_store_req *q, int fd, pid_t parent,
			   struct promise *p)
{
	static struct workspace_store_reply r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	r.op = q->op;
	r.seq = q->seq;
	answer(&r, job_run(WORKSPACE_STORE_DIR_FD, q, fd, p, &r));
	_exit(0);
}

static void begin(const struct workspace_store_req *q, int fd)
{
	pid_t parent = getpid(), pid;
	size_t at = 0;

	while (jobs[at].pid) /* run() takes no more than there is room for */
		at++;
	promise_drop(&handover->promises[at]);
	pid = fork();
	if (pid == 0)
		work(q, fd, parent, &handover->promises[at]);
	if (pid < 0) {
		struct workspace_store_reply r = { .op = q->op, .seq = q->seq, .code = -errno };

		(void)snprintf(r.msg, sizeof(r.msg), "no process for it: %s", strerror(errno));
		answer(&r, -1);
	}
	if (pid > 0) {
		jobs[at].pid = pid;
		jobs[at].op = q->op;
		jobs[at].seq = q->seq;
		n_jobs++;
	}
	fd_close(fd);
}

/* One that was killed in the middle has not answered: its workspace is as it was, or as it had
 * promised. */
static void bury(pid_t pid, int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct workspace_store_reply r = { .op = jobs[i].op,
						   .seq = jobs[i].seq,
						   .code = -EPIPE };

		if (jobs[i].pid != pid)
			continue;
		jobs[i].pid = 0;
		n_jobs--;
		(void)snprintf(r.msg, sizeof(r.msg),
			       "a worker of the workspace store was killed: try again");
		if (!WIFEXITED(status))
			answer(promise_is_kept(&handover->promises[i], WORKSPACE_STORE_DIR_FD) ?
				       &handover->promises[i].reply :
				       &r,
			       -1);
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
	struct workspace_store_req q;
	int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(WORKSPACE_STORE_FD, &q, sizeof(q), &fd, &n_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n != (ssize_t)sizeof(q) || q.version != WORKSPACE_STORE_VERSION)
		return false;
	if (n_fds == 0)
		fd = -1;
	if (q.op == WORKSPACE_STORE_SWEEP && q.life == life)
		is_synced = true;
	if (!is_synced) { /* the front has given it up, or will when it hears of us */
		fd_close(fd);
		return true;
	}
	if (q.op == WORKSPACE_STORE_SWEEP)
		before_sweep(fd);
	if (q.op == WORKSPACE_STORE_REMOVE && memchr(q.key, '\0', sizeof(q.key)) &&
	    workspace_dir_key_ok(q.key))
		(void)volume_ask(mounter, VOLUME_REMOVE, q.key, 0, 0);
	if (q.op == WORKSPACE_STORE_CREATE) {
		create(&q);
		fd_close(fd);
	} else {
		begin(&q, fd);
	}
	while (q.op == WORKSPACE_STORE_SWEEP && n_jobs > 0) /* what is made from now on is not in
							       its list */
		reap(true);
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
		struct pollfd p = { .fd = WORKSPACE_STORE_FD, .events = POLLIN };

		reap(n_jobs >= WORKSPACE_STORE_JOBS_MAX);
		if (poll(&p, 1, n_jobs ? 1000 : -1) < 0 && errno != EINTR)
			return 1;
		if (p.revents && !receive())
			return 0;
	}
}

/* ---- one after the other ------------------------------------------------------------------- */

/* What they had done and not told. */
static void keep_promises(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(handover->promises); i++) {
		struct promise *p = &handover->promises[i];

		if (promise_is_kept(p, WORKSPACE_STORE_DIR_FD))
			answer(&p->reply, -1);
		promise_drop(p);
	}
}

static int work_for_life(void *arg, uint32_t lives)
{
	struct workspace_store_reply r = { .op = WORKSPACE_STORE_AGAIN, .life = lives };
	struct err e = { 0 };

	(void)arg;
	life = lives;
	if (enter_jail(&e) < 0) {
		(void)fprintf(stderr, "caisson-workspace-store: %s\n", e.msg);
		return 1;
	}
	is_synced = life == 0;
	if (life > 0) {
		keep_promises();
		answer(&r, -1);
	}
	return run();
}

int main(int argc, char **argv)
{
	static const struct supervise workers = { .work = work_for_life,
						  .lives_max = DEATHS_MAX,
						  .failed = 1,
						  .bury_all = true,
						  .pause_ms = AGAIN_MS };
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group; the front says when */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (argc != 3 || fcntl(WORKSPACE_STORE_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(WORKSPACE_STORE_DIR_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr,
			      "caisson-workspace-store: started by caisson serve, not by hand\n");
		return 2;
	}
	mounter = volume_start(&e);
	handover = handover_new();
	if (mounter >= -1 && (!handover || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0))
		(void)err_set(&e, -errno, "prepare for another");
	if (e.code == 0)
		(void)leave_privilege((uid_t)strtoul(argv[1], NULL, 10),
				      (gid_t)strtoul(argv[2], NULL, 10), &e);
	if (e.code < 0) {
		(void)fprintf(stderr, "caisson-workspace-store: %s\n", e.msg);
		return 1;
	}
	return supervise(&workers);
}

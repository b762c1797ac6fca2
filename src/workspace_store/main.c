/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - caisson-workspace-store: keeps workspaces, and has no other power.
 *
 * Theory of operation. A workspace outlives the sandboxes that use it. Sandboxes commit to it, and
 * the content of a commit is an archive that code in a cell made. One program reads and writes the
 * workspaces, and can make and remove files below one directory and nothing else: own user (as
 * root), no capability, Landlock, and a filter without sockets and programs
 * (policy/workspace-store.policy). The front alone sends requests (wire/workspace_store.h). Each
 * request has a process of its own (workspace_job.h), which may take as long as it needs, and dies
 * alone of what it reads. It also dies with the worker, and leaves its workspace as it was. As root
 * the program's parent is the volume mounter (volume_mounter.h), which mounts file systems for it.
 *
 * tree_store/tree_store.h has the start, the jail and the replacement of a worker that is killed.
 * The next worker begins when every job of the former one is dead. It ignores requests until the
 * front has sent the list of known workspaces (WORKSPACE_STORE_SWEEP with its life): the front has
 * given up its former requests by then, and the sweep removes trees that were not finished.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/landlock.h"
#include "tree_store/tree.h"
#include "tree_store/tree_store.h"
#include "wire/workspace_store.h"
#include "workspace_store/volume_mounter.h"
#include "workspace_store/workspace_dir.h"
#include "workspace_store/workspace_job.h"
#include "workspace_store_filter.h"

_Static_assert(WORKSPACE_STORE_FD == TREE_STORE_FD && WORKSPACE_STORE_DIR_FD == TREE_STORE_DIR_FD &&
		       WORKSPACE_STORE_KEY_LEN == TREE_KEY_LEN,
	       "as the stores have them");

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
 * The worker asks the volume mounter itself, before it forks a job: one process at a time may use
 * that socket. Other requests wait for a moment while a file system is made.
 */
static int mounter = -1;

static struct handover *handover; /* shared with the worker before us and the one after us */
static uint32_t life;             /* how many workers there were before us */
static bool is_synced;            /* the front knows of this worker */

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
		/* Without loop devices or mke2fs it is a directory, and each commit enforces the
		 * quota. */
		r.volume = create_volume(key, q) == 0;
		r.code = workspace_dir_fill(WORKSPACE_STORE_DIR_FD, key, &e);
		memcpy(r.key, key, sizeof(key));
	}
	if (r.code < 0)
		(void)snprintf(r.msg, sizeof(r.msg), "%.255s", e.msg);
	answer(&r, -1);
}

/* -ENOENT: the workspace has no file in STATE/volumes, it is a plain directory. */
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

/* The former worker was making a workspace that no answer reported: empty, and without an owner. */
static void forget_made(const char *known)
{
	if (!handover->made[0] || strstr(known, handover->made))
		return;
	(void)volume_ask(mounter, VOLUME_REMOVE, handover->made, 0, 0);
	(void)tree_remove(WORKSPACE_STORE_DIR_FD, handover->made);
	handover->made[0] = '\0';
}

/* The mounter outlives a worker, so a later worker finds everything mounted. */
static void before_sweep(int fd)
{
	_mem_ char *known = job_text(fd, WORKSPACE_STORE_KNOWN_BYTES, NULL);

	if (known && life == 0)
		mount_all(known);
	else if (known)
		forget_made(known);
}

static _Noreturn void run_job(const struct workspace_store_req *q, int fd, pid_t parent,
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

	while (jobs[at].pid) /* run() takes no request without a free place */
		at++;
	promise_drop(&handover->promises[at]);
	pid = fork();
	if (pid == 0)
		run_job(q, fd, parent, &handover->promises[at]);
	if (pid < 0) {
		struct workspace_store_reply r = { .op = q->op, .seq = q->seq, .code = -errno };

		(void)snprintf(r.msg, sizeof(r.msg), "start a process for it: %s", strerror(errno));
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

/* A job that was killed has not answered: its workspace is as it was, or as the job promised. */
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

static void serve(const struct workspace_store_req *q, int fd)
{
	const bool sweeps = q->op == WORKSPACE_STORE_SWEEP;

	if (sweeps && q->life == life)
		is_synced = true;
	if (!is_synced) { /* the front has given the request up, or will when it learns of us */
		fd_close(fd);
		return;
	}
	if (sweeps)
		before_sweep(fd);
	if (q->op == WORKSPACE_STORE_REMOVE && memchr(q->key, '\0', sizeof(q->key)) &&
	    tree_key_ok(q->key))
		(void)volume_ask(mounter, VOLUME_REMOVE, q->key, 0, 0);
	if (q->op == WORKSPACE_STORE_CREATE) {
		create(q);
		fd_close(fd);
	} else {
		begin(q, fd);
	}
	while (sweeps && n_jobs > 0) /* its list does not have what is made from now on */
		reap(true);
}

static void on_child(int signo)
{
	(void)signo; /* only to wake poll() */
}

static int run(void)
{
	const struct sigaction act = { .sa_handler = on_child };
	struct workspace_store_req q;
	int got = 0, fd;

	if (sigaction(SIGCHLD, &act, NULL) < 0)
		return 1;
	while (got >= 0) {
		struct pollfd p = { .fd = WORKSPACE_STORE_FD, .events = POLLIN };

		reap(n_jobs >= WORKSPACE_STORE_JOBS_MAX);
		if (poll(&p, 1, n_jobs ? 1000 : -1) < 0 && errno != EINTR)
			return 1;
		got = p.revents ? tree_store_receive(&q, sizeof(q), WORKSPACE_STORE_VERSION, &fd) :
				  0;
		if (got > 0)
			serve(&q, fd);
	}
	return 0;
}

/* ---- the program --------------------------------------------------------------------------- */

/* Commits of the former worker that were done and not reported. */
static void keep_promises(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(handover->promises); i++) {
		struct promise *p = &handover->promises[i];

		if (promise_is_kept(p, WORKSPACE_STORE_DIR_FD))
			answer(&p->reply, -1);
		promise_drop(p);
	}
}

static int work(uint32_t lives)
{
	struct workspace_store_reply r = { .op = WORKSPACE_STORE_AGAIN, .life = lives };

	life = lives;
	is_synced = life == 0;
	if (life > 0) {
		keep_promises();
		answer(&r, -1);
	}
	return run();
}

/* Jobs of a worker that dies become children of the process that forks the next worker. */
static int prepare(struct err *e)
{
	mounter = volume_start(e);
	if (e->code)
		return e->code;
	handover = handover_new();
	return !handover || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ?
		       err_set(e, -errno, "prepare for the next worker") :
		       0;
}

int main(int argc, char **argv)
{
	static const struct tree_store program = {
		.name = "caisson-workspace-store",
		.prepare = prepare,
		.needs_proc = true,
		.bury_all = true,
		.rights = LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_DIR |
			  LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR |
			  LANDLOCK_MAKE_REG | LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_SYM |
			  LANDLOCK_REFER | LANDLOCK_TRUNCATE,
		.filter = WORKSPACE_STORE_FILTER,
		.filter_len = ARRAY_SIZE(WORKSPACE_STORE_FILTER),
		.work = work,
	};

	return tree_store_main(&program, argc, argv);
}

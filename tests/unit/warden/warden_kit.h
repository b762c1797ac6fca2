/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_kit.h - A warden in a test's own process: its tables and its loop are real, cells are a
 * process in a pid namespace of its own and nothing else, zygotes are the other end of a socket.
 *
 * For children (child.h): a warden collects whatever dies around it, and its end is not undone.
 */
#ifndef CAISSON_TESTS_WARDEN_KIT_H
#define CAISSON_TESTS_WARDEN_KIT_H

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "warden/dispatch.h"
#include "wire/zygote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

#define KIT_WAIT_MS 3000 /* for what takes a moment; much less than the warden's own deadlines */
#define KIT_ANSWERS 16

struct kit_answer {
	struct warden_reply reply;
	int fds[WARDEN_REPLY_FDS_MAX];
	size_t n_fds;
};

static struct warden w;
static int client;
static uint64_t last_seq;
static char kit_state[64];
static struct kit_answer answers[KIT_ANSWERS];
static size_t n_answers;

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t kit_skipped_ns;

/* In place of the base library's: a deadline of many seconds is over as soon as a test wants it. */
uint64_t clock_now_ns(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec + kit_skipped_ns;
}

static inline void kit_skip(uint64_t ms)
{
	kit_skipped_ns += ms * CLOCK_NS_PER_MS;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The test itself, as who outlives it sees it. A pid 1 does not hear its own alarm. */
static inline int kit_self(void)
{
	static int pidfd = -1;

	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	CHILD_CHECK(pidfd >= 0);
	return pidfd;
}

/* Do nothing, and hold nothing, until the test is over. */
static inline _Noreturn void kit_idle(int test)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };

	(void)dup2(test, 0);
	(void)syscall(SYS_close_range, 1u, ~0u, 0u);
	(void)poll(&p, 1, CHILD_DEADLINE_S * 1000);
	_exit(0);
}

static inline pid_t kit_bystander(void)
{
	int test = kit_self();
	pid_t pid = fork();

	if (pid == 0)
		kit_idle(test);
	CHILD_CHECK(pid > 0);
	return pid;
}

/* Pid 1 of a new pid namespace, whose user namespace is ours to enter. */
static inline pid_t kit_init(int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_PIDFD,
				   .pidfd = (uintptr_t)ret_pidfd,
				   .exit_signal = SIGCHLD };
	int test = kit_self();
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		kit_idle(test);
	if (pid < 0)
		CHILD_SKIP("no pid namespace: %s", strerror(errno));
	return pid;
}

/* A process in the namespace of @pidfd, forked the way a zygote does it: it becomes our child. */
static inline pid_t kit_kernel(int pidfd)
{
	int pair[2], test = kit_self();
	pid_t pid = -1;

	CHILD_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	CHILD_CHECK(pipe2(pair, O_CLOEXEC) == 0);
	pid_t between = fork();

	if (between == 0) {
		CHILD_CHECK(setns(pidfd, CLONE_NEWUSER | CLONE_NEWPID) == 0);
		pid = fork();
		if (pid == 0)
			kit_idle(test);
		CHILD_CHECK(write(pair[1], &pid, sizeof(pid)) == (ssize_t)sizeof(pid));
		_exit(0);
	}
	CHILD_CHECK(child_wait(between) == 0);
	CHILD_CHECK(read(pair[0], &pid, sizeof(pid)) == (ssize_t)sizeof(pid) && pid > 1);
	fd_close(pair[0]);
	fd_close(pair[1]);
	return pid;
}

/* The same, but the process that forked it stays, and has to collect it. Returns that one. */
static inline pid_t kit_hostage(int pidfd, pid_t *ret_kernel)
{
	int pair[2], test = kit_self();

	CHILD_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	CHILD_CHECK(pipe2(pair, O_CLOEXEC) == 0);
	pid_t keeper = fork();

	if (keeper == 0) {
		CHILD_CHECK(setns(pidfd, CLONE_NEWUSER | CLONE_NEWPID) == 0);
		pid_t pid = fork();

		if (pid == 0)
			kit_idle(test);
		CHILD_CHECK(write(pair[1], &pid, sizeof(pid)) == (ssize_t)sizeof(pid));
		kit_idle(test);
	}
	CHILD_CHECK(read(pair[0], ret_kernel, sizeof(*ret_kernel)) == (ssize_t)sizeof(pid_t));
	fd_close(pair[0]);
	fd_close(pair[1]);
	return keeper;
}

/* Dead, but not collected. */
static inline void kit_make_zombie(pid_t pid)
{
	siginfo_t info;

	CHILD_CHECK(kill(pid, SIGKILL) == 0);
	CHILD_CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
}

static inline bool kit_alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* ---- the warden ------------------------------------------------------------------------------ */

static inline void kit_start(void)
{
	int pair[2];

	CHILD_CHECK(setpgid(0, 0) == 0); /* whatever it kills, it is not who runs the tests */
	(void)kit_self();
	(void)snprintf(kit_state, sizeof(kit_state), "/tmp/test-warden-XXXXXX");
	CHILD_CHECK(mkdtemp(kit_state) != NULL);
	memset(&w, 0, sizeof(w));
	CHILD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
		    0);
	client = pair[0];
	w.sock = pair[1];
	w.epoll = epoll_create1(EPOLL_CLOEXEC);
	w.host.records = record_dir(kit_state, NULL);
	CHILD_CHECK(w.epoll >= 0 && w.host.records >= 0);
}

/* How many records there are: what a next start would find. */
static inline int kit_records(void)
{
	char path[96];
	int n = 0;

	(void)snprintf(path, sizeof(path), "%s/cells", kit_state);
	DIR *d = opendir(path);

	CHILD_CHECK(d != NULL);
	for (struct dirent *de; (de = readdir(d));)
		n += de->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

static inline void kit_watch(int fd, enum source s, uint32_t index, uint32_t serial)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = source_ref(s, index, serial) };

	CHILD_CHECK(epoll_ctl(w.epoll, EPOLL_CTL_ADD, fd, &ev) == 0);
}

/* A cell as it is once it was made, for the kernels of @zygote. */
static inline struct cell *kit_cell(uint32_t index, const struct zygote *zygote)
{
	struct cell *c = calloc(1, sizeof(*c));

	CHILD_CHECK(c && record_begin(w.host.records, &c->record, NULL) == 0);
	c->l = (struct launched){ .channel_fd = -1, .sync_fd = -1, .status_fd = -1 };
	c->l.pid = kit_init(&c->l.pidfd);
	c->lease_fd = c->kernel_pidfd = c->cgroup.oom_fd = -1;
	cell_line_init(c);
	c->index = index;
	c->serial = ++w.serial;
	c->epoll = w.epoll;
	c->handle = new_handle(&w, index);
	c->zygote = zygote ? zygote->handle : 0;
	c->config = (struct init_config){ .uid = 1000, .gid = 1000, .files = 77 + index };
	c->created_ns = clock_now_ns();
	w.cells[index] = c;
	kit_watch(c->l.pidfd, SOURCE_INIT, index, c->serial);
	return c;
}

/* A zygote of which @ret_peer is all there is; SEQPACKET, non-blocking. */
static inline struct zygote *kit_zygote(uint32_t index, int *ret_peer)
{
	struct zygote *z = calloc(1, sizeof(*z));
	int pair[2];

	CHILD_CHECK(z && record_begin(w.host.records, &z->record, NULL) == 0);
	CHILD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
		    0);
	z->l = (struct launched){
		.pidfd = -1, .channel_fd = pair[0], .sync_fd = -1, .status_fd = -1
	};
	z->index = index;
	z->serial = ++w.serial;
	z->epoll = w.epoll;
	z->handle = new_handle(&w, index);
	w.zygotes[index] = z;
	kit_watch(z->l.channel_fd, SOURCE_ZYGOTE, index, z->serial);
	*ret_peer = pair[1];
	return z;
}

/* One turn of the loop, as in warden.c; how many events there were. */
static inline int kit_turn(int ms)
{
	struct epoll_event ev[16];
	int most = dispatch_check(&w);
	int n = epoll_wait(w.epoll, ev, ARRAY_SIZE(ev), most >= 0 && most < ms ? most : ms);

	for (int i = 0; i < n; i++)
		dispatch_event(&w, ev[i].data.u64);
	return n;
}

/* Nothing is left to happen: a loop that has something to do for ever burns a processor. */
static inline void kit_rest(void)
{
	int turns = 0;

	while (kit_turn(0) > 0)
		CHILD_CHECK(turns++ < 32);
}

/* ---- the client ------------------------------------------------------------------------------ */

static inline uint64_t ask(enum warden_op op, uint32_t cell, uint32_t zygote)
{
	struct warden_req req;

	memset(&req, 0, sizeof(req));
	req.version = WARDEN_VERSION;
	req.op = op;
	req.seq = ++last_seq;
	req.cell = cell;
	req.zygote = zygote;
	CHILD_CHECK(fd_send(client, &req, sizeof(req), NULL, 0) == 0 && dispatch_serve(&w));
	return req.seq;
}

static inline struct kit_answer *heard(uint64_t seq)
{
	struct kit_answer *a = &answers[n_answers % KIT_ANSWERS];

	a->n_fds = ARRAY_SIZE(a->fds);
	while (fd_recv(client, &a->reply, sizeof(a->reply), a->fds, &a->n_fds) ==
	       (ssize_t)sizeof(a->reply)) {
		a = &answers[++n_answers % KIT_ANSWERS];
		a->n_fds = ARRAY_SIZE(a->fds);
	}
	for (size_t i = 0; i < n_answers && i < KIT_ANSWERS; i++)
		if (answers[i].reply.seq == seq)
			return &answers[i];
	return NULL;
}

/* The answer to @seq, which has to come within a moment. */
static inline struct kit_answer *answer_to(uint64_t seq)
{
	uint64_t end = clock_now_ns() + KIT_WAIT_MS * CLOCK_NS_PER_MS;
	struct kit_answer *a;

	while (!(a = heard(seq))) {
		CHILD_CHECK(clock_now_ns() < end);
		(void)kit_turn(20);
	}
	return a;
}

static inline int code_of(uint64_t seq)
{
	return answer_to(seq)->reply.code;
}

/* Everything has to go, soon; @records of what could not be removed stay. */
static inline void kit_end_with(int records)
{
	uint64_t before = clock_now_ns();
	char path[96];

	dispatch_end(&w);
	CHILD_CHECK(clock_now_ns() - before < KIT_WAIT_MS * CLOCK_NS_PER_MS);
	CHILD_CHECK(kit_records() == records);
	CHILD_CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	(void)snprintf(path, sizeof(path), "%s/cells", kit_state);
	DIR *d = opendir(path);

	CHILD_CHECK(d != NULL);
	for (struct dirent *de; (de = readdir(d));)
		if (de->d_name[0] != '.')
			CHILD_CHECK(unlinkat(dirfd(d), de->d_name, 0) == 0);
	(void)closedir(d);
	CHILD_CHECK(rmdir(path) == 0 && rmdir(kit_state) == 0);
}

/* The end of the client: nothing may be left. */
static inline void kit_end(void)
{
	kit_end_with(0);
}

#endif

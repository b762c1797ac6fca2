/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_deadline.c - Events that do not come: a cell that is not made, or does not die, and a kernel
 * that cannot be collected. Each is given up at its deadline, not before, and then costs nothing.
 */
#include "warden_kit.h"

#include "cell/plan.h"

#include "../unit.h"

/* A cell that is not made in time is given up, and no other. */
CHILD_TEST(not_made)
{
	int pair[2];

	kit_start();
	struct cell *c = kit_cell(0, NULL);
	pid_t pid = c->l.pid, bystander = kit_bystander(); /* in our process group */

	CHILD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHILD_CHECK(epoll_ctl(w.epoll, EPOLL_CTL_DEL, c->l.pidfd, NULL) == 0); /* not yet */
	c->handle = 0;
	c->create_seq = ++last_seq;
	c->l.sync_fd = pair[0];
	c->plan = calloc(1, sizeof(*c->plan));
	CHILD_CHECK(c->plan != NULL);
	c->plan->lease_fd = c->plan->nodes_fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(c->plan->layers); i++)
		c->plan->layers[i].fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(c->plan->mounts); i++)
		c->plan->mounts[i].fd = -1;
	kit_watch(c->l.sync_fd, SOURCE_MADE, 0, c->serial);
	c->check_ns = clock_now_ns() + LAUNCH_DEADLINE_NS;
	check_before(&w, c->check_ns);
	kit_skip(19000);
	kit_rest();
	CHILD_CHECK(!heard(last_seq));
	kit_skip(1001);
	CHILD_CHECK(code_of(last_seq) == -ETIMEDOUT);
	CHILD_CHECK(!w.cells[0] && !kit_alive(pid) && kit_alive(bystander));
	CHILD_CHECK(kit_records() == 0);
	kit_rest();
	CHILD_CHECK(kill(bystander, SIGKILL) == 0 && child_wait(bystander) >= 0);
	kit_end();
}

/*
 * A cell that does not die is given up, and its record stays. Its later fate is no
 * business of the cell that has its place by then.
 */
CHILD_TEST(stuck)
{
	pid_t inmate;

	kit_start();
	int before = open_fds();
	struct cell *c = kit_cell(0, NULL);

	/* Pid 1 cannot end before everybody in its namespace is collected. */
	pid_t keeper = kit_hostage(c->l.pidfd, &inmate), init = c->l.pid;
	uint64_t seq = ask(WARDEN_DESTROY, c->handle, 0);

	kit_skip(CELL_REAP_MS - 1000);
	kit_rest();
	CHILD_CHECK(!heard(seq)); /* it may still */
	kit_skip(1001);
	CHILD_CHECK(code_of(seq) == -EBUSY && answer_to(seq)->reply.msg[0]);
	CHILD_CHECK(!w.cells[0] && kit_records() == 1);
	CHILD_CHECK(open_fds() == before); /* nothing is held of it any more */

	const struct cell *next = kit_cell(0, NULL);

	kit_make_zombie(keeper); /* now it dies */
	while (kit_alive(init) || kit_alive(keeper)) {
		(void)kit_turn(5);
		(void)waitpid(keeper, NULL, WNOHANG);
		(void)waitpid(inmate, NULL, WNOHANG);
		(void)waitpid(init, NULL, WNOHANG);
	}
	kit_rest();
	CHILD_CHECK(w.cells[0] == next && next->l.pid > 0 && next->end == CELL_RUNNING);
	kit_end_with(1);
}

/*
 * A process in the cell that is somebody else's to collect is not taken for its kernel: its number
 * could be another process's at any moment. The cell is not given up early for it, and dies when it
 * is free.
 */
CHILD_TEST(not_ours)
{
	int peer;
	pid_t kernel;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);
	pid_t keeper = kit_hostage(c->l.pidfd, &kernel);
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, z->handle);
	struct zygote_reply reply = { .seq = c->handle, .pid = kernel };

	CHILD_CHECK(fd_send(peer, &reply, sizeof(reply), NULL, 0) == 0);
	CHILD_CHECK(code_of(seq) == -EPROTO && c->kernel == KERNEL_NONE);
	CHILD_CHECK(kill(kernel, SIGKILL) == 0);
	seq = ask(WARDEN_DESTROY, c->handle, 0);
	for (int i = 0; i < 20; i++) {
		kit_skip(100);
		kit_rest();
	}
	CHILD_CHECK(!heard(seq)); /* two of its ten seconds */
	CHILD_CHECK(kill(keeper, SIGKILL) == 0 && child_wait(keeper) >= 0);
	CHILD_CHECK(code_of(seq) == 0);
	kit_end();
}

/* A zygote dies when it has forked but not yet named a kernel; its cell is destroyed much later. */
CHILD_TEST(never_named)
{
	int peer, fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	struct zygote_req q;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);
	uint64_t seq = ask(WARDEN_KERNEL, c->handle, z->handle);

	CHILD_CHECK(fd_recv(peer, &q, sizeof(q), fds, &n_fds) == (ssize_t)sizeof(q));
	(void)kit_kernel(fds[0]);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	fd_close(peer);
	CHILD_CHECK(code_of(seq) == -EPIPE);
	for (int i = 0; i < 20; i++) {
		kit_skip(30000);
		kit_rest();
	}
	CHILD_CHECK(code_of(ask(WARDEN_DESTROY, c->handle, 0)) == 0);
	kit_end();
}

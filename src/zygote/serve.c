/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - The life of a zygote: take the warden's requests, and fork a kernel for each.
 *
 * Theory of operation. The interpreter calls caisson_serve() when its modules are loaded. The call
 * returns in kernels only, each of them sealed. So the interpreter itself does nothing between two
 * kernels: it writes to none of its pages, which it shares with all its kernels, and needs no copy
 * of any.
 *
 * A process cannot move itself into a pid namespace, only its children. So there is a child in
 * between that joins the cell (its cgroups, then all its namespaces at once through the pidfd of
 * its pid 1), forks the kernel, and ends. That child borrows the zygote's memory, as vfork() does:
 * it costs neither a copy of page tables nor the interpreter's work around a fork. The kernel is a
 * whole fork, by the C library's own function. It waits for the warden's byte and seals itself
 * (enter.c).
 *
 * Safe, and why. The zygote holds no capability and reads no client's bytes. setns() succeeds
 * because the cell's user namespace is owned by the zygote's user, which the warden arranged for
 * the cells of this zygote alone; the capabilities that come with joining it count inside the cell
 * only, and are gone before a byte of the client's code arrives. Every step that fails is reported
 * on the hello socket and ends the process: there is no half-sealed kernel.
 */
#include <asm/unistd.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire/zygote.h"
#include "zygote/enter.h"
#include "zygote/sys.h"

#define EXPORT __attribute__((visibility("default")))

#define NAMESPACES 0x7e020000u /* user, pid, mnt, net, ipc, uts, cgroup */
#define FDS_MAX 24

EXPORT void caisson_serve(int warden, int (*fork)(void));

struct request {
	struct zygote_req q;
	int fds[FDS_MAX]; /* enum zygote_fd */
	uint32_t n_fds;
};

/* ---- the child in between ------------------------------------------------------------------ */

static long join(const struct request *r)
{
	for (uint32_t i = 0; i < r->q.n_cgroups; i++) {
		long n = sys(__NR_write, r->fds[ZYGOTE_FD_CGROUPS + i], (long)"0", 1, 0, 0);

		if (n != 1)
			return n < 0 ? n : -EIO;
	}
	return sys(__NR_setns, r->fds[ZYGOTE_FD_INIT], NAMESPACES, 0, 0, 0);
}

/* Wait until the warden accepts this process; until then touch nothing, use no memory. */
static void await_warden(int hello)
{
	char byte;

	if (sys(__NR_read, hello, (long)&byte, 1, 0, 0) != 1)
		sys_exit(71);
}

/*
 * In the child that borrows the zygote's memory, on a frame of its own below the zygote's, which
 * stands still. It returns only in the kernel, which has its own copy of all of it.
 */
static __attribute__((noinline)) void between(const struct request *r, int (*fork)(void),
					      int *ret_pid)
{
	int hello = r->fds[ZYGOTE_FD_HELLO];
	long code = join(r);

	if (code < 0)
		enter_fail(hello, ENTER_NAMESPACES, (int)code);
	int pid = fork();

	if (pid == 0) {
		await_warden(hello);
		return;
	}
	if (pid < 0)
		enter_fail(hello, ENTER_FORK, -EAGAIN);
	*ret_pid = pid;
	sys_exit(0);
}

/*
 * Return: 0 in the kernel; in the zygote the pid of the child that it has to wait for, with the
 * kernel's in @ret_pid when there is one; or a negative errno.
 */
static __attribute__((noinline)) long fork_kernel(const struct request *r, int (*fork)(void),
						  int *ret_pid)
{
	*ret_pid = 0;
	long pid = sys(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		between(r, fork, ret_pid);
	return pid;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Return: the size of the message, or a negative errno. All its descriptors are in @ret. */
static long receive(int warden, struct request *ret)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &ret->q, .iov_len = sizeof(ret->q) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	long n = sys(__NR_recvmsg, warden, (long)&m, MSG_CMSG_CLOEXEC, 0, 0);

	ret->n_fds = 0;
	if (n < 0 || m.msg_controllen < CMSG_LEN(sizeof(int)) ||
	    control.header.cmsg_level != SOL_SOCKET || control.header.cmsg_type != SCM_RIGHTS)
		return n;
	ret->n_fds = (uint32_t)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (uint32_t i = 0; i < ret->n_fds; i++)
		ret->fds[i] = ((const int *)(const void *)CMSG_DATA(&control.header))[i];
	return n;
}

static void wait_for(long child)
{
	while (sys(__NR_wait4, child, 0, 0, 0, 0) == -EINTR)
		;
}

/* Return: whether this is the kernel. In the zygote, @ret has the answer. */
static int serve_one(const struct request *r, long size, int (*fork)(void),
		     struct zygote_reply *ret)
{
	ret->seq = r->q.seq;
	ret->code = -EPROTO;
	ret->pid = 0;
	if (size != (long)sizeof(r->q) || r->q.n_cgroups > FDS_MAX - ZYGOTE_FD_CGROUPS ||
	    r->n_fds != ZYGOTE_FD_CGROUPS + r->q.n_cgroups)
		return 0;
	long child = fork_kernel(r, fork, &ret->pid);

	if (child == 0)
		return 1;
	if (child > 0)
		wait_for(child);
	ret->code = child < 0 ? (int)child : ret->pid > 0 ? 0 : -EIO;
	return 0;
}

/*
 * Serve until the warden closes, which ends this process. Returns in each kernel, sealed.
 * @fork: the C library's
 */
void caisson_serve(int warden, int (*fork)(void))
{
	struct request r;
	struct zygote_reply reply;

	for (;;) {
		long n = receive(warden, &r);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			sys_exit(0);
		if (serve_one(&r, n, fork, &reply)) {
			enter_seal(&r.q, r.fds);
			return;
		}
		for (uint32_t i = 0; i < r.n_fds; i++)
			(void)sys(__NR_close, r.fds[i], 0, 0, 0, 0);
		(void)sys(__NR_write, warden, (long)&reply, sizeof(reply), 0, 0);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.c - One warm interpreter as the warden holds it: it forks kernels into cells on request.
 *
 * A zygote may enter its cells with every capability that counts in them, and only its own code
 * seals a kernel. So it is the machine's own python and never an image's: an image's code is a
 * stranger's, and its kernels are started and sealed by the cell's pid 1. The warden does not trust
 * a zygote all the same: its answer is a pid, which is checked against the cell before it is used.
 * When it dies, the client that waits for a kernel gets an error, and kernels that it forked before
 * live on.
 *
 * It has a journal record like a cell, and the first ids of that record's range are its own: no
 * cell ever has them, so nothing in a cell can be mistaken for a zygote or touch one.
 */
#include "warden/warden_cell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/plan.h"
#include "cell/stage.h"
#include "wire/zygote.h"

#define REMOVE_DEADLINE_MS 5000u

/* The directory with kernel.pyz and enter.so lies beside init. */
static int guest_dir(const struct cell_host *h, char *path, size_t size, struct err *e)
{
	const char *slash = strrchr(h->init_path, '/');
	int n = snprintf(path, size, "%.*s/guest", (int)(slash - h->init_path), h->init_path);

	if (n < 0 || (size_t)n >= size)
		return err_say(e, -ENAMETOOLONG, "the path of the guest directory is too long");
	return 0;
}

/* A private, read-only copy of the guest directory, to be placed in the zygote's root. */
static int guest_mount(struct plan *p, const char *path, struct err *e)
{
	struct plan_mount *m = &p->mounts[p->n_mounts];
	_fd_ int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || mnt_restrict(tree, MNT_SAFE | MOUNT_ATTR_RDONLY) < 0)
		return err_set(e, -errno, "open %s (reinstall caisson)", path);
	*m = (struct plan_mount){ .fd = TAKE_FD(tree), .is_dir = true, .dst = &ZYGOTE_DIR[1] };
	p->n_mounts++;
	return 0;
}

static int plan_zygote(struct cell_host *h, struct zygote *z, struct err *e)
{
	struct plan *p = z->plan;
	char dir[PATH_MAX];
	int r = guest_dir(h, dir, sizeof(dir), e);

	if (r == 0)
		r = plan_make(&z->spec, z->record.slot, h->init_path, NULL, 0, p, e);
	if (r < 0)
		return r;
	p->zygote = true;
	z->uid = 0;
	if (p->ids.ranged) {
		p->owner = z->uid = p->ids.base + 1;
		r = guest_mount(p, dir, e);
		(void)snprintf(dir, sizeof(dir), "%s", ZYGOTE_DIR);
	}
	if (r < 0) {
		plan_free(p);
		return r;
	}
	(void)snprintf(p->guest_path, sizeof(p->guest_path), "%s", dir);
	(void)snprintf(p->guest_script, sizeof(p->guest_script), "%s/kernel.pyz", dir);
	return 0;
}

static int populate(struct cell_host *h, struct zygote *z, struct err *e)
{
	int r = plan_zygote(h, z, e);

	if (r < 0)
		return r;
	if (!(z->spec.without & CELL_WITHOUT_CGROUP)) {
		r = cell_cgroup(h, &z->record, &z->spec.limits, &z->cgroup, e);
		z->has_cgroup = r == 0;
	}
	if (r == 0)
		r = launch_begin(z->plan, z->has_cgroup ? &z->cgroup : NULL, &z->l, e);
	if (r < 0) {
		plan_free(z->plan);
		if (z->has_cgroup)
			(void)cgroup_remove(&z->cgroup, REMOVE_DEADLINE_MS, NULL);
	}
	return r;
}

int zygote_begin(struct cell_host *h, const struct cell_spec *spec, struct zygote *ret,
		 struct err *e)
{
	struct zygote *z = ret;
	int r = record_begin(h->records, &z->record, e);

	z->spec = *spec;
	z->l = (struct launched){ .pidfd = -1, .channel_fd = -1, .sync_fd = -1, .status_fd = -1 };
	if (r < 0)
		return r;
	z->plan = calloc(1, sizeof(*z->plan));
	r = z->plan ? populate(h, z, e) : err_set(e, -ENOMEM, "plan a zygote");
	if (r < 0) {
		free(z->plan);
		record_end(&z->record);
	}
	return r;
}

int zygote_made(struct zygote *z, struct err *e)
{
	(void)epoll_ctl(z->epoll, EPOLL_CTL_DEL, z->l.sync_fd, NULL);
	int r = launch_end(z->plan, &z->l, e);

	plan_drop(&z->plan);
	if (r == 0)
		return 0;
	if (z->has_cgroup)
		(void)cgroup_remove(&z->cgroup, REMOVE_DEADLINE_MS, NULL);
	record_end(&z->record);
	return r;
}

/*
 * Four pipes and a socket. The client's ends stay with the cell until it has its kernel; nobody but
 * the client ever has those, so no flag of theirs can be changed behind its back. @ret_kernel: the
 * other ends, to be sent and closed.
 */
static int open_line(struct cell *c, int ret_kernel[ZYGOTE_FD_CGROUPS], struct err *e)
{
	int *kernel = ret_kernel, ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "make the hello socket of a kernel");
	c->hello_fd = ends[0];
	kernel[ZYGOTE_FD_HELLO] = ends[1];
	for (size_t i = 0; i < KERNEL_PIPES; i++) {
		bool in = i == KERNEL_PIPE_IN; /* the only one that the kernel reads */

		if (pipe2(ends, O_CLOEXEC) < 0)
			return err_set(e, -errno, "make the pipes of a kernel");
		c->pipes[i] = ends[in];
		kernel[ZYGOTE_FD_PIPES + i] = ends[!in];
	}
	return 0;
}

/*
 * The pipes belong to the cell's user, who may then open /dev/stdout by name, and are on its
 * account. A process of the cell that has the same user cannot name the warden meanwhile: it is in
 * another pid namespace.
 */
static int open_line_as_agent(struct cell *c, int ret_kernel[ZYGOTE_FD_CGROUPS], struct err *e)
{
	uid_t agent = c->agent;

	if (agent && setresuid(agent, agent, (uid_t)-1) < 0)
		return err_set(e, -errno, "become the cell's user");
	if (agent)
		(void)setfsgid(agent);
	int r = open_line(c, ret_kernel, e);

	/* Root's next step must not be done as a guest's user: the warden ends here. */
	if (agent && setresuid(0, 0, (uid_t)-1) < 0) {
		(void)fprintf(stderr, "caisson-warden: become root again: %s\n", strerror(errno));
		abort();
	}
	if (agent)
		(void)setfsgid(0);
	return r;
}

static int ask_zygote(struct zygote *z, struct cell *c, int fds[], struct err *e)
{
	struct zygote_req q = { .seq = c->handle, .config = c->config, .cpus = c->cpus };
	struct cgroup_enter enter = { .n = 0 };
	int r = open_line_as_agent(c, fds, e);

	if (r == 0 && c->has_cgroup)
		r = cgroup_join_open(&c->cgroup, z->uid, &enter, e);
	if (r < 0)
		return r;
	q.n_cgroups = (uint32_t)enter.n;
	fds[ZYGOTE_FD_INIT] = c->l.pidfd;
	memcpy(fds + ZYGOTE_FD_CGROUPS, enter.fd, enter.n * sizeof(int));
	/* The socket of a zygote that does not read is full one day: then the zygote is ended. */
	(void)fcntl(z->l.channel_fd, F_SETFL, O_NONBLOCK);
	r = fd_send(z->l.channel_fd, &q, sizeof(q), fds, ZYGOTE_FD_CGROUPS + enter.n);
	cgroup_enter_close(&enter);
	return r < 0 ? err_set(e, r, "ask the zygote for a kernel") : 0;
}

int zygote_fork(struct zygote *z, struct cell *c, struct err *e)
{
	int fds[ZYGOTE_FD_CGROUPS + CGROUP_DIRS_MAX];

	for (size_t i = 0; i < ZYGOTE_FD_CGROUPS; i++)
		fds[i] = -1;
	int r = ask_zygote(z, c, fds, e);

	fd_close_all(fds + ZYGOTE_FD_HELLO, ZYGOTE_FD_CGROUPS - ZYGOTE_FD_HELLO);
	if (r < 0)
		cell_line_close(c);
	return r;
}

int zygote_answer(struct zygote *z, uint32_t *ret_handle, int *ret_code, pid_t *ret_pid)
{
	struct zygote_reply reply;
	ssize_t n = fd_recv(z->l.channel_fd, &reply, sizeof(reply), NULL, NULL);

	if (n == -EAGAIN)
		return -EAGAIN;
	if (n != (ssize_t)sizeof(reply))
		return 0; /* gone, or it broke the protocol, which counts as gone */
	*ret_handle = (uint32_t)reply.seq;
	*ret_code = reply.code;
	*ret_pid = reply.pid;
	return 1;
}

static int pid_namespace(pid_t pid, struct stat *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, ret);
}

/*
 * A kernel's parent, the child between it and the zygote, is gone before the zygote answers; so the
 * warden, as the nearest subreaper, is its parent now.
 */
static bool is_child(pid_t pid)
{
	siginfo_t info;

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/*
 * Safe although a zygote may lie: only a child of ours that is in the cell's own pid namespace is
 * taken and moved into the cell's cgroups, and such a process is the client's own guest. Only we
 * reap our children, so between these checks and the move the number cannot become another
 * process's.
 */
int zygote_adopt(struct cell *c, pid_t pid, struct err *e)
{
	struct stat of_cell, of_kernel = { 0 };

	if (pid <= 1 || pid == c->l.pid)
		return err_say(e, -EPROTO, "the zygote broke the protocol");
	_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return err_set(e, -errno, "hold the kernel");
	if (pid_namespace(c->l.pid, &of_cell) < 0)
		return err_say(e, -ESRCH, "the cell is over");
	if (pid_namespace(pid, &of_kernel) < 0 || of_cell.st_ino != of_kernel.st_ino)
		return err_say(e, -EPROTO, "the zygote named a process that is not in the cell");
	if (!is_child(pid))
		return err_say(e, -EPROTO,
			       "the zygote named a process that is not the warden's child");
	int r = c->has_cgroup ? cgroup_move(&c->cgroup, pid, e) : 0;

	if (r < 0 && r != -ESRCH) /* dead already: its pidfd tells how */
		return r;
	(void)send(c->hello_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	c->kernel = KERNEL_RUNS;
	c->kernel_pid = pid;
	c->kernel_status = 0;
	c->kernel_tries = 0;
	c->kernel_pidfd = TAKE_FD(pidfd);
	return 0;
}

pid_t zygote_end(struct zygote *z, struct remains_list *remains)
{
	pid_t pid = z->l.pid;

	plan_drop(&z->plan);
	z->l.sync_fd = cell_unwatch(z->epoll, z->l.sync_fd);
	z->l.channel_fd = cell_unwatch(z->epoll, z->l.channel_fd);
	z->l.status_fd = fd_close(z->l.status_fd);
	if (pid > 0)
		(void)syscall(SYS_pidfd_send_signal, z->l.pidfd, SIGKILL, NULL, 0);
	z->l.pidfd = fd_close(z->l.pidfd);
	z->l.pid = 0;
	remains_add(remains, &z->record, z->has_cgroup ? &z->cgroup : NULL, -1);
	return pid;
}

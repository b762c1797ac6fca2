/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - The parent's half of making a cell.
 *
 * The child is cloned with all its namespaces at once (the cgroup namespace comes later, when it
 * is in its cgroups: it would otherwise be rooted at ours) and, where there is a unified tree,
 * straight into its cgroup; v1 cgroups it enters itself (cgroup_enter.h) before anything else. Parent and child talk over one
 * SEQPACKET pair: "go" downwards; upwards a stage_report, or end of file when execve closed it.
 */
#include "cell/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup.h"
#include "cell/idmap.h"
#include "cell/plan.h"
#include "cell/stage.h"
#include "wire/init.h"

#define CELL_NAMESPACES                                                                            \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

#define LAUNCH_DEADLINE_S 20

static bool sysctl_is(const char *path, char value)
{
	char text[32];

	return fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0 && text[0] == value &&
	       text[1] == '\n';
}

/* clone said no: find out who forbids it, because the fix depends on it. */
static int explain_clone(int error, struct err *e)
{
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		return err_say(e, -error,
			       "this system forbids user namespaces: "
			       "sysctl kernel.unprivileged_userns_clone=1, or run as root");
	if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1') &&
	    (error == EPERM || error == EACCES))
		return err_say(
			e, -error,
			"AppArmor forbids user namespaces: sysctl "
			"kernel.apparmor_restrict_unprivileged_userns=0, or install an AppArmor "
			"profile with 'userns,' for caisson-warden, or run as root");
	if (sysctl_is("/proc/sys/user/max_user_namespaces", '0'))
		return err_say(e, -error,
			       "user namespaces are off: sysctl user.max_user_namespaces=15000");
	if (error == ENOSPC || error == EUSERS)
		return err_say(e, -error,
			       "no more namespaces allowed: raise sysctl user.max_*_namespaces "
			       "(or namespaces are nested too deep)");
	if (error == EPERM)
		return err_say(
			e, -error,
			"the kernel refuses namespaces (EPERM): inside a container allow "
			"clone with CLONE_NEWUSER (docker: --security-opt seccomp=unconfined), "
			"or run in a chroot-free environment");
	if (error == EINVAL)
		return err_say(e, -error,
			       "this kernel lacks a namespace type that cells need "
			       "(CONFIG_USER_NS, PID_NS, NET_NS, IPC_NS, UTS_NS)");
	return err_set(e, -error, "clone");
}

static int socket_pair(int fds[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return err_set(e, -errno, "socketpair");
	return 0;
}

/* Wait for the child's word: end of file (good), a report (bad), or nothing in time (bad). */
static int await_exec(int sync, const struct plan *p, struct err *e)
{
	struct stage_report report;
	struct timeval deadline = { .tv_sec = LAUNCH_DEADLINE_S };

	(void)setsockopt(sync, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	ssize_t n = fd_recv(sync, &report, sizeof(report), NULL, NULL);

	if (n == 0)
		return 0;
	if (n == -EAGAIN)
		return err_say(e, -ETIMEDOUT, "the cell was not ready after %d s",
			       LAUNCH_DEADLINE_S);
	if (n != (ssize_t)sizeof(report))
		return err_set(e, n < 0 ? (int)n : -EPROTO, "hear from the cell");

	char text[400];

	stage_describe(&report, p, text, sizeof(text));
	return err_say(e, report.error ? -report.error : -EIO, "%s", text);
}

static int release_child(const struct plan *p, pid_t pid, int sync, struct err *e)
{
	int r = idmap_write(&p->ids, pid, e);

	if (r == 0) {
		r = fd_send(sync, "g", 1, NULL, 0);
		/* A child that died on its own has left its report: that says more than EPIPE. */
		r = r == -EPIPE ? 0 : r;
	}
	return r < 0 ? r : await_exec(sync, p, e);
}

int launch(struct plan *p, const struct cgroup *cgroup, struct launched *ret, struct err *e)
{
	int sync[2], channel[2], pidfd = -1;
	int clone_fd = cgroup ? cgroup_clone_fd(cgroup) : -1;
	struct clone_args args = {
		.flags = CELL_NAMESPACES | CLONE_PIDFD | (clone_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = clone_fd >= 0 ? (unsigned int)clone_fd : 0,
	};

	int r = socket_pair(sync, e);

	if (r < 0)
		return r;
	_fd_ int sync_parent = sync[0];
	_fd_ int sync_child = sync[1];

	r = socket_pair(channel, e);
	if (r < 0)
		return r;
	_fd_ int channel_client = channel[0];
	_fd_ int channel_init = channel[1];

	struct init_msg config = { .type = INIT_CONFIG, .u.config = p->config };

	r = fd_send(channel_client, &config, sizeof(config), NULL, 0);
	if (r < 0)
		return err_set(e, r, "send init its configuration");
	p->sync_fd = sync_child;
	p->channel_fd = channel_init;
	r = cgroup ? cgroup_enter_open(cgroup, &p->enter, e) : 0;
	if (r < 0)
		return r;

	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0) {
		r = explain_clone(errno, e);
		cgroup_enter_close(&p->enter);
		return r;
	}
	if (pid == 0) {
		(void)close(sync_parent);
		(void)close(channel_client);
		stage_run(p);
	}
	sync_child = fd_close(sync_child);
	cgroup_enter_close(&p->enter);
	p->sync_fd = p->channel_fd = -1;
	r = release_child(p, pid, sync_parent, e);
	if (r < 0) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		fd_close(pidfd);
		return r;
	}
	*ret = (struct launched){ .pid = pid,
				  .pidfd = pidfd,
				  .channel_fd = TAKE_FD(channel_client) };
	return 0;
}

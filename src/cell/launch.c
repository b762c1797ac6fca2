/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - The parent's half of making a cell.
 *
 * The child is cloned with all its namespaces at once (the cgroup namespace comes later, when it
 * is in its cgroups: it would otherwise be rooted at ours) and, where there is a unified tree,
 * straight into its cgroup; v1 cgroups it enters itself (cgroup.h) before anything else.
 * Parent and child talk over one SEQPACKET pair: "go" downwards; upwards a stage_report, or end of
 * file when execve closed it. The parent does not wait for that: it has other cells to look after.
 */
#include "cell/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/cgroup.h"
#include "cell/container.h"
#include "cell/idmap.h"
#include "cell/stage.h"
#include "wire/init.h"

#define CELL_NAMESPACES                                                                            \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

#define ZYGOTE_NAMESPACES (CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

static bool sysctl_is(const char *path, char value)
{
	char text[32];

	return fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0 && text[0] == value &&
	       text[1] == '\n';
}

/* AppArmor refuses the namespace, or only its capabilities: then their first use fails. */
static bool apparmor_restricts(int error)
{
	return (error == EPERM || error == EACCES) &&
	       sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1');
}

static int say_apparmor(int error, struct err *e)
{
	return err_say(e, -error,
		       "AppArmor restricts user namespaces: load a profile with 'userns,' for this "
		       "caisson (the Debian package has one), or sysctl "
		       "kernel.apparmor_restrict_unprivileged_userns=0, or run as root");
}

/* clone failed: find out what forbids it, because the remedy depends on it. */
static int explain_clone(int error, struct err *e)
{
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		return err_say(e, -error,
			       "this system forbids user namespaces: "
			       "sysctl kernel.unprivileged_userns_clone=1, or run as root");
	if (apparmor_restricts(error))
		return say_apparmor(error, e);
	if (sysctl_is("/proc/sys/user/max_user_namespaces", '0'))
		return err_say(e, -error,
			       "user namespaces are off: sysctl user.max_user_namespaces=15000");
	if (error == ENOSPC || error == EUSERS)
		return err_say(e, -error,
			       "no more namespaces allowed: raise sysctl user.max_*_namespaces "
			       "(or namespaces are nested too deep)");
	if (error == EPERM)
		return err_say(e, -error,
			       "namespaces are refused (EPERM): by the filter of a container "
			       "(docker: " CONTAINER_FILTER "), or because this is a chroot");
	if (error == EINVAL)
		return err_say(e, -error,
			       "this Linux kernel lacks a namespace type that cells need "
			       "(CONFIG_USER_NS, PID_NS, NET_NS, IPC_NS, UTS_NS)");
	return err_set(e, -error, "clone");
}

static int socket_pair(int fds[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return err_set(e, -errno, "socketpair");
	return 0;
}

/* The child's result: end of file is success, a report is a failure. */
static int read_report(int sync, const struct plan *p, struct err *e)
{
	struct stage_report report;
	ssize_t n = fd_recv(sync, &report, sizeof(report), NULL, NULL);

	/* It ended before it read our message: that comes first, and once; then its report. */
	if (n == -ECONNRESET && (n = fd_recv(sync, &report, sizeof(report), NULL, NULL)) == 0)
		n = -ECONNRESET;
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(report))
		return err_set(e, n < 0 ? (int)n : -EPROTO, "read the cell's report");

	/* The first step that needs a capability. */
	if (report.stage == STAGE_PRIVATE && apparmor_restricts(report.error))
		return say_apparmor(report.error, e);

	char text[512];

	stage_describe(&report, p, text, sizeof(text));
	return err_say(e, report.error ? -report.error : -EIO, "%s", text);
}

/* A zygote has no id maps, and so does not wait for a message. */
static int release_child(const struct plan *p, pid_t pid, int sync, struct err *e)
{
	int r = p->zygote ? 0 : idmap_write(&p->ids, pid, e);

	if (r < 0 && apparmor_restricts(-r))
		return say_apparmor(-r, e);
	if (r < 0 || p->zygote)
		return r;
	r = fd_send(sync, "g", 1, NULL, 0);
	/* A child that died by itself has left its report, which says more than EPIPE. */
	return r == -EPIPE ? 0 : r;
}

/*
 * A user namespace belongs to the effective user who makes it, and what is counted per user in it
 * is charged to that user outside (stage.c): so it is never root, but an id of the cell's own
 * or, for a cell that a zygote's kernels enter, the zygote's user. The child's capabilities are
 * those of its own user namespace.
 */
static pid_t clone_as(uid_t owner, struct clone_args *args)
{
	int r = as_user_begin(owner);

	if (r < 0) {
		errno = -r;
		return -1;
	}
	pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));

	if (pid != 0)
		as_user_end(owner);
	return pid;
}

static _Noreturn void run_child(const struct plan *p)
{
	if (p->zygote)
		stage_zygote_run(p);
	stage_run(p);
}

static uint64_t namespaces(const struct plan *p)
{
	if (!p->zygote)
		return CELL_NAMESPACES;
	return p->owner ? ZYGOTE_NAMESPACES : 0;
}

int launch_begin(struct plan *p, const struct cgroup *cgroup, struct launched *ret, struct err *e)
{
	int sync[2], channel[2], status[2] = { -1, -1 }, pidfd = -1;
	int clone_fd = cgroup ? cgroup_clone_fd(cgroup) : -1;

	/* Where v1 has the limits, a zygote's kernels do not leave its unified cgroup
	 * (cgroup.h): so it must not have one of its own, with which they would end. */
	if (p->zygote && cgroup && cgroup->kind != CGROUP_V2)
		clone_fd = -1;
	struct clone_args args = {
		.flags = namespaces(p) | CLONE_PIDFD | (clone_fd >= 0 ? CLONE_INTO_CGROUP : 0),
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

	r = p->zygote ? socket_pair(status, e) : 0;
	if (r < 0)
		return r;
	_fd_ int status_client = status[0];
	_fd_ int status_child = status[1];
	struct init_msg config = { .type = INIT_CONFIG, .u.config = p->config };

	r = p->zygote ? 0 : fd_send(channel_client, &config, sizeof(config), NULL, 0);
	if (r < 0)
		return err_set(e, r, "send init its configuration");
	p->sync_fd = sync_child;
	p->channel_fd = channel_init;
	p->status_fd = status_child;
	r = cgroup ? cgroup_enter_open(cgroup, &p->enter, e) : 0;
	if (r < 0)
		return r;

	pid_t pid = clone_as(p->zygote ? 0 : p->owner, &args);

	if (pid < 0) {
		r = explain_clone(errno, e);
		cgroup_enter_close(&p->enter);
		return r;
	}
	if (pid == 0) {
		(void)close(sync_parent);
		(void)close(channel_client);
		if (status_client >= 0)
			(void)close(status_client);
		run_child(p);
	}
	cgroup_enter_close(&p->enter);
	p->sync_fd = p->channel_fd = p->status_fd = -1;
	*ret = (struct launched){ .pid = pid,
				  .pidfd = pidfd,
				  .sync_fd = TAKE_FD(sync_parent),
				  .status_fd = TAKE_FD(status_client),
				  .channel_fd = TAKE_FD(channel_client) };
	r = release_child(p, pid, ret->sync_fd, e);
	if (r < 0)
		launch_abort(ret);
	return r;
}

void launch_abort(struct launched *l)
{
	(void)kill(l->pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(l->pid, NULL, 0));
	l->pid = 0;
	l->pidfd = fd_close(l->pidfd);
	l->sync_fd = fd_close(l->sync_fd);
	l->status_fd = fd_close(l->status_fd);
	l->channel_fd = fd_close(l->channel_fd);
}

int launch_end(const struct plan *p, struct launched *l, struct err *e)
{
	int r = read_report(l->sync_fd, p, e);

	l->sync_fd = fd_close(l->sync_fd);
	if (r < 0)
		launch_abort(l);
	return r;
}

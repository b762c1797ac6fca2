/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - The child's steps from clone to init.
 *
 * The order matters: enter the cgroups, so that everything after it is charged to the cell; do what
 * needs the host's files under the host's ids; wait until the parent has written the id maps;
 * become the cell's root; leave the host (cgroup namespace, mounts, pivot); and last give up what
 * is not needed to start commands. The parent-death signal is set again after each change of ids,
 * because the Linux kernel clears it there, and then the parent is checked: there is no moment in
 * which a dead warden leaves a living cell.
 */
#include "cell/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/caps.h"
#include "cell/container.h"
#include "cell/plan.h"
#include "cell/spec.h"

/* SETUID and SETGID to start commands as another user, SETPCAP to empty their bounding set, KILL to
 * signal them. All of them count only inside the cell's own user namespace. */
#define INIT_CAPS (1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SETPCAP | 1ull << CAP_KILL)

void stage_fail(const struct plan *p, enum stage_id stage, uint32_t item)
{
	struct stage_report r = { .stage = (uint32_t)stage, .item = item, .error = errno };

	(void)fd_send(p->sync_fd, &r, sizeof(r), NULL, 0);
	_exit(1);
}

void stage_check(const struct plan *p, int r, enum stage_id stage, uint32_t item)
{
	if (r >= 0)
		return;
	errno = -r;
	stage_fail(p, stage, item);
}

void stage_die_with_parent(const struct plan *p)
{
	struct pollfd pfd = { .fd = p->sync_fd };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		stage_fail(p, STAGE_SYNC, 0);
	if (poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR))
		_exit(1);
}

/*
 * Reset attributes that a process inherits beside its descriptors: a real-time class (which a
 * cgroup may refuse), an io class, and a personality, which would weaken the layout of memory. A
 * process of the idle class (`chrt --idle`) cannot leave it without a capability, and need not: the
 * class gives it less.
 */
static void reset_inherited(const struct plan *p)
{
	static const struct sched_param none;
	bool idle = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_IDLE;

	if ((!idle && sched_setscheduler(0, SCHED_OTHER, &none) < 0) ||
	    syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, 0) < 0 || personality(0) < 0)
		stage_fail(p, STAGE_CGROUP, 2);
}

int stage_open_init(const char *path)
{
	_fd_ int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return fd < 0 || mnt_restrict(fd, MNT_SAFE | MOUNT_ATTR_RDONLY) < 0 ? -1 : TAKE_FD(fd);
}

static int open_init(const struct plan *p)
{
	int fd = p->init_fd >= 0 ? p->init_fd : stage_open_init(p->init_path);

	if (fd < 0)
		stage_fail(p, STAGE_INIT, 0);
	return fd;
}

static void become_cell_root(const struct plan *p)
{
	uid_t uid = p->ids.ranged ? 0 : CELL_UID;
	gid_t gid = p->ids.ranged ? 0 : CELL_GID;

	if (p->ids.ranged && setgroups(0, NULL) < 0)
		stage_fail(p, STAGE_USER, 0);
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		stage_fail(p, STAGE_USER, 1);
}

/*
 * Keys are reached through the session keyring, which is inherited from the warden's starter. The
 * filter of a container refuses the call whatever it is asked for: then no process here can reach a
 * key.
 */
void stage_leave_keyring(const struct plan *p)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 || errno == ENOSYS)
		return;
	if (errno == EPERM &&
	    syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 &&
	    errno == EPERM)
		return;
	stage_fail(p, STAGE_KEYRING, 0);
}

/*
 * The Linux kernel charges some resources of a process (inotify instances, queued signals, message
 * queues) to its user in its user namespace, and then once more in each namespace above, to the
 * user who made the namespace below. So two things bound a cell: the limits of its own namespace,
 * and a maker that makes no other. As root the maker is the cell's own first id; for cells that a
 * zygote enters it is the zygote's user, whose account they share, because only the maker may
 * enter. docs/threat-model.md has the table of all counters.
 *
 * These files act on the writer's own namespace. They are written in the cell's own /proc: in the
 * host's, the Linux kernel would look for them among those of all namespaces there are. No user
 * namespace can be made below the cell's, even if the system call filter let it: a second layer
 * against the bugs of the Linux kernel that need one.
 */
static void limit_counters(const struct plan *p, int proc)
{
	const struct {
		const char *path, *value;
	} rows[] = {
		{ "sys/user/max_user_namespaces", "0" },
		{ "sys/user/max_inotify_instances", p->inotify_instances },
		{ "sys/user/max_inotify_watches", p->inotify_watches },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = fd_write_file(proc, rows[i].path, rows[i].value);

		/* Where they cannot be written, the receipt shows it for the first. */
		if (r != -EROFS && r != -EACCES && r != -ENOENT)
			stage_check(p, r, STAGE_COUNTERS, i);
	}
}

/*
 * When the machine runs out of memory, cells are killed before the programs that made them; and
 * when a cell does, its commands before its pid 1. For that init changes its own score around each
 * fork (init/score.c), by the descriptor that is returned. It leads to this one file, of a process
 * that no other can reach. -1: it cannot be opened, and all processes of the cell have the same
 * score.
 */
static int prefer_as_victim(const struct plan *p)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno != EROFS && errno != EACCES)
		stage_fail(p, STAGE_CGROUP, 1);
	if (fd >= 0 && write(fd, INIT_SCORE, strlen(INIT_SCORE)) < 0 && errno != EACCES)
		stage_fail(p, STAGE_CGROUP, 3);
	return fd;
}

/* A copy above all numbers that init has. */
static int lift(const struct plan *p, int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, INIT_SCORE_FD + 1);

	if (high < 0)
		stage_fail(p, STAGE_STDIO, 1);
	return high;
}

/*
 * Init has /dev/null as stdio, its channel as descriptor 3, then those of its machine, its score,
 * and nothing else. All are first copied above the numbers that they go to, so that no copy
 * overwrites one still needed: init's program and the way to report are among those.
 */
static void set_descriptors(const struct plan *p, int score, int *init)
{
	_Static_assert(MACHINE_FD_FILES == INIT_FD + 1, "the channel comes first");
	_Static_assert(INIT_SCORE_FD == MACHINE_FD_END, "the score comes last");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[INIT_SCORE_FD + 1] = { null, null, null, p->channel_fd };

	if (null < 0)
		stage_fail(p, STAGE_STDIO, 0);
	machine_descriptors(p, fds + MACHINE_FD_FILES);
	fds[INIT_SCORE_FD] = score;
	*init = lift(p, *init);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = lift(p, fds[i] < 0 ? null : fds[i]);
	((struct plan *)p)->sync_fd = lift(p, p->sync_fd);
	for (int i = 0; i < (int)ARRAY_SIZE(fds); i++)
		if (dup2(fds[i], i) < 0)
			stage_fail(p, STAGE_STDIO, 2);
	if (syscall(SYS_close_range, (unsigned int)ARRAY_SIZE(fds), ~0u,
		    1u << 2 /* CLOSE_RANGE_CLOEXEC */) < 0)
		stage_fail(p, STAGE_STDIO, 3);
}

void stage_run(const struct plan *p)
{
	static char name[] = "caisson-init";
	static char *const argv[] = { name, NULL };
	static char *const envp[] = { NULL };
	char go;

	stage_die_with_parent(p);
	reset_inherited(p);
	/* Before the other steps, so that they are charged to the cell. */
	stage_check(p, cgroup_enter_self(&p->enter), STAGE_CGROUP, 0);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		stage_fail(p, STAGE_PRIVATE, 0);
	int init = open_init(p);
	int score = prefer_as_victim(p);

	machine_enter(p);

	if (fd_recv(p->sync_fd, &go, 1, NULL, NULL) != 1)
		_exit(1);
	become_cell_root(p);
	stage_die_with_parent(p);
	if (unshare(CLONE_NEWCGROUP) < 0)
		stage_fail(p, STAGE_CGROUPNS, 0);
	stage_leave_keyring(p);
	int proc = root_proc(p);

	limit_counters(p, proc);
	stage_net_settings(p, proc);
	root_build(p, proc);
	stage_net(p);
	if (sethostname(CELL_HOSTNAME, sizeof(CELL_HOSTNAME) - 1) < 0)
		stage_fail(p, STAGE_HOSTNAME, 0);
	(void)setsid();
	set_descriptors(p, score, &init);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		stage_fail(p, STAGE_CAPS, 1);
	stage_check(p, caps_keep(INIT_CAPS, 1), STAGE_CAPS, 0);
	(void)syscall(SYS_execveat, init, "", argv, envp, AT_EMPTY_PATH);
	stage_fail(p, STAGE_EXEC, 0);
}

static const char *const stage_text[] = {
	[STAGE_SYNC] = "end together with the warden",
	[STAGE_CGROUP] = "enter the cell's cgroups",
	[STAGE_PRIVATE] = "make the mount namespace private",
	[STAGE_INIT] = "open caisson-init",
	[STAGE_USER] = "become the cell's root user",
	[STAGE_CGROUPNS] = "make a cgroup namespace",
	[STAGE_COUNTERS] = "limit what the user namespace may count",
	[STAGE_KEYRING] = "leave the caller's keyring",
	[STAGE_LAYER] = "make the writable layer (tmpfs)",
	[STAGE_LOWER] = "bring a layer of the image in",
	[STAGE_OVERLAY] = "make the overlay root",
	[STAGE_TREE] = "make the directories of the root",
	[STAGE_ETC] = "write /etc",
	[STAGE_USR] = "bring /usr in, read-only",
	[STAGE_PROC] = "mount /proc",
	[STAGE_MASK] = "mask /proc",
	[STAGE_DEV] = "make /dev",
	[STAGE_PTS] = "mount /dev/pts",
	[STAGE_MOUNT] = "mount",
	[STAGE_PIVOT] = "change the root",
	[STAGE_LOOPBACK] = "set up lo and its addresses",
	[STAGE_HOSTNAME] = "set the host name",
	[STAGE_STDIO] = "set up descriptors",
	[STAGE_CAPS] = "drop capabilities",
	[STAGE_EXEC] = "execute caisson-init",
};
_Static_assert(ARRAY_SIZE(stage_text) == STAGE_MAX_, "stage_text[] vs enum stage_id");

static const char *stage_hint(const struct stage_report *r, const struct plan_mount *mount)
{
	if (r->stage == STAGE_PROC && r->error == EPERM)
		return "; a container hides parts of /proc from us: run it with an unmasked /proc "
		       "(docker: --security-opt systempaths=unconfined)";
	if (r->stage == STAGE_PRIVATE && r->error == EACCES)
		return "; a security module forbids mounts (docker: " CONTAINER_UNCONFINED ")";
	if (r->stage == STAGE_PIVOT && r->error == EPERM)
		return "; a filter of system calls forbids it (docker: " CONTAINER_FILTER ")";
	if (r->stage == STAGE_OVERLAY && (r->error == ENODEV || r->error == EPERM))
		return "; this kernel does not give overlayfs to user namespaces (needs Linux 5.11 "
		       "and the overlay module)";
	if (mount && mount->apart && r->error == EINVAL)
		return "; a read-only directory is shown through an overlay, so that sockets of "
		       "the host in it are out of reach, and something is mounted below this one, "
		       "or its filesystem cannot be part of an overlay: mount directories in it "
		       "one by one, or a copy";
	if (r->stage == STAGE_MOUNT && (r->error == ENOTDIR || r->error == EINVAL))
		return "; a file can only be mounted on a file, a directory on a directory";
	if (r->stage == STAGE_MOUNT && r->error == ELOOP)
		return "; the place in the cell leads through a symbolic link";
	if (r->stage == STAGE_MOUNT && r->error == EROFS)
		return "; the place in the cell does not exist and its parent is read-only";
	return "";
}

void stage_describe(const struct stage_report *r, const struct plan *p, char *msg, uint32_t size)
{
	uint32_t stage = r->stage < STAGE_MAX_ ? r->stage : STAGE_SYNC;
	bool of_mount = stage == STAGE_MOUNT && r->item < p->n_mounts;
	const char *what = stage_text[stage];
	const char *item = of_mount ? p->spec->mounts[r->item].dst : "";

	(void)snprintf(msg, size, "%s%s%s: %s%s", what, *item ? " " : "", item, strerror(r->error),
		       stage_hint(r, of_mount ? &p->mounts[r->item] : NULL));
}

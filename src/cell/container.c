/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.c - In a container: take back what root may, and name what only its engine can give.
 *
 * Theory of operation. Nothing is concluded from the defaults of an engine, which differ between
 * versions: capabilities are read, system calls and mounts are tried. The trial is a child in new
 * user, mount and pid namespaces, as the first process of a cell is. A filter answers EPERM or
 * ENOSYS before the Linux kernel looks at any argument, so each call has arguments that it refuses
 * in another way: nothing happens where the call is allowed.
 *
 * A new /proc can be mounted in a user namespace only where an uncovered one is visible, so cells
 * could not have theirs; and limits that a cell sets for itself are files of /proc/sys, which
 * engines make read-only. Root of the machine's user namespace is free of that rule and mounts a
 * whole one for itself. In a container that is itself in a user namespace (rootless engines) there
 * is no way around it: the engine has to leave /proc uncovered.
 *
 * Why it is safe to take back. With CAP_SYS_ADMIN any process of the container can do the same; it
 * happens in a mount namespace that only our processes are in. The one tree that becomes writable
 * begins at the container's own cgroup, so every limit on the container still binds all cells.
 * Where the tree of the whole machine is visible, nothing is unlocked and nothing starts.
 */
#include "cell/container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/cgroup.h"
#include "cell/stage.h"

#define CAP(name) (1ull << CAP_##name)
/* Beside the warden's: services give up their root directory, and the state directory gets parts
 * that belong to other users. */
#define ROOT_CAPS (WARDEN_CAPS | CAP(CHOWN) | CAP(FOWNER) | CAP(SYS_CHROOT))
#define MOUNTS_TEXT_MAX (1u << 20)

const char *container_engine(void)
{
	static const struct {
		const char *path, *name;
	} marks[] = { { "/.dockerenv", "docker" }, { "/run/.containerenv", "podman" } };
	const char *word = getenv("container"); /* systemd's convention for containers */

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (access(marks[i].path, F_OK) == 0)
			return marks[i].name;
	return word && *word ? "container" : NULL;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* In a user namespace, only some ids of the machine exist. */
static bool whole_ids(void)
{
	char text[256];
	unsigned long long inside, outside, count;

	return fd_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) > 0 &&
	       sscanf(text, "%llu %llu %llu", &inside, &outside, &count) == 3 &&
	       count >= UINT32_MAX;
}

/* Whether something is mounted over a part of /proc. */
static bool proc_covered(void)
{
	_fd_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	_buf_ struct buf text = BUF_INIT(MOUNTS_TEXT_MAX);

	return fd >= 0 && fd_read_buf(fd, &text) == 0 && strstr(buf_str(&text), " /proc/");
}

/* AppArmor's profile, or the context of SELinux. */
static void read_label(char *ret, size_t size)
{
	ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/attr/apparmor/current", ret, size);

	if (n <= 0)
		n = fd_read_file(AT_FDCWD, "/proc/self/attr/current", ret, size);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

enum { DENIED_CALL = 1, DENIED_MOUNT = 2 };

/* Any answer but EPERM and ENOSYS is the Linux kernel's own. */
static const struct trial {
	long call;
	long args[5];
	bool may_lack; /* also by an older or smaller Linux kernel */
} trials[] = {
	{ SYS_pivot_root, { 0, 0 }, false },
	{ SYS_fsopen, { 0, 0 }, false },
	{ SYS_fsconfig, { -1, 0, 0, 0, 0 }, false },
	{ SYS_fsmount, { -1, 0, 0 }, false },
	{ SYS_open_tree, { -1, 0, 0 }, false },
	{ SYS_move_mount, { -1, 0, -1, 0, 0 }, false },
	{ SYS_mount_setattr, { -1, 0, 0, 0, 0 }, false },
	{ SYS_umount2, { 0, 0 }, false },
	{ SYS_setns, { -1, 0 }, false },
	{ SYS_unshare, { 0 }, false },
	{ SYS_clone3, { 0, 0 }, false },
	{ SYS_seccomp, { SECCOMP_SET_MODE_FILTER, 0, 0 }, false },
	{ SYS_landlock_create_ruleset, { 0, 0, LANDLOCK_CREATE_RULESET_VERSION }, true },
};

static _Noreturn void try_calls(void)
{
	int denied = 0;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		denied |= errno == EACCES ? DENIED_MOUNT : DENIED_CALL;
	for (size_t i = 0; i < ARRAY_SIZE(trials); i++) {
		const struct trial *t = &trials[i];

		if (syscall(t->call, t->args[0], t->args[1], t->args[2], t->args[3], t->args[4]) <
			    0 &&
		    (errno == EPERM || (errno == ENOSYS && !t->may_lack)))
			denied |= DENIED_CALL;
	}
	_exit(denied);
}

/* By clone(2), not clone3(2): a filter can see its flags, so engines refuse these and no others. */
static void try_namespaces(struct container *c)
{
	const long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD;
	pid_t pid = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
	/* The profiles that engines bring deny mounts: that counts where none could be tried. */
	bool confined = c->label[0] && !strstr(c->label, "unconfined");
	int status = 0;

	if (pid == 0)
		try_calls();
	if (pid < 0) {
		c->call_denied = errno == EPERM || errno == ENOSYS;
		c->mount_denied = confined;
	} else if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) == pid && WIFEXITED(status)) {
		c->call_denied = WEXITSTATUS(status) & DENIED_CALL;
		c->mount_denied = confined && WEXITSTATUS(status) & DENIED_MOUNT;
	}
	/* Without a filter it is the Linux kernel's own setting. */
	c->call_denied = c->call_denied && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
}

void container_look(struct container *ret)
{
	struct container *c = ret;

	*c = (struct container){ .engine = container_engine(),
				 .root = geteuid() == 0,
				 .whole_ids = whole_ids(),
				 .proc_covered = proc_covered(),
				 .cgroup_of_machine = cgroup_site_is_machine() };
	(void)caps_permitted(&c->caps);
	read_label(c->label, sizeof(c->label));
	try_namespaces(c);
}

/* ---- naming --------------------------------------------------------------------------------- */

struct list {
	char *at;
	size_t left;
};

static void add(struct list *l, const char *option, const char *value)
{
	int n = snprintf(l->at, l->left, "%s%s", option, value);
	size_t used = n < 0 ? 0 : (size_t)n < l->left ? (size_t)n : l->left - 1;

	l->at += used;
	l->left -= used;
}

static uint64_t caps_missing(const struct container *c)
{
	uint64_t want = ROOT_CAPS | (c->whole_ids ? 0 : CAP(SETFCAP));

	return c->root ? want & ~c->caps : 0;
}

char *container_options(const struct container *c, char *ret, size_t size)
{
	struct list l = { ret, size };
	uint64_t missing = caps_missing(c);

	ret[0] = '\0';
	for (int cap = 0; cap < 64; cap++)
		if (missing & 1ull << cap)
			add(&l, " --cap-add ", caps_name(cap));
	if (c->call_denied)
		add(&l, " " CONTAINER_FILTER, "");
	if (c->mount_denied)
		add(&l, " ",
		    strchr(c->label, ':') ? "--security-opt label=disable" : CONTAINER_UNCONFINED);
	if (c->proc_covered && !(c->root && c->whole_ids))
		add(&l, " --security-opt ",
		    strcmp(c->engine, "podman") == 0 ? "unmask=ALL" : "systempaths=unconfined");
	if (c->cgroup_of_machine)
		add(&l, " --cgroupns=private", "");
	if (ret[0])
		memmove(ret, ret + 1, strlen(ret));
	return ret;
}

bool container_missing(char *ret, size_t size)
{
	struct container c;

	ret[0] = '\0';
	if (!container_engine())
		return false;
	container_look(&c);
	return container_options(&c, ret, size)[0] != '\0';
}

int container_check(struct err *e)
{
	char options[CONTAINER_OPTIONS_MAX];

	if (!container_missing(options, sizeof(options)))
		return 0;
	return err_say(e, -EPERM,
		       "this container lacks what cells are made with: start it with %s "
		       "(docs/container.md)",
		       options);
}

/* ---- taking back ---------------------------------------------------------------------------- */

int container_enter(struct err *e)
{
	static const struct mnt_option none[] = { { NULL, NULL } };
	uint64_t have = 0;

	(void)caps_permitted(&have);
	if (!container_engine() || geteuid() != 0 || !(have & CAP(SYS_ADMIN)) ||
	    (!proc_covered() && !cgroup_site_is_locked()) || unshare(CLONE_NEWNS) < 0)
		return 0;
	/* Mounts of the engine still arrive here; ours go nowhere. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return errno == EACCES ? 0 : err_set(e, -errno, "leave the container's mounts");
	_fd_ int proc = mnt_make("proc", none, MNT_SAFE | MOUNT_ATTR_NOEXEC);

	if (proc >= 0 && move_mount(proc, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(e, -errno, "mount a whole /proc");
	cgroup_site_unlock();
	return 0;
}

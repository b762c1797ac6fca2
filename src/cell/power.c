/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power.c - The steps by which a service gives up its rights.
 *
 * The order is forced, because each step may need what a later one takes away: the root (needs
 * CAP_SYS_CHROOT), the bounding set (needs CAP_SETPCAP), the user (needs CAP_SETUID), the other
 * capability sets, no-new-privileges (which the next two require), Landlock, and the filter last.
 */
#include "cell/power.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/seccomp.h"

static int become(const struct power_user *u, struct err *e)
{
	int r = caps_bound(0);

	if (r < 0)
		return err_set(e, r, "empty the capability bounding set");
	if (setgroups(0, NULL) == 0 && setresgid(u->gid, u->gid, u->gid) == 0 &&
	    setresuid(u->uid, u->uid, u->uid) == 0)
		return 0;
	if (!u->name)
		return err_set(e, -errno, "become user %u", u->uid);
	return err_set(e, -errno,
		       "become user %u, without groups; in a user namespace that lacks this id, "
		       "make a user '%s' with one that it has, or start as an ordinary user",
		       u->uid, u->name);
}

/* Map the one user and group that we are to themselves, so that files look as they did. */
static int map_self(uid_t uid, gid_t gid)
{
	char users[64], groups[64];

	(void)snprintf(users, sizeof(users), "%u %u 1", uid, uid);
	(void)snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
	int r;

	if ((r = fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny")) < 0 ||
	    (r = fd_write_file(AT_FDCWD, "/proc/self/uid_map", users)) < 0)
		return r;
	return fd_write_file(AT_FDCWD, "/proc/self/gid_map", groups);
}

int power_root(int dir, struct err *e)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	if (POWER_SANITIZED)
		return 0;
	int r = uid && unshare(CLONE_NEWUSER) < 0 ? -errno : 0;

	if (r == 0 && uid)
		r = map_self(uid, gid);
	if (r == 0 && (fchdir(dir) < 0 || chroot(".") < 0))
		r = -errno;
	return r < 0 ? err_set(e, r, "make its directory its root (takes %s)",
			       uid ? "a user namespace, see caisson doctor" : "CAP_SYS_CHROOT") :
		       0;
}

int power_leave(const struct power_user *u, struct err *e)
{
	int r;

	if (u->uid && become(u, e) < 0)
		return e->code;
	r = caps_drop();
	if (r < 0)
		return err_set(e, r, "drop capabilities");
	/* Tried, not concluded: the way back must be closed. */
	if (u->uid && (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0))
		return err_say(e, -EPERM, "still able to become root after giving it up");
	return 0;
}

int power_settle(struct err *e)
{
	const struct rlimit no_core = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set(e, -errno, "set RLIMIT_CORE");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "set no-new-privileges");
	/* After the change of user, which resets it: memory may hold tokens and keys. */
	if (prctl(PR_SET_DUMPABLE, POWER_SANITIZED, 0, 0, 0) < 0)
		return err_set(e, -errno, "become undumpable");
	/* The inherited keyring is the administrator's. A Linux kernel without keys has nothing to
	 * give up, and where a container refuses the call it refuses the keys as well. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return 0;
}

/* A Linux kernel that has filters reads the program, and fails with EFAULT. */
bool power_has_filters(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) < 0 && errno == EFAULT;
}

int power_confine(const struct landlock_dir *dirs, size_t n, const struct sock_filter *filter,
		  size_t len, struct err *e)
{
	if (POWER_SANITIZED)
		return 0;
	int r = landlock_deny_all_but(dirs, n);

	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	return seccomp_install_program(filter, len, e);
}

int power_confine_client(const struct landlock_dir *own, const struct sock_filter *filter,
			 size_t len, struct err *e)
{
	/* Where names and certificates are; resolv.conf is often a link into /run. */
	static const char *const read_only[] = { "/etc", "/usr/share/ca-certificates",
						 "/run/systemd/resolve", "/run/resolvconf" };
	struct landlock_dir dirs[1 + ARRAY_SIZE(read_only)];
	size_t n = 0, first;
	int r;

	if (POWER_SANITIZED)
		return 0;
	if (own)
		dirs[n++] = *own;
	first = n;
	for (size_t i = 0; i < ARRAY_SIZE(read_only); i++) {
		int fd = open(read_only[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			dirs[n++] =
				(struct landlock_dir){ fd, LANDLOCK_READ_FILE | LANDLOCK_READ_DIR };
	}
	r = landlock_deny_files_but(dirs, n);
	while (n > first)
		fd_close(dirs[--n].fd);
	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	return seccomp_install_program(filter, len, e);
}

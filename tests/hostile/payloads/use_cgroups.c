/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_cgroups.c - Find, mount and use a cgroup filesystem, v1 and v2, to leave the own cgroup, to
 * lift its limits, or to have the kernel run a program on the host (release_agent).
 *
 *   use_cgroups DIR
 *
 * Prints "HAVE path" for each cgroup control file that opens for writing. Nothing is written.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static const char *const controllers[] = { "memory", "pids",    "cpu",        "devices",
					   "rdma",   "freezer", "none,name=x" };

static void look(const char *dir)
{
	static const char *const names[] = { "cgroup.procs",     "tasks",
					     "release_agent",    "notify_on_release",
					     "devices.allow",    "memory.limit_in_bytes",
					     "memory.max",       "pids.max",
					     "cpu.cfs_quota_us", "cgroup.subtree_control",
					     "cgroup.kill" };
	char path[700];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)printf("HAVE %s\n", path);
			(void)close(fd);
		}
	}
	(void)snprintf(path, sizeof(path), "%s/e-cgroup-child", dir);
	if (access(dir, F_OK) == 0 && strncmp(dir, "/sys", 4) == 0 && mkdir(path, 0755) == 0) {
		(void)printf("HAVE %s\n", path);
		(void)rmdir(path);
	}
}

static void try_mounts(const char *dir, const char *round)
{
	char name[64];

	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s-mount-v1-%s", round, controllers[i]);
		if (say(name, mount("cgroup", dir, "cgroup", 0, controllers[i])) == 0) {
			look(dir);
			(void)umount2(dir, MNT_DETACH);
		}
	}
	(void)snprintf(name, sizeof(name), "%s-mount-v2", round);
	if (say(name, mount("cgroup2", dir, "cgroup2", 0, NULL)) == 0) {
		look(dir);
		(void)umount2(dir, MNT_DETACH);
	}
	(void)snprintf(name, sizeof(name), "%s-fsopen-v2", round);
	say(name, syscall(SYS_fsopen, "cgroup2", 0));
}

int main(int argc, char **argv)
{
	static const char *const places[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/memory",
					      "/sys/fs/cgroup/pids",
					      "/sys/fs/cgroup/devices",
					      "/sys/fs/cgroup/unified",
					      "/cgroup",
					      "/proc/1/root/sys/fs/cgroup/memory" };
	char dir[600];

	if (argc != 2)
		return 2;
	(void)snprintf(dir, sizeof(dir), "%s/cg", argv[1]);
	(void)mkdir(dir, 0755);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		look(places[i]);
	try_mounts(dir, "plain");
	/* CVE-2022-0492: a user namespace of one's own, and a cgroup namespace in it. */
	say("unshare-user-cgroup", unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP));
	try_mounts(dir, "userns");
	(void)printf("done\n");
	return 0;
}

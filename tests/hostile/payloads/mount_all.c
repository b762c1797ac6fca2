/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_all.c - Change the mounts, the root or the namespaces, through every interface.
 *
 *   mount_all DIR TARGET   DIR: a directory we may write. TARGET: a read-only mount
 *
 * Nothing here acts on a superblock, only on mounts: the control runs in a mount namespace of its
 * own, and superblocks are shared with everybody. The last lines say what an attempt changed:
 * whether a file could be made below TARGET, and whether our own view of the mounts is another one.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static char dir[512], target[512];

static void classic(void)
{
	say("mount-tmpfs", mount("none", dir, "tmpfs", 0, NULL));
	say("mount-proc", mount("none", dir, "proc", 0, NULL));
	say("mount-bind", mount("/usr", dir, NULL, MS_BIND | MS_REC, NULL));
	say("mount-over-proc", mount("none", "/proc/sys", "tmpfs", 0, NULL));
	say("remount-rw", mount(NULL, target, NULL, MS_REMOUNT | MS_BIND, NULL));
	say("make-shared", mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
	say("move", mount(target, dir, NULL, MS_MOVE, NULL));
	/* With a mask of 0xffff0000 the old magic number is stripped: another way to say the same.
	 */
	say("mount-magic", mount("none", dir, "tmpfs", MS_MGC_VAL, NULL));
}

static void modern(void)
{
	struct mount_attr rw = { .attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					     MOUNT_ATTR_NODEV };
	int fs = (int)say("fsopen", syscall(SYS_fsopen, "tmpfs", 0));

	say("fsconfig", syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	int mnt = (int)say("fsmount", syscall(SYS_fsmount, fs, 0, 0));

	say("move_mount", syscall(SYS_move_mount, mnt, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH));
	say("fspick", syscall(SYS_fspick, AT_FDCWD, dir, 0));
	int tree = (int)say("open_tree", syscall(SYS_open_tree, AT_FDCWD, target, OPEN_TREE_CLONE));

	say("mount_setattr-tree",
	    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &rw, sizeof(rw)));
	say("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, target, 0, &rw, sizeof(rw)));
	say("move_mount-tree",
	    syscall(SYS_move_mount, tree, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH));
}

static void namespaces(void)
{
	static const struct {
		const char *name;
		int flag;
	} kinds[] = {
		{ "mnt", CLONE_NEWNS },  { "pid", CLONE_NEWPID },   { "net", CLONE_NEWNET },
		{ "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS },   { "cgroup", CLONE_NEWCGROUP },
		{ "time", 0x80 },        { "user", CLONE_NEWUSER },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "/proc/self/ns/%s", kinds[i].name);
		int fd = open(text, O_RDONLY | O_CLOEXEC);

		(void)snprintf(text, sizeof(text), "setns-%s", kinds[i].name);
		say(text, setns(fd, kinds[i].flag));
		(void)close(fd);
		(void)snprintf(text, sizeof(text), "unshare-%s", kinds[i].name);
		say(text, unshare(kinds[i].flag));
	}
	say("unshare-user-mnt", unshare(CLONE_NEWUSER | CLONE_NEWNS));
}

int main(int argc, char **argv)
{
	char probe[600], before[128] = "", after[128] = "";

	if (argc != 3)
		return 2;
	(void)snprintf(dir, sizeof(dir), "%s/d", argv[1]);
	(void)snprintf(target, sizeof(target), "%s", argv[2]);
	(void)mkdir(dir, 0755);
	(void)!readlink("/proc/self/ns/mnt", before, sizeof(before) - 1);
	modern();
	classic();
	(void)snprintf(probe, sizeof(probe), "%s/mount_all-was-here", target);
	say("write-target", open(probe, O_WRONLY | O_CREAT, 0644));
	say("umount-target", umount2(target, MNT_DETACH));
	namespaces();
	(void)!readlink("/proc/self/ns/mnt", after, sizeof(after) - 1);
	(void)printf("mnt-namespace %s\n", strcmp(before, after) ? "changed" : "same");
	say("pivot_root", syscall(SYS_pivot_root, dir, dir));
	say("chroot", chroot(dir));
	(void)printf("done\n");
	(void)fflush(stdout);
	(void)getchar(); /* the judge compares our mounts from outside */
	return 0;
}

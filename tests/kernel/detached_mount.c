/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detached_mount.c - A mount made and restricted outside can be placed by a new user namespace.
 *
 * As root the warden clones the caller's mount, makes it read-only (or shifts its ids) while
 * nobody sees it, and hands the descriptor to the child, which moves it into the new root
 * (src/cell/plan.c, src/cell/root.c). That rests on move_mount() taking a detached mount of
 * another user namespace. The restriction is not locked: a process with CAP_SYS_ADMIN in the
 * child's namespaces could take it off. It stays because the child gives that capability up for
 * itself and all its descendants before it starts init. Both halves are shown: placed and
 * read-only, and not to be changed without the capability.
 */
#include "probe.h"

#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int drop_all(void)
{
	struct {
		uint32_t version;
		int pid;
	} head = { 0x20080522, 0 };
	uint32_t none[6] = { 0 };

	return (int)syscall(SYS_capset, &head, none);
}

static int child(int tree, const char *dir, int go)
{
	struct mount_attr off = { .attr_clr = MOUNT_ATTR_RDONLY };
	char path[128];

	if (probe_wait(go, 5000) != 1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return PROBE_CANNOT;
	if (move_mount(tree, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return 10;
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	if (open(path, O_RDWR) >= 0 || errno != EROFS)
		return 11;
	if (drop_all() < 0)
		return PROBE_CANNOT;
	if (mount_setattr(AT_FDCWD, dir, 0, &off, sizeof(off)) == 0 || errno != EPERM)
		return 12;
	if (mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND, NULL) == 0 || errno != EPERM)
		return 13;
	return open(path, O_RDONLY) >= 0 ? PROBE_HOLDS : 14;
}

int main(void)
{
	char dir[] = "/tmp/probe-mount.XXXXXX", path[128];
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };
	int go[2];

	if (geteuid() != 0)
		probe_end(PROBE_CANNOT, "only root makes mounts outside");
	probe_must(mkdtemp(dir) && pipe(go) == 0, "make a directory and a pipe");
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	int fd = open(path, O_CREAT | O_WRONLY, 0644);
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int ok = fd >= 0 && chmod(dir, 0755) == 0 && tree >= 0 &&
		 mount_setattr(tree, "", AT_EMPTY_PATH, &ro, sizeof(ro)) == 0;
	pid_t pid = ok ? probe_clone(CLONE_NEWUSER | CLONE_NEWNS) : -1;
	int saved = errno, code = -1;

	if (pid == 0)
		_exit(child(tree, dir, go[0]));
	if (pid > 0) {
		if (probe_map(pid, 0, 0) == 0)
			(void)!write(go[1], "x", 1);
		(void)close(go[1]);
		code = probe_exit_code(pid);
	}
	(void)unlink(path);
	(void)rmdir(dir);
	errno = saved;
	probe_must(pid > 0, "prepare a mount and a child");
	if (code == PROBE_CANNOT)
		probe_end(PROBE_CANNOT, "the child could not be set up");
	if (code != PROBE_HOLDS)
		probe_end(PROBE_FAILS,
			  "step %d: 10 not placed, 11 writable, 12 and 13 restriction taken off, "
			  "14 unreadable",
			  code);
	probe_end(PROBE_HOLDS, "placed by another user namespace, read-only, and so it stays");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnt.c - Steps of building a root: directories and mounts below a root that may be hostile.
 *
 * For the child between clone and exec: system calls only. All return a descriptor or 0, or -1 with
 * errno. Mounts are detached until mnt_place().
 */
#include "cell/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/warden.h"

int mnt_beneath(int root, const char *path, int flags)
{
	return fd_openat2(root, path, flags,
			  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int mnt_ensure_dir(int root, const char *path)
{
	_fd_ int dir = dup(root);

	while (dir >= 0 && *path) {
		char part[CELL_DST_MAX];
		size_t n = strcspn(path, "/");

		memcpy(part, path, n);
		part[n] = '\0';
		path += n + (path[n] == '/');
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return -1;
		int next = mnt_beneath(dir, part, O_PATH | O_DIRECTORY);

		fd_close(dir);
		dir = next;
	}
	return TAKE_FD(dir);
}

static int ensure_file(int root, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char parent[CELL_DST_MAX] = "";

	if (slash)
		memcpy(parent, path, (size_t)(slash - path));
	_fd_ int dir = mnt_ensure_dir(root, parent);

	if (dir < 0)
		return -1;
	_fd_ int made = mnt_beneath(dir, name, O_CREAT | O_EXCL | O_WRONLY);

	if (made < 0 && errno != EEXIST && errno != EROFS)
		return -1;
	return mnt_beneath(dir, name, O_PATH);
}

int mnt_place(int mount, int root, const char *path, bool is_dir)
{
	_fd_ int target = is_dir ? mnt_ensure_dir(root, path) : ensure_file(root, path);

	if (target < 0)
		return -1;
	return move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int mnt_bind(const char *from, const char *to, bool is_dir)
{
	int r = is_dir ? mkdir(to, 0755) : mknod(to, S_IFREG, 0);

	if (r < 0 && errno != EEXIST)
		return -1;
	return mount(from, to, NULL, MS_BIND, NULL);
}

int mnt_over_host(int mount)
{
	return move_mount(mount, "", AT_FDCWD, MNT_OVER_HOST, MOVE_MOUNT_F_EMPTY_PATH);
}

int mnt_restrict(int mount, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };

	return mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

int mnt_of_host(const char *path, uint64_t attrs)
{
	int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd >= 0 && mnt_restrict(fd, attrs) < 0)
		return fd_close(fd);
	return fd;
}

int mnt_make(const char *type, const struct mnt_option *options, uint64_t attrs)
{
	_fd_ int fs = fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	for (; options->key; options++)
		if (fsconfig(fs, options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			     options->key, options->value, 0) < 0)
			return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, (unsigned int)attrs);
}

int mnt_view(const char *lower)
{
	/* Without "xino=off" the Linux kernel writes a line to its log at each mount. */
	const struct mnt_option options[] = {
		{ "lowerdir", lower }, { "redirect_dir", "nofollow" },
		{ "index", "off" },    { "metacopy", "off" },
		{ "xino", "off" },     { "userxattr", NULL },
		{ NULL, NULL },
	};

	return mnt_make("overlay", options, MNT_SAFE | MOUNT_ATTR_RDONLY);
}

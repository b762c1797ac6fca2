/* SPDX-License-Identifier: Apache-2.0 */
/* protect.c - The protected names, the files that are made for them, and the mounts upon them. */
#include "cell/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/stage.h"

/* docs/workspaces.md has the same list. */
const struct protect_name protect_names[] = {
	{ ".git", true },       { ".gitmodules", false },   { ".gitattributes", false },
	{ ".bashrc", false },   { ".bash_profile", false }, { ".bash_login", false },
	{ ".profile", false },  { ".zshrc", false },        { ".zshenv", false },
	{ ".zprofile", false }, { ".ssh", true },           { ".envrc", false },
	{ ".npmrc", false },    { ".mcp.json", false },     { ".vscode", true },
	{ ".idea", true },      { ".claude", true },        { ".cursor", true },
	{ "CLAUDE.md", false }, { "AGENTS.md", false },
};
const size_t protect_names_n = ARRAY_SIZE(protect_names);

/* The owner of the directory becomes the owner of the file. */
static int make_missing(int dir, const struct protect_name *n)
{
	struct stat top;
	int r = n->dir ? mkdirat(dir, n->path, 0755) :
			 openat(dir, n->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				0644);

	if (r < 0)
		return -errno;
	if (!n->dir)
		fd_close(r);
	if (geteuid() == 0 && fstat(dir, &top) == 0 &&
	    fchownat(dir, n->path, top.st_uid, top.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static bool is_link(int at)
{
	struct stat st;

	return fstat(at, &st) < 0 || S_ISLNK(st.st_mode);
}

int protect_prepare(int dir, struct err *e)
{
	for (size_t i = 0; i < protect_names_n; i++) {
		const struct protect_name *n = &protect_names[i];
		_fd_ int at = mnt_beneath(dir, n->path, O_PATH | O_NOFOLLOW);
		int r = at < 0 ? -errno : is_link(at) ? -ELOOP : 0;

		if (r == -ENOENT)
			r = make_missing(dir, n);
		if (r == -ELOOP)
			return err_say(e, r,
				       "'%s' in it is a symbolic link, and cannot be protected: "
				       "replace it, or mount with :rw-unprotected",
				       n->path);
		if (r < 0)
			return err_set(e, r, "make '%s' in it, to protect it", n->path);
	}
	return 0;
}

static int cover_one(int top, const struct protect_name *n)
{
	_fd_ int at = mnt_beneath(top, n->path, O_PATH | O_NOFOLLOW);

	if (at < 0)
		return -1;
	if (is_link(at)) { /* it was replaced since protect_prepare() */
		errno = ELOOP;
		return -1;
	}
	_fd_ int copy = open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (copy < 0 || mnt_restrict(copy, MOUNT_ATTR_RDONLY) < 0)
		return -1;
	return move_mount(copy, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int protect_cover(int root, const char *dst)
{
	_fd_ int top = mnt_beneath(root, dst, O_PATH | O_DIRECTORY);

	if (top < 0)
		return -1;
	for (size_t i = 0; i < protect_names_n; i++)
		if (cover_one(top, &protect_names[i]) < 0)
			return -1;
	return 0;
}

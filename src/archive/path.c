/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - Why an archive cannot write outside of the directory that it is unpacked into.
 *
 * 1. Paths are text that only descends: tar_path_check() refuses an absolute path and every "..",
 *    wherever it is, and tar_path_tidy() leaves components that are names. tar_reader.c hands out
 *    no other path.
 *
 * 2. Text that descends may still leave through a symbolic link. tar_parent() therefore never gives
 *    the Linux kernel a path with a slash: it opens one component after the other, each relative to
 *    the descriptor of the one before, with O_NOFOLLOW and O_DIRECTORY. A link that was there, that
 *    the archive itself brought, or that a process in the cell exchanges for a directory meanwhile
 *    ends the walk with ENOTDIR. A descriptor keeps its directory even if somebody renames it.
 *
 * 3. The last component is made with calls that fail at an existing name (O_CREAT|O_EXCL, mkdirat,
 *    symlinkat, linkat), after tar_clear() where the caller replaces names. unlinkat() removes a
 *    link, not its target. So nothing is written through an old name, and a hard link to a file
 *    outside loses its name only.
 *
 * 4. The target of a hard link is held to the rules of a path (tar_reader.c) and found by
 *    tar_parent() too.
 *
 * A symbolic link is harmless while it is unpacked, by 2. It can still mislead a later reader of
 * the tree. Where such readers are outside of a cell, tar_link_inside() decides. Its rule: a target
 * climbs only at its beginning, and not above the root. The directory that holds the link is a real
 * one (by 2), so these steps lead where they seem to. A ".." after a name is refused, because that
 * name may be another link, and then nobody can tell from the text where the ".." leads. After the
 * climb a target only descends, perhaps through other links, which are held to the same rule. By
 * induction over the links followed, none leaves the tree.
 */
#include "archive/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* The next component that is not ".", and its length; NULL at the end. Advances *@at. */
static const char *component(const char **at, size_t *ret_len)
{
	for (;;) {
		const char *name = *at + strspn(*at, "/");
		size_t n = strcspn(name, "/");

		if (n == 0)
			return NULL;
		*at = name + n;
		*ret_len = n;
		if (n != 1 || name[0] != '.')
			return name;
	}
}

static bool is_up(const char *name, size_t len)
{
	return len == 2 && name[0] == '.' && name[1] == '.';
}

enum tar_path tar_path_check(const char *path, size_t depth_max)
{
	const char *name;
	size_t n, depth = 0;

	if (path[0] == '/')
		return TAR_PATH_ABSOLUTE;
	while ((name = component(&path, &n))) {
		if (is_up(name, n))
			return TAR_PATH_UP;
		if (++depth > depth_max)
			return TAR_PATH_DEEP;
	}
	return TAR_PATH_OK;
}

/* Each component moves to the left or stays: what is still to be read is never overwritten. */
void tar_path_tidy(char *path)
{
	const char *from = path, *name;
	size_t n, at = 0;

	while ((name = component(&from, &n))) {
		if (at)
			path[at++] = '/';
		memmove(path + at, name, n);
		at += n;
	}
	path[at] = '\0';
}

bool tar_link_inside(const char *path, const char *target)
{
	const char *name;
	size_t n, depth = 0;
	bool descends = false;

	if (target[0] == '/' || target[0] == '\0')
		return false;
	for (; *path; path++)
		depth += *path == '/';
	while ((name = component(&target, &n))) {
		if (!is_up(name, n))
			descends = true;
		else if (descends || depth-- == 0)
			return false;
	}
	return true;
}

int tar_enter_dir(void *arg, int at, const char *name, const char *path, size_t len)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(at, name, flags);

	(void)path, (void)len;
	if (fd < 0 && errno == ENOENT && arg &&
	    (mkdirat(at, name, *(const mode_t *)arg) == 0 || errno == EEXIST))
		fd = openat(at, name, flags);
	return fd < 0 ? -errno : fd;
}

int tar_parent(int root, const char *path, tar_enter *enter, void *arg, const char **ret_name)
{
	_fd_ int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	const char *name = path, *slash;

	if (at < 0)
		return -errno;
	for (; (slash = strchr(name, '/')); name = slash + 1) {
		char part[NAME_MAX + 1];
		size_t n = (size_t)(slash - name);

		if (n >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, name, n);
		part[n] = '\0';
		int fd = enter(arg, at, part, path, (size_t)(slash - path));

		if (fd < 0)
			return fd;
		fd_close(at);
		at = fd;
	}
	*ret_name = name;
	return TAKE_FD(at);
}

int tar_clear(int dir, const char *name)
{
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c - Writes the daemon's own programs for cells: STATE/packages/tools.
 *
 * Every cell has the directory of packages already, so these programs cost a new cell nothing. bin
 * is before the image's programs in PATH: it has a program for each installer that cannot work in a
 * cell, which asks the front instead, and hands everything else to the image's program of that name
 * (src/guest/tools). last is after them, for names that the image lacks. lib is for the
 * interpreters.
 *
 * The package store writes to the directory above. As root, it is another user, and the sticky bit
 * keeps it from these programs (package_store.c). Only a directory of our own is written to, which
 * no other user can change; where there is something else under its name, the start fails.
 */
#include "front/packages/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h> /* renameat() */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embed.h"
#include "base/err.h"
#include "base/fd.h"
#include "wire/package_store.h"

extern const struct embed_file tool_files[];

static const char *const dirs[] = { "bin", "last", "lib", "lib/pip" };

static const struct {
	const char *path, *file;
	mode_t mode;
} rows[] = {
	{ "bin/apt", "tool.sh", 0755 },
	{ "bin/apt-get", "tool.sh", 0755 },
	{ "bin/npm", "tool.sh", 0755 },
	{ "bin/npx", "tool.sh", 0755 },
	{ "bin/pip", "tool.sh", 0755 },
	{ "bin/pip3", "tool.sh", 0755 },
	{ "bin/uv", "tool.sh", 0755 },
	{ "bin/uvx", "tool.sh", 0755 },
	{ "last/python", "python.sh", 0755 },
	{ "lib/pip/__init__.py", "pip.py", 0644 },
	{ "lib/pip/__main__.py", "pip_main.py", 0644 },
	{ "lib/pip_install.py", "pip_install.py", 0644 },
	{ "lib/npm.js", "npm.js", 0644 },
};

/* A descriptor of @name in @at, which is a directory of our own; or -errno. */
static int open_dir(int at, const char *name)
{
	struct stat st;

	if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	_fd_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	return fchmod(fd, 0755) < 0 ? -errno : TAKE_FD(fd);
}

/* A front that takes the place of another finds its own programs: it needs no space on the disk. */
static bool is_there(int tools, const char *path, const struct embed_file *f, mode_t mode)
{
	_fd_ int fd = openat(tools, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_mem_ char *text = malloc(f->len + 1);
	struct stat st;

	return fd >= 0 && text && fstat(fd, &st) == 0 && (st.st_mode & 07777) == mode &&
	       st.st_size == (off_t)f->len && read(fd, text, f->len) == (ssize_t)f->len &&
	       memcmp(text, f->data, f->len) == 0;
}

static int put(int tools, const char *path, const struct embed_file *f, mode_t mode)
{
	static const char fresh[] = ".new";

	if (is_there(tools, path, f, mode))
		return 0;
	(void)unlinkat(tools, fresh, 0);
	_fd_ int fd = openat(tools, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, f->data, f->len);

	if (r == 0 && (fchmod(fd, mode) < 0 || renameat(tools, fresh, tools, path) < 0))
		r = -errno;
	return r;
}

int tools_put(int dir, const char *state, struct err *e)
{
	_fd_ int tools = open_dir(dir, PACKAGE_STORE_TOOLS);
	int r = tools < 0 ? tools : 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++) {
		_fd_ int below = open_dir(tools, dirs[i]);

		r = below < 0 ? below : 0;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
		r = put(tools, rows[i].path, embed_find(tool_files, rows[i].file), rows[i].mode);
	return r < 0 ? err_set(e, r, "--state: write %s/packages/" PACKAGE_STORE_TOOLS, state) : 0;
}

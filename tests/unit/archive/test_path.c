/* SPDX-License-Identifier: Apache-2.0 */
/* test_path.c - Names and links that lead out, and the walk to a parent that follows no link. */
#include "archive/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/fd.h"

TEST(paths)
{
	static const struct {
		const char *path;
		enum tar_path is;
		const char *tidy;
	} rows[] = {
		{ "a", TAR_PATH_OK, "a" },
		{ "", TAR_PATH_OK, "" },
		{ ".", TAR_PATH_OK, "" },
		{ "./", TAR_PATH_OK, "" },
		{ "./a//b/./c/", TAR_PATH_OK, "a/b/c" },
		{ "././.a/..b/c..", TAR_PATH_OK, ".a/..b/c.." },
		{ ".../a", TAR_PATH_OK, ".../a" },
		{ "a/b/c/d", TAR_PATH_DEEP, NULL },
		{ "a/./././b", TAR_PATH_OK, "a/b" },
		{ "/a", TAR_PATH_ABSOLUTE, NULL },
		{ "//", TAR_PATH_ABSOLUTE, NULL },
		{ "..", TAR_PATH_UP, NULL },
		{ "a/..", TAR_PATH_UP, NULL },
		{ "a/../b", TAR_PATH_UP, NULL },
		{ "./../a", TAR_PATH_UP, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char path[64];

		assert_int_equal(tar_path_check(rows[i].path, 3), rows[i].is);
		if (!rows[i].tidy)
			continue;
		(void)snprintf(path, sizeof(path), "%s", rows[i].path);
		tar_path_tidy(path);
		assert_string_equal(path, rows[i].tidy);
	}
}

TEST(links)
{
	static const struct {
		const char *name, *target;
		bool inside;
	} rows[] = {
		{ "a", "b", true },          { "a", "../b", false },     { "d/a", "../b", true },
		{ "d/a", "../../b", false }, { "a", "/b", false },       { "a", "", false },
		{ "a", "b/../c", false },    { "a", "./b/./c", true },   { "d/e/a", "../..", true },
		{ "a", "..", false },        { "d/a", ".//../b", true }, { "d/a", "./b/..", false },
		{ "a", "..b/...", true },    { "a", ".", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(tar_link_inside(rows[i].name, rows[i].target), rows[i].inside);
}

TEST(parent)
{
	char dir[] = "/tmp/caisson-path-XXXXXX", longer[300];
	mode_t mode = 0700;
	const char *name = NULL;
	struct stat a, b;

	assert_non_null(mkdtemp(dir));
	_fd_ int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(tar_parent(root, "x/y/z", tar_enter_dir, NULL, &name), -ENOENT);
	_fd_ int made = tar_parent(root, "x/y/z", tar_enter_dir, &mode, &name);

	assert_true(made >= 0);
	assert_string_equal(name, "z");
	assert_int_equal(fstat(made, &a) | fstatat(root, "x/y", &b, 0), 0);
	assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	/* Not through a link, wherever it leads and whether it leads anywhere. */
	assert_int_equal(symlinkat("y", root, "x/inside"), 0);
	assert_int_equal(symlinkat("/", root, "out"), 0);
	assert_int_equal(symlinkat("none", root, "dangling"), 0);
	assert_int_equal(tar_parent(root, "x/inside/z", tar_enter_dir, &mode, &name), -ENOTDIR);
	assert_int_equal(tar_parent(root, "out/z", tar_enter_dir, &mode, &name), -ENOTDIR);
	assert_int_equal(tar_parent(root, "dangling/z", tar_enter_dir, &mode, &name), -ENOTDIR);
	memset(longer, 'n', sizeof(longer));
	memcpy(longer + 290, "/z", 3);
	assert_int_equal(tar_parent(root, longer, tar_enter_dir, &mode, &name), -ENAMETOOLONG);
	/* A link is removed, its target is not; a directory stays. */
	assert_int_equal(tar_clear(root, "out"), 0);
	assert_int_equal(tar_clear(root, "out"), 0);
	assert_int_equal(tar_clear(root, "x"), -EISDIR);
	assert_int_equal(unlinkat(root, "x/inside", 0) | unlinkat(root, "dangling", 0), 0);
	assert_int_equal(unlinkat(root, "x/y", AT_REMOVEDIR) | unlinkat(root, "x", AT_REMOVEDIR),
			 0);
	assert_int_equal(rmdir(dir), 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - A walk over a tree, entry by entry, without following a link. */
#include "package_store/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "package_store/digest.h"
#include "package_store/package_dir.h"

#define READ_BYTES (256u << 10)

struct walk {
	struct digest digest;
	bool contents; /* read; else what the kernel notes of it */
	char path[PACKAGE_PATH_MAX];
	struct err *e;
};

static char type_of(mode_t mode)
{
	return S_ISREG(mode) ? '0' : S_ISLNK(mode) ? '2' : S_ISDIR(mode) ? '5' : '?';
}

static int add_content(struct walk *w, int dir, const char *name)
{
	static char chunk[READ_BYTES];
	_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		digest_add(&w->digest, chunk, (size_t)n);
	return n < 0 ? -errno : 0;
}

static void add_notes(struct walk *w, const struct stat *st)
{
	const int64_t notes[] = { (int64_t)st->st_mode,        (int64_t)st->st_size,
				  (int64_t)st->st_mtim.tv_sec, (int64_t)st->st_mtim.tv_nsec,
				  (int64_t)st->st_ctim.tv_sec, (int64_t)st->st_ctim.tv_nsec };

	digest_add(&w->digest, notes, sizeof(notes));
}

static int add_entry(struct walk *w, int dir, const char *name, const struct stat *st)
{
	char target[PACKAGE_PATH_MAX] = "";
	char type = type_of(st->st_mode);
	ssize_t n = type == '2' ? readlinkat(dir, name, target, sizeof(target) - 1) : 0;
	int r = n < 0 ? -errno :
			digest_begin(&w->digest, type, st->st_mode & S_IXUSR, w->path, target,
				     w->e);

	if (r == 0 && !w->contents)
		add_notes(w, st);
	else if (r == 0 && type == '0')
		r = add_content(w, dir, name);
	if (r == 0)
		digest_end(&w->digest);
	return r;
}

static int walk_dir(struct walk *w, int fd, size_t len, unsigned int depth);

static int walk_one(struct walk *w, int dir, const char *name, size_t len, unsigned int depth)
{
	int n = snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", name);
	struct stat st;
	int r;

	if (n < 0 || (size_t)n >= sizeof(w->path) - len || depth > PACKAGE_DEPTH_MAX)
		return -ENAMETOOLONG; /* the package store made no such thing */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = add_entry(w, dir, name, &st);
	if (r == 0 && S_ISDIR(st.st_mode))
		r = walk_dir(w, openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			     len + (size_t)n, depth + 1);
	w->path[len] = '\0';
	return r;
}

/* Takes the descriptor. */
static int walk_dir(struct walk *w, int fd, size_t len, unsigned int depth)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *en;
	int r = d ? 0 : -errno;

	if (!d)
		fd_close(fd);
	while (r == 0 && (errno = 0, en = readdir(d)))
		if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0)
			r = walk_one(w, dirfd(d), en->d_name, len, depth);
	if (r == 0 && errno)
		r = -errno;
	if (d)
		(void)closedir(d);
	return r;
}

static int check(int root, bool contents, char ret_hex[65], struct err *e)
{
	struct walk w = { .contents = contents, .e = e };
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : walk_dir(&w, fd, 0, 1);

	if (r == 0)
		digest_hex(&w.digest, ret_hex);
	digest_free(&w.digest);
	return r < 0 ? err_set(e, r, "look through the packages") : 0;
}

int check_seal(int root, char ret_hex[65], struct err *e)
{
	return check(root, false, ret_hex, e);
}

int check_hash(int root, char ret_hex[65], struct err *e)
{
	return check(root, true, ret_hex, e);
}

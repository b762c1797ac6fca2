/* SPDX-License-Identifier: Apache-2.0 */
/* workspace_dir.c - Trees of a workspace come and go. */
#include "workspace_store/workspace_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "workspace_store/tree.h"

#define UNFINISHED "new."
#define GONE ".gone"
#define LOST "lost+found"
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- names --------------------------------------------------------------------------------- */

bool workspace_dir_key_ok(const char *key)
{
	return strlen(key) == WORKSPACE_STORE_KEY_LEN &&
	       strspn(key, "0123456789abcdef") == WORKSPACE_STORE_KEY_LEN;
}

bool workspace_dir_tree_ok(const char *tree)
{
	size_t digits = strspn(tree + (tree[0] != '\0'), "0123456789");
	const char *rest = tree + 1 + digits;

	if ((tree[0] != 'g' && tree[0] != 'v') || digits == 0 || digits > 12 || tree[1] == '0')
		return false;
	if (tree[0] == 'g')
		return *rest == '\0';
	return rest[0] == '.' && rest[1] && strlen(rest) <= 9 &&
	       strspn(rest + 1, "0123456789abcdef") == strlen(rest + 1);
}

void workspace_dir_generation(char ret[WORKSPACE_STORE_TREE_MAX], uint64_t n)
{
	(void)snprintf(ret, WORKSPACE_STORE_TREE_MAX, "g%" PRIu64, n);
}

static int random_hex(char *ret, size_t digits, struct err *e)
{
	unsigned char bytes[WORKSPACE_STORE_KEY_LEN / 2];

	if (getrandom(bytes, digits / 2, 0) != (ssize_t)(digits / 2))
		return err_set(e, -errno, "getrandom");
	for (size_t i = 0; i < digits / 2; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* ---- workspaces ---------------------------------------------------------------------------- */

/* Whoever is given a tree must not get at the others beside it: the directory above is ours alone.
 */
int workspace_dir_make(int store_dir, char ret_key[WORKSPACE_STORE_KEY_LEN + 1], struct err *e)
{
	if (random_hex(ret_key, WORKSPACE_STORE_KEY_LEN, e) < 0)
		return e->code;
	if (mkdirat(store_dir, ret_key, 0700) < 0)
		return err_set(e, -errno, "make a workspace");
	return 0;
}

int workspace_dir_fill(int store_dir, const char *key, struct err *e)
{
	_fd_ int dir = openat(store_dir, key, DIR_FLAGS);

	if (dir >= 0) /* of a new file system: root's, and in nobody's way */
		(void)unlinkat(dir, LOST, AT_REMOVEDIR);
	if (dir < 0 || mkdirat(dir, "g1", 0755) < 0 || syncfs(dir) < 0) {
		(void)err_set(e, -errno, "make a workspace");
		(void)tree_remove(store_dir, key);
		return e->code;
	}
	return 0;
}

static int find_newest(int dir, uint64_t *ret)
{
	int copy = openat(dir, ".", DIR_FLAGS);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *en;

	*ret = 0;
	if (!d) {
		fd_close(copy);
		return -errno;
	}
	while ((en = readdir(d)))
		if (en->d_name[0] == 'g' && workspace_dir_tree_ok(en->d_name)) {
			uint64_t n = strtoull(en->d_name + 1, NULL, 10);

			*ret = n > *ret ? n : *ret;
		}
	(void)closedir(d);
	return *ret ? 0 : -ENOENT;
}

int workspace_dir_open(int store_dir, const char *key, struct workspace_dir *ret, struct err *e)
{
	ret->dir = -1;
	_fd_ int dir = openat(store_dir, key, DIR_FLAGS);

	if (dir < 0)
		return err_set(e, -errno, "open the workspace");
	while (flock(dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_set(e, -errno, "lock the workspace");
	int r = find_newest(dir, &ret->newest);

	if (r < 0)
		return err_set(e, r, "the workspace has no tree");
	ret->dir = TAKE_FD(dir);
	return 0;
}

void workspace_dir_close(struct workspace_dir *w)
{
	w->dir = fd_close(w->dir);
}

void workspace_dir_unlock(const struct workspace_dir *w)
{
	(void)flock(w->dir, LOCK_UN);
}

static bool is_at(int dir, const char *name, int fd)
{
	struct stat is, at;

	return fstat(fd, &is) == 0 && fstatat(dir, name, &at, AT_SYMLINK_NOFOLLOW) == 0 &&
	       is.st_dev == at.st_dev && is.st_ino == at.st_ino;
}

bool workspace_dir_has(const struct workspace_dir *w, int store_dir, const char *key,
		       const char *tree, int fd)
{
	return is_at(store_dir, key, w->dir) && is_at(w->dir, tree, fd);
}

int workspace_dir_tree(const struct workspace_dir *w, const char *tree, struct err *e)
{
	char name[WORKSPACE_STORE_TREE_MAX];

	if (tree[0])
		(void)snprintf(name, sizeof(name), "%s", tree);
	else
		workspace_dir_generation(name, w->newest);
	int fd = openat(w->dir, name, DIR_FLAGS);

	return fd < 0 ? err_set(e, -errno, "open tree %s of the workspace", name) : fd;
}

/* ---- another tree -------------------------------------------------------------------------- */

int workspace_dir_begin(const struct workspace_dir *w, char ret_name[WORKSPACE_STORE_TREE_MAX],
			struct err *e)
{
	memcpy(ret_name, UNFINISHED, sizeof(UNFINISHED));
	if (random_hex(ret_name + sizeof(UNFINISHED) - 1, 8, e) < 0)
		return e->code;
	if (mkdirat(w->dir, ret_name, 0755) < 0)
		return err_set(e, -errno, "make a tree");
	int fd = openat(w->dir, ret_name, DIR_FLAGS);

	return fd < 0 ? err_set(e, -errno, "make a tree") : fd;
}

void workspace_dir_abandon(const struct workspace_dir *w, const char *name)
{
	(void)tree_remove(w->dir, name);
}

int workspace_dir_finish(const struct workspace_dir *w, const char *name, const char *tree,
			 struct err *e)
{
	if (syncfs(w->dir) < 0)
		(void)err_set(e, -errno, "bring the workspace to the disk");
	else if (renameat(w->dir, name, w->dir, tree) < 0)
		(void)err_set(e, -errno, "name the tree");
	else if (fsync(w->dir) < 0)
		return err_set(e, -errno, "bring the workspace to the disk");
	else
		return 0;
	workspace_dir_abandon(w, name);
	return e->code;
}

/* First out of sight, so that nobody finds half of it under its name. */
int workspace_dir_drop(const struct workspace_dir *w, const char *tree, struct err *e)
{
	char newest[WORKSPACE_STORE_TREE_MAX], name[WORKSPACE_STORE_TREE_MAX + 8];

	workspace_dir_generation(newest, w->newest);
	if (strcmp(tree, newest) == 0)
		return 0;
	(void)snprintf(name, sizeof(name), UNFINISHED "%s", tree);
	if (renameat(w->dir, tree, w->dir, name) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "remove a tree");
	int r = tree_remove(w->dir, name);

	return r < 0 ? err_set(e, r, "remove a tree") : 0;
}

int workspace_dir_remove(int store_dir, const char *key, struct err *e)
{
	char name[WORKSPACE_STORE_KEY_LEN + sizeof(GONE)];

	(void)snprintf(name, sizeof(name), "%s" GONE, key);
	if (renameat(store_dir, key, store_dir, name) < 0)
		return err_set(e, -errno, "remove the workspace");
	int r = tree_remove(store_dir, name);

	return r < 0 ? err_set(e, r, "remove the workspace") : 0;
}

/* ---- sweeping ------------------------------------------------------------------------------ */

/* The line of @key, or NULL. */
static const char *line_of(const char *known, const char *key)
{
	for (const char *s = known; *s; s += strcspn(s, "\n"), s += *s == '\n')
		if (strncmp(s, key, WORKSPACE_STORE_KEY_LEN) == 0)
			return s;
	return NULL;
}

static bool names(const char *line, const char *tree)
{
	size_t len = strlen(tree), n;

	for (const char *s = line + WORKSPACE_STORE_KEY_LEN; *s == ' '; s += 1 + n) {
		n = strcspn(s + 1, " \n");
		if (n == len && memcmp(s + 1, tree, n) == 0)
			return true;
	}
	return false;
}

/*
 * Nobody knows it: its record may be in a store that was put aside, and its files are somebody's
 * work. It goes only when nothing was ever put into it.
 */
static void sweep_unknown(int store_dir, const char *key)
{
	_fd_ int dir = openat(store_dir, key, DIR_FLAGS);

	if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 &&
	    unlinkat(dir, "g1", AT_REMOVEDIR) == 0 && unlinkat(store_dir, key, AT_REMOVEDIR) < 0)
		(void)mkdirat(dir, "g1", 0755);
}

static int sweep_one(int store_dir, const char *key, const char *line)
{
	_fd_ int dir = openat(store_dir, key, DIR_FLAGS);
	char newest[WORKSPACE_STORE_TREE_MAX];
	struct workspace_dir w = { .dir = dir };
	const struct dirent *en;
	int copy, r = 0;

	if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0 || find_newest(dir, &w.newest) < 0)
		return 0;
	workspace_dir_generation(newest, w.newest);
	copy = openat(dir, ".", DIR_FLAGS);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d) {
		fd_close(copy);
		return -errno;
	}
	while (r == 0 && (en = readdir(d)))
		if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 &&
		    strcmp(en->d_name, newest) != 0 && strcmp(en->d_name, LOST) != 0 &&
		    !names(line, en->d_name))
			r = workspace_dir_tree_ok(en->d_name) ?
				    workspace_dir_drop(&w, en->d_name, NULL) :
				    tree_remove(dir, en->d_name);
	(void)closedir(d);
	return r;
}

int workspace_dir_sweep(int store_dir, const char *known, struct err *e)
{
	int copy = openat(store_dir, ".", DIR_FLAGS), r = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *en;

	if (!d) {
		fd_close(copy);
		return err_set(e, -errno, "list the workspaces");
	}
	while (r == 0 && (en = readdir(d))) {
		const char *line = workspace_dir_key_ok(en->d_name) ? line_of(known, en->d_name) :
								      NULL;

		if (line)
			r = sweep_one(store_dir, en->d_name, line);
		else if (workspace_dir_key_ok(en->d_name))
			sweep_unknown(store_dir, en->d_name);
		else if (strlen(en->d_name) > WORKSPACE_STORE_KEY_LEN &&
			 strcmp(en->d_name + WORKSPACE_STORE_KEY_LEN, GONE) == 0)
			r = tree_remove(store_dir, en->d_name);
	}
	(void)closedir(d);
	return r < 0 ? err_set(e, r, "remove what is left of old workspaces") : 0;
}

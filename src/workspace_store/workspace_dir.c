/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_dir.c - Trees of a workspace come and go.
 *
 * Every name is a whole tree on the disk: the rename that gives the name comes after the sync, and
 * a tree that is removed loses its name first. The lock of a workspace is on its directory, so it
 * ends with the job that holds it.
 */
#include "workspace_store/workspace_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "tree_store/tree.h"

#define UNFINISHED "new."
#define GONE ".gone"
#define LOST "lost+found"
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- names --------------------------------------------------------------------------------- */

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

/* ---- workspaces ---------------------------------------------------------------------------- */

/* Mode 0700: a cell that has one tree mounted must not reach the trees beside it. */
int workspace_dir_make(int store_dir, char ret_key[WORKSPACE_STORE_KEY_LEN + 1], struct err *e)
{
	if (tree_random(ret_key, WORKSPACE_STORE_KEY_LEN, e) < 0)
		return e->code;
	if (mkdirat(store_dir, ret_key, 0700) < 0)
		return err_set(e, -errno, "make a workspace");
	return 0;
}

int workspace_dir_fill(int store_dir, const char *key, struct err *e)
{
	_fd_ int dir = openat(store_dir, key, DIR_FLAGS);

	if (dir >= 0) /* a new file system has it, and it is root's */
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
	_dir_ DIR *d = tree_list(dir, ".");
	const char *name;

	if (!d)
		return -errno;
	*ret = 0;
	while ((name = dir_next(d)))
		if (name[0] == 'g' && workspace_dir_tree_ok(name)) {
			uint64_t n = strtoull(name + 1, NULL, 10);

			*ret = n > *ret ? n : *ret;
		}
	return *ret ? 0 : -ENOENT;
}

int workspace_dir_open(int store_dir, const char *key, struct workspace_dir *ret, struct err *e)
{
	ret->dir = -1;
	_fd_ int dir = openat(store_dir, key, DIR_FLAGS);

	if (dir < 0)
		return err_set(e, -errno, "open the workspace");
	if (TEMP_FAILURE_RETRY(flock(dir, LOCK_EX)) < 0)
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
	if (tree_random(ret_name + sizeof(UNFINISHED) - 1, 8, e) < 0)
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
 * A workspace that is not in the list: its record may be in a store that was put aside, and its
 * files are somebody's work. So it goes only if nothing was ever committed to it.
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
	const char *name;
	int r = 0;

	if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0 || find_newest(dir, &w.newest) < 0)
		return 0;
	workspace_dir_generation(newest, w.newest);
	_dir_ DIR *d = tree_list(dir, ".");

	if (!d)
		return -errno;
	while (r == 0 && (name = dir_next(d)))
		if (strcmp(name, newest) != 0 && strcmp(name, LOST) != 0 && !names(line, name))
			r = workspace_dir_tree_ok(name) ? workspace_dir_drop(&w, name, NULL) :
							  tree_remove(dir, name);
	return r;
}

int workspace_dir_sweep(int store_dir, const char *known, struct err *e)
{
	_dir_ DIR *d = tree_list(store_dir, ".");
	const char *name;
	int r = 0;

	if (!d)
		return err_set(e, -errno, "list the workspaces");
	while (r == 0 && (name = dir_next(d))) {
		const char *line = tree_key_ok(name) ? line_of(known, name) : NULL;

		if (line)
			r = sweep_one(store_dir, name, line);
		else if (tree_key_ok(name))
			sweep_unknown(store_dir, name);
		else if (strlen(name) > WORKSPACE_STORE_KEY_LEN &&
			 strcmp(name + WORKSPACE_STORE_KEY_LEN, GONE) == 0)
			r = tree_remove(store_dir, name);
	}
	return r < 0 ? err_set(e, r, "remove unused trees") : 0;
}

/* ---- notes for the next worker -------------------------------------------------------------- */

struct handover *handover_new(void)
{
	void *p = mmap(NULL, sizeof(struct handover), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void promise_make(struct promise *p, const struct workspace_store_reply *r, const char *key,
		  uint64_t generation, int tree)
{
	const uint64_t seq = r->seq;
	struct stat st;

	promise_drop(p);
	if (fstat(tree, &st) < 0)
		return;
	p->reply = *r;
	p->reply.seq = 0;
	p->reply.generation = generation;
	p->reply.cut = 1; /* the list of changes dies with the job */
	(void)snprintf(p->reply.key, sizeof(p->reply.key), "%.32s", key);
	p->inode = st.st_ino;
	/* Last: a reader that finds no number finds no promise. */
	__atomic_store_n(&p->reply.seq, seq, __ATOMIC_RELEASE);
}

void promise_drop(struct promise *p)
{
	__atomic_store_n(&p->reply.seq, UINT64_C(0), __ATOMIC_RELEASE);
}

bool promise_is_kept(const struct promise *p, int store_dir)
{
	char tree[WORKSPACE_STORE_TREE_MAX];
	struct stat st;

	if (!p->reply.seq || !tree_key_ok(p->reply.key))
		return false;
	_fd_ int dir = openat(store_dir, p->reply.key, DIR_FLAGS);

	workspace_dir_generation(tree, p->reply.generation);
	return dir >= 0 && fstatat(dir, tree, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == p->inode;
}

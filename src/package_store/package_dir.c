/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_dir.c - Trees of packages come and go.
 *
 * A name in the directory is a whole tree on the disk: the rename that gives the name comes after
 * the sync, and a tree that is removed loses its name first. A crash therefore leaves unfinished
 * directories only, which the next sweep removes.
 *
 * A tree comes as an archive from a cell in which a package was built, so it may be anything. The
 * reader permits only plain files, directories and links that stay in the tree, under tidy paths.
 * tar_parent() opens every directory without following a link, and every name is made anew: a name
 * that is there twice ends the intake. So nothing is written outside of the new directory
 * (archive/path.c has the argument), and no link of the tree leads a later reader out of it. Modes
 * are ours: 0755 for directories and for files that may be executed, 0644 for the rest.
 *
 * The hash (digest.c) is that of the tree: a directory counts once, whether the archive names it or
 * only its content.
 */
#include "package_store/package_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/path.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "tree_store/tree.h"

#define UNFINISHED ".new"
#define READ_BYTES (256u << 10)
#define META_MAX (64u << 10)
#define NAME_ROOM (PACKAGE_STORE_KEY_LEN + sizeof(UNFINISHED))

static void unfinished_name(char name[NAME_ROOM], const char *key)
{
	(void)snprintf(name, NAME_ROOM, "%s" UNFINISHED, key);
}

/* Its key, and a descriptor or -errno. */
static int make_tree(int store_dir, char ret_key[PACKAGE_STORE_KEY_LEN + 1], struct err *e)
{
	char name[NAME_ROOM];

	if (tree_random(ret_key, PACKAGE_STORE_KEY_LEN, e) < 0)
		return e->code;
	unfinished_name(name, ret_key);
	if (mkdirat(store_dir, name, 0755) < 0)
		return err_set(e, -errno, "make a directory for the packages");
	int fd = openat(store_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "open the directory for the packages") : fd;
}

/* The tree is whole: bring it to the disk, then name it. */
static int finish_tree(int store_dir, const char *key, struct err *e)
{
	char name[NAME_ROOM];

	unfinished_name(name, key);
	if (syncfs(store_dir) < 0)
		return err_set(e, -errno, "bring the packages to the disk");
	if (renameat(store_dir, name, store_dir, key) < 0)
		return err_set(e, -errno, "name the packages");
	return 0;
}

int package_dir_drop(int store_dir, const char *key, bool unfinished, struct err *e)
{
	char name[NAME_ROOM];

	unfinished_name(name, key);
	if (!unfinished && renameat(store_dir, key, store_dir, name) < 0)
		return err_set(e, -errno, "remove the packages");
	int r = tree_remove(store_dir, name);

	return r < 0 ? err_set(e, r, "remove the packages") : 0;
}

int package_dir_sweep(int store_dir, bool (*keep)(const char *key), struct err *e)
{
	/* Not opened anew: its mode lets nobody list it. */
	int copy = fcntl(store_dir, F_DUPFD_CLOEXEC, 3), n = 0;
	_dir_ DIR *d = dir_list(copy);
	const char *name;

	if (!d)
		return err_set(e, -errno, "list the packages");
	rewinddir(d); /* both descriptors have one offset */
	while ((name = dir_next(d))) {
		if ((tree_key_ok(name) && (!keep || keep(name))) ||
		    strcmp(name, PACKAGE_STORE_TOOLS) == 0)
			continue;
		int r = tree_remove(store_dir, name);

		if (r < 0)
			return err_set(e, r, "remove old packages");
		n++;
	}
	return n;
}

/* ---- an archive from a cell ------------------------------------------------------------------ */

static int make_dir(struct intake *in, int at, const char *name, const char *path)
{
	if (mkdirat(at, name, 0755) < 0)
		return -errno;
	int r = digest_begin(&in->digest, '5', false, path, NULL, &in->err);

	if (r == 0)
		digest_end(&in->digest);
	return r;
}

/* A directory that the archive did not name, on the way to an entry. */
static int enter_dir(void *arg, int at, const char *name, const char *path, size_t len)
{
	int fd = tar_enter_dir(NULL, at, name, path, len);
	char whole[PACKAGE_PATH_MAX];

	if (fd != -ENOENT)
		return fd;
	memcpy(whole, path, len);
	whole[len] = '\0';
	int r = make_dir(arg, at, name, whole);

	return r < 0 ? r : tar_enter_dir(NULL, at, name, path, len);
}

/* Its content may have come before it: then the directory is there, and hashed. */
static int take_dir(struct intake *in, const struct tar_entry *en, int dir, const char *name)
{
	int r = make_dir(in, dir, name, en->path);
	struct stat st;

	if (r != -EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return r;
	return S_ISDIR(st.st_mode) ? 0 : -EEXIST;
}

static int make_entry(struct intake *in, const struct tar_entry *en, int dir, const char *name)
{
	if (en->type == '5')
		return take_dir(in, en, dir, name);
	if (en->type == '2')
		return symlinkat(en->link, dir, name) < 0 ? -errno : 0;
	in->file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  en->mode & 0111 ? 0755 : 0644);
	return in->file < 0 ? -errno : 0;
}

static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	struct intake *in = arg;
	const char *name;
	_fd_ int dir = tar_parent(in->root, en->path, enter_dir, in, &name);
	int r = dir < 0 ? dir : make_entry(in, en, dir, name);

	if (r < 0)
		return err_set(e, r, "unpack '%.150s'", en->path);
	if (en->type == '5')
		return 0;
	r = digest_begin(&in->digest, en->type, en->mode & 0111, en->path, en->link, e);
	if (r == 0 && en->type == '2')
		digest_end(&in->digest);
	return r;
}

static int on_content(void *arg, const char *data, size_t len, struct err *e)
{
	struct intake *in = arg;
	int r = fd_write_all(in->file, data, len);

	digest_add(&in->digest, data, len);
	return r < 0 ? err_set(e, r, "write packages") : 0;
}

static int on_close(void *arg, struct err *e)
{
	struct intake *in = arg;

	(void)e;
	in->file = fd_close(in->file);
	digest_end(&in->digest);
	return 0;
}

static const struct tar_sink sink = { on_entry, on_content, on_close };

/* ---- its life -------------------------------------------------------------------------------- */

int intake_begin(struct intake *in, int store_dir, const struct package_store_req *q, int fd)
{
	*in = (struct intake){
		.seq = q->seq, .fd = fd, .store_dir = store_dir, .file = -1, .root = -1
	};
	in->rules = (struct tar_rules){ .path_max = PACKAGE_PATH_MAX,
					.meta_max = META_MAX,
					.depth_max = PACKAGE_DEPTH_MAX,
					.max_bytes = q->max_bytes,
					.max_files = q->max_files < PACKAGE_STORE_FILES_MAX ?
							     q->max_files :
							     PACKAGE_STORE_FILES_MAX,
					.kinds = "025",
					.links_inside = true };
	in->archive = (struct cell_archive){
		.sink = &sink, .arg = in, .e = &in->err, .reader.rules = &in->rules
	};
	if (foreign_check(fd, FOREIGN_PIPE) < 0)
		return err_say(&in->err, -EPROTO, "the cell sent something else than a pipe");
	in->root = make_tree(store_dir, in->key, &in->err);
	return in->root < 0 ? in->root : 0;
}

bool intake_read(struct intake *in)
{
	static char chunk[READ_BYTES];
	ssize_t n = foreign_read(in->fd, chunk, sizeof(chunk), &in->stalled_ns);

	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		(void)err_say(&in->err, -EPIPE, "the cell ended before it had sent its packages");
		return true;
	}
	return cell_archive_feed(&in->archive, chunk, (size_t)n) < 0 || in->archive.ended;
}

void intake_end(struct intake *in, struct package_store_reply *ret)
{
	struct err ignored;
	bool named = false;

	fd_close(in->fd);
	fd_close(in->file);
	if (in->err.code == 0 && finish_tree(in->store_dir, in->key, &in->err) == 0)
		named = true;
	if (in->err.code == 0)
		(void)digest_tree(in->root, false, ret->seal, &in->err);
	if (in->err.code && in->root >= 0)
		(void)package_dir_drop(in->store_dir, in->key, !named, &ignored);
	fd_close(in->root);
	ret->code = in->err.code;
	ret->bytes = in->archive.reader.bytes;
	ret->files = in->archive.reader.files;
	(void)snprintf(ret->msg, sizeof(ret->msg), "%.255s", in->err.msg);
	if (ret->code == 0) {
		memcpy(ret->key, in->key, sizeof(in->key));
		digest_hex(&in->digest, ret->sha256);
	}
	digest_free(&in->digest);
	cell_archive_free(&in->archive);
	in->seq = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir_archive.c - Walk a directory, give out headers and contents; entries in, files out.
 *
 * The next bytes of an archive that is packed are either in `head` (headers, padding, the end) or
 * in the file that is open; when both are empty the walk takes a step.
 *
 * An archive that is unpacked was made in a sandbox, so it may be hostile, and the files are
 * written with the rights of the user of this command. The reader hands out only tidy paths, and
 * symbolic links that stay in the tree; tar_parent() follows no link; a file or a link in the way
 * is unlinked, so that nothing is ever written through an old name. archive/path.c argues why that
 * keeps everything in the directory.
 */
#include "remote/dir_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/path.h"
#include "base/err.h"
#include "base/fd.h"

#define HEAD_MAX (64u << 10)

/* ---- packing --------------------------------------------------------------------------------- */

static int append(void *arg, const void *data, size_t len)
{
	return buf_append(arg, data, len);
}

int pack_open(struct pack *p, const char *dir, struct err *e)
{
	char *paths[] = { (char *)dir, NULL };

	*p = (struct pack){ .out = { append, &p->head }, .fd = -1 };
	p->root_len = strlen(dir) + (dir[strlen(dir) - 1] == '/' ? 0 : 1);
	buf_init(&p->head, HEAD_MAX);
	p->fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	return p->fts ? 0 : err_set(e, -errno, "pack %s", dir);
}

void pack_close(struct pack *p)
{
	if (p->fts)
		(void)fts_close(p->fts);
	buf_free(&p->head);
	fd_close(p->fd);
}

static int put_head(struct pack *p, char type, const char *path, const char *target,
		    const struct stat *st, struct err *e)
{
	struct tar_entry en = { .type = type,
				.mode = st->st_mode & 0777,
				.size = type == '0' ? (uint64_t)st->st_size : 0,
				.mtime = st->st_mtim.tv_sec,
				.path = path,
				.link = target };
	int r = tar_put_head(&p->out, &en);

	return r < 0 ? err_set(e, r, "pack %s", path) : 0;
}

static int open_file(struct pack *p, const FTSENT *entry, const char *path, struct err *e)
{
	struct stat st;

	_fd_ int fd =
		open(entry->fts_accpath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %s", entry->fts_path);
	if (!S_ISREG(st.st_mode)) { /* changed between two looks */
		p->skipped++;
		return 0;
	}
	p->left = (uint64_t)st.st_size;
	p->size = p->left;
	p->fd = TAKE_FD(fd);
	return put_head(p, '0', path, "", &st, e);
}

static int put_link(struct pack *p, const FTSENT *entry, const char *path, struct err *e)
{
	char target[4096];
	ssize_t n = readlink(entry->fts_accpath, target, sizeof(target) - 1);

	if (n < 0)
		return err_set(e, -errno, "read the link %s", entry->fts_path);
	target[n] = '\0';
	return put_head(p, '2', path, target, entry->fts_statp, e);
}

/* The next entry of the walk. */
static int step(struct pack *p, struct err *e)
{
	errno = 0;
	const FTSENT *entry = fts_read(p->fts);

	if (!entry) {
		if (errno)
			return err_set(e, -errno, "walk the directory");
		p->ended = true;
		return tar_put_end(&p->out);
	}
	const char *path = entry->fts_level > 0 ? entry->fts_path + p->root_len : ".";

	switch (entry->fts_info) {
	case FTS_D:
		return entry->fts_level > 0 ? put_head(p, '5', path, "", entry->fts_statp, e) : 0;
	case FTS_DP:
		return 0;
	case FTS_F:
		return open_file(p, entry, path, e);
	case FTS_SL:
	case FTS_SLNONE:
		return put_link(p, entry, path, e);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return err_set(e, -entry->fts_errno, "read %s", entry->fts_path);
	default:
		p->skipped++;
		return 0;
	}
}

/* Bytes of the open file. A file that shrank is filled up: the header has its old size. */
static int64_t content(struct pack *p, char *data, size_t size, struct err *e)
{
	size_t want = p->left < size ? (size_t)p->left : size;
	ssize_t n = want ? read(p->fd, data, want) : 0;

	if (n < 0 && errno != EINTR) {
		(void)err_set(e, -errno, "read a file");
		return -1;
	}
	if (n == 0 && want) {
		memset(data, 0, want);
		n = (ssize_t)want;
	}
	p->left -= n > 0 ? (uint64_t)n : 0;
	if (p->left == 0) {
		p->fd = fd_close(p->fd);
		(void)tar_put_padding(&p->out, p->size); /* the buffer is empty */
	}
	return n > 0 ? n : 0;
}

int64_t pack_read(struct pack *p, char *data, size_t size, struct err *e)
{
	for (;;) {
		size_t n = p->head.len < size ? p->head.len : size;

		if (n > 0) {
			memcpy(data, buf_str(&p->head), n);
			buf_consume(&p->head, n);
			return (int64_t)n;
		}
		if (p->fd >= 0) {
			int64_t got = content(p, data, size, e);

			if (got != 0)
				return got;
			continue;
		}
		if (p->ended)
			return 0;
		if (step(p, e) < 0)
			return -1;
	}
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static const struct tar_rules rules = { .path_max = 4096,
					.meta_max = 1u << 20,
					.depth_max = SIZE_MAX,
					.max_bytes = UINT64_MAX,
					.max_files = UINT64_MAX,
					.kinds = "025",
					.links_inside = true,
					.skips = true };

void unpack_open(struct unpack *u, int dirfd)
{
	*u = (struct unpack){ .root = dirfd, .reader.rules = &rules, .fd = -1 };
}

void unpack_close(struct unpack *u)
{
	tar_reader_free(&u->reader);
	fd_close(u->fd);
}

static int make_dir(int parent, const char *name, uint32_t mode)
{
	struct stat st;

	/* We must be able to write into it, whatever the archive says. */
	if (mkdirat(parent, name, mode | 0700) == 0)
		return 0;
	if (errno == EEXIST && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		return 0;
	return -errno;
}

static int make_entry(struct unpack *u, const struct tar_entry *en, int parent, const char *name)
{
	if (en->type == '5')
		return make_dir(parent, name, en->mode);
	int r = tar_clear(parent, name);

	if (r < 0)
		return r;
	if (en->type == '2')
		return symlinkat(en->link, parent, name) < 0 ? -errno : 0;
	u->fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       en->mode);
	u->mtime = en->mtime;
	return u->fd < 0 ? -errno : 0;
}

static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	struct unpack *u = arg;
	mode_t mode = 0777;
	const char *name;
	_fd_ int parent = tar_parent(u->root, en->path, tar_enter_dir, &mode, &name);
	int r = parent < 0 ? parent : make_entry(u, en, parent, name);

	return r < 0 ? err_set(e, r, "unpack %s", en->path) : 0;
}

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	const struct unpack *u = arg;
	int r = fd_write_all(u->fd, data, len);

	return r < 0 ? err_set(e, r, "write a file") : 0;
}

static int on_close(void *arg, struct err *e)
{
	struct unpack *u = arg;
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = u->mtime } };

	(void)e;
	(void)futimens(u->fd, times);
	u->fd = fd_close(u->fd);
	return 0;
}

/* The reader's refusal as a message of this command. */
static int refused(enum tar_fault fault, struct err *e)
{
	static const char *const texts[] = {
		[TAR_ABSOLUTE] = "holds an absolute path",
		[TAR_UP] = "holds a path with '..'",
		[TAR_LONG_NAME] = "holds a path that is too long",
		[TAR_LONG_META] = "holds a header of more than 1 MiB",
	};
	const char *text = (size_t)fault < ARRAY_SIZE(texts) ? texts[fault] : NULL;

	return err_say(e, -EBADMSG, "the archive %s", text ? text : "is damaged");
}

int unpack_feed(struct unpack *u, const char *data, size_t len, struct err *e)
{
	static const struct tar_sink sink = { on_entry, on_data, on_close };
	int r = tar_feed(&u->reader, &sink, u, data, len, e);

	return u->reader.fault ? refused(u->reader.fault, e) : r;
}

int unpack_end(struct unpack *u, struct err *e)
{
	return tar_ended(&u->reader) ? 0 : err_say(e, -EBADMSG, "the archive ended too early");
}

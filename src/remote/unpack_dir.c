/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_dir.c - Entries in, files out.
 *
 * The archive was made in a sandbox, so it may be hostile, and the files are written with the
 * rights of the user of this command. The reader hands out only tidy paths, and symbolic links that
 * stay in the tree; tar_parent() follows no link; a file or a link in the way is unlinked, so that
 * nothing is ever written through an old name. archive/path.c argues why that keeps everything in
 * the directory.
 */
#include "remote/unpack_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/path.h"
#include "archive/tar_reader.h"
#include "base/err.h"
#include "base/fd.h"

static const struct tar_rules rules = { .path_max = 4096,
					.meta_max = 1u << 20,
					.depth_max = SIZE_MAX,
					.max_bytes = UINT64_MAX,
					.max_files = UINT64_MAX,
					.kinds = "025",
					.links_inside = true,
					.skips = true };

struct unpack {
	int root;
	struct tar_reader reader;
	int fd; /* the file that is written; -1: none */
	int64_t mtime;
};

struct unpack *unpack_open(int dirfd, struct err *e)
{
	struct unpack *u = calloc(1, sizeof(*u));

	if (!u) {
		(void)err_set(e, -ENOMEM, "unpack");
		return NULL;
	}
	u->root = dirfd;
	u->reader.rules = &rules;
	u->fd = -1;
	return u;
}

void unpack_close(struct unpack *u)
{
	if (!u)
		return;
	tar_reader_free(&u->reader);
	fd_close(u->fd);
	free(u);
}

uint64_t unpack_skipped(const struct unpack *u)
{
	return u->reader.skipped;
}

/* ---- entries --------------------------------------------------------------------------------- */

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

/* ---- the stream ------------------------------------------------------------------------------ */

/* The reader's refusal as a message of this command. */
static int refused(enum tar_fault fault, struct err *e)
{
	switch (fault) {
	case TAR_ABSOLUTE:
		return err_say(e, -EBADMSG, "the archive holds an absolute path");
	case TAR_UP:
		return err_say(e, -EBADMSG, "the archive holds a path with '..'");
	case TAR_LONG_NAME:
		return err_say(e, -EBADMSG, "the archive holds a path that is too long");
	case TAR_LONG_META:
		return err_say(e, -EBADMSG, "the archive holds a header of more than 1 MiB");
	default:
		return err_say(e, -EBADMSG, "the archive is damaged");
	}
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_tar_in.c - Unpacking a tar archive below a directory.
 *
 * Strict: an absolute path, a "..", a device, a sparse file or a bad checksum ends the call; the
 * reader refuses them before they are entries. No link is followed on the way to an entry, also
 * none that the archive itself brought, and a file or a link that is in the way is unlinked first,
 * so nothing is written through a name that was there: archive/path.c argues why nothing is written
 * outside. The cell's code may change the tree meanwhile, hence descriptors and no paths. Set-id
 * and sticky bits are dropped. Not atomic: entries that were unpacked before an error stay, but no
 * half of a file does.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/path.h"
#include "archive/tar_reader.h"
#include "base/fd.h"
#include "init/files.h"

#define META_MAX (64u << 10) /* a pax header or a long name; the Linux kernel bounds paths */

static const struct tar_rules rules = { .path_max = META_MAX + 1,
					.meta_max = META_MAX,
					.depth_max = SIZE_MAX,
					.max_bytes = UINT64_MAX,
					.max_files = UINT64_MAX,
					.kinds = "0125" };

struct unpack {
	struct files_io *io;
	struct tar_reader reader;
	int root;
	/* The file at hand: where it is made, its entry, and its content. -1: none. */
	int dir, file;
	const char *name;
	struct tar_entry en;
};

/* ---- entries --------------------------------------------------------------------------------- */

/* Takes the descriptor @dir when it succeeds. */
static int begin_file(struct unpack *u, int *dir, const char *name, const struct tar_entry *en)
{
	int r = tar_clear(*dir, name);

	if (r < 0)
		return r;
	u->file = openat(*dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->file < 0)
		return -errno;
	u->dir = TAKE_FD(*dir);
	u->name = name;
	u->en = *en;
	return 0;
}

/* The file is over: complete, or removed. */
static void end_file(struct unpack *u, bool complete)
{
	if (u->file >= 0 && !complete)
		(void)unlinkat(u->dir, u->name, 0);
	u->file = fd_close(u->file);
	u->dir = fd_close(u->dir);
}

/* Its owner may always enter: the files in it come after it. */
static int unpack_dir(int dir, const char *name, const struct tar_entry *en)
{
	if (mkdirat(dir, name, en->mode | 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	_fd_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
	(void)fchmod(fd, en->mode | 0700);
	return 0;
}

/* Two names of one file: to make room for the second would take the file away. Changes no errno. */
static bool is_same(int dir_a, const char *a, int dir_b, const char *b)
{
	struct stat x, y;
	int error = errno;
	bool same = fstatat(dir_a, a, &x, AT_SYMLINK_NOFOLLOW) == 0 &&
		    fstatat(dir_b, b, &y, AT_SYMLINK_NOFOLLOW) == 0 && x.st_dev == y.st_dev &&
		    x.st_ino == y.st_ino;

	errno = error;
	return same;
}

static int unpack_hard_link(const struct unpack *u, int dir, const char *name, const char *target)
{
	const char *last;
	_fd_ int from = tar_parent(u->root, target, tar_enter_dir, NULL, &last);

	if (from < 0)
		return from;
	if (linkat(from, last, dir, name, 0) == 0)
		return 0;
	if (errno == EEXIST && is_same(from, last, dir, name))
		return 0;
	int r = errno == EEXIST ? tar_clear(dir, name) : -errno;

	return r || linkat(from, last, dir, name, 0) == 0 ? r : -errno;
}

static int unpack_link(int dir, const char *name, const char *target)
{
	int r = tar_clear(dir, name);

	return r || symlinkat(target, dir, name) == 0 ? r : -errno;
}

static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	struct unpack *u = arg;
	mode_t mode = 0755;
	const char *name;

	(void)e;
	(void)io_trouble(u->io, en->path, 0);
	_fd_ int dir = tar_parent(u->root, en->path, tar_enter_dir, &mode, &name);

	if (dir < 0)
		return dir;
	u->io->end.count++;
	switch (en->type) {
	case '0':
		return begin_file(u, &dir, name, en);
	case '1':
		return unpack_hard_link(u, dir, name, en->link);
	case '2':
		return unpack_link(dir, name, en->link);
	default:
		return unpack_dir(dir, name, en);
	}
}

static int on_data(void *arg, const char *data, size_t len, struct err *e)
{
	const struct unpack *u = arg;

	(void)e;
	return fd_write_all(u->file, data, len);
}

static int on_close(void *arg, struct err *e)
{
	struct unpack *u = arg;
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = u->en.mtime } };

	(void)e;
	if (fchmod(u->file, u->en.mode) < 0)
		return -errno;
	(void)futimens(u->file, times);
	end_file(u, true);
	return 0;
}

/* ---- the archive ----------------------------------------------------------------------------- */

/*
 * To the end of the data, so that the host can finish; bytes after the end of the archive are
 * dropped.
 */
static int unpack_all(struct unpack *u)
{
	static const struct tar_sink sink = { on_entry, on_data, on_close };
	static char data[FILES_FRAME_MAX];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = io_take(u->io, data, sizeof(data))) != 0)
		r = n < 0 ? (int)n : tar_feed(&u->reader, &sink, u, data, (size_t)n, NULL);
	if (u->reader.fault >= TAR_ABSOLUTE)
		(void)io_trouble(u->io, u->reader.path, 0);
	if (u->reader.fault == TAR_NO_NAME)
		return EISDIR;
	return r == 0 && !tar_ended(&u->reader) ? EBADMSG : -r;
}

int files_tar_in(const struct files_call *c, struct files_io *io)
{
	struct unpack u = { .io = io, .reader.rules = &rules, .dir = -1, .file = -1 };
	int r = c->q.flags & FILES_PARENTS ? dirs_make(c->path) : 0;

	if (r)
		return r;
	_fd_ int root = open(c->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return errno;
	r = io_room(io, &c->q, root, true);
	if (r)
		return r;
	u.root = root;
	r = unpack_all(&u);
	end_file(&u, false);
	tar_reader_free(&u.reader);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_read.c - Reading: content, its hash, the attributes of a name, and lists of directories.
 *
 * Only plain files have content. They are opened without waiting, so a pipe without a writer is an
 * answer and not a hang, and checked through the descriptor that is then read.
 *
 * A list has the order of the directory; the client sorts it. A single file is a list of itself,
 * with an empty name.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "init/files.h"

/* Descriptor or -errno; -ENXIO for other kinds than files and directories. */
static int open_file(const char *path, struct stat *st)
{
	_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) ? TAKE_FD(fd) : -ENXIO;
}

static ssize_t read_at(int fd, void *data, size_t size, uint64_t at)
{
	ssize_t n = at > INT64_MAX ? 0 : TEMP_FAILURE_RETRY(pread(fd, data, size, (off_t)at));

	return n < 0 ? -errno : n;
}

/*
 * How much to send: the requested part of the size at the time of opening. Files of /proc have
 * content and a size of 0: they are read to their end.
 */
static uint64_t amount(const struct init_files *q, const struct stat *st, uint64_t *ret_at)
{
	uint64_t size = (uint64_t)st->st_size;
	uint64_t at = q->offset, n;

	if (q->flags & FILES_FROM_END)
		at = size > q->offset ? size - q->offset : 0;
	*ret_at = at;
	n = at < size ? size - at : 0;
	if (size == 0)
		n = UINT64_MAX;
	if (n > q->length)
		n = q->length;
	return q->limit > 0 && n > q->limit ? q->limit : n;
}

int files_read(const struct files_call *c, struct files_io *io)
{
	static char data[FILES_FRAME_MAX];
	struct stat st;
	uint64_t at;

	_fd_ int fd = open_file(c->path, &st);

	if (fd < 0)
		return -fd;
	io_stat(io, &st, "", NULL);
	for (uint64_t left = amount(&c->q, &st, &at); left > 0 && !io->broken;) {
		ssize_t n =
			read_at(fd, data, left < sizeof(data) ? (size_t)left : sizeof(data), at);

		if (n < 0)
			return (int)-n;
		if (n == 0) {
			io->end.flags |= st.st_size > 0 ? FILES_CHANGED : 0u;
			break;
		}
		io_data(io, data, (size_t)n);
		at += (uint64_t)n;
		left -= (uint64_t)n;
	}
	return 0;
}

int files_hash(const struct files_call *c, struct files_io *io)
{
	static char data[FILES_FRAME_MAX];
	struct sha256 s;
	uint8_t hash[FILES_HASH_LEN];
	struct stat st;
	uint64_t at = 0;

	_fd_ int fd = open_file(c->path, &st);

	if (fd < 0)
		return -fd;
	sha256_init(&s);
	for (ssize_t n; (n = read_at(fd, data, sizeof(data), at)) != 0; at += (uint64_t)n) {
		if (n < 0)
			return (int)-n;
		if (c->q.limit > 0 && at + (uint64_t)n > c->q.limit)
			return EFBIG;
		sha256_add(&s, data, (size_t)n);
	}
	sha256_end(&s, hash);
	io_stat(io, &st, "", NULL);
	io_data(io, hash, sizeof(hash));
	io->end.bytes = at;
	return 0;
}

int files_stat(const struct files_call *c, struct files_io *io)
{
	char target[FILES_PATH_MAX];
	struct stat st;

	if (fstatat(AT_FDCWD, c->path, &st, c->q.flags & FILES_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) <
	    0)
		return errno;
	io_stat(io, &st, "", S_ISLNK(st.st_mode) ? link_read(AT_FDCWD, c->path, target) : NULL);
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct listing {
	const struct files_call *call;
	struct files_io *io;
	bool full; /* the limit is reached, and there is more */
};

static int visit(struct walk *w, int dirfd, const char *name, const char *path,
		 const struct stat *st)
{
	struct listing *l = w->arg;
	char target[FILES_PATH_MAX];

	if (l->call->q.limit > 0 && l->io->end.count >= l->call->q.limit) {
		l->full = true;
		return WALK_STOP;
	}
	io_stat(l->io, st, path, S_ISLNK(st->st_mode) ? link_read(dirfd, name, target) : NULL);
	l->io->end.count++;
	return l->io->broken ? WALK_STOP : 0;
}

int files_list(const struct files_call *c, struct files_io *io)
{
	static struct walk w;
	struct listing l = { .call = c, .io = io };
	struct stat st;
	int fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR && stat(c->path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		io_stat(io, &st, "", NULL);
		io->end.count = 1;
		return 0;
	}
	if (fd < 0)
		return errno;
	w = (struct walk){
		.visit = visit,
		.arg = &l,
		.depth = c->q.flags & FILES_RECURSIVE ? c->q.depth : 0,
	};
	int r = walk_dir(&w, fd);

	/* Where one level was requested, deeper levels are not a cut. */
	if (l.full || (w.cut && c->q.flags & FILES_RECURSIVE))
		io->end.flags |= FILES_CUT;
	return r ? io_trouble(io, w.path, r) : 0;
}

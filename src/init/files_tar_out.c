/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_tar_out.c - A directory as a tar archive (ustar, with pax records where that has no room).
 *
 * Files, directories and links. Hard links become files of their own; pipes, sockets and devices
 * are left out, and FILES_SKIPPED reports it. With FILES_WHOLE a second name of a file is a hard
 * link, and pipes and attributes are there (archive/tar_writer.h): all that a workspace keeps. A
 * file has the size that it had when it was opened: one that grows is cut there, one that shrinks
 * is filled up with zeros, and FILES_CHANGED reports it. A directory or file that cannot be read
 * ends the call: half an archive must not look like a whole one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/tar_writer.h"
#include "base/fd.h"
#include "init/files.h"

struct pack {
	struct tar_writer out;
	struct files_io *io;
	uint64_t limit;
	void **names; /* of files with several (archive/tar_writer.h); NULL: not whole */
};

static int emit(void *arg, const void *data, size_t len)
{
	const struct pack *p = arg;

	if (p->limit > 0 && p->io->end.bytes + len > p->limit)
		return EFBIG;
	io_data(p->io, data, len);
	return p->io->broken ? WALK_STOP : 0;
}

/* @fd: its attributes go with it; -1: none. */
static int put_head(struct pack *p, char type, const char *path, const char *target,
		    const struct stat *st, int fd)
{
	bool cut = false;
	int r = tar_put_stat(&p->out, type, path, target, st, p->names ? fd : -1, &cut);

	if (cut)
		p->io->end.flags |= FILES_SKIPPED;
	return r;
}

/* Exactly @size bytes of content, then up to the block. */
static int put_content(struct pack *p, int fd, uint64_t size)
{
	static char data[FILES_FRAME_MAX];
	int r = 0;

	for (uint64_t left = size; r == 0 && left > 0;) {
		size_t want = left < sizeof(data) ? (size_t)left : sizeof(data);
		ssize_t n = TEMP_FAILURE_RETRY(read(fd, data, want));

		if (n < 0)
			return errno;
		if (n == 0) {
			p->io->end.flags |= FILES_CHANGED;
			memset(data, 0, want);
			n = (ssize_t)want;
		}
		r = emit(p, data, (size_t)n);
		left -= (uint64_t)n;
	}
	return r ? r : tar_put_padding(&p->out, size);
}

static int put_file(struct pack *p, int dirfd, const char *name, const char *path)
{
	struct stat st;

	_fd_ int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : errno; /* gone, or a link now */
	if (!S_ISREG(st.st_mode))
		return 0;
	p->io->end.count++;
	if (p->names && st.st_nlink > 1) {
		const char *first = tar_first_name(p->names, &st, path);

		if (!first)
			return ENOMEM;
		if (first != path)
			return put_head(p, '1', path, first, &st, -1);
	}
	int r = put_head(p, '0', path, "", &st, fd);

	return r ? r : put_content(p, fd, (uint64_t)st.st_size);
}

static int visit(struct walk *w, int dirfd, const char *name, const char *path,
		 const struct stat *st)
{
	struct pack *p = w->arg;
	char text[sizeof(w->path) + 1];

	if (S_ISREG(st->st_mode))
		return put_file(p, dirfd, name, path);
	if (S_ISLNK(st->st_mode)) {
		const char *target = link_read(dirfd, name, text);

		p->io->end.count++;
		return target ? put_head(p, '2', path, target, st, -1) : 0;
	}
	if (S_ISDIR(st->st_mode)) {
		_fd_ int fd = p->names ? openat(dirfd, name,
						O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) :
					 -1;

		(void)snprintf(text, sizeof(text), "%s/", path);
		p->io->end.count++;
		return put_head(p, '5', text, "", st, fd);
	}
	if (S_ISFIFO(st->st_mode) && p->names) {
		p->io->end.count++;
		return put_head(p, '6', path, "", st, -1);
	}
	p->io->end.flags |= FILES_SKIPPED;
	return 0;
}

int files_tar_out(const struct files_call *c, struct files_io *io)
{
	static struct walk w;
	static void *names;
	struct pack p = { .out = { emit, &p },
			  .io = io,
			  .limit = c->q.limit,
			  .names = c->q.flags & FILES_WHOLE ? &names : NULL };
	struct stat st;
	int fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd >= 0) {
		w = (struct walk){ .visit = visit, .arg = &p, .depth = c->q.depth, .strict = true };
		r = walk_dir(&w, fd);
		if (r)
			return io_trouble(io, w.path, r);
	} else if (errno != ENOTDIR || stat(c->path, &st) < 0) {
		return errno;
	} else if (!S_ISREG(st.st_mode)) {
		return ENXIO;
	} else {
		struct place at;
		_fd_ int dir = place_enter(&at, c->path, false);

		r = dir < 0 ? -dir : put_file(&p, dir, at.name, at.name);
	}
	if (r == 0)
		r = tar_put_end(&p.out);
	return r == WALK_STOP ? ECANCELED : r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_dir.c - Walk a directory, give out headers and contents.
 *
 * The next bytes are either in `head` (headers, padding, the end) or in the file that is open; when
 * both are empty the walk takes a step.
 */
#include "remote/pack_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/tar_writer.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

#define HEAD_MAX (64u << 10)

struct pack {
	FTS *fts;
	size_t root_len; /* of the path that was opened, with a slash */
	struct buf head;
	struct tar_writer out; /* into head */
	int fd;                /* -1: none */
	uint64_t left, size;
	uint64_t skipped;
	bool ended;
	struct err e;
};

static int append(void *arg, const void *data, size_t len)
{
	return buf_append(arg, data, len);
}

struct pack *pack_open(const char *dir, struct err *e)
{
	struct pack *p = calloc(1, sizeof(*p));
	char *paths[] = { (char *)dir, NULL };

	if (!p) {
		(void)err_set(e, -ENOMEM, "pack %s", dir);
		return NULL;
	}
	p->fd = -1;
	p->root_len = strlen(dir) + (dir[strlen(dir) - 1] == '/' ? 0 : 1);
	buf_init(&p->head, HEAD_MAX);
	p->out = (struct tar_writer){ append, &p->head };
	p->fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!p->fts) {
		(void)err_set(e, -errno, "pack %s", dir);
		free(p);
		return NULL;
	}
	return p;
}

void pack_close(struct pack *p)
{
	if (!p)
		return;
	(void)fts_close(p->fts);
	buf_free(&p->head);
	fd_close(p->fd);
	free(p);
}

static int put_head(struct pack *p, char type, const char *path, const char *target,
		    const struct stat *st)
{
	struct tar_entry en = { .type = type,
				.mode = st->st_mode & 0777,
				.size = type == '0' ? (uint64_t)st->st_size : 0,
				.mtime = st->st_mtim.tv_sec,
				.path = path,
				.link = target };
	int r = tar_put_head(&p->out, &en);

	return r < 0 ? err_set(&p->e, r, "pack %s", path) : 0;
}

static int open_file(struct pack *p, const FTSENT *entry, const char *path)
{
	struct stat st;

	_fd_ int fd =
		open(entry->fts_accpath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(&p->e, -errno, "open %s", entry->fts_path);
	if (!S_ISREG(st.st_mode)) { /* changed between two looks */
		p->skipped++;
		return 0;
	}
	p->left = (uint64_t)st.st_size;
	p->size = p->left;
	p->fd = TAKE_FD(fd);
	return put_head(p, '0', path, "", &st);
}

static int put_link(struct pack *p, const FTSENT *entry, const char *path)
{
	char target[4096];
	ssize_t n = readlink(entry->fts_accpath, target, sizeof(target) - 1);

	if (n < 0)
		return err_set(&p->e, -errno, "read the link %s", entry->fts_path);
	target[n] = '\0';
	return put_head(p, '2', path, target, entry->fts_statp);
}

/* The next entry of the walk. */
static int step(struct pack *p)
{
	errno = 0;
	const FTSENT *entry = fts_read(p->fts);

	if (!entry) {
		if (errno)
			return err_set(&p->e, -errno, "walk the directory");
		p->ended = true;
		return tar_put_end(&p->out);
	}
	const char *path = entry->fts_level > 0 ? entry->fts_path + p->root_len : ".";

	switch (entry->fts_info) {
	case FTS_D:
		return entry->fts_level > 0 ? put_head(p, '5', path, "", entry->fts_statp) : 0;
	case FTS_DP:
		return 0;
	case FTS_F:
		return open_file(p, entry, path);
	case FTS_SL:
	case FTS_SLNONE:
		return put_link(p, entry, path);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return err_set(&p->e, -entry->fts_errno, "read %s", entry->fts_path);
	default:
		p->skipped++;
		return 0;
	}
}

/* Bytes of the open file. A file that shrank is filled up: the header has its old size. */
static int64_t content(struct pack *p, char *data, size_t size)
{
	size_t want = p->left < size ? (size_t)p->left : size;
	ssize_t n = want ? read(p->fd, data, want) : 0;

	if (n < 0 && errno != EINTR) {
		(void)err_set(&p->e, -errno, "read a file");
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

int64_t pack_read(struct pack *p, char *data, size_t size)
{
	for (;;) {
		size_t n = p->head.len < size ? p->head.len : size;

		if (n > 0) {
			memcpy(data, buf_str(&p->head), n);
			buf_consume(&p->head, n);
			return (int64_t)n;
		}
		if (p->fd >= 0) {
			int64_t got = content(p, data, size);

			if (got != 0)
				return got;
			continue;
		}
		if (p->ended)
			return 0;
		if (step(p) < 0)
			return -1;
	}
}

const struct err *pack_error(const struct pack *p)
{
	return &p->e;
}

uint64_t pack_skipped(const struct pack *p)
{
	return p->skipped;
}

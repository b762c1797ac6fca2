/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_tar_in.c - Unpacking a tar archive below a directory.
 *
 * Strict: an absolute path, a "..", a device, a sparse file or a bad checksum ends the call. No link is
 * followed on the way to an entry, also none that the archive itself brought: each component is opened by
 * its own descriptor with O_NOFOLLOW. What is in the way of a file or a link is unlinked first, so
 * nothing is written through a name that was there. Set-id and sticky bits are dropped. Not atomic: what
 * was unpacked before an error stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"
#include "init/files_io.h"
#include "init/files_path.h"
#include "init/tar.h"

#define META_MAX (64u << 10) /* a pax header or a long name */

/* What extended headers say about the next entry. */
struct meta {
	char *path, *link; /* NULL: as in the header */
	bool has_size, has_mtime;
	int64_t size, mtime;
};

struct unpack {
	struct files_io *io;
	int root;
	struct meta meta;
};

/* Exactly @len bytes. EBADMSG when the archive ends before. */
static int take(struct unpack *u, void *data, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = io_take(u->io, (char *)data + have, len - have);

		if (n <= 0)
			return n < 0 ? (int)-n : EBADMSG;
		have += (size_t)n;
	}
	return 0;
}

/* @len bytes to @fd, and what is left of the last block. */
static int take_content(struct unpack *u, int fd, uint64_t len)
{
	static char data[FILES_FRAME_MAX];
	size_t over = (size_t)(len % TAR_BLOCK);
	int r = 0;

	for (uint64_t left = len; r == 0 && left > 0;) {
		size_t n = left < sizeof(data) ? (size_t)left : sizeof(data);

		r = take(u, data, n);
		if (r == 0)
			r = -fd_write_all(fd, data, n);
		left -= n;
	}
	return r || !over ? r : take(u, data, TAR_BLOCK - over);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The next component of *@path, or NULL. Skips what says nothing: "//" and "/./". */
static char *component(char **path)
{
	for (;;) {
		char *s = *path + strspn(*path, "/");
		size_t n = strcspn(s, "/");

		if (n == 0)
			return NULL;
		*path = s + n + (s[n] == '/');
		s[n] = '\0';
		if (strcmp(s, ".") != 0)
			return s;
	}
}

static int next_dir(int at, const char *name, bool make)
{
	int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(at, name, flags);

	if (fd < 0 && errno == ENOENT && make && (mkdirat(at, name, 0755) == 0 || errno == EEXIST))
		fd = openat(at, name, flags);
	return fd < 0 ? -errno : fd;
}

/*
 * The directory that holds @path, as a descriptor, and the last component, or NULL in *@ret_name when
 * @path is the root itself. @path is taken apart. -errno.
 */
static int resolve(struct unpack *u, char *path, bool make, char **ret_name)
{
	_fd_ int at = fcntl(u->root, F_DUPFD_CLOEXEC, 3);
	char *name, *next;

	if (at < 0 || path[0] == '/')
		return at < 0 ? -errno : -EPERM;
	*ret_name = NULL;
	for (name = component(&path); name; name = next) {
		if (strcmp(name, "..") == 0)
			return -EPERM;
		*ret_name = name;
		next = component(&path);
		if (!next)
			break;
		int fd = next_dir(at, name, make);

		if (fd < 0)
			return fd;
		fd_close(at);
		at = fd;
	}
	return TAKE_FD(at);
}

/* Out of the way, unless it is a directory. */
static int clear(int dir, const char *name)
{
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? errno : 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int unpack_file(struct unpack *u, int dir, const char *name, const struct tar_head *h)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = h->mtime } };
	int r = clear(dir, name);

	if (r)
		return r;
	_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	r = take_content(u, fd, h->size);
	if (r == 0 && fchmod(fd, h->mode & 0777) < 0)
		r = errno;
	if (r)
		(void)unlinkat(dir, name, 0);
	else
		(void)futimens(fd, times);
	return r;
}

/* Its owner may always enter: the files in it come after it. */
static int unpack_dir(int dir, const char *name, const struct tar_head *h)
{
	if (mkdirat(dir, name, (h->mode & 0777) | 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return errno;
	_fd_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? EEXIST : errno;
	(void)fchmod(fd, (h->mode & 0777) | 0700);
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

static int unpack_hard_link(struct unpack *u, int dir, const char *name, const char *target)
{
	_mem_ char *copy = strdup(target);
	char *last;

	if (!copy)
		return ENOMEM;
	_fd_ int from = resolve(u, copy, false, &last);

	if (from < 0 || !last)
		return from < 0 ? -from : EPERM;
	if (linkat(from, last, dir, name, 0) == 0)
		return 0;
	if (errno == EEXIST && is_same(from, last, dir, name))
		return 0;
	int r = errno == EEXIST ? clear(dir, name) : errno;

	return r || linkat(from, last, dir, name, 0) == 0 ? r : errno;
}

static int unpack_link(int dir, const char *name, const char *target)
{
	int r = target[0] ? clear(dir, name) : EBADMSG;

	return r || symlinkat(target, dir, name) == 0 ? r : errno;
}

static int unpack_entry(struct unpack *u, const struct tar_head *h)
{
	_mem_ char *path = strdup(u->meta.path ? u->meta.path : h->name);
	const char *link = u->meta.link ? u->meta.link : h->link;
	char *name;

	if (!path)
		return ENOMEM;
	_fd_ int dir = resolve(u, path, true, &name);

	if (dir < 0)
		return -dir;
	if (!name) /* "./": the root, which is there */
		return h->type == '5' ? 0 : EISDIR;
	u->io->end.count++;
	switch (h->type) {
	case '0':
		return unpack_file(u, dir, name, h);
	case '1':
		return unpack_hard_link(u, dir, name, link);
	case '2':
		return unpack_link(dir, name, link);
	case '5':
		return unpack_dir(dir, name, h);
	default:
		return EPERM; /* devices, pipes, sparse files, parts of something larger */
	}
}

/* ---- extended headers ------------------------------------------------------------------------ */

static void meta_clear(struct meta *m)
{
	free(m->path);
	free(m->link);
	*m = (struct meta){ 0 };
}

static int set_text(char **to, const char *text, size_t len)
{
	if (len == 0 || memchr(text, '\0', len))
		return EBADMSG;
	free(*to);
	*to = strndup(text, len);
	return *to ? 0 : ENOMEM;
}

static int use_record(struct meta *m, const struct tar_record *r)
{
	if (tar_record_is(r, "path"))
		return set_text(&m->path, r->value, r->value_len);
	if (tar_record_is(r, "linkpath"))
		return set_text(&m->link, r->value, r->value_len);
	if (tar_record_is(r, "size")) {
		m->has_size = true;
		return tar_record_number(r, &m->size) < 0 || m->size < 0 ? EBADMSG : 0;
	}
	if (tar_record_is(r, "mtime")) {
		m->has_mtime = true;
		return -tar_record_number(r, &m->mtime);
	}
	/* Sparse files of GNU: what follows is not their content. */
	return r->key_len >= 10 && memcmp(r->key, "GNU.sparse", 10) == 0 ? EPERM : 0;
}

static int use_records(struct meta *m, const char *data, size_t len)
{
	struct tar_record record;
	size_t at = 0;
	int n, r = 0;

	while (r == 0 && (n = tar_record_next(data, len, &at, &record)) != 0)
		r = n < 0 ? -n : use_record(m, &record);
	return r;
}

static int unpack_meta(struct unpack *u, const struct tar_head *h)
{
	static char data[META_MAX + TAR_BLOCK];
	size_t len = (size_t)h->size;

	if (h->size > META_MAX)
		return EBADMSG;
	int r = take(u, data, (len + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK);

	if (r || h->type == 'g') /* what is true for all entries: nothing that we use */
		return r;
	if (h->type == 'x')
		return use_records(&u->meta, data, len);
	return set_text(h->type == 'L' ? &u->meta.path : &u->meta.link, data, strnlen(data, len));
}

/* ---- the archive ----------------------------------------------------------------------------- */

static void remember(struct unpack *u, const struct tar_head *h)
{
	(void)io_trouble(u->io, u->meta.path ? u->meta.path : h->name, 0);
}

static int unpack_next(struct unpack *u, bool *ret_end)
{
	uint8_t block[TAR_BLOCK];
	struct tar_head h;
	int r = take(u, block, sizeof(block));

	if (r)
		return r;
	r = tar_parse(block, &h);
	*ret_end = r == 0;
	if (r <= 0)
		return -r;
	if (h.type == 'x' || h.type == 'g' || h.type == 'L' || h.type == 'K')
		return unpack_meta(u, &h);
	if (u->meta.has_size)
		h.size = (uint64_t)u->meta.size;
	if (u->meta.has_mtime)
		h.mtime = u->meta.mtime;
	remember(u, &h);
	/* Only files have content; some writers say a size for links and directories all the same. */
	r = unpack_entry(u, &h);
	meta_clear(&u->meta);
	return r;
}

/* Whatever follows the end of the archive is read and dropped, so that the host can finish. */
static int drain(struct unpack *u)
{
	static char data[FILES_FRAME_MAX];
	ssize_t n;

	while ((n = io_take(u->io, data, sizeof(data))) > 0)
		;
	return (int)-n;
}

int files_tar_in(const struct files_call *c, struct files_io *io)
{
	struct unpack u = { .io = io };
	bool end = false;
	int r = c->q.flags & FILES_PARENTS ? dirs_make(c->path) : 0;

	if (r)
		return r;
	_fd_ int root = open(c->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return errno;
	u.root = root;
	while (r == 0 && !end)
		r = unpack_next(&u, &end);
	meta_clear(&u.meta);
	return r ? r : drain(&u);
}

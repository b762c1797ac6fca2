/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_write.c - Writing a file, making a directory, moving a name.
 *
 * A file is written beside its place and then given its name, so that a reader sees the old content
 * or the new one. Until then it has no name at all (O_TMPFILE), and is gone when the worker ends;
 * where the file system cannot do this it has a name that is removed on every way out but SIGKILL.
 * An old file of the name is replaced: a link is replaced itself, not its target; a directory is
 * not replaced at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"

struct draft {
	int dir, fd;
	char name[32]; /* the temporary one */
	bool named;
};

static void draft_drop(struct draft *d)
{
	if (d->named)
		(void)unlinkat(d->dir, d->name, 0);
	d->fd = fd_close(d->fd);
}

static int draft_open(struct draft *d, int dir)
{
	uint64_t random;

	*d = (struct draft){ .dir = dir, .fd = -1 };
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return EIO;
	(void)snprintf(d->name, sizeof(d->name), FILES_DRAFT "%016llx", (unsigned long long)random);
	d->fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (d->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
		return errno;
	d->fd = openat(dir, d->name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
	if (d->fd < 0)
		return errno;
	d->named = true;
	return 0;
}

static int draft_fill(struct draft *d, struct files_io *io)
{
	static char data[FILES_FRAME_MAX];
	ssize_t n;

	while ((n = io_take(io, data, sizeof(data))) > 0) {
		int r = fd_write_all(d->fd, data, (size_t)n);

		if (r < 0)
			return -r;
	}
	return (int)-n;
}

/* The directory is held open: the file goes there, whatever becomes of its path. */
static int draft_publish(struct draft *d, const char *name)
{
	char self[40];

	if (!d->named) {
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", d->fd);
		if (linkat(AT_FDCWD, self, d->dir, name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		/* Only renaming replaces, and only a file with a name can be renamed. */
		if (errno != EEXIST ||
		    linkat(AT_FDCWD, self, d->dir, d->name, AT_SYMLINK_FOLLOW) < 0)
			return errno;
		d->named = true;
	}
	if (renameat(d->dir, d->name, d->dir, name) < 0)
		return errno;
	d->named = false;
	return 0;
}

/* The requested mode; or that of the file that is replaced; or the usual one. */
static mode_t mode_for(const struct init_files *q, const struct stat *old)
{
	if (q->flags & FILES_HAS_MODE)
		return q->mode;
	return old && S_ISREG(old->st_mode) ? old->st_mode & 0777 : 0644;
}

int files_write(const struct files_call *c, struct files_io *io)
{
	struct place p;
	struct draft d;
	struct stat old, st;
	int r = place_find(&p, c->path);

	if (r)
		return r;
	if (p.slash)
		return EISDIR;
	_fd_ int dir = place_open(&p, c->q.flags & FILES_PARENTS);

	if (dir < 0)
		return -dir;
	bool exists = fstatat(dir, p.name, &old, AT_SYMLINK_NOFOLLOW) == 0;

	if (exists && S_ISDIR(old.st_mode))
		return EISDIR;
	if (exists && S_ISREG(old.st_mode) && !(old.st_mode & 0222) &&
	    !(c->q.flags & FILES_HAS_MODE))
		return FILES_READ_ONLY;
	r = io_room(io, &c->q, dir, false);
	if (r)
		return r;
	r = draft_open(&d, dir);
	if (r == 0)
		r = draft_fill(&d, io);
	if (r == 0 && (fchmod(d.fd, mode_for(&c->q, exists ? &old : NULL)) < 0))
		r = errno;
	if (r == 0)
		r = draft_publish(&d, p.name);
	if (r == 0 && fstat(d.fd, &st) == 0)
		io_stat(io, &st, "", NULL);
	draft_drop(&d);
	io->end.flags |= r == 0 && !exists ? FILES_MADE : 0u;
	return r;
}

int files_mkdir(const struct files_call *c, struct files_io *io)
{
	bool parents = c->q.flags & FILES_PARENTS;
	struct place p;
	struct stat st;
	_fd_ int dir = place_enter(&p, c->path, parents);

	if (dir < 0)
		return -dir;
	if (mkdirat(dir, p.name, c->q.flags & FILES_HAS_MODE ? c->q.mode : 0755) == 0)
		io->end.flags |= FILES_MADE;
	else if (errno != EEXIST || !parents)
		return errno;
	if (fstatat(dir, p.name, &st, 0) < 0)
		return errno;
	if (!S_ISDIR(st.st_mode))
		return EEXIST;
	io_stat(io, &st, "", NULL);
	return 0;
}

int files_move(const struct files_call *c, struct files_io *io)
{
	unsigned int flags = c->q.flags & FILES_OVERWRITE ? 0u : RENAME_NOREPLACE;
	struct place from, to;
	_fd_ int from_dir = place_enter(&from, c->path, false);

	if (from_dir < 0)
		return -from_dir;
	_fd_ int to_dir = place_enter(&to, c->to, c->q.flags & FILES_PARENTS);

	if (to_dir < 0)
		return io_trouble(io, c->to, -to_dir);
	if (syscall(SYS_renameat2, from_dir, from.name, to_dir, to.name, flags) == 0)
		return 0;
	int r = errno;

	/* Only the new name can cause these errors. */
	if (r == EEXIST || r == ENOTEMPTY || r == EISDIR || r == ENOTDIR)
		return io_trouble(io, c->to, r);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - Headers and contents in, files out.
 *
 * The archive comes in pieces of any size: a header, or the data of a pax header, is collected first; the
 * content of a file goes out as it comes. A path is resolved by the kernel below the directory, with no
 * link on the way (openat2); what is in the way of a file or a link is unlinked, so that nothing is ever
 * written through an old name.
 */
#include "remote/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "init/tar.h"

#define META_MAX (1u << 20)
#define PATH_BYTES 4096u

enum state { AT_HEAD, AT_META, AT_FILE, AT_SKIP, AT_PAD, AT_END };

struct unpack {
	int root;
	enum state state;
	struct buf part; /* of a header, or of a pax header's data */
	struct tar_head head;
	uint64_t left, pad;
	char meta_type;
	char *path, *link; /* from a pax header or GNU's long names; NULL: as in the header */
	int64_t size;      /* from a pax header; -1: as in the header */
	int fd;            /* the file that is written */
	uint64_t skipped;
};

struct unpack *unpack_open(int dirfd, struct err *e)
{
	struct unpack *u = calloc(1, sizeof(*u));

	if (!u) {
		(void)err_set(e, -ENOMEM, "unpack");
		return NULL;
	}
	u->root = dirfd;
	u->fd = -1;
	u->size = -1;
	buf_init(&u->part, META_MAX);
	return u;
}

static void forget_meta(struct unpack *u)
{
	free(u->path);
	free(u->link);
	u->path = u->link = NULL;
	u->size = -1;
}

void unpack_close(struct unpack *u)
{
	if (!u)
		return;
	forget_meta(u);
	buf_free(&u->part);
	fd_close(u->fd);
	free(u);
}

uint64_t unpack_skipped(const struct unpack *u)
{
	return u->skipped;
}

/* ---- names ------------------------------------------------------------------------------------------------ */

int unpack_leads_out(const char *name, const char *target)
{
	int depth = 0;
	bool down = false;

	if (target[0] == '/' || !*target)
		return 1;
	for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/'))
		depth++;
	/* Up first, then down. A ".." after a name may come from another link, where nobody can count. */
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			if (down || --depth < 0)
				return 1;
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			down = true;
		}
		p += n + (p[n] == '/');
	}
	return 0;
}

/* Parts without "." and empty ones; a ".." is refused. */
static int normalize(const char *from, char out[PATH_BYTES], struct err *e)
{
	size_t len = 0;

	if (from[0] == '/')
		return err_say(e, -EBADMSG, "the archive holds an absolute path");
	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.')
			return err_say(e, -EBADMSG, "the archive holds a path with '..'");
		if (n > 0 && !(n == 1 && from[0] == '.')) {
			if (len + n + 2 > PATH_BYTES)
				return err_say(e, -ENAMETOOLONG,
					       "the archive holds a path that is too long");
			if (len)
				out[len++] = '/';
			memcpy(out + len, from, n);
			len += n;
		}
		from += n + (from[n] == '/');
	}
	out[len] = '\0';
	return 0;
}

static int open_below(int dir, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

/* The directory that @path is in, made when it is not there; *ret_name is the last part. */
static int open_parent(struct unpack *u, char *path, const char **ret_name)
{
	int dir = fcntl(u->root, F_DUPFD_CLOEXEC, 3);
	char *slash;

	while (dir >= 0 && (slash = strchr(path, '/'))) {
		*slash = '\0';
		int next = open_below(dir, path);

		if (next < 0 && errno == ENOENT && mkdirat(dir, path, 0777) == 0)
			next = open_below(dir, path);
		int number = errno;

		fd_close(dir);
		errno = number;
		dir = next;
		path = slash + 1;
	}
	*ret_name = path;
	return dir < 0 ? -errno : dir;
}

/* ---- entries ----------------------------------------------------------------------------------------------- */

static int make_dir(int parent, const char *name, uint32_t mode)
{
	struct stat st;

	/* We must be able to write into it, whatever the archive says. */
	if (mkdirat(parent, name, (mode & 0777) | 0700) == 0)
		return 0;
	if (errno == EEXIST && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		return 0;
	return -errno;
}

static int clear_way(int parent, const char *name)
{
	return unlinkat(parent, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int make_file(struct unpack *u, int parent, const char *name)
{
	int r = clear_way(parent, name);

	if (r < 0)
		return r;
	u->fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       u->head.mode & 0777);
	if (u->fd < 0)
		return -errno;
	u->state = AT_FILE;
	return 0;
}

static int make_link(struct unpack *u, int parent, const char *name, const char *whole)
{
	const char *target = u->link ? u->link : u->head.link;

	if (unpack_leads_out(whole, target)) {
		u->skipped++;
		return 0;
	}
	int r = clear_way(parent, name);

	return r < 0 ? r : symlinkat(target, parent, name) < 0 ? -errno : 0;
}

/* u->head is complete: make what it says. */
static int on_entry(struct unpack *u, struct err *e)
{
	char path[PATH_BYTES], whole[PATH_BYTES];
	const char *name;
	int r = normalize(u->path ? u->path : u->head.name, path, e);

	if (u->size >= 0)
		u->head.size = (uint64_t)u->size;
	u->left = u->head.type == '0' ? u->head.size : 0;
	u->pad = (TAR_BLOCK - u->left % TAR_BLOCK) % TAR_BLOCK;
	u->state = u->left ? AT_SKIP : u->pad ? AT_PAD : AT_HEAD;
	if (r < 0 || !*path) /* "." is the directory itself */
		return r;
	memcpy(whole, path, sizeof(whole));
	_fd_ int parent = open_parent(u, path, &name);

	if (parent < 0)
		return err_set(e, parent, "unpack %s", whole);
	switch (u->head.type) {
	case '0':
		r = make_file(u, parent, name);
		break;
	case '5':
		r = make_dir(parent, name, u->head.mode);
		break;
	case '2':
		r = make_link(u, parent, name, whole);
		break;
	default:
		u->skipped++;
	}
	return r < 0 ? err_set(e, r, "unpack %s", whole) : 0;
}

static int keep_text(char **to, const char *s, size_t len)
{
	free(*to);
	*to = memchr(s, '\0', len) || len >= PATH_BYTES ? NULL : strndup(s, len);
	return *to ? 0 : -EBADMSG;
}

/* The data of a pax header, or of a long name, is complete. */
static int on_meta(struct unpack *u)
{
	const char *data = buf_str(&u->part);
	size_t at = 0, len = strnlen(data, u->part.len);
	struct tar_record record;
	int r = 1;

	if (u->meta_type == 'L' || u->meta_type == 'K')
		return keep_text(u->meta_type == 'L' ? &u->path : &u->link, data, len);
	while (u->meta_type == 'x' && (r = tar_record_next(data, u->part.len, &at, &record)) == 1) {
		if (tar_record_is(&record, "path"))
			r = keep_text(&u->path, record.value, record.value_len);
		else if (tar_record_is(&record, "linkpath"))
			r = keep_text(&u->link, record.value, record.value_len);
		else if (tar_record_is(&record, "size"))
			r = tar_record_number(&record, &u->size) < 0 || u->size < 0 ? -EBADMSG : 0;
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static int on_head(struct unpack *u, struct err *e)
{
	int r = tar_parse((const uint8_t *)buf_str(&u->part), &u->head);

	buf_clear(&u->part);
	if (r < 0)
		return err_say(e, -EBADMSG, "the archive is damaged");
	if (r == 0) {
		u->state = AT_END;
		return 0;
	}
	if (!strchr("xgLK", u->head.type)) {
		r = on_entry(u, e);
		forget_meta(u);
		return r;
	}
	if (u->head.size > META_MAX)
		return err_say(e, -EBADMSG, "the archive holds a header of more than 1 MiB");
	u->meta_type = u->head.type;
	u->left = u->head.size;
	u->pad = (TAR_BLOCK - u->left % TAR_BLOCK) % TAR_BLOCK;
	u->state = u->left ? AT_META : AT_HEAD;
	return 0;
}

/* ---- the stream ---------------------------------------------------------------------------------------------- */

static void content_over(struct unpack *u)
{
	if (u->fd >= 0) {
		struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
					     { .tv_sec = u->head.mtime } };

		(void)futimens(u->fd, times);
		u->fd = fd_close(u->fd);
	}
	u->state = u->pad ? AT_PAD : AT_HEAD;
}

/* As much of @data as the present state takes. Return: how much, or -errno. */
static int64_t take(struct unpack *u, const char *data, size_t len, struct err *e)
{
	size_t n = len;
	int r = 0;

	if (u->state == AT_END) /* zeros, or whatever a writer filled its block with */
		return (int64_t)len;
	if (u->state == AT_HEAD) {
		n = len < TAR_BLOCK - u->part.len ? len : TAR_BLOCK - u->part.len;
		r = buf_append(&u->part, data, n);
		if (r == 0 && u->part.len == TAR_BLOCK)
			r = on_head(u, e);
		if (r == 0 && u->state == AT_FILE && u->left == 0)
			content_over(u);
		return r < 0 ? r : (int64_t)n;
	}
	uint64_t *count = u->state == AT_PAD ? &u->pad : &u->left;

	n = *count < len ? (size_t)*count : len;
	if (u->state == AT_META)
		r = buf_append(&u->part, data, n);
	else if (u->state == AT_FILE)
		r = fd_write_all(u->fd, data, n);
	if (r < 0)
		return err_set(e, r, "write a file");
	*count -= n;
	if (*count > 0)
		return (int64_t)n;
	if (u->state == AT_META && on_meta(u) < 0)
		return err_say(e, -EBADMSG, "the archive is damaged");
	if (u->state == AT_META)
		buf_clear(&u->part);
	if (u->state == AT_PAD)
		u->state = AT_HEAD;
	else
		content_over(u);
	return (int64_t)n;
}

int unpack_feed(struct unpack *u, const char *data, size_t len, struct err *e)
{
	while (len > 0) {
		int64_t n = take(u, data, len, e);

		if (n < 0)
			return (int)n;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int unpack_end(struct unpack *u, struct err *e)
{
	return u->state == AT_END ? 0 : err_say(e, -EBADMSG, "the archive ended too early");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.c - Frames of a file call, the archive in them, files in the store.
 *
 * Each component of a path is opened by its own descriptor without following links, and every name is made
 * anew: what is there twice ends it. Modes are ours: 0755 for directories and what may be executed, 0644
 * for the rest.
 *
 * What is hashed (digest.h) is what was made: a directory once, whether the archive names it or only what is in it.
 */
#include "package_store/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/foreign.h"
#include "package_store/check.h"
#include "package_store/package_dir.h"

#define READ_BYTES (256u << 10)

/* ---- entries ---------------------------------------------------------------------------------------------- */

static int make_dir(struct intake *in, int at, const char *name, const char *path, struct err *e)
{
	if (mkdirat(at, name, 0755) < 0)
		return -errno;
	int r = digest_begin(&in->digest, '5', false, path, NULL, e);

	if (r == 0)
		digest_end(&in->digest);
	return r;
}

/* @path: that of the directory, from the root of the tree. */
static int next_dir(struct intake *in, int at, const char *name, const char *path, struct err *e)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(at, name, flags), r;

	if (fd < 0 && errno == ENOENT) {
		r = make_dir(in, at, name, path, e);
		if (r < 0)
			return r;
		fd = openat(at, name, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* The directory that holds @path, and its last component. */
static int resolve(struct intake *in, char *path, char **ret_name, struct err *e)
{
	_fd_ int at = fcntl(in->root, F_DUPFD_CLOEXEC, 3);
	char *name = path, *slash;

	if (at < 0)
		return -errno;
	for (; (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		int fd = next_dir(in, at, name, path, e);

		*slash = '/';
		if (fd < 0)
			return fd;
		fd_close(at);
		at = fd;
	}
	*ret_name = name;
	return TAKE_FD(at);
}

/* A directory may be there for what is in it; then it is hashed. */
static int take_dir(struct intake *in, const struct untar_entry *en, int dir, const char *name,
		    struct err *e)
{
	int r = make_dir(in, dir, name, en->path, e);
	struct stat st;

	if (r != -EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return r;
	return S_ISDIR(st.st_mode) ? 0 : -EEXIST;
}

static int make_entry(struct intake *in, const struct untar_entry *en, int dir, const char *name)
{
	if (en->type == '2')
		return symlinkat(en->link, dir, name) < 0 ? -errno : 0;
	in->file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  en->executable ? 0755 : 0644);
	return in->file < 0 ? -errno : 0;
}

static int on_entry(void *arg, const struct untar_entry *en, struct err *e)
{
	struct intake *in = arg;
	char path[UNTAR_PATH_MAX], *name;

	memcpy(path, en->path, sizeof(path));
	_fd_ int dir = resolve(in, path, &name, e);
	int r = dir;

	if (dir >= 0)
		r = en->type == '5' ? take_dir(in, en, dir, name, e) :
				      make_entry(in, en, dir, name);
	if (r < 0)
		return err_set(e, r, "unpack '%.150s'", en->path);
	if (en->type == '5')
		return 0;
	r = digest_begin(&in->digest, en->type, en->executable, en->path, en->link, e);
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

/* ---- frames ----------------------------------------------------------------------------------------------- */

static int on_data(void *arg, const char *data, size_t len)
{
	static const struct untar_sink sink = { on_entry, on_content, on_close };
	struct intake *in = arg;

	return untar_feed(&in->untar, &sink, in, data, len, &in->err);
}

static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	struct intake *in = arg;

	in->ended = true;
	if (end->error)
		return err_set(&in->err, -end->error, "pack '%.*s' in the cell",
			       where.len < 150 ? (int)where.len : 150, where.data);
	if (!untar_ended(&in->untar))
		return err_say(&in->err, -EBADMSG, "the archive has no end");
	return 0;
}

static int on_stat(void *arg, const struct files_stat *st, struct files_text a, struct files_text b)
{
	(void)arg, (void)st, (void)a, (void)b;
	return -EPROTO;
}

static int on_event(void *arg, const struct files_event *ev, struct files_text a,
		    struct files_text b)
{
	(void)arg, (void)ev, (void)a, (void)b;
	return -EPROTO;
}

/* ---- life ------------------------------------------------------------------------------------------------- */

int intake_begin(struct intake *in, int store_dir, const struct package_store_req *q, int fd)
{
	*in = (struct intake){
		.seq = q->seq, .fd = fd, .store_dir = store_dir, .file = -1, .root = -1
	};
	in->untar.max_bytes = q->max_bytes;
	in->untar.max_files = q->max_files < PACKAGE_STORE_FILES_MAX ? q->max_files :
								       PACKAGE_STORE_FILES_MAX;
	if (foreign_check(fd, FOREIGN_PIPE) < 0)
		return err_say(&in->err, -EPROTO, "the cell sent something else than a pipe");
	in->root = package_dir_new(store_dir, in->key, &in->err);
	return in->root < 0 ? in->root : 0;
}

bool intake_read(struct intake *in)
{
	static char chunk[READ_BYTES];
	static const struct files_sink sink = { on_stat, on_data, on_event, on_end };
	ssize_t n = foreign_read(in->fd, chunk, sizeof(chunk), &in->stalled_ns);

	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		(void)err_say(&in->err, -EPIPE, "the cell ended before its packages were here");
		return true;
	}
	int r = files_feed(&in->parser, &sink, in, chunk, (size_t)n);

	if (r < 0 && !in->err.code)
		(void)err_say(&in->err, r, "the cell said what makes no sense");
	return r < 0 || in->ended;
}

void intake_end(struct intake *in, struct package_store_reply *ret)
{
	struct err ignored;
	bool named = false;

	fd_close(in->fd);
	fd_close(in->file);
	if (in->err.code == 0 && package_dir_finish(in->store_dir, in->key, &in->err) == 0)
		named = true;
	if (in->err.code == 0)
		(void)check_seal(in->root, ret->seal, &in->err);
	if (in->err.code && in->root >= 0)
		(void)package_dir_drop(in->store_dir, in->key, !named, &ignored);
	fd_close(in->root);
	ret->code = in->err.code;
	ret->bytes = in->untar.bytes;
	ret->files = in->untar.files;
	(void)snprintf(ret->msg, sizeof(ret->msg), "%.255s", in->err.msg);
	if (ret->code == 0) {
		memcpy(ret->key, in->key, sizeof(in->key));
		digest_hex(&in->digest, ret->sha256);
	}
	digest_free(&in->digest);
	untar_free(&in->untar);
	files_parser_free(&in->parser);
	in->seq = 0;
}

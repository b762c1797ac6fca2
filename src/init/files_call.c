/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_call.c - From the request of a file call to the function that serves it, and its frames.
 *
 * Init unpacks the request; the worker, a child that init_command.c has made a command like any
 * other, serves it and writes its result as frames.
 */
#include "init/files.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"

void io_flush(struct files_io *io)
{
	if (!io->broken && io->len > 0 && fd_write_all(FILES_OUT, io->out, io->len) < 0)
		io->broken = true;
	io->len = 0;
}

static void put(struct files_io *io, const void *data, size_t len)
{
	if (len > 0)
		memcpy(io->out + io->len, data, len);
	io->len += len;
}

/* Room for one frame of @len bytes, which is never more than the buffer holds. */
static void begin(struct files_io *io, enum files_frame_type type, size_t len)
{
	struct files_frame head = { .type = (uint32_t)type, .len = (uint32_t)len };

	if (sizeof(io->out) - io->len < sizeof(head) + len)
		io_flush(io);
	put(io, &head, sizeof(head));
}

static enum files_type type_of(mode_t mode)
{
	static const enum files_type types[16] = {
		[S_IFREG >> 12] = FILES_T_FILE,   [S_IFDIR >> 12] = FILES_T_DIR,
		[S_IFLNK >> 12] = FILES_T_LINK,   [S_IFIFO >> 12] = FILES_T_FIFO,
		[S_IFCHR >> 12] = FILES_T_DEVICE, [S_IFSOCK >> 12] = FILES_T_SOCKET,
		[S_IFBLK >> 12] = FILES_T_DEVICE,
	};

	return types[mode >> 12 & 15] ? types[mode >> 12 & 15] : FILES_T_OTHER;
}

#define NAMES_MAX ((FILES_TEXT_MAX - sizeof(struct files_stat)) / 2)

void io_stat(struct files_io *io, const struct stat *st, const char *name, const char *target)
{
	struct files_stat s = {
		.type = type_of(st->st_mode),
		.mode = st->st_mode & 07777u,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
		.ino = st->st_ino,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.name_len = (uint32_t)strnlen(name, FILES_TEXT_MAX - FILES_PATH_MAX - sizeof(s)),
		.target_len = target ? (uint32_t)strnlen(target, FILES_PATH_MAX) : 0,
	};

	begin(io, FILES_F_STAT, sizeof(s) + s.name_len + s.target_len);
	put(io, &s, sizeof(s));
	put(io, name, s.name_len);
	put(io, target, s.target_len);
}

void io_event(struct files_io *io, enum files_event_kind kind, bool is_dir, const char *name,
	      const char *from)
{
	struct files_event e = {
		.kind = (uint32_t)kind,
		.is_dir = is_dir,
		.name_len = (uint32_t)strnlen(name, NAMES_MAX),
		.from_len = from ? (uint32_t)strnlen(from, NAMES_MAX) : 0,
	};

	begin(io, FILES_F_EVENT, sizeof(e) + e.name_len + e.from_len);
	put(io, &e, sizeof(e));
	put(io, name, e.name_len);
	put(io, from, e.from_len);
}

void io_data(struct files_io *io, const void *data, size_t len)
{
	for (size_t n; len > 0 && !io->broken; data = (const char *)data + n, len -= n) {
		n = len < FILES_FRAME_MAX ? len : FILES_FRAME_MAX;
		begin(io, FILES_F_DATA, n);
		put(io, data, n);
		io->end.bytes += n;
	}
}

/* ---- from the host --------------------------------------------------------------------------- */

static ssize_t next_head(struct files_io *io)
{
	struct files_frame head = { 0 };

	ssize_t n = fd_read_full(FILES_IN, &head, sizeof(head));

	if (n != (ssize_t)sizeof(head))
		return n < 0 ? n : -ECANCELED;
	if (head.type == FILES_F_END && head.len == 0) {
		io->in_ended = true;
		return 0;
	}
	if (head.type != FILES_F_DATA || head.len == 0 || head.len > FILES_FRAME_MAX)
		return -EPROTO;
	io->in_left = head.len;
	return 1;
}

ssize_t io_take(struct files_io *io, void *data, size_t size)
{
	if (io->in_ended)
		return 0;
	if (io->in_left == 0) {
		ssize_t r = next_head(io);

		if (r <= 0)
			return r;
	}
	ssize_t n =
		TEMP_FAILURE_RETRY(read(FILES_IN, data, size < io->in_left ? size : io->in_left));

	if (n <= 0)
		return n < 0 ? -errno : -ECANCELED;
	io->in_left -= (uint32_t)n;
	io->end.bytes += (uint64_t)n;
	return n;
}

int io_room(struct files_io *io, const struct init_files *q, int dir, bool whole)
{
	struct statfs fs;

	if (fstatfs(dir, &fs) < 0 ||
	    (fs.f_type != TMPFS_MAGIC && fs.f_type != OVERLAYFS_SUPER_MAGIC))
		return 0;
	io->end.size = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	io->end.room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	if (q->length == FILES_TO_END)
		return 0;
	if (q->length > (whole ? io->end.size : io->end.room))
		return ENOSPC;
	return q->limit && !whole && q->length > q->limit ? ENOMEM : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

int io_trouble(struct files_io *io, const char *path, int error)
{
	size_t n = strnlen(path, sizeof(io->where) - 1);

	memcpy(io->where, path, n);
	io->where[n] = '\0';
	return error;
}

/* The last frame, and everything before it. */
static void io_end(struct files_io *io, int error)
{
	size_t n = error ? strlen(io->where) : 0;

	io->end.error = error;
	begin(io, FILES_F_END, sizeof(io->end) + n);
	put(io, &io->end, sizeof(io->end));
	put(io, io->where, n);
	io_flush(io);
}

/* ---- the call ------------------------------------------------------------------------------- */

int files_unpack(const struct init_files *q, const int *fds, size_t n_fds, struct files_call *ret)
{
	size_t at = 0;
	int r = EINVAL;

	*ret = (struct files_call){ .q = *q };
	if (n_fds == 1)
		r = blob_map(&ret->blob, fds[0], q->blob_len);
	fd_close_all(fds, n_fds);
	if (r)
		return r;
	ret->path = blob_next(&ret->blob, &at);
	ret->to = blob_next(&ret->blob, &at);
	if (!ret->to || at != ret->blob.len || q->op == 0 || q->op >= FILES_OP_MAX_ ||
	    q->flags & ~FILES_FLAGS || q->mode & ~0777u || q->depth > FILES_DEPTH_MAX)
		return EINVAL;
	if (strlen(ret->path) >= FILES_PATH_MAX || strlen(ret->to) >= FILES_PATH_MAX)
		return ENAMETOOLONG;
	return 0;
}

static int (*const calls[])(const struct files_call *c, struct files_io *io) = {
	[FILES_READ] = files_read,   [FILES_WRITE] = files_write,     [FILES_STAT] = files_stat,
	[FILES_LIST] = files_list,   [FILES_MOVE] = files_move,       [FILES_DELETE] = files_delete,
	[FILES_MKDIR] = files_mkdir, [FILES_TAR_OUT] = files_tar_out, [FILES_TAR_IN] = files_tar_in,
	[FILES_WATCH] = files_watch, [FILES_HASH] = files_hash,
};
_Static_assert(ARRAY_SIZE(calls) == FILES_OP_MAX_, "calls[] vs enum files_op");

_Noreturn void files_main(const struct files_call *c)
{
	static struct files_io io;

	/* Both become errors of write(2): the host went away; a file beyond the size limit. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)umask(0);
	int r = calls[c->q.op](c, &io);

	io_end(&io, r);
	_exit(io.broken ? 1 : 0);
}

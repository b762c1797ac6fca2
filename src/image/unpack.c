/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - Entries of an archive become files.
 *
 * libarchive twice: one reader takes the compression off, another takes what that gives for a tar archive.
 * Between the two is the hash that the image's configuration knows (diff_id). Why not tar code of our own:
 * archives come from every tool there is, with pax, GNU and sparse forms, and nothing that a reader gets
 * wrong can reach further than the directory.
 *
 * Names are resolved below the root (RESOLVE_IN_ROOT): a link in the archive is followed as a program in the
 * image would follow it, and never leads out. The last component is never followed.
 *
 * A name may be there and hidden in one layer: it hides what is below and brings its own. So a directory that
 * takes the place of a whiteout, or that a whiteout comes after, begins anew (opaque); anything else covers
 * what is below by itself.
 */
#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/digest.h"

#define READ_BYTES (256u << 10)
#define NOBODY 65534u

struct dir_time {
	char *path;
	struct timespec time;
};

struct unpack {
	int root;
	const struct unpack_limits *limits;
	struct unpack_report *ret;
	struct archive *outer, *inner;
	struct digest *digest;
	uint64_t stream; /* bytes of the uncompressed archive */
	bool over;       /* more of them than allowed */
	bool eof;        /* there are no more */
	bool cut;        /* the last entry is whole, but not filled up as it should be */
	char parent_path[UNPACK_PATH_MAX];
	int parent; /* the directory of the last entry: the next is likely to be there too */
	struct dir_time *times;
	size_t n_times, cap_times;
};

static int too_large(const struct unpack *u, struct err *e)
{
	return err_say(e, -EFBIG,
		       "the layer unpacks to more than %llu MiB, which is too much for its size",
		       (unsigned long long)u->limits->bytes >> 20);
}

/* ---- directories ---------------------------------------------------------------------------------------- */

static int open_in_root(int root, const char *path, int flags)
{
	const struct open_how how = { .flags = (unsigned int)(flags | O_CLOEXEC),
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int set_opaque(int parent, const char *name)
{
	_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 || fsetxattr(fd, OPAQUE_XATTR, "y", 1, 0) < 0 ? -errno : 0;
}

/* A directory that the archive did not name before what is in it; a whiteout makes way for it. */
static int make_dir(int parent, const char *name)
{
	struct stat st;

	if (mkdirat(parent, name, 0755) == 0)
		return 0;
	if (errno != EEXIST || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!is_whiteout(&st))
		return -ENOTDIR;
	if (unlinkat(parent, name, 0) < 0 || mkdirat(parent, name, 0755) < 0)
		return -errno;
	return set_opaque(parent, name);
}

/* Every directory of @path, from the root on; the slow way, when one is missing. */
static int make_dirs(int root, char *path)
{
	_fd_ int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char *from = path;

	if (at < 0)
		return -errno;
	while (*from) {
		char *slash = strchrnul(from, '/'), was = *slash;
		int fd;

		*slash = '\0';
		fd = open_in_root(root, path, O_PATH | O_DIRECTORY);
		if (fd == -ENOENT || fd == -ENOTDIR) {
			int r = make_dir(at, from);

			fd = r < 0 ? r : open_in_root(root, path, O_PATH | O_DIRECTORY);
		}
		*slash = was;
		if (fd < 0)
			return fd;
		fd_close(at);
		at = fd;
		from = was ? slash + 1 : slash;
	}
	return TAKE_FD(at);
}

/* The directory that holds @path, which is cut into it and the last component. Borrowed from @u. */
static int parent_of(struct unpack *u, char *path, char **ret_name)
{
	char *slash = strrchr(path, '/');
	const char *dir = slash ? path : "";

	*ret_name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	if (u->parent >= 0 && strcmp(u->parent_path, dir) == 0)
		return u->parent;
	u->parent = fd_close(u->parent);
	u->parent = open_in_root(u->root, dir, O_PATH | O_DIRECTORY);
	if (slash && (u->parent == -ENOENT || u->parent == -ENOTDIR))
		u->parent = make_dirs(u->root, path);
	if (u->parent >= 0)
		memcpy(u->parent_path, dir, strlen(dir) + 1);
	return u->parent;
}

/* Directories get their times last: what is made in them changes those. */
static int note_time(struct unpack *u, const char *path, struct timespec time)
{
	if (u->n_times == u->cap_times) {
		size_t cap = u->cap_times ? 2 * u->cap_times : 1024;
		struct dir_time *grown = realloc(u->times, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		u->times = grown;
		u->cap_times = cap;
	}
	u->times[u->n_times] = (struct dir_time){ strdup(path), time };
	return u->times[u->n_times++].path ? 0 : -ENOMEM;
}

static int set_dir_times(struct unpack *u)
{
	int r = 0;

	for (size_t i = 0; i < u->n_times; i++) {
		const struct timespec both[2] = { u->times[i].time, u->times[i].time };
		_fd_ int fd = open_in_root(u->root, u->times[i].path, O_RDONLY | O_DIRECTORY);

		/* Something else may have taken its place. */
		if (r == 0 && fd >= 0 && futimens(fd, both) < 0)
			r = -errno;
	}
	return r;
}

/* ---- what an entry says --------------------------------------------------------------------------------- */

static struct timespec time_of(struct archive_entry *en)
{
	if (!archive_entry_mtime_is_set(en))
		return (struct timespec){ 0 };
	return (struct timespec){ archive_entry_mtime(en), archive_entry_mtime_nsec(en) };
}

static unsigned int id_of(struct unpack *u, int64_t id)
{
	if (id >= 0 && id < IMAGE_ID_COUNT)
		return (unsigned int)id;
	u->ret->ids++;
	return NOBODY;
}

static int set_owner(struct unpack *u, struct archive_entry *en, int dir, const char *name)
{
	if (!u->limits->ranged)
		return 0;
	return fchownat(dir, name, id_of(u, archive_entry_uid(en)), id_of(u, archive_entry_gid(en)),
			AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0 ?
		       -errno :
		       0;
}

static mode_t mode_of(struct unpack *u, struct archive_entry *en)
{
	mode_t mode = archive_entry_perm(en);

	u->ret->set_ids += (mode & 06000) != 0;
	return mode & 01777;
}

/* Only what an ordinary program could set. The overlay's own would say what is below what. */
static int set_xattrs(struct unpack *u, struct archive_entry *en, int fd)
{
	const char *name;
	const void *value;
	size_t size;

	for (int n = archive_entry_xattr_reset(en); n > 0; n--) {
		if (archive_entry_xattr_next(en, &name, &value, &size) != ARCHIVE_OK)
			break;
		if (!name || strncmp(name, "user.", 5) != 0 ||
		    strncmp(name, "user.overlay.", 13) == 0)
			u->ret->xattrs++;
		else if (fsetxattr(fd, name, value, size, 0) == 0)
			continue;
		else if (errno == ENOTSUP || errno == ENOSPC || errno == E2BIG || errno == ERANGE)
			u->ret->xattrs++;
		else
			return -errno;
	}
	return 0;
}

/* Owner first: a change of owner may take bits of the mode away. */
static int set_meta(struct unpack *u, struct archive_entry *en, int fd)
{
	int r = set_owner(u, en, fd, "");

	if (r == 0)
		r = set_xattrs(u, en, fd);
	if (r == 0 && fchmod(fd, mode_of(u, en)) < 0)
		r = -errno;
	return r;
}

/* ---- kinds of entries ----------------------------------------------------------------------------------- */

/* The next entry looks its directory up again: a link on the way to it may be another now. */
static void forget_parent(struct unpack *u)
{
	u->parent_path[0] = '/';
	u->parent_path[1] = '\0';
}

/* What was there under this name, of this archive, makes way. 1: it was a whiteout. */
static int make_way(struct unpack *u, int parent, const char *name)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EEXIST;
	if (unlinkat(parent, name, 0) < 0)
		return -errno;
	forget_parent(u);
	return is_whiteout(&st);
}

static int put_whiteout(int parent, const char *name)
{
	struct stat st;

	if (mknodat(parent, name, S_IFCHR, makedev(0, 0)) == 0)
		return 0;
	if (errno != EEXIST || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? set_opaque(parent, name) : 0;
}

static int put_dir(struct unpack *u, struct archive_entry *en, int parent, const char *name)
{
	bool opaque = false;
	int r;

	if (mkdirat(parent, name, 0755) < 0) {
		if (errno != EEXIST)
			return -errno;
		r = make_way(u, parent, name);
		opaque = r == 1;
		if (r != -EEXIST && (r < 0 || mkdirat(parent, name, 0755) < 0))
			return r < 0 ? r : -errno;
	}
	_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || (opaque && fsetxattr(fd, OPAQUE_XATTR, "y", 1, 0) < 0))
		return -errno;
	return set_meta(u, en, fd);
}

static int put_content(struct unpack *u, int fd, int64_t size, struct err *e)
{
	const void *data;
	size_t len;
	int64_t offset, end = 0;
	int r;

	while ((r = archive_read_data_block(u->inner, &data, &len, &offset)) == ARCHIVE_OK) {
		for (const char *p = data; len > 0;) {
			ssize_t n = pwrite(fd, p, len, offset);

			if (n < 0)
				return err_set(e, -errno, "write");
			p += n;
			offset += n;
			len -= (size_t)n;
		}
		end = offset;
	}
	/* Some tools end an archive with the last byte of the last file. */
	u->cut = r != ARCHIVE_EOF && u->eof && end == size;
	if (r != ARCHIVE_EOF && !u->cut)
		return err_say(e, -EBADMSG, "%.200s", archive_error_string(u->inner));
	return ftruncate(fd, size) < 0 ? err_set(e, -errno, "write") : 0;
}

static int put_file(struct unpack *u, struct archive_entry *en, int parent, const char *name,
		    struct err *e)
{
	const struct timespec both[2] = { time_of(en), time_of(en) };
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int64_t size = archive_entry_size(en);
	_fd_ int fd = openat(parent, name, flags, 0600);
	int r = fd < 0 ? -errno : 0;

	if (size < 0 || (uint64_t)size > u->limits->bytes - u->ret->bytes)
		return too_large(u, e);
	u->ret->bytes += (uint64_t)size;
	if (r == -EEXIST) {
		r = make_way(u, parent, name);
		if (r >= 0)
			fd = openat(parent, name, flags, 0600);
		r = r < 0 ? r : fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = put_content(u, fd, size, e);
	if (r == 0)
		r = set_meta(u, en, fd);
	return r == 0 && futimens(fd, both) < 0 ? -errno : r;
}

static int put_symlink(struct unpack *u, struct archive_entry *en, int parent, const char *name)
{
	const struct timespec both[2] = { time_of(en), time_of(en) };
	const char *target = archive_entry_symlink(en);
	int r;

	if (!target || !*target)
		return -EBADMSG;
	r = make_way(u, parent, name);
	if (r < 0)
		return r;
	if (symlinkat(target, parent, name) < 0)
		return -errno;
	u->ret->xattrs += archive_entry_xattr_count(en) > 0;
	r = set_owner(u, en, parent, name);
	if (r == 0 && utimensat(parent, name, both, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return r;
}

/* The other name must be there, in this layer, and be a file or a link. */
static int put_hardlink(struct unpack *u, const char *target, int parent, const char *name,
			struct err *e)
{
	char path[UNPACK_PATH_MAX], *slash;
	struct stat st, old;
	int r;

	if (unpack_name(target, path) != NAME_PLAIN)
		return err_say(e, -EPERM, "a hard link to '%.150s', which is no file of the layer",
			       target);
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	_fd_ int dir = open_in_root(u->root, slash ? path : "", O_PATH | O_DIRECTORY);
	const char *base = slash ? slash + 1 : path;

	if (dir < 0 || fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return err_say(e, -EPERM, "a hard link to '%.150s', which is no file of the layer",
			       target);
	if (fstatat(parent, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == st.st_ino &&
	    old.st_dev == st.st_dev)
		return 0;
	r = make_way(u, parent, name);
	if (r >= 0 && linkat(dir, base, parent, name, 0) < 0)
		r = -errno;
	return r < 0 ? err_set(e, r, "link to '%.150s'", target) : 0;
}

/* ---- entries -------------------------------------------------------------------------------------------- */

static int put_root(struct unpack *u, struct archive_entry *en)
{
	_fd_ int fd = open_in_root(u->root, "", O_RDONLY | O_DIRECTORY);

	if (archive_entry_filetype(en) != AE_IFDIR)
		return -EPERM;
	return fd < 0 ? fd : set_meta(u, en, fd);
}

static int put_plain(struct unpack *u, struct archive_entry *en, char *path, struct err *e)
{
	const char *link = archive_entry_hardlink(en);
	char *name;
	int parent = parent_of(u, path, &name);

	if (parent < 0)
		return parent;
	if (link)
		return put_hardlink(u, link, parent, name, e);
	switch (archive_entry_filetype(en)) {
	case AE_IFREG:
		return put_file(u, en, parent, name, e);
	case AE_IFDIR:
		return put_dir(u, en, parent, name);
	case AE_IFLNK:
		return put_symlink(u, en, parent, name);
	default: /* devices, pipes, sockets */
		u->ret->devices++;
		return 0;
	}
}

static int put_entry(struct unpack *u, struct archive_entry *en, struct err *e)
{
	const char *said = archive_entry_pathname(en);
	char path[UNPACK_PATH_MAX], whole[UNPACK_PATH_MAX], *name;
	int kind, r = 0;

	if (!said)
		return err_say(e, -EBADMSG, "the layer has an entry without a name");
	kind = unpack_name(said, path);
	if (kind < 0)
		return err_say(e, kind, "'%.150s' leaves the layer, or is too long or too deep",
			       said);
	if (++u->ret->entries > u->limits->entries)
		return err_say(e, -EFBIG, "the layer has more than %llu entries",
			       (unsigned long long)u->limits->entries);
	memcpy(whole, path, strlen(path) + 1);
	if (kind == NAME_ROOT) {
		r = put_root(u, en);
	} else if (kind == NAME_PLAIN) {
		r = put_plain(u, en, path, e);
	} else if (kind == NAME_WHITEOUT) {
		int parent = parent_of(u, path, &name);

		r = parent < 0 ? parent : put_whiteout(parent, name);
	} else if (kind == NAME_OPAQUE) {
		int fd = make_dirs(u->root, path);

		r = fd < 0 ? fd : set_opaque(fd, ".");
		fd_close(fd);
	}
	if (r == 0 && (kind == NAME_ROOT || kind == NAME_PLAIN) &&
	    archive_entry_filetype(en) == AE_IFDIR)
		r = note_time(u, whole, time_of(en));
	if (r < 0 && e->code == 0)
		return err_set(e, r, "unpack '%.150s'", said);
	return r < 0 ? err_wrap(e, "'%.150s'", said) : 0;
}

/* ---- the two readers ------------------------------------------------------------------------------------ */

/* What the inner reader reads: the next piece of what the outer one gives. */
static la_ssize_t on_read(struct archive *a, void *arg, const void **ret)
{
	struct unpack *u = arg;
	int64_t offset;
	size_t len;
	int r = archive_read_data_block(u->outer, ret, &len, &offset);

	if (r == ARCHIVE_EOF) {
		u->eof = true;
		return 0;
	}
	if (r != ARCHIVE_OK || digest_add(u->digest, *ret, len) < 0) {
		archive_set_error(a, EBADMSG, "%.200s", archive_error_string(u->outer));
		return -1;
	}
	u->stream += len;
	if (u->stream > u->limits->bytes) {
		u->over = true;
		archive_set_error(a, EFBIG, "too large");
		return -1;
	}
	return (la_ssize_t)len;
}

static int open_readers(struct unpack *u, int archive, struct err *e)
{
	struct archive_entry *en;

	u->outer = archive_read_new();
	u->inner = archive_read_new();
	u->digest = digest_new();
	if (!u->outer || !u->inner || !u->digest)
		return err_set(e, -ENOMEM, "unpack");
	(void)archive_read_support_filter_gzip(u->outer);
	(void)archive_read_support_filter_zstd(u->outer);
	(void)archive_read_support_format_raw(u->outer);
	(void)archive_read_support_format_tar(u->inner);
	if (archive_read_open_fd(u->outer, archive, READ_BYTES) != ARCHIVE_OK ||
	    archive_read_next_header(u->outer, &en) != ARCHIVE_OK)
		return err_say(e, -EBADMSG, "the layer can not be read: %.150s",
			       archive_error_string(u->outer) ? archive_error_string(u->outer) :
								"empty");
	if (archive_read_open(u->inner, u, NULL, on_read, NULL) != ARCHIVE_OK)
		return err_say(e, -EBADMSG, "the layer is no tar archive: %.150s",
			       archive_error_string(u->inner));
	return 0;
}

static int read_entries(struct unpack *u, struct err *e)
{
	struct archive_entry *en;
	int r;

	for (;;) {
		r = archive_read_next_header(u->inner, &en);
		if (r == ARCHIVE_EOF)
			return 0;
		if (u->over)
			return too_large(u, e);
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return err_say(e, -EBADMSG, "the layer is damaged: %.200s",
				       archive_error_string(u->inner));
		r = put_entry(u, en, e);
		if (r < 0)
			return u->over ? too_large(u, e) : r;
		if (u->cut)
			return 0;
	}
}

/* What follows the archive's end belongs to the hash. */
static int drain(struct unpack *u, struct err *e)
{
	const void *data;
	la_ssize_t n;

	while ((n = on_read(u->inner, u, &data)) > 0)
		;
	if (u->over)
		return too_large(u, e);
	return n < 0 ? err_say(e, -EBADMSG, "the layer is damaged at its end: %.200s",
			       archive_error_string(u->inner)) :
		       0;
}

int unpack(int archive, int root, const struct unpack_limits *limits, struct unpack_report *ret,
	   struct err *e)
{
	struct unpack u = { .root = root, .limits = limits, .ret = ret, .parent = -1 };
	int r = open_readers(&u, archive, e);

	if (r == 0)
		r = read_entries(&u, e);
	if (r == 0)
		r = drain(&u, e);
	u.parent = fd_close(u.parent);
	if (r == 0 && (r = set_dir_times(&u)) < 0)
		r = err_set(e, r, "set times of directories");
	if (r == 0 && (r = digest_end(u.digest, ret->diff_id)) < 0)
		r = err_set(e, r, "hash the layer");
	else if (r < 0)
		digest_free(u.digest);
	for (size_t i = 0; i < u.n_times; i++)
		free(u.times[i].path);
	free(u.times);
	(void)archive_read_free(u.inner);
	(void)archive_read_free(u.outer);
	return r;
}

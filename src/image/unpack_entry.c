/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_entry.c - One entry of a layer: its name, and the file, directory or link that is made of
 * it, with owner, mode and times.
 *
 * An archive may have an entry and a whiteout of the same name: the entry then replaces that of
 * lower layers. So a directory that replaces a whiteout, or that is followed by one, becomes
 * opaque; any other kind of file hides the name in lower layers by itself. An entry that was there
 * under the name is unlinked first and never written through.
 */
#include "image/unpack_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define NOBODY 65534u
#define WHITEOUT ".wh."
#define META ".wh..wh."
#define OPAQUE ".wh..wh..opq"

int unpack_too_large(const struct unpack *u, struct err *e)
{
	return err_say(e, -EFBIG,
		       "the layer unpacks to more than %llu MiB, which is too much for its size",
		       (unsigned long long)u->limits->bytes >> 20);
}

/* ---- names: normalised, or refused; marks of hidden names ---------------------------------- */

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(s, word, len) == 0;
}

/* Components of @from with one slash between them; a leading slash means the layer's root. */
static int normalise(const char *from, char to[UNPACK_PATH_MAX])
{
	size_t at = 0, depth = 0;

	while (*(from += strspn(from, "/"))) {
		size_t n = strcspn(from, "/");

		if (is_word(from, n, "..") || n > 255 || at + n + 2 > UNPACK_PATH_MAX)
			return -EPERM;
		if (!is_word(from, n, ".")) {
			if (++depth > UNPACK_DEPTH_MAX)
				return -EPERM;
			if (at)
				to[at++] = '/';
			memcpy(to + at, from, n);
			at += n;
		}
		from += n;
	}
	to[at] = '\0';
	return 0;
}

int unpack_name(const char *name, char path[UNPACK_PATH_MAX])
{
	char *base, *slash;

	if (normalise(name, path) < 0)
		return -EPERM;
	slash = strrchr(path, '/');
	base = slash ? slash + 1 : path;
	if (strcmp(base, OPAQUE) == 0) {
		*(slash ? slash : path) = '\0';
		return NAME_OPAQUE;
	}
	if (strncmp(base, META, strlen(META)) == 0)
		return NAME_IGNORED;
	if (strncmp(base, WHITEOUT, strlen(WHITEOUT)) == 0) {
		const char *hidden = base + strlen(WHITEOUT);

		if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
			return -EPERM;
		memmove(base, hidden, strlen(hidden) + 1);
		return NAME_WHITEOUT;
	}
	return path[0] ? NAME_PLAIN : NAME_ROOT;
}

/* ---- attributes of an entry ---------------------------------------------------------------- */

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

/* Only attributes that an ordinary program could set; the overlay's own would change its layers. */
static int set_xattrs(struct unpack *u, struct archive_entry *en, int fd)
{
	const char *name;
	const void *value;
	size_t size;

	for (int n = archive_entry_xattr_reset(en); n > 0; n--) {
		if (archive_entry_xattr_next(en, &name, &value, &size) != ARCHIVE_OK)
			break;
		bool plain = name && strncmp(name, "user.", 5) == 0 &&
			     strncmp(name, "user.overlay.", 13) != 0;

		if (plain && fsetxattr(fd, name, value, size, 0) == 0)
			continue;
		if (plain && errno != ENOTSUP && errno != ENOSPC && errno != E2BIG &&
		    errno != ERANGE)
			return -errno;
		u->ret->xattrs++;
	}
	return 0;
}

/* Owner first: a change of owner may clear bits of the mode. */
static int set_meta(struct unpack *u, struct archive_entry *en, int fd)
{
	int r;

	if ((r = set_owner(u, en, fd, "")) < 0 || (r = set_xattrs(u, en, fd)) < 0)
		return r;
	return fchmod(fd, mode_of(u, en)) < 0 ? -errno : 0;
}

/* ---- kinds of entries ---------------------------------------------------------------------- */

/* Remove an earlier entry of this name, unless it is a directory. 1: it was a whiteout. */
static int make_way(struct unpack *u, int parent, const char *name)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EEXIST;
	if (unlinkat(parent, name, 0) < 0)
		return -errno;
	layer_forget_parent(&u->dirs);
	return layer_is_whiteout(&st);
}

static int put_whiteout(int parent, const char *name)
{
	struct stat st;

	if (mknodat(parent, name, S_IFCHR, makedev(0, 0)) == 0)
		return 0;
	if (errno != EEXIST || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? layer_opaque(parent, name) : 0;
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

	while ((r = archive_read_data_block(u->archive, &data, &len, &offset)) == ARCHIVE_OK) {
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
		return err_say(e, -EBADMSG, "%.200s", archive_error_string(u->archive));
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
		return unpack_too_large(u, e);
	u->ret->bytes += (uint64_t)size;
	if (r == -EEXIST) {
		r = make_way(u, parent, name);
		if (r >= 0)
			fd = openat(parent, name, flags, 0600);
		r = r < 0 ? r : fd < 0 ? -errno : 0;
	}
	if (r < 0 || (r = put_content(u, fd, size, e)) < 0 || (r = set_meta(u, en, fd)) < 0)
		return r;
	return futimens(fd, both) < 0 ? -errno : 0;
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
	return r == 0 && utimensat(parent, name, both, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : r;
}

/* The target must exist, in this layer, and be a file or a link. */
static int put_hardlink(struct unpack *u, const char *target, int parent, const char *name,
			struct err *e)
{
	char path[UNPACK_PATH_MAX], *slash;
	struct stat st, old;
	int r;

	if (unpack_name(target, path) != NAME_PLAIN)
		return err_say(e, -EPERM,
			       "a hard link to '%.150s', which is not a file of the layer", target);
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	_fd_ int dir = layer_open(u->dirs.root, slash ? path : "", O_PATH | O_DIRECTORY);
	const char *base = slash ? slash + 1 : path;

	if (dir < 0 || fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return err_say(e, -EPERM,
			       "a hard link to '%.150s', which is not a file of the layer", target);
	if (fstatat(parent, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == st.st_ino &&
	    old.st_dev == st.st_dev)
		return 0;
	r = make_way(u, parent, name);
	if (r >= 0 && linkat(dir, base, parent, name, 0) < 0)
		r = -errno;
	return r < 0 ? err_set(e, r, "link to '%.150s'", target) : 0;
}

/* ---- entries ------------------------------------------------------------------------------- */

static int put_root(struct unpack *u, struct archive_entry *en)
{
	_fd_ int fd = layer_open(u->dirs.root, "", O_RDONLY | O_DIRECTORY);

	if (archive_entry_filetype(en) != AE_IFDIR)
		return -EPERM;
	return fd < 0 ? fd : set_meta(u, en, fd);
}

static int put_plain(struct unpack *u, struct archive_entry *en, char *path, struct err *e)
{
	const char *link = archive_entry_hardlink(en);
	char *name;
	int parent = layer_parent(&u->dirs, path, &name);

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

int unpack_entry(struct unpack *u, struct archive_entry *en, struct err *e)
{
	const char *given = archive_entry_pathname(en);
	char path[UNPACK_PATH_MAX], whole[UNPACK_PATH_MAX], *name;
	int kind, r = 0;

	if (!given)
		return err_say(e, -EBADMSG, "the layer has an entry without a name");
	kind = unpack_name(given, path);
	if (kind < 0)
		return err_say(e, kind, "'%.150s' leaves the layer, or is too long or too deep",
			       given);
	if (++u->ret->entries > u->limits->entries)
		return err_say(e, -EFBIG, "the layer has more than %llu entries",
			       (unsigned long long)u->limits->entries);
	memcpy(whole, path, strlen(path) + 1);
	if (kind == NAME_ROOT) {
		r = put_root(u, en);
	} else if (kind == NAME_PLAIN) {
		r = put_plain(u, en, path, e);
	} else if (kind == NAME_WHITEOUT) {
		int parent = layer_parent(&u->dirs, path, &name);

		r = parent < 0 ? parent : put_whiteout(parent, name);
	} else if (kind == NAME_OPAQUE) {
		int fd = layer_make_dirs(u->dirs.root, path);

		r = fd < 0 ? fd : layer_opaque(fd, ".");
		fd_close(fd);
	}
	if (r == 0 && (kind == NAME_ROOT || kind == NAME_PLAIN) &&
	    archive_entry_filetype(en) == AE_IFDIR)
		r = layer_note_time(&u->dirs, whole, time_of(en));
	if (r < 0 && e->code == 0)
		return err_set(e, r, "unpack '%.150s'", given);
	return r < 0 ? err_wrap(e, "'%.150s'", given) : 0;
}

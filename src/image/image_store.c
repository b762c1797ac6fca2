/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_store.c - Directories and locks of the store, and how files get their names in it.
 *
 * A file is written under a random name in tmp, synced, and renamed; a layer's tree likewise. The
 * argument why a crash at any moment is harmless is in image_store.h.
 */
#include "image/image_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/documents.h"
#include "image/ref.h"

#define PREFIX "sha256:"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define LOCK_NAME "lock"
#define LOCK_FLAGS (O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TREE "tree-"
#define PART "part-"
#define RESERVE "reserve"
#define RESERVE_BYTES (256 << 10) /* over a thousand references */

/* ---- where it is --------------------------------------------------------------------------- */

/* Where the store of this user is. */
static int store_default(char *path, size_t size, struct err *e)
{
	const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
	int n;

	if (geteuid() == 0)
		n = snprintf(path, size, "/var/lib/caisson/images");
	else if (data && data[0] == '/')
		n = snprintf(path, size, "%s/caisson/images", data);
	else if (home && home[0] == '/')
		n = snprintf(path, size, "%s/.local/share/caisson/images", home);
	else
		return err_say(
			e, -ENOENT,
			"HOME is not set, so there is no default image store: give --store DIR");
	return n < 0 || (size_t)n >= size ?
		       err_say(e, -ENAMETOOLONG, "the store's path is too long") :
		       0;
}

/* Every missing directory of @path. */
static int make_path(char *path, struct err *e)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (mkdir(path, c ? 0755 : 0700) < 0 && errno != EEXIST)
			return err_set(e, -errno, "make the image store %s", path);
		*p = c;
		if (!c)
			return 0;
	}
}

int image_store_open(const char *path, struct err *e)
{
	char own[4096];
	int r = path ? 0 : store_default(own, sizeof(own), e);

	if (r < 0)
		return r;
	path = path ? path : own;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_say(
			e, -ENOENT,
			"there is no image store at %.200s: 'caisson image pull REF' makes it",
			path);
	return fd < 0 ? err_set(e, -errno, "open the image store %.200s", path) : fd;
}

/* ---- open and close ------------------------------------------------------------------------ */

void store_close(struct store *s)
{
	fd_close(s->dir);
	fd_close(s->blobs);
	fd_close(s->layers);
	fd_close(s->leases);
	fd_close(s->tmp);
	fd_close(s->change);
	*s = (struct store)STORE_NONE;
}

static int make_dirs(int dir, struct err *e)
{
	static const char *const names[] = { "blobs", "blobs/sha256", "layers", "leases", "tmp" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (mkdirat(dir, names[i], 0700) < 0 && errno != EEXIST)
			return err_set(e, -errno, "make '%s' in the image store", names[i]);
	/* An image opener that was started with the empty directory can make no file. */
	_fd_ int lock = openat(dir, LOCK_NAME, LOCK_FLAGS, 0600);

	return lock < 0 ? err_set(e, -errno, "make '" LOCK_NAME "' in the image store") : 0;
}

int store_open_at(struct store *s, int dir, struct err *e)
{
	*s = (struct store)STORE_NONE;
	s->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	s->blobs = openat(dir, "blobs/sha256", DIR_FLAGS);
	s->layers = openat(dir, "layers", DIR_FLAGS);
	s->leases = openat(dir, "leases", DIR_FLAGS);
	s->tmp = openat(dir, "tmp", DIR_FLAGS);
	if (s->dir >= 0 && s->blobs >= 0 && s->layers >= 0 && s->leases >= 0 && s->tmp >= 0)
		return 0;
	int code = -errno;

	store_close(s);
	return code == -ENOENT ? err_say(e, code, "not an image store: directories are missing") :
				 err_set(e, code, "open the image store");
}

int store_open(struct store *s, const char *path, bool make, struct err *e)
{
	char own[4096];
	int r = 0;

	*s = (struct store)STORE_NONE;
	if (!path)
		r = store_default(own, sizeof(own), e);
	else if ((size_t)snprintf(own, sizeof(own), "%s", path) >= sizeof(own) || !*path)
		r = err_say(e, -EINVAL, "--store: the path is empty or too long");
	if (r == 0 && make)
		r = make_path(own, e);
	if (r < 0)
		return r;
	_fd_ int dir = image_store_open(own, e);

	if (dir < 0)
		return dir;
	r = make ? make_dirs(dir, e) : 0;
	return r < 0 ? r : store_open_at(s, dir, e);
}

/* ---- locks --------------------------------------------------------------------------------- */

static int lock_file(const struct store *s, const char *name, int how, struct err *e)
{
	/* A process that only reads may not be allowed to write to the store. */
	_fd_ int fd = openat(s->dir, name, LOCK_FLAGS, 0600);

	if (fd < 0)
		fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open '%s' of the image store", name);
	if (TEMP_FAILURE_RETRY(flock(fd, how)) < 0)
		return errno == EWOULDBLOCK ? -EWOULDBLOCK :
					      err_set(e, -errno, "lock the image store");
	return TAKE_FD(fd);
}

int store_lock(const struct store *s, bool exclusive, struct err *e)
{
	return lock_file(s, LOCK_NAME, exclusive ? LOCK_EX : LOCK_SH, e);
}

int store_each(int dir, int (*fn)(void *arg, const char *name, struct err *e), void *arg,
	       struct err *e)
{
	_dir_ DIR *d = dir_list(openat(dir, ".", DIR_FLAGS));
	const char *name;
	int r = 0;

	if (!d)
		return err_set(e, -errno, "look through the image store");
	while (r == 0 && (name = dir_next(d)))
		if (name[0] != '.')
			r = fn(arg, name, e);
	return r;
}

/* Trees and files that a process began and did not finish. Loaded archives are worth keeping. */
static int sweep_one(void *arg, const char *name, struct err *e)
{
	const struct store *s = arg;

	(void)e;
	if (strncmp(name, PART, strlen(PART)) != 0)
		(void)tree_remove(s->tmp, name, NULL);
	return 0;
}

/* It is missing after store_use_reserve(), and on a full disk: then the next change makes it. */
static void keep_reserve(const struct store *s)
{
	_fd_ int fd =
		openat(s->dir, RESERVE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && posix_fallocate(fd, 0, RESERVE_BYTES) != 0)
		store_use_reserve(s);
}

void store_use_reserve(const struct store *s)
{
	(void)unlinkat(s->dir, RESERVE, 0);
}

int store_change(struct store *s, void (*waits)(void), struct err *e)
{
	s->change = lock_file(s, "lock.change", LOCK_EX | LOCK_NB, e);
	if (s->change == -EWOULDBLOCK) {
		if (waits)
			waits();
		s->change = lock_file(s, "lock.change", LOCK_EX, e);
	}
	if (s->change < 0)
		return s->change;
	(void)store_each(s->tmp, sweep_one, s, NULL);
	keep_reserve(s);
	return 0;
}

/* ---- files --------------------------------------------------------------------------------- */

static int random_name(const char *prefix, char ret[STORE_NAME_MAX], struct err *e)
{
	uint64_t r[2];

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_set(e, -EIO, "getrandom");
	(void)snprintf(ret, STORE_NAME_MAX, "%s%016llx%016llx", prefix, (unsigned long long)r[0],
		       (unsigned long long)r[1]);
	return 0;
}

int store_replace(const struct store *s, int dir, const char *name, const void *data, size_t len,
		  struct err *e)
{
	char temp[STORE_NAME_MAX];
	int r = random_name("file-", temp, e);

	if (r < 0)
		return r;
	_fd_ int fd =
		openat(s->tmp, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, -errno, "write to the image store");
	r = fd_write_all(fd, data, len);
	if (r == 0 && (fsync(fd) < 0 || renameat(s->tmp, temp, dir, name) < 0 || fsync(dir) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(s->tmp, temp, 0);
	return r < 0 ? err_set(e, r, "write '%s' to the image store", name) : 0;
}

int store_blob_read(const struct store *s, const char *digest, struct buf *ret, struct err *e)
{
	_fd_ int fd = openat(s->blobs, digest_hex(digest), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open %s of the image store", digest);
	int r = fd_read_buf(fd, ret);

	if (r < 0)
		return err_set(e, r, "read %s of the image store", digest);
	if (!digest_is(digest, buf_str(ret), ret->len))
		return err_say(e, -EBADMSG,
			       "%s of the image store is damaged: pull the image again", digest);
	return 0;
}

int store_documents(const struct store *s, const char *digest, struct manifest *m, struct config *c,
		    struct err *e)
{
	_buf_ struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
	int r;

	if ((r = store_blob_read(s, digest, &text, e)) < 0 ||
	    (r = manifest_parse(buf_str(&text), text.len, m, e)) < 0)
		return r;
	buf_clear(&text);
	if ((r = store_blob_read(s, m->config.digest, &text, e)) < 0 ||
	    (r = config_parse(buf_str(&text), text.len, c, e)) < 0)
		return r;
	if (c->n_layers == m->n_layers)
		return 0;
	config_free(c);
	return err_say(e, -EBADMSG,
		       "manifest and configuration disagree about the number of layers");
}

/* ---- layers -------------------------------------------------------------------------------- */

int store_open_layer(const struct store *s, const char *diff_id, struct err *e)
{
	int fd = openat(s->layers, digest_hex(diff_id),
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "open layer %s", diff_id) : fd;
}

bool store_has_layer(const struct store *s, const char *diff_id)
{
	_fd_ int fd = store_open_layer(s, diff_id, NULL);

	return fd >= 0;
}

int store_tree_new(const struct store *s, char ret_name[STORE_NAME_MAX], struct err *e)
{
	int fd, r = random_name(TREE, ret_name, e);

	if (r < 0)
		return r;
	if (mkdirat(s->tmp, ret_name, 0755) < 0)
		return err_set(e, -errno, "make a directory for a layer");
	fd = openat(s->tmp, ret_name, DIR_FLAGS);
	return fd < 0 ? err_set(e, -errno, "open the directory for a layer") : fd;
}

void store_tree_drop(const struct store *s, const char *name)
{
	(void)tree_remove(s->tmp, name, NULL);
}

int store_tree_keep(const struct store *s, const char *name, const char *diff_id, struct err *e)
{
	if (renameat2(s->tmp, name, s->layers, digest_hex(diff_id), RENAME_NOREPLACE) < 0) {
		if (errno != EEXIST)
			return err_set(e, -errno, "name layer %s", diff_id);
		store_tree_drop(s, name);
	}
	return 0;
}

static void seal_name(char name[STORE_NAME_MAX], const char *diff_id)
{
	(void)snprintf(name, STORE_NAME_MAX, "%s.seal", digest_hex(diff_id));
}

int store_seal_write(const struct store *s, const char *diff_id, const char *seal, struct err *e)
{
	char name[STORE_NAME_MAX];

	seal_name(name, diff_id);
	_fd_ int fd = openat(s->layers, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			     0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, seal, strlen(seal));

	return r < 0 ? err_set(e, r, "write the seal of layer %s", diff_id) : 0;
}

int store_seal_read(const struct store *s, const char *diff_id, char ret[IMAGE_DIGEST_MAX],
		    struct err *e)
{
	char name[STORE_NAME_MAX];
	ssize_t n;

	seal_name(name, diff_id);
	n = fd_read_file(s->layers, name, ret, IMAGE_DIGEST_MAX);
	if (n < 0)
		return err_set(e, (int)n, "read the seal of layer %s", diff_id);
	return ref_digest_ok(ret) ?
		       0 :
		       err_say(e, -EBADMSG, "the seal of layer %s is damaged", diff_id);
}

static void part_name(char name[STORE_NAME_MAX], const char *digest)
{
	(void)snprintf(name, STORE_NAME_MAX, PART "%s", digest_hex(digest));
}

int store_part_open(const struct store *s, const char *digest, struct err *e)
{
	char name[STORE_NAME_MAX];
	int fd;

	part_name(name, digest);
	fd = openat(s->tmp, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_set(e, -errno, "make a file for %s", digest) : fd;
}

void store_part_drop(const struct store *s, const char *digest)
{
	char name[STORE_NAME_MAX];

	part_name(name, digest);
	(void)unlinkat(s->tmp, name, 0);
}

/* ---- digests ------------------------------------------------------------------------------- */

int digest_end(struct hash *h, char ret[IMAGE_DIGEST_MAX])
{
	if (!hash_end(h, ret + PREFIX_LEN))
		return -EIO;
	memcpy(ret, PREFIX, PREFIX_LEN);
	return 0;
}

int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX])
{
	if (!hash_sha256_hex(data, len, ret + PREFIX_LEN))
		return -EIO;
	memcpy(ret, PREFIX, PREFIX_LEN);
	return 0;
}

int digest_fd(int fd, int copy, char ret[IMAGE_DIGEST_MAX])
{
	static char piece[256u << 10];
	_hash_ struct hash h = { 0 };
	ssize_t n;

	hash_begin(&h);
	while ((n = TEMP_FAILURE_RETRY(read(fd, piece, sizeof(piece)))) != 0) {
		int r = n < 0 ? -errno : copy < 0 ? 0 : fd_write_all(copy, piece, (size_t)n);

		if (r < 0)
			return r;
		hash_add(&h, piece, (size_t)n);
	}
	return digest_end(&h, ret);
}

bool digest_is(const char *want, const void *data, size_t len)
{
	char have[IMAGE_DIGEST_MAX];

	return digest_of(data, len, have) == 0 && strcmp(have, want) == 0;
}

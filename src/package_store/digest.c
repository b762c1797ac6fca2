/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.c - The hash and the seal of a tree of packages.
 *
 * The hash is that of the sorted hashes of all entries. So it does not depend on the order of an
 * archive or a directory: a tree has the same hash while it is unpacked and on the disk later.
 *
 * The hash reads all content. The seal is the same sum over what the Linux kernel notes of each
 * entry: name, mode, size and times. A process that writes to a file, or puts another in its place,
 * changes the time of change and cannot set it. An equal seal therefore means that nobody wrote by
 * way of the file system. A different seal is a reason to compare the hash: a copy of the directory
 * has other times and the same content.
 *
 * Life: zeroed -> digest_begin(), digest_add()..., digest_end() for each entry -> digest_hex() ->
 * digest_free().
 */
#include "package_store/package_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "tree_store/tree.h"

#define READ_BYTES (256u << 10)

int digest_begin(struct digest *d, char type, bool executable, const char *path, const char *link,
		 struct err *e)
{
	if (mem_grow(&d->all, &d->cap, d->n + 1, sizeof(*d->all)) < 0)
		return err_set(e, -ENOMEM, "hash the packages");
	sha256_init(&d->one);
	sha256_add(&d->one, &type, 1);
	sha256_add(&d->one, executable && type == '0' ? "x" : "-", 1);
	sha256_add(&d->one, path, strlen(path) + 1);
	if (type == '2')
		sha256_add(&d->one, link, strlen(link));
	return 0;
}

void digest_add(struct digest *d, const void *data, size_t len)
{
	sha256_add(&d->one, data, len);
}

void digest_end(struct digest *d)
{
	sha256_end(&d->one, d->all[d->n++]);
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

void digest_hex(struct digest *d, char hex[65])
{
	uint8_t all[32];
	struct sha256 s;

	if (d->n > 1)
		qsort(d->all, d->n, sizeof(*d->all), by_bytes);
	sha256_init(&s);
	for (size_t i = 0; i < d->n; i++)
		sha256_add(&s, d->all[i], sizeof(d->all[i]));
	sha256_end(&s, all);
	hex_text(all, sizeof(all), hex);
}

void digest_free(struct digest *d)
{
	free(d->all);
	*d = (struct digest){ 0 };
}

/* ---- trees on the disk --------------------------------------------------------------------- */

struct look {
	struct digest digest;
	bool contents; /* hash the content, not the notes of the Linux kernel */
	struct err *e;
};

static int add_content(struct digest *d, int dir, const char *name)
{
	static char chunk[READ_BYTES];
	_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		digest_add(d, chunk, (size_t)n);
	return n < 0 ? -errno : 0;
}

static void add_notes(struct digest *d, const struct stat *st)
{
	const int64_t notes[] = { (int64_t)st->st_mode,        (int64_t)st->st_size,
				  (int64_t)st->st_mtim.tv_sec, (int64_t)st->st_mtim.tv_nsec,
				  (int64_t)st->st_ctim.tv_sec, (int64_t)st->st_ctim.tv_nsec };

	digest_add(d, notes, sizeof(notes));
}

static int add_entry(void *arg, int dir, const char *name, const char *path, const struct stat *st)
{
	struct look *l = arg;
	const char type = S_ISREG(st->st_mode) ? '0' :
			  S_ISLNK(st->st_mode) ? '2' :
			  S_ISDIR(st->st_mode) ? '5' :
						 '?';
	char target[PACKAGE_PATH_MAX] = "";

	if (type == '2' && readlinkat(dir, name, target, sizeof(target) - 1) < 0)
		return -errno;
	int r = digest_begin(&l->digest, type, st->st_mode & S_IXUSR, path, target, l->e);

	if (r == 0 && !l->contents)
		add_notes(&l->digest, st);
	else if (r == 0 && type == '0')
		r = add_content(&l->digest, dir, name);
	if (r == 0)
		digest_end(&l->digest);
	return r;
}

int digest_tree(int root, bool contents, char ret_hex[65], struct err *e)
{
	static char where[TREE_PATH_MAX];
	struct look l = { .contents = contents, .e = e };
	int r = tree_walk(root, add_entry, &l, where);

	if (r == 0)
		digest_hex(&l.digest, ret_hex);
	digest_free(&l.digest);
	return r < 0 ? err_set(e, r, "read the packages") : 0;
}

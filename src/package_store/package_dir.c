/* SPDX-License-Identifier: Apache-2.0 */
/* package_dir.c - Trees come and go. */
#include "package_store/package_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define UNFINISHED ".new"
#define NAME_ROOM (PACKAGE_STORE_KEY_LEN + sizeof(UNFINISHED))
#define DEPTH_MAX 64

bool package_dir_key_ok(const char *key)
{
	return strlen(key) == PACKAGE_STORE_KEY_LEN &&
	       strspn(key, "0123456789abcdef") == PACKAGE_STORE_KEY_LEN;
}

static void unfinished_name(char name[NAME_ROOM], const char *key)
{
	(void)snprintf(name, NAME_ROOM, "%s" UNFINISHED, key);
}

int package_dir_new(int store_dir, char ret_key[PACKAGE_STORE_KEY_LEN + 1], struct err *e)
{
	unsigned char bytes[PACKAGE_STORE_KEY_LEN / 2];
	char name[NAME_ROOM];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(e, -errno, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret_key + 2 * i, 3, "%02x", bytes[i]);
	unfinished_name(name, ret_key);
	if (mkdirat(store_dir, name, 0755) < 0)
		return err_set(e, -errno, "make a directory for the packages");
	int fd = openat(store_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "open the directory for the packages") : fd;
}

int package_dir_finish(int store_dir, const char *key, struct err *e)
{
	char name[NAME_ROOM];

	unfinished_name(name, key);
	if (syncfs(store_dir) < 0)
		return err_set(e, -errno, "bring the packages to the disk");
	if (renameat(store_dir, name, store_dir, key) < 0)
		return err_set(e, -errno, "name the packages");
	return 0;
}

/* ---- removing ------------------------------------------------------------------------------ */

static int remove_at(int dir, const char *name, int depth);

static int empty(int dir, const char *name, int depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *en;
	int r = 0;

	if (!d) {
		fd_close(fd);
		return -errno;
	}
	while (r == 0 && (en = readdir(d)))
		if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0)
			r = remove_at(dirfd(d), en->d_name, depth + 1);
	(void)closedir(d);
	return r;
}

static int remove_at(int dir, const char *name, int depth)
{
	int r;

	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	r = empty(dir, name, depth);
	if (r < 0)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* First out of sight, so that nobody finds half of it under its name. */
int package_dir_drop(int store_dir, const char *key, bool unfinished, struct err *e)
{
	char name[NAME_ROOM];

	unfinished_name(name, key);
	if (!unfinished && renameat(store_dir, key, store_dir, name) < 0)
		return err_set(e, -errno, "remove the packages");
	int r = remove_at(store_dir, name, 0);

	return r < 0 ? err_set(e, r, "remove the packages") : 0;
}

int package_dir_sweep(int store_dir, bool (*keep)(const char *key, void *arg), void *arg,
		      struct err *e)
{
	int copy = fcntl(store_dir, F_DUPFD_CLOEXEC, 3), n = 0, r = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *en;

	if (!d) {
		fd_close(copy);
		return err_set(e, -errno, "list the packages");
	}
	rewinddir(d); /* the offset is shared with the descriptor it was made from */
	while (r == 0 && (en = readdir(d))) {
		if (strcmp(en->d_name, ".") == 0 || strcmp(en->d_name, "..") == 0 ||
		    (package_dir_key_ok(en->d_name) && keep(en->d_name, arg)))
			continue;
		r = remove_at(store_dir, en->d_name, 0);
		n++;
	}
	(void)closedir(d);
	return r < 0 ? err_set(e, r, "remove old packages") : n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_dir.c - Trees of packages come and go.
 *
 * A name in the directory is a whole tree on the disk: the rename that gives the name comes after
 * the sync, and a tree that is removed loses its name first. A crash therefore leaves unfinished
 * directories only, which the next sweep removes.
 */
#include "package_store/package_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "tree_store/tree.h"

#define UNFINISHED ".new"
#define NAME_ROOM (PACKAGE_STORE_KEY_LEN + sizeof(UNFINISHED))

static void unfinished_name(char name[NAME_ROOM], const char *key)
{
	(void)snprintf(name, NAME_ROOM, "%s" UNFINISHED, key);
}

int package_dir_new(int store_dir, char ret_key[PACKAGE_STORE_KEY_LEN + 1], struct err *e)
{
	char name[NAME_ROOM];

	if (tree_random(ret_key, PACKAGE_STORE_KEY_LEN, e) < 0)
		return e->code;
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

int package_dir_drop(int store_dir, const char *key, bool unfinished, struct err *e)
{
	char name[NAME_ROOM];

	unfinished_name(name, key);
	if (!unfinished && renameat(store_dir, key, store_dir, name) < 0)
		return err_set(e, -errno, "remove the packages");
	int r = tree_remove(store_dir, name);

	return r < 0 ? err_set(e, r, "remove the packages") : 0;
}

int package_dir_sweep(int store_dir, bool (*keep)(const char *key), struct err *e)
{
	/* Not opened anew: its mode lets nobody list it. */
	int copy = fcntl(store_dir, F_DUPFD_CLOEXEC, 3), n = 0;
	_dir_ DIR *d = copy < 0 ? NULL : tree_list_fd(copy);
	const char *name;

	if (!d)
		return err_set(e, -errno, "list the packages");
	rewinddir(d); /* both descriptors have one offset */
	while ((name = tree_next(d))) {
		if (tree_key_ok(name) && keep(name))
			continue;
		int r = tree_remove(store_dir, name);

		if (r < 0)
			return err_set(e, r, "remove old packages");
		n++;
	}
	return n;
}

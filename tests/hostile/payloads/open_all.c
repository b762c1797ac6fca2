/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_all.c - Which files below some directories open for writing, or for reading.
 *
 *   open_all w|r DIR...   prints "OPEN path" for each; nothing is written, one byte is read
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

static int writing;
static unsigned long seen;

static void attempt(int dir, const char *name, const char *path, mode_t mode)
{
	char byte;
	int fd;

	seen++;
	if (writing) {
		fd = openat(dir, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			fd = openat(dir, name,
				    O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0)
			(void)printf("OPEN %s%s\n", S_ISCHR(mode) ? "device " : "", path);
	} else {
		fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0 && read(fd, &byte, 1) > 0)
			(void)printf("OPEN %s\n", path);
	}
	if (fd >= 0)
		(void)close(fd);
}

static void walk(int at, const char *name, const char *path, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char child[4096];

	for (struct dirent *e; d && depth < 32 && (e = readdir(d));) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			walk(fd, e->d_name, child, depth + 1);
		else if (!S_ISLNK(st.st_mode))
			attempt(fd, e->d_name, child, st.st_mode);
	}
	if (d)
		(void)closedir(d);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	writing = argv[1][0] == 'w';
	for (int i = 2; i < argc; i++) {
		struct stat st;

		if (lstat(argv[i], &st) == 0 && !S_ISDIR(st.st_mode))
			attempt(AT_FDCWD, argv[i], argv[i], st.st_mode);
		else
			walk(AT_FDCWD, argv[i], argv[i], 0);
	}
	(void)printf("seen %lu\n", seen);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* files_path.c - Splitting paths, and making the missing directories above them. */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int place_find(struct place *p, const char *path)
{
	size_t len = strlen(path);
	size_t end = len;

	if (len == 0)
		return EINVAL;
	if (len >= sizeof(p->dir))
		return ENAMETOOLONG;
	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t begin = end;

	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	size_t n = end - begin;

	if (n == 0 || (n <= 2 && strncmp(path + begin, "..", n) == 0))
		return EINVAL;
	if (n >= sizeof(p->name))
		return ENAMETOOLONG;
	memcpy(p->name, path + begin, n);
	p->name[n] = '\0';
	p->slash = end < len;
	memcpy(p->dir, path, begin);
	p->dir[begin] = '\0';
	if (begin == 0)
		memcpy(p->dir, ".", 2);
	return 0;
}

/* Each prefix in turn; mkdir returns EEXIST for one that exists, of any kind. */
int dirs_make(const char *path)
{
	char dir[FILES_PATH_MAX];
	size_t len = strnlen(path, sizeof(dir) - 1);

	memcpy(dir, path, len);
	dir[len] = '\0';
	for (char *at = dir + 1; at <= dir + len; at++) {
		char was = *at;

		if ((was != '/' && was != '\0') || at[-1] == '/')
			continue;
		*at = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST && errno != EISDIR && errno != EROFS)
			return errno;
		*at = was;
	}
	return 0;
}

int place_open(const struct place *p, bool parents)
{
	int fd = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT || !parents)
		return fd < 0 ? -errno : fd;
	int r = dirs_make(p->dir);

	if (r)
		return -r;
	fd = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int place_enter(struct place *p, const char *path, bool parents)
{
	int r = place_find(p, path);

	return r ? -r : place_open(p, parents);
}

const char *link_read(int dirfd, const char *name, char *buf)
{
	ssize_t n = readlinkat(dirfd, name, buf, FILES_PATH_MAX - 1);

	if (n < 0)
		return NULL;
	buf[n] = '\0';
	return buf;
}

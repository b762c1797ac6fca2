/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - Look at every name, link and file below some directories for a text.
 *
 *   walk MASKED [-NOREAD | =NOWALK]... DIR...
 *
 * MASKED is the text with every byte's lowest bit flipped, so that we do not find ourselves. Below
 * a NOREAD directory names and links are looked at, contents not; NOWALK is left out. Prints
 * "FOUND kind path", and at the end how much was seen.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

#define FILE_MAX (4u << 20)

static char needle[256];
static const char *noread[16], *nowalk[16];
static size_t n_noread, n_nowalk;
static unsigned long names, files, unreadable;
static char data[FILE_MAX];

static void report(const char *kind, const char *path)
{
	(void)printf("FOUND %s %s\n", kind, path);
}

static bool below(const char *path, const char *const *list, size_t n_list)
{
	for (size_t i = 0; i < n_list; i++) {
		size_t n = strlen(list[i]);

		if (strncmp(path, list[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
			return true;
	}
	return false;
}

static void look_into(int dir, const char *name, const char *path)
{
	size_t have = 0;
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);

	if (fd < 0) {
		unreadable++;
		return;
	}
	for (ssize_t n;
	     have < sizeof(data) && (n = read(fd, data + have, sizeof(data) - have)) > 0;)
		have += (size_t)n;
	if (memmem(data, have, needle, strlen(needle)))
		report("content", path);
	files++;
	(void)close(fd);
}

/* /proc has our own memory and the raw forms of it; the rest of it is text. */
static bool is_memory(const char *path, const char *name)
{
	static const char *const skip[] = { "mem",        "pagemap",     "clear_refs",
					    "kcore",      "kmsg",        "kpagecount",
					    "kpageflags", "kpagecgroup", "trace_pipe" };

	if (strncmp(path, "/proc/", 6) != 0)
		return false;
	for (size_t i = 0; i < sizeof(skip) / sizeof(skip[0]); i++)
		if (strcmp(name, skip[i]) == 0)
			return true;
	return false;
}

static void walk(int at, const char *name, const char *path, int depth)
{
	char child[4096], link[4096];
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		unreadable++;
		return;
	}
	for (struct dirent *e; depth < 64 && (e = readdir(d));) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		names++;
		(void)snprintf(child, sizeof(child), "%s/%s", strcmp(path, "/") ? path : "",
			       e->d_name);
		if (strstr(e->d_name, needle))
			report("name", child);
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			if (!below(child, nowalk, n_nowalk))
				walk(fd, e->d_name, child, depth + 1);
		} else if (S_ISLNK(st.st_mode)) {
			ssize_t n = readlinkat(fd, e->d_name, link, sizeof(link) - 1);

			link[n < 0 ? 0 : n] = '\0';
			if (strstr(link, needle))
				report("link", child);
		} else if (S_ISREG(st.st_mode) && !below(child, noread, n_noread) &&
			   !is_memory(child, e->d_name)) {
			look_into(fd, e->d_name, child);
		}
	}
	(void)closedir(d);
}

int main(int argc, char **argv)
{
	if (argc < 3 || strlen(argv[1]) >= sizeof(needle))
		return 2;
	for (size_t i = 0; argv[1][i]; i++)
		needle[i] = (char)(argv[1][i] ^ 1);
	for (int i = 2; i < argc; i++) {
		if (argv[i][0] == '-' && n_noread < 16)
			noread[n_noread++] = argv[i] + 1;
		if (argv[i][0] == '=' && n_nowalk < 16)
			nowalk[n_nowalk++] = argv[i] + 1;
	}
	for (int i = 2; i < argc; i++)
		if (argv[i][0] == '/')
			walk(AT_FDCWD, argv[i], argv[i], 0);
	for (char **v = environ; *v; v++)
		if (strstr(*v, needle))
			report("environment", *v);
	(void)printf("names %lu files %lu unreadable %lu\n", names, files, unreadable);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave_root.c - Out of the root by a kept directory, by chroot into a chroot, by "..".
 *
 *   leave_root NAME   look for NAME in every directory that we get to
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static const char *name;

static void look(const char *how)
{
	char text[256];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (n > 0) {
		text[n] = '\0';
		(void)printf("READ %s %s\n", how, text);
	}
	if (fd >= 0)
		(void)close(fd);
}

static void up(const char *how)
{
	for (int i = 0; i < 64; i++) {
		look(how);
		if (chdir("..") < 0)
			break;
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	name = argv[1];
	up("dotdot");
	/* Every descriptor we were given, and the links of /proc to directories. */
	for (int fd = 0; fd < 256; fd++)
		if (fchdir(fd) == 0)
			up("inherited");
	static const char *const links[] = {
		"/proc/1/root",           "/proc/1/cwd",  "/proc/self/root", "/proc/self/cwd",
		"/proc/thread-self/root", "/proc/2/root", "/dev/fd",         "/proc/self/fd/3"
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (chdir(links[i]) == 0)
			up(links[i]);
	/* The classic: a root below, while a directory above is still open. */
	(void)chdir("/tmp");
	(void)mkdir("jail", 0755);
	int above = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	say("chroot", chroot("jail"));
	if (fchdir(above) == 0)
		up("chroot-fchdir");
	say("chroot-dot", chroot("."));
	look("chroot-dot");
	say("pivot_root", syscall(SYS_pivot_root, ".", "."));
	up("pivot");
	(void)printf("done\n");
	return 0;
}

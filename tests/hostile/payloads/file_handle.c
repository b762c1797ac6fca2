/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_handle.c - Open a file outside by its handle, from any mount of the same filesystem.
 *
 *   file_handle MOUNT TYPE HEX   the handle of a file, as its owner got it from name_to_handle_at
 *   file_handle make PATH        print "TYPE HEX" of PATH
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

static union {
	struct file_handle h;
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
} u;

static int make(const char *path)
{
	int id;

	u.h.handle_bytes = MAX_HANDLE_SZ;
	if (say("name_to_handle_at", name_to_handle_at(AT_FDCWD, path, &u.h, &id, 0)) < 0)
		return 1;
	(void)printf("%d ", u.h.handle_type);
	for (unsigned int i = 0; i < u.h.handle_bytes; i++)
		(void)printf("%02x", u.h.f_handle[i]);
	(void)printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	char text[256], byte[3] = "";
	int id;

	if (argc == 3)
		return make(argv[2]);
	if (argc != 4)
		return 2;
	u.h.handle_bytes = MAX_HANDLE_SZ;
	say("name_to_handle_at", name_to_handle_at(AT_FDCWD, argv[1], &u.h, &id, 0));
	u.h.handle_type = atoi(argv[2]);
	u.h.handle_bytes = (unsigned int)(strlen(argv[3]) / 2);
	for (unsigned int i = 0; i < u.h.handle_bytes && i < MAX_HANDLE_SZ; i++) {
		memcpy(byte, argv[3] + 2 * i, 2);
		u.h.f_handle[i] = (unsigned char)strtoul(byte, NULL, 16);
	}
	int mount = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = (int)say("open_by_handle_at", open_by_handle_at(mount, &u.h, O_RDONLY));
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (n > 0)
		(void)fwrite(text, 1, (size_t)n, stdout);
	return 0;
}

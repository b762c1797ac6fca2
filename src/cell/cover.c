/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cover.c - Inodes of the cell's own for the directories of the host that it sees.
 *
 * A lock, a lease or a watch belongs to an inode: on the host's own inodes cells would meet each
 * other, and the host. So each directory is covered, in the cell's mount namespace alone, by a
 * read-only overlay of itself, and the binds into the root are taken from there. The content of
 * files stays one page cache. Where the Linux kernel refuses such an overlay, the directory is
 * bound as it is; the receipt's mounts show which was done.
 *
 * An overlay does not show mounts below its lower. In a cell's mount namespace, which belongs to a
 * user namespace, such mounts are locked, and the Linux kernel refuses the overlay instead of
 * hiding them: it is safe to try. It also writes a line to its log, so the parent leaves out
 * directories that would be refused.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "cell/mnt.h"
#include "cell/root.h"

/* On merged systems /bin and its like are links, and not covered. Of /etc only a few things are
 * bound into a root (root_host.c), from one overlay where possible. */
static const struct cover_row {
	const char *host, *lower;
	const char *part_of; /* not if that one is covered */
} rows[] = {
	{ "/usr", "/usr:sys", NULL },
	{ "/bin", "/bin:sys", NULL },
	{ "/sbin", "/sbin:sys", NULL },
	{ "/lib", "/lib:sys", NULL },
	{ "/lib32", "/lib32:sys", NULL },
	{ "/lib64", "/lib64:sys", NULL },
	{ "/libx32", "/libx32:sys", NULL },
	{ "/etc", "/etc:sys", NULL },
	{ "/etc/alternatives", "/etc/alternatives:sys", "/etc" },
	{ "/etc/ssl/certs", "/etc/ssl/certs:sys", "/etc" },
	{ "/etc/R", "/etc/R:sys", "/etc" },
	{ "/etc/fonts", "/etc/fonts:sys", "/etc" },
};

static uint32_t without_below(uint32_t chosen, const char *mount_point)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = strlen(rows[i].host);

		if (strncmp(mount_point, rows[i].host, n) == 0 && mount_point[n] == '/')
			chosen &= ~(1u << i);
	}
	return chosen;
}

/* The fifth word of each line is a mount point. A directory that cannot be read is not covered. */
uint32_t cover_from(int mountinfo)
{
	uint32_t chosen = 0;
	FILE *f = fdopen(mountinfo, "r");
	char *line = NULL;
	size_t room = 0;

	if (!f) {
		fd_close(mountinfo);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stat st;

		if (lstat(rows[i].host, &st) == 0 && S_ISDIR(st.st_mode))
			chosen |= 1u << i;
	}
	while (getline(&line, &room, f) > 0) {
		char *save = NULL, *word = strtok_r(line, " ", &save);

		for (int i = 0; i < 4 && word; i++)
			word = strtok_r(NULL, " ", &save);
		chosen = word ? without_below(chosen, word) : 0;
	}
	free(line);
	(void)fclose(f);
	for (size_t i = 0, whole = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].part_of)
			whole = i;
		else if (chosen & 1u << whole)
			chosen &= ~(1u << i);
	}
	return chosen;
}

uint32_t cover_choose(void)
{
	static uint32_t chosen;
	static bool known;

	if (!known) {
		int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

		chosen = fd < 0 ? 0 : cover_from(fd);
		known = true;
	}
	return chosen;
}

static void cover(const struct cover_row *row)
{
	_fd_ int own = mnt_view(row->lower); /* the second of its directories is empty */

	if (own >= 0)
		(void)move_mount(own, "", AT_FDCWD, row->host, MOVE_MOUNT_F_EMPTY_PATH);
}

void cover_host(uint32_t chosen)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (chosen & 1u << i)
			cover(&rows[i]);
}

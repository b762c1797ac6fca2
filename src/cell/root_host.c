/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_host.c - The tree of the host image: a small generated system around the machine's own /usr.
 *
 * The content of files is shared with the host, read-only. Their inodes are the cell's own where
 * the Linux kernel allows it: see cover.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/mnt.h"
#include "cell/plan.h"
#include "cell/root.h"
#include "cell/spec.h"
#include "cell/stage.h"

int root_put_file(int root, const char *path, const char *text)
{
	_fd_ int fd =
		openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : fd_write_all(fd, text, strlen(text));
}

static const struct tree_row {
	const char *path;
	mode_t mode;
	bool agent; /* belongs to the agent instead of root */
} tree_rows[] = {
	{ "usr", 0755, false },      { "etc", 0755, false },     { "etc/ssl", 0755, false },
	{ "dev", 0755, false },      { "proc", 0555, false },    { "sys", 0555, false },
	{ "tmp", 01777, false },     { "var", 0755, false },     { "var/tmp", 01777, false },
	{ "run", 0755, false },      { "home", 0755, false },    { "home/agent", 0755, true },
	{ "workspace", 0755, true }, { "projects", 0755, true },
};

static const struct etc_row {
	const char *path, *text;
} etc_rows[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			"agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost " CELL_HOSTNAME "\n::1 localhost\n" },
	{ "etc/hostname", CELL_HOSTNAME "\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/resolv.conf", ROOT_RESOLV_CONF },
};

/*
 * Of the real /etc only files that index or configure /usr and reveal nothing about the machine's
 * people, services or secrets: without these the dynamic loader misses libraries outside the
 * default directories, awk, R or BLAS (Debian alternatives) are dangling links, and matplotlib and
 * other programs that draw text do not start.
 */
static const struct usr_row {
	const char *host, *path;
	bool is_dir, optional;
} usr_rows[] = {
	{ "/usr", "usr", true, false },
	{ "/etc/ld.so.cache", "etc/ld.so.cache", false, true },
	{ "/etc/alternatives", "etc/alternatives", true, true },
	{ "/etc/ssl/certs", "etc/ssl/certs", true, true },
	{ "/etc/R", "etc/R", true, true },
	{ "/etc/fonts", "etc/fonts", true, true },
	{ "/etc/matplotlibrc", "etc/matplotlibrc", false, true },
};

static void host_tree_rows(const struct plan *p, int root)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(tree_rows); i++) {
		const struct tree_row *t = &tree_rows[i];

		if (mkdirat(root, t->path, t->mode) < 0 || fchmodat(root, t->path, t->mode, 0) < 0)
			stage_fail(p, STAGE_TREE, i);
		/* A zygote builds its root outside of any user namespace, without an agent. */
		if (t->agent && p->ids.ranged && !p->zygote &&
		    fchownat(root, t->path, CELL_UID, CELL_GID, 0) < 0)
			stage_fail(p, STAGE_TREE, i);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(etc_rows); i++)
		if (root_put_file(root, etc_rows[i].path, etc_rows[i].text) < 0)
			stage_fail(p, STAGE_ETC, i);
	if (symlinkat("../usr/lib/os-release", root, "etc/os-release") < 0 ||
	    symlinkat("/proc/mounts", root, "etc/mtab") < 0)
		stage_fail(p, STAGE_ETC, (uint32_t)ARRAY_SIZE(etc_rows));
}

static void host_usr(const struct plan *p, int root)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(usr_rows); i++) {
		const struct usr_row *u = &usr_rows[i];
		_fd_ int tree = mnt_of_host(u->host, MNT_SAFE | MOUNT_ATTR_RDONLY);

		if (tree < 0 && errno == ENOENT && u->optional)
			continue;
		if (tree < 0 || mnt_place(tree, root, u->path, u->is_dir) < 0)
			stage_fail(p, STAGE_USR, i);
	}
	for (uint32_t i = 0; i < p->n_top; i++) {
		const struct plan_top *t = &p->top[i];
		char host[16] = "/";

		if (t->link[0]) {
			if (symlinkat(t->link, root, t->name) < 0)
				stage_fail(p, STAGE_USR, 100 + i);
			continue;
		}
		memcpy(host + 1, t->name, strlen(t->name) + 1);
		_fd_ int tree = mnt_of_host(host, MNT_SAFE | MOUNT_ATTR_RDONLY);

		if (tree < 0 || mnt_place(tree, root, t->name, true) < 0)
			stage_fail(p, STAGE_USR, 100 + i);
	}
}

void root_host(const struct plan *p, int root)
{
	host_tree_rows(p, root);
	/* Not for a zygote: mounts below are not locked in its namespace, and would be hidden. */
	if (!p->zygote) {
		if (fchdir(root) < 0)
			stage_fail(p, STAGE_USR, 200);
		cover_host(p->cover);
	}
	host_usr(p, root);
}

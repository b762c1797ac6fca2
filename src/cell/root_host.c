/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_host.c - The tree of the host image: a small generated system around the machine's own /usr.
 *
 * The content of files is shared with the host, read-only. Their inodes are the cell's own where
 * the Linux kernel allows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embed.h"
#include "base/fd.h"
#include "cell/plan.h"
#include "cell/spec.h"
#include "cell/stage.h"

/* ---- inodes of the cell's own for directories of the host ----------------------------------- */

/*
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
 *
 * On merged systems /bin and its like are links, and not covered. Of /etc only a few things are
 * bound into a root, from one overlay where possible.
 */
static const struct cover_row {
	const char *host, *lower;
	const char *part_of; /* not if that one is covered */
} cover_rows[] = {
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
	{ "/etc/java-8-openjdk", "/etc/java-8-openjdk:sys", "/etc" },
	{ "/etc/java-11-openjdk", "/etc/java-11-openjdk:sys", "/etc" },
	{ "/etc/java-17-openjdk", "/etc/java-17-openjdk:sys", "/etc" },
	{ "/etc/java-21-openjdk", "/etc/java-21-openjdk:sys", "/etc" },
	{ "/etc/java-25-openjdk", "/etc/java-25-openjdk:sys", "/etc" },
	{ "/etc/maven/logging", "/etc/maven/logging:sys", "/etc" },
	{ "/etc/libreoffice", "/etc/libreoffice:sys", "/etc" },
	{ "/etc/ImageMagick-6", "/etc/ImageMagick-6:sys", "/etc" },
	{ "/etc/ImageMagick-7", "/etc/ImageMagick-7:sys", "/etc" },
};
_Static_assert(ARRAY_SIZE(cover_rows) <= 32, "a bit for each in a plan");

static uint32_t without_below(uint32_t chosen, const char *mount_point)
{
	for (size_t i = 0; i < ARRAY_SIZE(cover_rows); i++) {
		size_t n = strlen(cover_rows[i].host);

		if (strncmp(mount_point, cover_rows[i].host, n) == 0 && mount_point[n] == '/')
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
	for (size_t i = 0; i < ARRAY_SIZE(cover_rows); i++) {
		struct stat st;

		if (lstat(cover_rows[i].host, &st) == 0 && S_ISDIR(st.st_mode))
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
	for (size_t i = 0, whole = 0; i < ARRAY_SIZE(cover_rows); i++) {
		if (!cover_rows[i].part_of)
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

static bool cover(const struct cover_row *row)
{
	_fd_ int own = mnt_view(row->lower); /* the second of its directories is empty */

	return own >= 0 && move_mount(own, "", AT_FDCWD, row->host, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/* The current directory has an empty "sys". Return: those that are covered now. */
static uint32_t cover_host(uint32_t chosen)
{
	uint32_t covered = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cover_rows); i++)
		if (chosen & 1u << i && cover(&cover_rows[i]))
			covered |= 1u << i;
	return covered;
}

static bool is_covered(uint32_t covered, const char *host)
{
	for (size_t i = 0; i < ARRAY_SIZE(cover_rows); i++) {
		size_t n = strlen(cover_rows[i].host);

		if (covered & 1u << i && strncmp(host, cover_rows[i].host, n) == 0 &&
		    (host[n] == '/' || !host[n]))
			return true;
	}
	return false;
}

/* ---- the tree ------------------------------------------------------------------------------- */

int root_put_file(int root, const char *path, const char *text)
{
	_fd_ int fd =
		openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : fd_write_all(fd, text, strlen(text));
}

extern const struct embed_file cell_files[];

const char *root_node_preload(void)
{
	return (const char *)cell_files[0].data;
}

/* Debian's PostgreSQL has its socket in run/postgresql, and does not make that directory. */
static const struct tree_row {
	const char *path;
	mode_t mode;
	bool agent; /* belongs to the agent instead of root */
} tree_rows[] = {
	{ "usr", 0755, false },           { "etc", 0755, false },
	{ "etc/ssl", 0755, false },       { "dev", 0755, false },
	{ "proc", 0555, false },          { "sys", 0555, false },
	{ "tmp", 01777, false },          { "var", 0755, false },
	{ "var/tmp", 01777, false },      { "run", 0755, false },
	{ "home", 0755, false },          { "home/agent", 0755, true },
	{ "workspace", 0755, true },      { "projects", 0755, true },
	{ "run/postgresql", 0755, true }, { "etc/chromium.d", 0755, false },
};

static const struct etc_row {
	const char *path, *text;
} etc_rows[] = {
	{ "etc/passwd", CELL_PASSWD_ROOT CELL_PASSWD_AGENT
	  "/bin/bash\n"
	  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", CELL_GROUP_ROOT "tty:x:5:\n" CELL_GROUP_AGENT "nogroup:x:65534:\n" },
	{ "etc/hosts", ROOT_HOSTS },
	{ "etc/hostname", CELL_HOSTNAME "\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/resolv.conf", ROOT_RESOLV_CONF },
	{ "etc/timezone", "Etc/UTC\n" },
	/* Debian's start script of Chromium reads this directory. The cell is the sandbox: the
	 * browser's own takes user namespaces, which no cell gives. */
	{ "etc/chromium.d/caisson", "export CHROMIUM_FLAGS=\"$CHROMIUM_FLAGS --no-sandbox\"\n" },
};

static const struct link_row {
	const char *path, *target;
} link_rows[] = {
	{ "etc/os-release", "../usr/lib/os-release" },
	{ "etc/mtab", "/proc/mounts" },
	{ "etc/localtime", "/usr/share/zoneinfo/Etc/UTC" },
	{ "var/run", "../run" },
};

/*
 * Of the real /etc only what indexes or configures programs of /usr, comes with their packages, and
 * reveals nothing about the machine's people, services or secrets. Whole directories only where
 * packages alone put files. Beside them stay out: keys (/etc/ssl/private), settings that may hold
 * credentials (gitconfig, npmrc, pip.conf, environment) and the configuration of services.
 */
static const struct usr_row {
	const char *host, *path;
	bool is_dir, optional;
} usr_rows[] = {
	{ "/usr", "usr", true, false },
	/* Without it the loader misses libraries outside of the default directories. */
	{ "/etc/ld.so.cache", "etc/ld.so.cache", false, true },
	/* awk, java, R, BLAS: without it they are dangling links. */
	{ "/etc/alternatives", "etc/alternatives", true, true },
	/* Public certificates, by which TLS knows servers; and the settings of `openssl req`. */
	{ "/etc/ssl/certs", "etc/ssl/certs", true, true },
	{ "/etc/ssl/openssl.cnf", "etc/ssl/openssl.cnf", false, true },
	/* Public registers: ports and protocols by name, types of files by suffix. */
	{ "/etc/services", "etc/services", false, true },
	{ "/etc/protocols", "etc/protocols", false, true },
	{ "/etc/mime.types", "etc/mime.types", false, true },
	/* R, and programs that draw text, do not start without theirs. */
	{ "/etc/R", "etc/R", true, true },
	{ "/etc/fonts", "etc/fonts", true, true },
	{ "/etc/matplotlibrc", "etc/matplotlibrc", false, true },
	/* Nor does a Java machine (jvm.cfg, java.security). A password file for its remote control,
	 * if an administrator puts one there, has to be its owner's alone: Java refuses others. */
	{ "/etc/java-8-openjdk", "etc/java-8-openjdk", true, true },
	{ "/etc/java-11-openjdk", "etc/java-11-openjdk", true, true },
	{ "/etc/java-17-openjdk", "etc/java-17-openjdk", true, true },
	{ "/etc/java-21-openjdk", "etc/java-21-openjdk", true, true },
	{ "/etc/java-25-openjdk", "etc/java-25-openjdk", true, true },
	/* Nor Maven. Its settings.xml, which may hold passwords, stays out. */
	{ "/etc/maven/m2.conf", "etc/maven/m2.conf", false, true },
	{ "/etc/maven/logging", "etc/maven/logging", true, true },
	/* Nor LibreOffice: its registry of components is there. */
	{ "/etc/libreoffice", "etc/libreoffice", true, true },
	/* Which programs convert which formats, and the limits of that. */
	{ "/etc/ImageMagick-6", "etc/ImageMagick-6", true, true },
	{ "/etc/ImageMagick-7", "etc/ImageMagick-7", true, true },
};

_Static_assert(ARRAY_SIZE(usr_rows) <= 32, "a bit for each");

static void host_tree_rows(const struct plan *p, int root)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(tree_rows); i++) {
		const struct tree_row *t = &tree_rows[i];

		if (mkdirat(root, t->path, t->mode) < 0) /* the umask is 0 */
			stage_fail(p, STAGE_TREE, i);
		/* A zygote builds its root outside of any user namespace, without an agent. */
		if (t->agent && p->ids.ranged && !p->zygote &&
		    fchownat(root, t->path, CELL_UID, CELL_GID, 0) < 0)
			stage_fail(p, STAGE_TREE, i);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(etc_rows); i++)
		if (root_put_file(root, etc_rows[i].path, etc_rows[i].text) < 0)
			stage_fail(p, STAGE_ETC, i);
	if (root_put_file(root, CELL_NODE_PRELOAD, root_node_preload()) < 0)
		stage_fail(p, STAGE_ETC, 99);
	for (uint32_t i = 0; i < ARRAY_SIZE(link_rows); i++)
		if (symlinkat(link_rows[i].target, root, link_rows[i].path) < 0)
			stage_fail(p, STAGE_ETC, 100 + i);
}

/* A copy of the host's mounts, restricted before it is there. */
static int place_host(int root, const char *host, const char *path, bool is_dir)
{
	_fd_ int tree = mnt_of_host(host, MNT_SAFE | MOUNT_ATTR_RDONLY);

	return tree < 0 ? -1 : mnt_place(tree, root, path, is_dir);
}

/* Everything in a cover has the cover's attributes. The current directory is @root. */
static int bind_covered(int root, const struct usr_row *u)
{
	const char *slash = strrchr(u->path, '/');
	char parent[64] = "";

	if (mnt_bind(u->host, u->path, u->is_dir) == 0)
		return 0;
	if (errno != ENOENT || !slash)
		return -1;
	memcpy(parent, u->path, (size_t)(slash - u->path));
	fd_close(mnt_ensure_dir(root, parent));
	return mnt_bind(u->host, u->path, u->is_dir);
}

/* Asked before the host is covered: the Linux kernel remembers what the host does not have, and
 * would look on the disk for each cover. */
static uint32_t find_missing(void)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(usr_rows); i++)
		if (usr_rows[i].optional && access(usr_rows[i].host, F_OK) < 0 && errno == ENOENT)
			missing |= 1u << i;
	return missing;
}

static void host_usr(const struct plan *p, int root, uint32_t covered, uint32_t missing)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(usr_rows); i++) {
		const struct usr_row *u = &usr_rows[i];

		if (missing & 1u << i)
			continue;
		if ((is_covered(covered, u->host) ?
			     bind_covered(root, u) :
			     place_host(root, u->host, u->path, u->is_dir)) < 0)
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
		if (place_host(root, host, t->name, true) < 0)
			stage_fail(p, STAGE_USR, 100 + i);
	}
}

void root_host(const struct plan *p, int root)
{
	uint32_t covered = 0, missing = find_missing();

	host_tree_rows(p, root);
	/* Not for a zygote: mounts below are not locked in its namespace, and would be hidden. */
	if (!p->zygote) {
		if (fchdir(root) < 0)
			stage_fail(p, STAGE_USR, 200);
		covered = cover_host(p->cover);
	}
	host_usr(p, root, covered, missing);
}

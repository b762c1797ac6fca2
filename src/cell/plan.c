/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - Compute a plan: id maps, option strings, and mounts made ready.
 *
 * Descriptors that the client sent are checked here and nowhere else: only directories and regular
 * files are mounted, and every mount is cloned and restricted before the cell can see it.
 */
#include "cell/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "cell/stage.h"

#define PIDS_SLACK 16u
/* No cell has more than this part of what its maker may have (stage.c). */
#define COUNTER_PARTS 8u
/* Where the machine's limit cannot be read: the default of Linux since 2005. */
#define INSTANCES_DEFAULT 128ul
#define WATCHES_DEFAULT 8192ul

/* The directories that merged systems keep as links into /usr. */
static int plan_top(struct plan *p, struct err *e)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

	_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return err_set(e, -errno, "open /");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct plan_top *t = &p->top[p->n_top];
		ssize_t n = readlinkat(root, names[i], t->link, sizeof(t->link) - 1);

		if (n < 0 && errno == ENOENT)
			continue;
		if (n < 0 && errno != EINVAL)
			return err_set(e, -errno, "read link /%s", names[i]);
		t->link[n < 0 ? 0 : n] = '\0';
		t->name = names[i];
		p->n_top++;
	}
	return 0;
}

/*
 * With privilege: a private copy of the client's mount, restricted before the cell can see it, and
 * with its ids shifted so that the client's own files belong to the cell's agent. A plain mount is
 * not shifted (@userns is -1): the cell has the rights that the files give to others.
 *
 * Safe although the client may be hostile: it needed to open the object itself, nosuid and nodev
 * are forced, and the shifted ids are those of this cell alone.
 *
 * Read-only says nothing about sockets: connecting to one of the host's takes the right to write to
 * it, and no write to its filesystem. So the shift of a read-only mount has no group for any file:
 * the kernel refuses every right to write to an inode that it could not write the ids of
 * (HAS_UNMAPPED_ID), sockets and pipes included. Where ids cannot be shifted an overlay does it.
 */
static int mount_detach(struct plan_mount *m, int fd, int userns, struct err *e)
{
	_fd_ int tree = open_tree(
		fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return err_set(e, -errno, "clone the mount");
	if (mnt_restrict(tree, MNT_SAFE | (m->rw ? 0 : MOUNT_ATTR_RDONLY)) < 0)
		return err_set(e, -errno, "restrict the mount");

	struct mount_attr shift = { .attr_set = MOUNT_ATTR_IDMAP,
				    .userns_fd = (unsigned int)userns };

	if (userns < 0)
		;
	else if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &shift, sizeof(shift)) == 0)
		m->apart = false;
	else if (m->rw)
		return err_say(
			e, -errno,
			"its filesystem cannot be id-mapped (%s), so the cell's user could not "
			"write there; mount it ro, or copy the files",
			strerror(errno));
	m->fd = TAKE_FD(tree);
	return 0;
}

/* Without privilege the child finds the object again by path; device and inode prove it. */
static int mount_remember(struct plan_mount *m, int fd, const struct stat *st, struct err *e)
{
	char link[64], path[PATH_MAX];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);

	if (n < 0 || path[0] != '/')
		return err_set(e, n < 0 ? -errno : -EINVAL, "find the path of the mount");
	m->src = strndup(path, (size_t)n);
	if (!m->src)
		return err_set(e, -ENOMEM, "remember the path of the mount");
	m->dev = st->st_dev;
	m->ino = st->st_ino;
	return 0;
}

static int plan_mount(struct plan *p, struct plan_mount *m, int fd, int userns, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "stat");
	m->is_dir = S_ISDIR(st.st_mode);
	m->apart = m->apart && m->is_dir;
	if (!m->is_dir && !S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "only directories and regular files can be mounted");
	return p->ids.ranged ? mount_detach(m, fd, userns, e) : mount_remember(m, fd, &st, e);
}

/* User namespaces that shift ids on the disk to the agent's: shared by the mounts of a cell. */
struct shift {
	int client, reader, workspace; /* -1: not made yet */
};

/*
 * The user namespace for the shift of this mount; making one costs a process. Files of the client
 * become the agent's, id 0 here, as the warden serves root's clients; those of workspaces have an
 * id that means nothing else, so that no other file can be given away as one of them.
 */
static int shift_of(const struct plan *p, uint32_t flags, struct shift *s, struct err *e)
{
	bool workspace = flags & CELL_MOUNT_WORKSPACE;
	int *at = workspace ? &s->workspace : flags ? &s->client : &s->reader;
	uint32_t from = workspace ? CELL_WORKSPACE_ID : p->ids.caller_uid;

	if (!p->ids.ranged || flags & CELL_MOUNT_PLAIN)
		return -1;
	if (*at < 0)
		*at = idmap_userns(from, flags ? from : IDMAP_NO_GROUP, p->ids.base + CELL_UID, 1,
				   e);
	return *at;
}

static size_t mount_fds(const struct cell_spec *s)
{
	size_t n = 0;

	for (uint32_t i = 0; i < s->n_mounts; i++)
		n += !(s->mounts[i].flags & CELL_MOUNT_PART);
	return n;
}

static int plan_user_mounts(struct plan *p, const int *fds, struct shift *shift, struct err *e)
{
	const struct cell_spec *s = p->spec;

	for (uint32_t i = 0; i < s->n_mounts; i++) {
		struct plan_mount *m = &p->mounts[i];

		m->dst = s->mounts[i].dst + 1;
		m->flags = s->mounts[i].flags;
		m->rw = m->flags & CELL_MOUNT_RW;
		/* As root, the files of a workspace belong to an id that no user has. */
		p->config.writable |= m->rw && !(p->ids.ranged && m->flags & CELL_MOUNT_WORKSPACE);
		m->apart = m->flags == 0;
		p->n_mounts++;
		if (m->flags & CELL_MOUNT_PART)
			continue;
		int userns = shift_of(p, m->flags, shift, e);

		if (userns < 0 && e->code)
			return e->code;
		if (plan_mount(p, m, *fds++, userns, e) < 0)
			return err_wrap(e, "--mount %s", s->mounts[i].dst);
		if (!m->is_dir && m->flags & (CELL_MOUNT_COW | CELL_MOUNT_PROTECT))
			return err_say(e, -ENOTDIR, "--mount %s: not a directory",
				       s->mounts[i].dst);
	}
	return 0;
}

/* How many of the client's descriptors are the image's. */
static size_t image_fds(const struct cell_spec *s)
{
	return s->image == CELL_IMAGE_DIR ? 1 : s->image == CELL_IMAGE_LAYERS ? 1 + s->n_layers : 0;
}

/*
 * Each layer by itself: an overlay cannot be id-mapped, but its lowers can. A directory is an image
 * of one layer, whose files have the ids that they show.
 */
static int plan_layers(struct plan *p, const int *fds, size_t n, uint32_t ids, struct err *e)
{
	_fd_ int userns = -1;

	if (p->ids.ranged) {
		userns = idmap_userns(ids, ids, p->ids.base, IDMAP_COUNT, e);
		if (userns < 0)
			return userns;
	}
	for (size_t i = 0; i < n; i++) {
		struct plan_mount *m = &p->layers[p->n_layers++];
		char *name = &p->lowers[3 * i];
		int r = plan_mount(p, m, fds[i], userns, e);

		if (r == 0 && !m->is_dir)
			r = err_say(e, -ENOTDIR, "not a directory");
		if (r < 0)
			return err_wrap(e, "--image");
		name[0] = (char)('a' + i / 26);
		name[1] = (char)('a' + i % 26);
		name[2] = i + 1 < n ? ':' : '\0';
	}
	return 0;
}

static int plan_image(struct plan *p, const int *fds, struct err *e)
{
	const struct cell_spec *s = p->spec;

	if (s->image == CELL_IMAGE_DIR)
		return plan_layers(p, fds, 1, 0, e);
	if (s->image != CELL_IMAGE_LAYERS)
		return 0;
	p->lease_fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	if (p->lease_fd < 0)
		return err_set(e, -errno, "hold the image");
	return plan_layers(p, fds + 1, s->n_layers, CELL_LAYER_IDS, e);
}

static int plan_mounts(struct plan *p, const int *fds, size_t n_fds, struct err *e)
{
	const struct cell_spec *s = p->spec;
	size_t used = image_fds(s), want = used + mount_fds(s);
	struct shift shift = { -1, -1, -1 };
	int r;

	if (n_fds != want)
		return err_say(e, -EINVAL, "%zu descriptors came with a request that needs %zu",
			       n_fds, want);
	r = plan_image(p, fds, e);
	if (r == 0)
		r = plan_user_mounts(p, fds + used, &shift, e);
	fd_close(shift.client);
	fd_close(shift.reader);
	fd_close(shift.workspace);
	return r;
}

/* A cell's share of a limit that this machine has for every user. */
static void part_of(const char *limit, unsigned long otherwise, char ret[24])
{
	char path[64], text[32];
	unsigned long whole = otherwise;

	(void)snprintf(path, sizeof(path), "/proc/sys/user/%s", limit);
	if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0)
		whole = strtoul(text, NULL, 10);
	/* At least one, also where the machine's limit, which holds in any case, is tiny. */
	(void)snprintf(ret, 24, "%lu", whole < COUNTER_PARTS ? 1 : whole / COUNTER_PARTS);
}

int plan_make(const struct cell_spec *spec, uint32_t slot, const char *init_path, const int *fds,
	      size_t n_fds, struct plan *ret, struct err *e)
{
	struct plan *p = ret;

	memset(p, 0, sizeof(*p));
	p->spec = spec;
	p->channel_fd = p->sync_fd = p->status_fd = p->lease_fd = p->nodes_fd = p->init_fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(p->layers); i++)
		p->layers[i].fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(p->mounts); i++)
		p->mounts[i].fd = -1;
	idmap_choose(slot, &p->ids);
	p->owner = p->ids.ranged ? p->ids.base : 0;
	part_of("max_inotify_instances", INSTANCES_DEFAULT, p->inotify_instances);
	part_of("max_inotify_watches", WATCHES_DEFAULT, p->inotify_watches);
	(void)snprintf(p->init_path, sizeof(p->init_path), "%s", init_path);
	(void)snprintf(p->layer_size, sizeof(p->layer_size), "%" PRIu64,
		       spec->without & CELL_WITHOUT_CGROUP ? spec->limits.disk_bytes :
							     cell_layer_bytes(&spec->limits));
	(void)snprintf(p->layer_inodes, sizeof(p->layer_inodes), "%" PRIu64, spec->limits.inodes);
	p->config = (struct init_config){
		.uid = CELL_UID,
		.gid = CELL_GID,
		.without = spec->without,
		.separate = p->ids.ranged,
		.files = spec->limits.files,
		.disk_bytes = spec->limits.disk_bytes,
		/* Under a pids cgroup a little above it, so that the cgroup refuses first and
		   counts it. */
		.pids = spec->limits.pids + (spec->without & CELL_WITHOUT_CGROUP ? 0 : PIDS_SLACK),
		.memory_bytes = spec->without & CELL_WITHOUT_CGROUP ? spec->limits.memory_bytes : 0,
	};
	machine_plan(&spec->limits, &p->machine, &p->config);

	int r = 0;

	if (p->ids.ranged)
		p->nodes_fd = nodes_make();
	if (spec->image == CELL_IMAGE_HOST) {
		p->cover = cover_choose();
		r = plan_top(p, e);
	}
	if (r < 0 || (r = plan_mounts(p, fds, n_fds, e)) < 0)
		plan_free(p);
	return r;
}

static void mount_free(struct plan_mount *m)
{
	m->fd = fd_close(m->fd);
	free(m->src);
	m->src = NULL;
}

void plan_free(struct plan *p)
{
	p->lease_fd = fd_close(p->lease_fd);
	p->nodes_fd = fd_close(p->nodes_fd);
	machine_close(&p->machine);
	for (size_t i = 0; i < ARRAY_SIZE(p->layers); i++)
		mount_free(&p->layers[i]);
	for (size_t i = 0; i < ARRAY_SIZE(p->mounts); i++)
		mount_free(&p->mounts[i]);
}

void plan_drop(struct plan **p)
{
	if (*p)
		plan_free(*p);
	free(*p);
	*p = NULL;
}

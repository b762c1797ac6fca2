/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - Compute a plan: id maps, option strings, and mounts made ready. */
#include "cell/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"

#define PIDS_SLACK 16u

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
 * with its ids shifted so that the client's own files belong to the cell's agent.
 *
 * Safe although the client may be hostile: it needed to open the object itself, nosuid and nodev
 * are forced, and the shifted ids are those of this cell alone.
 */
static int mount_detach(struct plan_mount *m, int fd, int userns, struct err *e)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (m->rw ? 0 : MOUNT_ATTR_RDONLY),
		.propagation = MS_PRIVATE,
	};

	_fd_ int tree = open_tree(
		fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return err_set(e, -errno, "clone the mount");
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_set(e, -errno, "restrict the mount");

	struct mount_attr shift = { .attr_set = MOUNT_ATTR_IDMAP,
				    .userns_fd = (unsigned int)userns };

	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &shift, sizeof(shift)) < 0 &&
	    m->rw)
		return err_say(
			e, -errno,
			"its filesystem can not be id-mapped (%s), so the cell's user could not "
			"write there; mount it ro, or copy the files",
			strerror(errno));
	m->fd = TAKE_FD(tree);
	return 0;
}

/* Without privilege the child must find the object again by path, and proves it by device and inode. */
static int mount_remember(struct plan_mount *m, int fd, const struct stat *st, struct err *e)
{
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, m->src, sizeof(m->src) - 1);

	if (n < 0 || m->src[0] != '/')
		return err_set(e, n < 0 ? -errno : -EINVAL, "find the path of the mount");
	m->src[n] = '\0';
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
	if (!m->is_dir && !S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "only directories and regular files can be mounted");
	return p->ids.ranged ? mount_detach(m, fd, userns, e) : mount_remember(m, fd, &st, e);
}

static int plan_mounts(struct plan *p, const int *fds, size_t n_fds, struct err *e)
{
	const struct cell_spec *s = p->spec;
	size_t used = 0, want = s->n_mounts + (s->image == CELL_IMAGE_DIR ? 1 : 0);
	_fd_ int userns = -1;
	int r;

	if (n_fds != want)
		return err_say(e, -EINVAL, "%zu descriptors came with a request that needs %zu",
			       n_fds, want);
	if (s->image == CELL_IMAGE_DIR) {
		_fd_ int image_ns = -1;

		if (p->ids.ranged) {
			image_ns = idmap_userns(0, p->ids.base, IDMAP_COUNT, e);
			if (image_ns < 0)
				return image_ns;
		}
		r = plan_mount(p, &p->image, fds[used++], image_ns, e);
		if (r == 0 && !p->image.is_dir)
			r = err_say(e, -ENOTDIR, "not a directory");
		if (r < 0)
			return err_wrap(e, "--image");
	}
	if (s->n_mounts > 0 && p->ids.ranged) {
		/* The client's files become the agent's: id 0 here, as the warden serves root's clients. */
		userns = idmap_userns(p->ids.caller_uid, p->ids.base + CELL_UID, 1, e);
		if (userns < 0)
			return userns;
	}
	for (uint32_t i = 0; i < s->n_mounts; i++) {
		struct plan_mount *m = &p->mounts[i];

		m->dst = s->mounts[i].dst + 1;
		m->rw = s->mounts[i].flags & CELL_MOUNT_RW;
		r = plan_mount(p, m, fds[used++], userns, e);
		if (r < 0)
			return err_wrap(e, "--mount %s", s->mounts[i].dst);
		p->n_mounts++;
	}
	return 0;
}

int plan_make(const struct cell_spec *spec, uint32_t slot, const char *init_path, const int *fds,
	      size_t n_fds, struct plan *ret, struct err *e)
{
	struct plan *p = ret;

	memset(p, 0, sizeof(*p));
	p->spec = spec;
	p->channel_fd = p->sync_fd = p->status_fd = p->image.fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(p->mounts); i++)
		p->mounts[i].fd = -1;
	idmap_choose(slot, &p->ids);
	(void)snprintf(p->init_path, sizeof(p->init_path), "%s", init_path);
	(void)snprintf(p->layer_size, sizeof(p->layer_size), "%" PRIu64, spec->limits.disk_bytes);
	(void)snprintf(p->layer_inodes, sizeof(p->layer_inodes), "%" PRIu64, spec->limits.inodes);
	p->config = (struct init_config){
		.uid = CELL_UID,
		.gid = CELL_GID,
		.without = spec->without,
		.separate = p->ids.ranged,
		.files = spec->limits.files,
		.disk_bytes = spec->limits.disk_bytes,
		/* Under a pids cgroup a little above it, so that the cgroup refuses first and counts it. */
		.pids = spec->limits.pids + (spec->without & CELL_WITHOUT_CGROUP ? 0 : PIDS_SLACK),
		.memory_bytes = spec->without & CELL_WITHOUT_CGROUP ? spec->limits.memory_bytes : 0,
	};

	int r = spec->image == CELL_IMAGE_HOST ? plan_top(p, e) : 0;

	if (r == 0)
		r = plan_mounts(p, fds, n_fds, e);
	if (r < 0)
		plan_free(p);
	return r;
}

void plan_free(struct plan *p)
{
	p->image.fd = fd_close(p->image.fd);
	for (size_t i = 0; i < ARRAY_SIZE(p->mounts); i++)
		p->mounts[i].fd = fd_close(p->mounts[i].fd);
}

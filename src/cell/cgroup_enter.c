/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_enter.c - Open as parent, write as child. See the header for why. */
#include "cell/cgroup_enter.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

int cgroup_enter_open(const struct cgroup *c, struct cgroup_enter *ret, struct err *e)
{
	*ret = (struct cgroup_enter){ .n = 0 };
	for (size_t i = 0; i < c->n_dirs; i++) {
		if ((int)i == c->dir_of[CGROUP_UNIFIED])
			continue;
		int fd = openat(c->dirfd[i], "tasks", O_WRONLY | O_CLOEXEC);

		if (fd < 0) {
			int r = -errno;

			cgroup_enter_close(ret);
			return err_set(e, r, "open %s/tasks", c->path[i]);
		}
		ret->fd[ret->n++] = fd;
	}
	return 0;
}

int cgroup_join_open(const struct cgroup *c, struct cgroup_enter *ret, struct err *e)
{
	int r = cgroup_enter_open(c, ret, e);

	if (r < 0 || c->kind != CGROUP_V2)
		return r;
	ret->fd[0] =
		openat(c->dirfd[c->dir_of[CGROUP_UNIFIED]], "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (ret->fd[0] < 0)
		return err_set(e, -errno, "open cgroup.procs of the cell");
	ret->n = 1;
	return 0;
}

int cgroup_enter_self(const struct cgroup_enter *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (write(c->fd[i], "0", 1) != 1)
			return -errno;
	return 0;
}

void cgroup_enter_close(struct cgroup_enter *c)
{
	for (size_t i = 0; i < c->n; i++)
		fd_close(c->fd[i]);
	c->n = 0;
}

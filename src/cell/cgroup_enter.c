/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_enter.c - Open as parent, write as child. See the header for why. */
#include "cell/cgroup_enter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/as_user.h"

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

int cgroup_join_open(const struct cgroup *c, uid_t uid, struct cgroup_enter *ret, struct err *e)
{
	int r = as_user_begin(uid);

	*ret = (struct cgroup_enter){ .n = 0 };
	if (r < 0)
		return err_set(e, r, "become the zygote's user");
	r = cgroup_enter_open(c, ret, e);
	as_user_end(uid);
	return r;
}

int cgroup_move(const struct cgroup *c, pid_t pid, struct err *e)
{
	char text[16];

	if (c->kind != CGROUP_V2)
		return 0;
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	int r = fd_write_file(c->dirfd[c->dir_of[CGROUP_UNIFIED]], "cgroup.procs", text);

	return r < 0 ? err_set(e, r, "move the kernel into the cell's cgroup") : 0;
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

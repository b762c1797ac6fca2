/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.c - Plan, make, use and remove one cell's cgroups.
 *
 * Theory of operation: a cell has one directory per hierarchy. Its base on v2 is made by the first
 * cell that needs it and removed by the last, so two callers may meet: a caller that finds it gone
 * (ENOENT) makes it again and retries, a bounded number of times.
 *
 * Safety (this runs with privileges): a prefix comes from the machine's own mount table and our own
 * position in it (cgroup_site.c), a name is [a-z0-9-]{1,63}, file names are constants, values are
 * numbers. No path and no text of a guest gets here, and a guest cannot shape what is below a path:
 * cgroup filesystems have no symbolic links, and a cell gets no cgroup mount. Processes are killed
 * through pidfds whose membership was confirmed after they were opened, so a recycled pid is never
 * hit. Removal by path, for crash recovery, takes only paths of the form made here, and only on a
 * cgroup filesystem: a stale or wrong record can remove nothing else, and a record of a directory
 * that is gone is success.
 */
#include "cell/cgroup.h"

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/cgroup_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for any number of cells that are made and removed beside us at the same time. */
#define RETRIES 64
#define PIDS_LIMIT_MAX 4194304 /* PID_MAX_LIMIT: the kernel refuses more */
#define CPU_MILLI_MAX 10000000
#define CPU_WEIGHT_MAX 10000
#define PERIOD_US 100000u
#define PERIOD_LONG_US 1000000u /* the longest: a quota must be at least 1000 us of its period */

static const struct cgroup_ops *ops_of(const struct cgroup *c)
{
	return c->kind == CGROUP_V2 ? &cgroup_ops_v2 : &cgroup_ops_v1;
}

int cgroup_dir(const struct cgroup *c, enum cgroup_role role)
{
	return c->dir_of[role] < 0 ? -1 : c->dirfd[c->dir_of[role]];
}

int cgroup_get_u64(int dirfd, const char *file, uint64_t *ret)
{
	char buf[64];
	ssize_t n = fd_read_file(dirfd, file, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	return cgroup_text_u64((struct cgroup_text){ buf, (size_t)n }, ret) ? 0 : -EPROTO;
}

int cgroup_get_keys(int dirfd, const char *file, const struct cgroup_key *keys, size_t n)
{
	char buf[8192]; /* memory.stat is the largest, about 3 KiB */
	ssize_t len = fd_read_file(dirfd, file, buf, sizeof(buf));

	if (len < 0)
		return (int)len;
	for (size_t i = 0; i < n; i++)
		(void)cgroup_text_key((struct cgroup_text){ buf, (size_t)len }, keys[i].key,
				      keys[i].ret);
	return 0;
}

int cgroup_put(int dirfd, const char *file, const char *fmt, ...)
{
	char buf[64];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(buf))
		return -EOVERFLOW;
	return fd_write_file(dirfd, file, buf);
}

void cgroup_quota(uint32_t cpu_milli, uint64_t *ret_quota_us, uint64_t *ret_period_us)
{
	*ret_period_us = cpu_milli >= 10 ? PERIOD_US : PERIOD_LONG_US;
	*ret_quota_us = cpu_milli * (*ret_period_us / 1000);
}

uint32_t cgroup_quota_milli(uint64_t quota_us, uint64_t period_us)
{
	uint64_t v;

	if (period_us == 0 || __builtin_mul_overflow(quota_us, 1000u, &v))
		return 0;
	v = (v + period_us / 2) / period_us;
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

int cgroup_plan(const struct cgroup_site *s, const char *name, struct cgroup *ret, struct err *e)
{
	if (!cgroup_name_valid(name))
		return err_say(e, -EINVAL, "a cgroup name is 1 to %d of a-z, 0-9 and '-'",
			       CGROUP_NAME_MAX - 1);
	if (s->kind <= CGROUP_NONE || s->kind >= CGROUP_KINDS_ || s->n_dirs > CGROUP_DIRS_MAX)
		return err_say(e, -EINVAL, "no place for cgroups was found");

	(void)memset(ret, 0, sizeof(*ret));
	ret->kind = s->kind;
	ret->oom_fd = -1;
	for (size_t i = 0; i < CGROUP_DIRS_MAX; i++)
		ret->dirfd[i] = -1;
	(void)memcpy(ret->dir_of, s->dir_of, sizeof(ret->dir_of));
	for (size_t i = 0; i < s->n_dirs; i++)
		if (!cgroup_join(ret->path[i], s->prefix[i], name))
			return err_say(e, -ENAMETOOLONG, "cgroup path '%.200s...' is too long",
				       s->prefix[i]);
	ret->n_dirs = s->n_dirs;
	return 0;
}

static int check_limits(const struct cgroup_limits *in, struct cgroup_limits *ret, struct err *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*ret = *in;
	ret->memory_bytes -= ret->memory_bytes % page;
	if ((in->memory_bytes != 0 && ret->memory_bytes == 0) ||
	    in->memory_bytes > INT64_MAX - page)
		return err_say(e, -ERANGE, "memory limit of %llu bytes is out of range",
			       (unsigned long long)in->memory_bytes);
	if (in->pids > PIDS_LIMIT_MAX)
		return err_say(e, -ERANGE, "pids limit %llu is above %d",
			       (unsigned long long)in->pids, PIDS_LIMIT_MAX);
	if (in->cpu_milli > CPU_MILLI_MAX || in->cpu_weight > CPU_WEIGHT_MAX)
		return err_say(e, -ERANGE, "cpu limit %u/1000 or weight %u is out of range",
			       in->cpu_milli, in->cpu_weight);
	return 0;
}

bool cgroup_parent(const char *path, char *ret)
{
	const char *last = strrchr(path, '/');
	size_t n = last ? (size_t)(last - path) : 0;

	(void)memcpy(ret, path, n);
	ret[n] = '\0';
	last = strrchr(ret, '/');
	return last && strcmp(last + 1, CGROUP_BASE) == 0;
}

static int make_dir(struct cgroup *c, size_t i, struct err *e)
{
	char base[CGROUP_PATH_MAX];

	(void)cgroup_parent(c->path[i], base);
	for (int tries = 0; mkdir(c->path[i], 0755) < 0; tries++) {
		if ((errno != ENOENT && errno != ENODEV) || !ops_of(c)->base)
			return err_set(e, -errno, "mkdir cgroup %s", c->path[i]);
		if (tries == RETRIES)
			return err_set(e, -errno, "mkdir cgroup %s again and again", c->path[i]);

		int r = ops_of(c)->base(base, e);

		/* Another process may remove it just after we made it: then try again. */
		if (r < 0 && r != -ENOENT && r != -ENODEV)
			return r;
	}
	c->dirfd[i] = open(c->path[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->dirfd[i] < 0) {
		int r = err_set(e, -errno, "open cgroup %s", c->path[i]);

		(void)rmdir(c->path[i]);
		return r;
	}
	return 0;
}

static int put_limits(const struct cgroup *c, const struct cgroup_limits *l, struct err *e)
{
	const struct cgroup_ops *ops = ops_of(c);
	int r = ops->memory(c, l->memory_bytes);

	if (r < 0)
		return err_set(e, r, "limit memory to %llu bytes",
			       (unsigned long long)l->memory_bytes);
	if (l->pids && (r = cgroup_put(cgroup_dir(c, CGROUP_PIDS), "pids.max", "%llu",
				       (unsigned long long)l->pids)) < 0)
		return err_set(e, r, "limit pids to %llu", (unsigned long long)l->pids);
	if (l->cpu_milli && (r = ops->quota(c, l->cpu_milli)) < 0)
		return err_set(e, r, "limit cpu to %u/1000", l->cpu_milli);
	if (l->cpu_weight && (r = ops->weight(c, l->cpu_weight)) < 0)
		return err_set(e, r, "set cpu weight %u", l->cpu_weight);
	return 0;
}

int cgroup_create(struct cgroup *c, const struct cgroup_limits *limits, struct err *e)
{
	struct cgroup_limits want;
	char base[CGROUP_PATH_MAX];
	size_t made = 0;
	int r = check_limits(limits, &want, e);

	if (r < 0)
		return r;
	for (; made < c->n_dirs && r == 0; made += r == 0)
		r = make_dir(c, made, e);
	if (r == 0 && (r = put_limits(c, &want, e)) == 0 &&
	    (!want.oom_group || (r = ops_of(c)->watch(c, e)) == 0)) {
		c->limits = want;
		return 0;
	}

	/* They have no processes yet. Where it failed there may be a new base, and no directory. */
	cgroup_close(c);
	for (size_t i = 0; i < c->n_dirs && i <= made; i++) {
		if (i < made)
			(void)rmdir(c->path[i]);
		if (cgroup_parent(c->path[i], base))
			(void)rmdir(base);
	}
	return r;
}

int cgroup_clone_fd(const struct cgroup *c)
{
	return cgroup_dir(c, CGROUP_UNIFIED);
}

int cgroup_limits_read(const struct cgroup *c, struct cgroup_limits *ret, struct err *e)
{
	(void)memset(ret, 0, sizeof(*ret));
	int r = ops_of(c)->limits_read(c, ret);

	return r < 0 ? err_set(e, r, "read limits of cgroup %s", c->path[0]) : 0;
}

int cgroup_usage(const struct cgroup *c, struct cgroup_usage *ret, struct err *e)
{
	(void)memset(ret, 0, sizeof(*ret));
	int r = ops_of(c)->usage(c, ret);

	return r < 0 ? err_set(e, r, "read usage of cgroup %s", c->path[0]) : 0;
}

int cgroup_oom_kills(const struct cgroup *c, uint64_t *ret_kills, struct err *e)
{
	int r = ops_of(c)->oom_kills(c, ret_kills);

	return r < 0 ? err_set(e, r, "count out-of-memory kills") : 0;
}

uint32_t cgroup_open_files(const struct cgroup *c, const struct cgroup_file *rows, size_t n,
			   int *fds, unsigned int n_fds)
{
	uint32_t have = 0;

	for (unsigned int i = 0; i < n_fds; i++)
		fds[i] = -1;
	for (const struct cgroup_file *f = rows; f < rows + n; f++) {
		int dir = f->v2 == (c->kind == CGROUP_V2) ? cgroup_dir(c, f->role) : -1;

		if (dir < 0 || fds[f->to] >= 0)
			continue;
		fds[f->to] = openat(dir, f->name, O_RDONLY | O_CLOEXEC);
		if (fds[f->to] >= 0)
			have |= 1u << f->to;
	}
	return have;
}

uint32_t cgroup_gauges(const struct cgroup *c, int fds[GAUGE_MAX_])
{
	static const struct cgroup_file rows[] = {
		{ true, CGROUP_UNIFIED, "cpu.stat", GAUGE_CPU_STAT },
		{ true, CGROUP_UNIFIED, "memory.peak", GAUGE_MEMORY_PEAK },
		{ true, CGROUP_UNIFIED, "pids.peak", GAUGE_PIDS_PEAK },
		{ true, CGROUP_UNIFIED, "pids.events", GAUGE_PIDS_EVENTS },
		{ true, CGROUP_UNIFIED, "memory.events", GAUGE_OOM },
		{ true, CGROUP_UNIFIED, "memory.current", GAUGE_MEMORY_USED },
		{ true, CGROUP_UNIFIED, "memory.stat", GAUGE_MEMORY_STAT },
		{ false, CGROUP_CPUACCT, "cpuacct.usage", GAUGE_CPU_NS },
		{ false, CGROUP_CPU, "cpu.stat", GAUGE_THROTTLED },
		{ false, CGROUP_MEMORY, "memory.max_usage_in_bytes", GAUGE_MEMORY_PEAK },
		{ false, CGROUP_PIDS, "pids.peak", GAUGE_PIDS_PEAK },
		{ false, CGROUP_PIDS, "pids.events", GAUGE_PIDS_EVENTS },
		{ false, CGROUP_MEMORY, "memory.oom_control", GAUGE_OOM },
		{ false, CGROUP_MEMORY, "memory.usage_in_bytes", GAUGE_MEMORY_USED },
		{ false, CGROUP_MEMORY, "memory.stat", GAUGE_MEMORY_STAT },
	};

	return cgroup_open_files(c, rows, ARRAY_SIZE(rows), fds, GAUGE_MAX_);
}

/* ---- entering ------------------------------------------------------------------------------- */

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
	fd_close_all(c->fd, c->n);
	c->n = 0;
}

void cgroup_close(struct cgroup *c)
{
	c->oom_fd = fd_close(c->oom_fd);
	for (size_t i = 0; i < CGROUP_DIRS_MAX; i++)
		c->dirfd[i] = fd_close(c->dirfd[i]);
}

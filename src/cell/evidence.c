/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.c - Copy /proc of a cell's processes into a memfd.
 *
 * Processes are found by walking children from init: init is the reaper of everything in its pid
 * namespace, so every process is its descendant, whatever double forks it made. Only the kernel's
 * files are read, through a directory descriptor of each process, so a pid that is reused
 * meanwhile yields "gone" and never another process's text.
 */
#include "cell/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup.h"
#include "wire/evidence.h"

#define PIDS_MAX 4096u

struct collector {
	int out;
	size_t written;
	int error; /* sticky */
	pid_t pid; /* of the process at hand; 0: of the host, or of the whole cell */
	bool is_init;
	pid_t pids[PIDS_MAX];
	size_t n_pids;
	char text[EVIDENCE_ITEM_MAX];
};

static void put(struct collector *c, enum evidence_kind kind, size_t len)
{
	static const char zeros[8];
	struct evidence_item item = {
		.kind = (uint32_t)kind,
		.pid = (uint32_t)c->pid,
		.is_init = c->is_init,
		.len = (uint32_t)len,
	};
	size_t pad = (8 - len % 8) % 8;

	if (c->error)
		return;
	c->written += sizeof(item) + len + pad;
	if (c->written > EVIDENCE_MAX) {
		c->error = -EFBIG;
		return;
	}
	c->error = fd_write_all(c->out, &item, sizeof(item));
	if (c->error == 0)
		c->error = fd_write_all(c->out, c->text, len);
	if (c->error == 0)
		c->error = fd_write_all(c->out, zeros, pad);
}

static void put_lost(struct collector *c, const char *what, int error)
{
	int n = snprintf(c->text, sizeof(c->text), "%s: %s", what, strerror(error));

	/* A process that ended is not a loss: there is nothing to report about it. */
	if (error != ENOENT && error != ESRCH)
		put(c, EVIDENCE_LOST, (size_t)n);
}

static void put_file(struct collector *c, enum evidence_kind kind, int dir, const char *path)
{
	ssize_t n = fd_read_file(dir, path, c->text, sizeof(c->text));

	if (n < 0)
		put_lost(c, path, (int)-n);
	else
		put(c, kind, (size_t)n);
}

static void put_namespaces(struct collector *c, enum evidence_kind kind, int dir)
{
	static const char *const names[] = { "ns/user", "ns/pid", "ns/mnt",   "ns/net",
					     "ns/ipc",  "ns/uts", "ns/cgroup" };
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ssize_t n = readlinkat(dir, names[i], c->text + len, sizeof(c->text) - len - 1);

		if (n < 0) {
			put_lost(c, names[i], errno);
			return;
		}
		len += (size_t)n;
		c->text[len++] = '\n';
	}
	put(c, kind, len);
}

/* Mark a descriptor that execve will close. Returns the new length of the text. */
static size_t mark_cloexec(struct collector *c, int dir, const char *number, size_t len)
{
	char path[300], info[1024];

	(void)snprintf(path, sizeof(path), "fdinfo/%s", number);
	if (fd_read_file(dir, path, info, sizeof(info)) <= 0)
		return len;
	const char *flags = strstr(info, "flags:");

	if (!flags || !(strtoul(flags + 6, NULL, 8) & O_CLOEXEC) ||
	    len + sizeof(EVIDENCE_CLOEXEC) > sizeof(c->text))
		return len;
	memcpy(c->text + len, EVIDENCE_CLOEXEC, sizeof(EVIDENCE_CLOEXEC) - 1);
	return len + sizeof(EVIDENCE_CLOEXEC) - 1;
}

static DIR *open_list(struct collector *c, int dir, const char *name)
{
	DIR *d = dir_list(openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!d)
		put_lost(c, name, errno);
	return d;
}

static void put_descriptors(struct collector *c, int dir)
{
	_dir_ DIR *d = open_list(c, dir, "fd");
	const char *name;

	while (d && (name = dir_next(d))) {
		int n = snprintf(c->text, sizeof(c->text), "%s ", name);
		ssize_t k = readlinkat(dirfd(d), name, c->text + n, sizeof(c->text) - (size_t)n);

		if (k > 0)
			put(c, EVIDENCE_FD, mark_cloexec(c, dir, name, (size_t)n + (size_t)k));
	}
}

/* Every thread's status, and the children of every thread onto the list of processes to visit. */
static void put_threads(struct collector *c, int dir)
{
	_dir_ DIR *d = open_list(c, dir, "task");
	const char *name;

	while (d && (name = dir_next(d))) {
		char path[300];

		(void)snprintf(path, sizeof(path), "%s/status", name);
		put_file(c, EVIDENCE_STATUS, dirfd(d), path);
		(void)snprintf(path, sizeof(path), "%s/children", name);
		ssize_t n = fd_read_file(dirfd(d), path, c->text, sizeof(c->text));

		if (n < 0)
			put_lost(c, path, (int)-n);
		for (char *p = c->text, *end; n > 0; p = end) {
			long child = strtol(p, &end, 10);

			if (end == p)
				break;
			if (c->n_pids == PIDS_MAX) {
				put_lost(c, "more processes", E2BIG);
				break;
			}
			c->pids[c->n_pids++] = (pid_t)child;
		}
	}
}

static void put_process(struct collector *c, pid_t pid, bool is_init)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	_fd_ int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	c->pid = pid;
	c->is_init = is_init;
	put_threads(c, dir);
	put_namespaces(c, EVIDENCE_NS, dir);
	put_file(c, EVIDENCE_LIMITS, dir, "limits");
	put_descriptors(c, dir);
	if (is_init)
		put_file(c, EVIDENCE_MOUNTINFO, dir, "mountinfo");
}

static void put_cgroup(struct collector *c, const struct cgroup *cgroup)
{
	struct cgroup_limits l;

	if (!cgroup)
		return;
	int r = cgroup_limits_read(cgroup, &l, NULL);

	if (r < 0) {
		put_lost(c, "cgroup limits", -r);
		return;
	}
	int n = snprintf(c->text, sizeof(c->text), "memory %llu\npids %llu\ncpu_milli %u\n",
			 (unsigned long long)l.memory_bytes, (unsigned long long)l.pids,
			 l.cpu_milli);

	put(c, EVIDENCE_CGROUP, (size_t)n);
}

int evidence_collect(pid_t init, pid_t kernel, const struct cgroup *cgroup, struct err *e)
{
	_mem_ struct collector *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, -ENOMEM, "collect evidence");
	_fd_ int out = memfd_create("evidence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	_fd_ int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (out < 0 || self < 0)
		return err_set(e, -errno, "collect evidence");
	c->out = out;
	put_namespaces(c, EVIDENCE_HOST_NS, self);
	put_cgroup(c, cgroup);
	c->pids[c->n_pids++] = init;
	if (kernel > 0)
		c->pids[c->n_pids++] = kernel;
	for (size_t i = 0; i < c->n_pids && !c->error; i++)
		put_process(c, c->pids[i], i == 0);
	if (c->error)
		return err_set(e, c->error, "collect evidence");
	if (fcntl(out, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_set(e, -errno, "seal evidence");
	return TAKE_FD(out);
}

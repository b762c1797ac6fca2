/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - A cell's own processors, uptime, and files over /proc/meminfo and its like.
 *
 * Theory of operation. Programs size their pools and caches by what they see of the machine. Three
 * means make them see the cell:
 *
 * The affinity of its processes is as many processors as its quota fills. They inherit it, and may
 * change it: the quota is the limit. A warden deals processors to cells in turn. Cells that are
 * used at the same time are mostly those made one after the other, so this spreads them better than
 * counting would: most cells that exist are idle. The first, which for `caisson run` is the only
 * one, has the processor on which the Linux kernel put the warden.
 *
 * A time namespace moves the zero of CLOCK_BOOTTIME to the birth of the cell. The uptime, and the
 * start of each process in /proc, which `ps` subtracts from it, then agree, without any text of
 * ours.
 *
 * Each of a few files of /proc is covered by a file of the cell's writable layer that has no name
 * there any more. Code sees it through a read-only mount; init alone has a descriptor for writing.
 * The pages for the texts are reserved, so that a full disk does not matter. Init has to know when
 * a text is read: the warden of root gives it a fanotify group, and the child marks the files. The
 * Linux kernel then holds each read until init has answered, which it does after it has written.
 * Init does nothing while no program reads. An ordinary user may not have such a group, and
 * `caisson run` asks for none, because its caller waits for the end of the cell: init then writes
 * at the start of commands and every two seconds (init/machine.c).
 *
 * Safe, and why. A group for permission events takes CAP_SYS_ADMIN to make, and its holder could
 * mark other files, and so hold up programs of the host that share them. The filter refuses
 * fanotify_mark() to everything in the cell, init included, and a cell without the filter gets no
 * group; init is not dumpable, so code cannot reach its descriptors. The group is on the account of
 * the cell's own first id. A reader waits killably, and the death of init answers all. The gauges
 * are files, opened for reading: unlike a directory they lead nowhere.
 */
#include "cell/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/caps.h"
#include "cell/cgroup.h"
#include "cell/plan.h"
#include "cell/stage.h"

#define CLONE_NEWTIME_ 0x80 /* <sched.h> has it only since glibc 2.36 */
#define ROOM 4096           /* for a text, and more for each processor */

/* ---- the warden ----------------------------------------------------------------------------- */

/* @want of @may, in turn: from where the last cell ended, at first from where we are. */
static void deal(const cpu_set_t *may, uint32_t want, struct machine_cpus *ret)
{
	static size_t next = CPU_SETSIZE;
	cpu_set_t chosen;

	CPU_ZERO(&chosen);
	if (next == CPU_SETSIZE)
		next = (size_t)sched_getcpu();
	for (uint32_t left = want; left > 0; next++) {
		if (!CPU_ISSET(next % CPU_SETSIZE, may))
			continue;
		CPU_SET(next % CPU_SETSIZE, &chosen);
		left--;
	}
	next %= CPU_SETSIZE;
	_Static_assert(sizeof(chosen) == sizeof(ret->mask), "MACHINE_CPU_WORDS");
	memcpy(ret->mask, &chosen, sizeof(chosen));
	ret->some = 1;
}

/* Return: how many. */
static uint32_t choose_cpus(uint32_t milli, struct machine_cpus *ret)
{
	uint32_t want = (milli + 999) / 1000;
	cpu_set_t may;

	/* It fails on a machine with more processors than the set has bits. */
	if (sched_getaffinity(0, sizeof(may), &may) < 0 || CPU_COUNT(&may) == 0)
		return want;
	if (want >= (uint32_t)CPU_COUNT(&may))
		return (uint32_t)CPU_COUNT(&may);
	deal(&may, want, ret);
	return want;
}

/* Since Linux 6.3 a process enters a time namespace that it made when it executes; before, only its
 * children do, and a cell would have two clocks. */
static bool clock_moves(void)
{
	static int moves = -1;
	struct utsname u;

	if (moves < 0 && uname(&u) == 0) {
		char *end;
		unsigned long major = strtoul(u.release, &end, 10);
		unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

		moves = major > 6 || (major == 6 && minor >= 3);
	}
	return moves > 0;
}

void machine_plan(const struct cell_limits *limits, struct machine_plan *ret,
		  struct init_config *ret_config)
{
	static uint64_t ram;
	struct sysinfo machine;
	struct timespec now;

	if (!ram && sysinfo(&machine) == 0)
		ram = (uint64_t)machine.totalram * machine.mem_unit;
	*ret = (struct machine_plan){ .watch_fd = -1 };
	for (size_t i = 0; i < MACHINE_GAUGES; i++)
		ret->gauges[i] = -1;
	/* A limit may be more than the machine has. */
	ret_config->seen_memory = ram && ram < limits->memory_bytes ? ram : limits->memory_bytes;
	ret_config->seen_cpus = choose_cpus(limits->cpu_milli, &ret->cpus);
	if (clock_moves() && clock_gettime(CLOCK_BOOTTIME, &now) == 0)
		/* Nanoseconds are counted upwards: one second more is taken off first. */
		(void)snprintf(ret->clock, sizeof(ret->clock), "boottime -%lld %ld",
			       (long long)now.tv_sec + 1, 999999999L - now.tv_nsec);
}

static void gauges_open(int gauges[MACHINE_GAUGES], const struct cgroup *c)
{
	static const struct cgroup_file rows[] = {
		{ true, CGROUP_UNIFIED, "memory.current", MACHINE_MEMORY },
		{ true, CGROUP_UNIFIED, "memory.stat", MACHINE_MEMORY_STAT },
		{ true, CGROUP_UNIFIED, "cpu.stat", MACHINE_CPU_STAT },
		{ false, CGROUP_MEMORY, "memory.usage_in_bytes", MACHINE_MEMORY },
		{ false, CGROUP_MEMORY, "memory.stat", MACHINE_MEMORY_STAT },
		{ false, CGROUP_CPUACCT, "cpuacct.stat", MACHINE_CPU_STAT },
		{ false, CGROUP_UNIFIED, "cpu.stat", MACHINE_CPU_STAT }, /* without cpuacct */
	};

	(void)cgroup_open_files(c, rows, ARRAY_SIZE(rows), gauges, MACHINE_GAUGES);
}

void machine_open(struct plan *p, const struct cgroup *cgroup, bool live)
{
	if (cgroup)
		gauges_open(p->machine.gauges, cgroup);
	if (!live || !p->ids.ranged || p->spec->without & CELL_WITHOUT_SECCOMP)
		return;
	/* The Linux kernel counts groups per user: on the cell's account, not on root's. */
	if (as_user_begin(p->ids.base) < 0)
		return;
	p->machine.watch_fd =
		fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
	as_user_end(p->ids.base);
}

void machine_close(struct machine_plan *m)
{
	m->watch_fd = fd_close(m->watch_fd);
	for (size_t i = 0; i < MACHINE_GAUGES; i++)
		m->gauges[i] = fd_close(m->gauges[i]);
}

/* ---- the child ------------------------------------------------------------------------------ */

/* Made by the child, of which there is one in this process. */
static struct {
	int files[MACHINE_FILES];
	int source, watch;
} made;

void machine_enter(const struct plan *p)
{
	const struct machine_cpus *c = &p->machine.cpus;

	if (c->some)
		(void)sched_setaffinity(0, sizeof(c->mask), (const cpu_set_t *)c->mask);
	if (p->machine.clock[0] && unshare(CLONE_NEWTIME_) == 0)
		(void)fd_write_file(AT_FDCWD, "/proc/self/timens_offsets", p->machine.clock);
}

static int watch(int file)
{
	return fanotify_mark(made.watch, FAN_MARK_ADD, FAN_ACCESS_PERM, file, NULL);
}

/*
 * A second mount of the layer, whose binds the files become: read-only, and nothing executes them:
 * execve() reads, and init waits for those that it starts.
 */
static int show_layer(int layer)
{
	_fd_ int tree = open_tree(layer, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || mnt_restrict(tree, MNT_SAFE | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC) < 0)
		return -1;
	return mnt_over_host(tree);
}

/* Over the file of the same name in the current directory; for a moment it is also on @layer. */
static int place(int layer, const char *shown, size_t room)
{
	const char *name = shown + sizeof(MNT_OVER_HOST) - 1;
	_fd_ int file =
		openat(layer, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);

	if (file < 0)
		return -1;
	(void)fallocate(file, FALLOC_FL_KEEP_SIZE, 0, (off_t)room);
	if (mount(shown, name, NULL, MS_BIND, NULL) < 0 || unlinkat(layer, name, 0) < 0)
		return -1;
	return TAKE_FD(file);
}

void machine_place(const struct plan *p, int layer)
{
	static const struct {
		const char *shown;
		size_t each;
	} rows[] = {
		[MACHINE_MEMINFO] = { MNT_OVER_HOST "meminfo", 0 },
		[MACHINE_STAT] = { MNT_OVER_HOST "stat", 96 },
		[MACHINE_LOADAVG] = { MNT_OVER_HOST "loadavg", 0 },
		[MACHINE_CPUINFO] = { MNT_OVER_HOST "cpuinfo", 2048 },
		[MACHINE_UPTIME] = { MNT_OVER_HOST "uptime", 0 },
	};

	made.watch = p->machine.watch_fd;
	made.source = open("cpuinfo", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (show_layer(layer) < 0)
		stage_fail(p, STAGE_MASK, 199);
	for (uint32_t i = 0; i < MACHINE_FILES; i++) {
		/* The first processor has room in the first page. */
		size_t room = ROOM + rows[i].each * (p->config.seen_cpus - 1);

		made.files[i] = -1;
		if (i == MACHINE_UPTIME && made.watch < 0)
			continue;
		made.files[i] = place(layer, rows[i].shown, room);
		if (made.files[i] < 0)
			stage_fail(p, STAGE_MASK, 200 + i);
		if (made.watch < 0 || watch(made.files[i]) == 0)
			continue;
		if (i > 0)
			stage_fail(p, STAGE_MASK, 300 + i);
		made.watch = -1; /* a Linux kernel without permission events */
	}
}

void machine_descriptors(const struct plan *p, int ret[MACHINE_FD_END - MACHINE_FD_FILES])
{
	memcpy(ret, made.files, sizeof(made.files));
	ret[MACHINE_FD_SOURCE - MACHINE_FD_FILES] = made.source;
	ret[MACHINE_FD_WATCH - MACHINE_FD_FILES] = made.watch;
	memcpy(ret + (MACHINE_FD_GAUGES - MACHINE_FD_FILES), p->machine.gauges,
	       sizeof(p->machine.gauges));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.c - The files of /proc that a cell does not see.
 *
 * A new instance of /proc shows the processes and names of the cell's own namespaces, and beside
 * them files about the whole machine. Of these a cell keeps the ones that programs need
 * (docs/threat-model.md lists them); the others are covered: /dev/null over a file, the empty /sys
 * over a directory. Which files a cell can read is compared with that list by
 * tests/hostile/test_proc.py, so a file of a newer kernel is noticed before anyone relies on it.
 *
 * Only the first cover of each kind is made and restricted step by step. The others are binds of
 * it, one system call each, and have its flags. Paths below our own /proc are the kernel's, and no
 * links.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/mnt.h"
#include "cell/root.h"
#include "cell/stage.h"

/* Files that this Linux kernel does not have are skipped. */
static const struct mask_row {
	const char *path;
	bool is_dir;
} rows[] = {
	/* Of other cells and of the host's processes. */
	{ "locks", false },
	{ "keys", false },
	{ "key-users", false },
	{ "timer_list", false },
	{ "sched_debug", false },
	{ "latency_stats", false },
	{ "schedstat", false },
	{ "cgroups", false },
	{ "pressure", true },
	{ "sys/fs/file-nr", false },
	{ "sys/fs/inode-nr", false },
	{ "sys/fs/inode-state", false },
	{ "sys/fs/dentry-state", false },
	{ "sys/fs/aio-nr", false },
	{ "sys/fs/quota", true },
	{ "sys/kernel/pty/nr", false },
	/* Of the machine's memory, disks and devices. */
	{ "buddyinfo", false },
	{ "zoneinfo", false },
	{ "vmstat", false },
	{ "swaps", false },
	{ "diskstats", false },
	{ "partitions", false },
	{ "mdstat", false },
	{ "interrupts", false },
	{ "softirqs", false },
	{ "iomem", false },
	{ "ioports", false },
	{ "acpi", true },
	{ "asound", true },
	{ "bus", true },
	{ "driver", true },
	{ "fs", true },
	{ "irq", true },
	{ "scsi", true },
	{ "tty", true },
	/* Of its kernel, or acting on it. */
	{ "bootconfig", false },
	{ "cmdline", false },
	{ "config.gz", false },
	{ "crypto", false },
	{ "kallsyms", false },
	{ "kcore", false },
	{ "kmsg", false },
	{ "modules", false },
	{ "sysrq-trigger", false },
};

/* The first of its kind: restricted before it is there. */
static int cover(int root, const struct mask_row *m)
{
	_fd_ int target = open(m->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (target < 0)
		return -1;
	_fd_ int empty = open_tree(root, m->is_dir ? "sys" : "dev/null",
				   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (empty < 0 ||
	    mnt_restrict(empty, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) < 0)
		return -1;
	return move_mount(empty, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

void mask_proc(const struct plan *p, int root)
{
	const char *first[2] = { NULL, NULL };
	_fd_ int proc = mnt_beneath(root, "proc", O_PATH | O_DIRECTORY);

	if (proc < 0 || fchdir(proc) < 0)
		stage_fail(p, STAGE_MASK, (uint32_t)ARRAY_SIZE(rows));
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char **of = &first[rows[i].is_dir];
		int r = *of ? mount(*of, rows[i].path, NULL, MS_BIND, NULL) : cover(root, &rows[i]);

		if (r < 0 && errno == ENOENT)
			continue;
		if (r < 0)
			stage_fail(p, STAGE_MASK, i);
		if (!*of)
			*of = rows[i].path;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - A cell's share of the Linux kernel's counters: counters.h has the theory. */
#include "cell/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "cell/plan.h"
#include "cell/stage.h"

#define USER_LIMITS "/proc/sys/user/"

/* Where the machine's limit cannot be read: the default of Linux since 2005. */
#define INSTANCES_DEFAULT 128ul
#define WATCHES_DEFAULT 8192ul

static void part_of(const char *path, unsigned long otherwise, char *ret, size_t size)
{
	char text[32];
	unsigned long whole = otherwise;

	if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0)
		whole = strtoul(text, NULL, 10);
	/* At least one, also where the machine's limit, which holds in any case, is tiny. */
	(void)snprintf(ret, size, "%lu", whole < COUNTERS_PARTS ? 1 : whole / COUNTERS_PARTS);
}

void counters_choose(struct counters *ret)
{
	static struct counters chosen;

	if (!chosen.inotify_instances[0]) {
		part_of(USER_LIMITS "max_inotify_instances", INSTANCES_DEFAULT,
			chosen.inotify_instances, sizeof(chosen.inotify_instances));
		part_of(USER_LIMITS "max_inotify_watches", WATCHES_DEFAULT, chosen.inotify_watches,
			sizeof(chosen.inotify_watches));
	}
	*ret = chosen;
}

/*
 * These files act on the writer's own namespace. No user namespace can be made below the cell's,
 * even if the system call filter let it: a second layer against the bugs of the Linux kernel that
 * need one.
 */
void counters_limit(const struct plan *p)
{
	const struct {
		const char *path, *value;
	} rows[] = {
		{ USER_LIMITS "max_user_namespaces", "0" },
		{ USER_LIMITS "max_inotify_instances", p->counters.inotify_instances },
		{ USER_LIMITS "max_inotify_watches", p->counters.inotify_watches },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = fd_write_file(AT_FDCWD, rows[i].path, rows[i].value);

		/* In a container /proc may be read-only; the receipt shows it for the first. */
		if (r != -EROFS && r != -EACCES && r != -ENOENT)
			stage_check(p, r, STAGE_COUNTERS, i);
	}
}

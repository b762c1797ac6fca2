/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - How a cell sees its machine: its own processors, memory, load and age.
 *
 * The child that becomes init makes the files and puts them over those of /proc (cell/machine.c);
 * init writes their content (init/machine.c). Init finds everything it needs open, with fixed
 * numbers; /dev/null stands for what this cell does not have.
 */
#ifndef CAISSON_WIRE_MACHINE_H
#define CAISSON_WIRE_MACHINE_H

#include <stdint.h>

/* Files over those of /proc, open for writing. */
enum machine_file {
	MACHINE_MEMINFO,
	MACHINE_STAT,
	MACHINE_LOADAVG,
	MACHINE_CPUINFO,
	MACHINE_UPTIME, /* with MACHINE_FD_WATCH alone: an old text would be wrong */
	MACHINE_FILES,
};

/* Files of the cell's cgroup, open for reading. */
enum machine_gauge {
	MACHINE_MEMORY,      /* one number, bytes */
	MACHINE_MEMORY_STAT, /* "key bytes" lines; the keys of v1 and v2 differ */
	MACHINE_CPU_STAT,    /* v2: "user_usec", "system_usec"; v1: "user", "system", in ticks */
	MACHINE_GAUGES,
};

enum machine_fd {
	MACHINE_FD_FILES = 4,                                 /* after the channel, INIT_FD */
	MACHINE_FD_SOURCE = MACHINE_FD_FILES + MACHINE_FILES, /* the covered cpuinfo; O_PATH */
	MACHINE_FD_WATCH, /* fanotify(7): asks before each read of the files */
	MACHINE_FD_GAUGES,
	MACHINE_FD_END = MACHINE_FD_GAUGES + MACHINE_GAUGES,
};

#define MACHINE_CPU_WORDS 16 /* as many processors as cpu_set_t has: 1024 */

/* The processors on which the processes of a cell run. */
struct machine_cpus {
	uint64_t mask[MACHINE_CPU_WORDS]; /* for sched_setaffinity(2) */
	uint32_t some; /* 0: all that the warden has, and there is nothing to set */
	uint32_t pad_;
};

#endif

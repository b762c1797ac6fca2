/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.h - Texts of the Linux kernel about the processes of a cell, copied, not interpreted.
 *
 * The warden reads /proc on the client's behalf and puts the bytes, framed, into a memfd. It does
 * not parse them. Texts may hold names that a guest chose, so the frame, not the text, determines
 * what an item is and where it ends.
 */
#ifndef CAISSON_WIRE_EVIDENCE_H
#define CAISSON_WIRE_EVIDENCE_H

#include <stdint.h>

#define EVIDENCE_MAX (8u << 20)
#define EVIDENCE_ITEM_MAX 65536u

#define EVIDENCE_CLOEXEC " (close-on-exec)"

enum evidence_kind {
	EVIDENCE_HOST_NS = 1, /* the warden's own namespaces: "name:[inode]\n"... */
	EVIDENCE_NS,          /* namespaces of a process */
	EVIDENCE_STATUS,      /* /proc/P/task/T/status, once per thread */
	EVIDENCE_LIMITS,      /* /proc/P/limits */
	EVIDENCE_FD,          /* one descriptor: "number target", then perhaps EVIDENCE_CLOEXEC */
	EVIDENCE_MOUNTINFO,   /* once, of init */
	EVIDENCE_CGROUP,      /* limits in force: "name value\n"... */
	EVIDENCE_LOST,        /* something could not be read; the text names it */
};

/* Followed by len bytes, then padding to a multiple of 8. pid is the host's, 0 for no process. */
struct evidence_item {
	uint32_t kind;
	uint32_t pid;
	uint32_t is_init; /* 1: pid 1 of the cell */
	uint32_t len;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - The steps by which the cloned child seals itself in, before it becomes init or a
 * zygote.
 *
 * System calls only. Every step either succeeds or reports {stage, item, errno} to the parent and
 * ends the child; no step is skipped. Nothing of the guest exists yet, so nothing here can be raced
 * by it.
 */
#ifndef CAISSON_CELL_STAGE_H
#define CAISSON_CELL_STAGE_H

#include <stdint.h>

struct plan;

enum stage_id {
	STAGE_SYNC,    /* parent went away */
	STAGE_CGROUP,  /* move into the cgroups */
	STAGE_PRIVATE, /* own mount propagation */
	STAGE_INIT,    /* the init binary, read-only */
	STAGE_USER,    /* become the cell's root */
	STAGE_CGROUPNS,
	STAGE_COUNTERS, /* limits of the user namespace */
	STAGE_KEYRING,
	STAGE_LAYER,
	STAGE_LOWER, /* a directory of the image */
	STAGE_OVERLAY,
	STAGE_TREE,
	STAGE_ETC,
	STAGE_USR,
	STAGE_PROC,
	STAGE_MASK,
	STAGE_DEV,
	STAGE_PTS,
	STAGE_MOUNT,
	STAGE_PIVOT,
	STAGE_LOOPBACK,
	STAGE_HOSTNAME,
	STAGE_STDIO,
	STAGE_CAPS,
	STAGE_EXEC,
	STAGE_MAX_,
};

struct stage_report {
	uint32_t stage; /* enum stage_id */
	uint32_t item;  /* which row of the stage's table */
	int32_t error;  /* positive errno */
};

/* stage_run() - Seal and exec init. Never returns. The parent sends one byte on the sync socket
 * when the id maps are in place; end of file there means success (close on exec). */
_Noreturn void stage_run(const struct plan *p);
/* stage_zygote_run() - The same for a zygote, which executes the interpreter (stage_zygote.c). */
_Noreturn void stage_zygote_run(const struct plan *p);

/* stage_fail() - Report errno and end the child. */
_Noreturn void stage_fail(const struct plan *p, enum stage_id stage, uint32_t item);
/* stage_check() - The same for a negative errno @r; returns when @r is not negative. */
void stage_check(const struct plan *p, int r, enum stage_id stage, uint32_t item);

/* Steps that the child of a cell and that of a zygote share. */
void stage_die_with_parent(const struct plan *p);
void stage_leave_keyring(const struct plan *p);

/* stage_describe() - A message for a report, with the remedy where it is known. For the parent. */
void stage_describe(const struct stage_report *r, const struct plan *p, char *msg, uint32_t size);

/* stage_net() - stage_net.c: lo up, with the addresses behind which a gate may listen. */
void stage_net(const struct plan *p);
/* stage_net_settings() - Low ports are free to all, TCP does not pace; while the host's /proc is
 * still there. */
void stage_net_settings(const struct plan *p);

#endif

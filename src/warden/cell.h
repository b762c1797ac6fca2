/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.h - One live cell as the warden holds it.
 *
 * Life: cell_create() -> running -> (ended, by itself or by cell_kill()) -> cell_destroy(). An
 * ended cell stays until it is destroyed, so that its client can always learn how it ended.
 */
#ifndef CAISSON_WARDEN_CELL_H
#define CAISSON_WARDEN_CELL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cgroup.h"
#include "cell/record.h"
#include "wire/warden.h"

struct err;

/* What all cells of one warden have in common. */
struct cell_host {
	int records; /* the journal directory */
	char init_path[4096];
	struct cgroup_site site;
	int site_code; /* 0, or why there is no site: reported when a cell needs one */
	char site_msg[504];
};

struct cell {
	uint32_t handle;
	pid_t pid;
	int pidfd;
	struct record record;
	bool has_cgroup;
	struct cgroup cgroup;
	struct cell_limits limits;
	uint64_t created_ns;
	uint64_t check_ns; /* when to look at cpu time next; 0 = never */
	enum cell_end end;
	uint64_t memory_files; /* as it was when memory ran out: the files die with the cell */
	int init_status;
};

/* cell_create() - Journal, cgroup, clone. @ret_channel: the client's end, owned by the caller. */
int cell_create(struct cell_host *h, const struct cell_spec *spec, const int *fds, size_t n_fds,
		struct cell *ret, int *ret_channel, struct err *e);

/* cell_kill() - Ask the kernel to kill all of it, and remember why. Idempotent, does not wait. */
void cell_kill(struct cell *c, enum cell_end why);

/* cell_reaped() - Pid 1 is gone (its pidfd is readable): collect it. */
void cell_reaped(struct cell *c);

/* cell_memory_event() - The out-of-memory descriptor fired: the whole cell dies as one. */
void cell_memory_event(struct cell *c);

/* cell_check() - Enforce cpu time and the wall backstop. Returns when to be called next (ns), 0 never. */
uint64_t cell_check(struct cell *c, uint64_t now_ns);

void cell_usage(const struct cell *c, struct cell_usage *ret);

/*
 * cell_destroy() - Kill, reap, read the last numbers, remove. After success nothing of the cell
 * exists. On failure the journal record stays, and the next start tries again.
 */
int cell_destroy(struct cell *c, struct cell_usage *ret, struct err *e);

#endif

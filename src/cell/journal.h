/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - The journal of cells: a record is written before the resource is made.
 *
 * One small file per cell in <state>/cells/, named by its slot. It is written before anything that
 * outlives a process is made, and removed after all of that is gone. The warden that owns the cell
 * holds a lock on the file for as long as it lives; the kernel drops the lock with the process, so
 * "can I lock it?" is the same question as "is its owner dead?", and no pid is ever compared.
 *
 * A cell leaves only cgroup directories behind when its processes are killed: its mounts,
 * network and writable layer live in its namespaces. So the record is a list of those directories.
 */
#ifndef CAISSON_CELL_JOURNAL_H
#define CAISSON_CELL_JOURNAL_H

#include <stdint.h>

#include "cell/cgroup.h"

/*
 * Where wardens of the whole machine agree on host ids: the slot of a cell chooses its 65536
 * (cell/idmap.h), and state directories know nothing of each other. Byte N of the file in it is
 * locked by the warden that has slot N in use, for as long as it lives. Wardens that do not see the
 * same /run (in containers that share their user namespace) do not see each other's ids either.
 */
#define RECORD_RANGES "/run/caisson-ids"

struct record {
	int fd;        /* the locked file */
	int dirfd;     /* <state>/cells, borrowed */
	uint32_t slot; /* 0..WARDEN_CELLS_MAX-1, also chooses the host ids */
};

/*
 * record_dir() - Open <state>/cells, making both levels with mode 0700; and as root, where cells
 * have ranges of host ids, what record_ranges() opens. Descriptor or -errno.
 */
int record_dir(const char *state, struct err *e);

/* record_ranges() - Agree with the wardens that use the same @dir (RECORD_RANGES, or a test's),
 * which is made. 0 or -errno. */
int record_ranges(const char *dir, struct err *e);

/*
 * record_begin() - Take a slot that is free here and whose host ids nobody on this machine uses:
 * create and lock its file. The file is still empty, which means "nothing was made". Return: 0;
 * -EAGAIN when every slot is taken; or another negative errno.
 */
int record_begin(int dirfd, struct record *ret, struct err *e);

/* record_commit() - Write down what is about to be made. Must come before it is made. */
int record_commit(const struct record *r, const struct cgroup *planned, struct err *e);

/* record_end() - Everything is gone: remove the file, then unlock. Idempotent. */
void record_end(struct record *r);

/* record_keep() - Removal failed: unlock but keep the file, so that a later sweep tries again. */
void record_keep(struct record *r);

struct sweep_result {
	unsigned int swept;       /* dead cells whose remains were removed */
	unsigned int failed;      /* remains that could not be removed now; their records stay */
	unsigned int quarantined; /* records that make no sense, moved to <state>/quarantine */
};

/* record_sweep() - Remove what dead wardens left. Never touches a cell whose owner lives. */
int record_sweep(int dirfd, struct sweep_result *ret, struct err *e);

#endif

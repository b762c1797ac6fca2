/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h - The cell's resource limits, on cgroup v2, v1, and hybrid machines.
 *
 * A *site* is where this machine lets us make cgroups: found once, nothing created. A *cgroup* is
 * one cell's set of directories, one per hierarchy that carries a controller we need:
 * <place>/caisson/<name> on v2, <place>/caisson-<name> in each v1 hierarchy. Every directory can be
 * removed knowing only its path, which the journal keeps: removal needs no live handle and may be
 * repeated.
 *
 * The order of calls: cgroup_site_find(), cgroup_site_prepare(), and then for each cell
 * cgroup_plan(), (journal the paths), cgroup_create(), clone into cgroup_clone_fd(),
 * cgroup_enter_self(), ..., cgroup_usage(), cgroup_remove().
 */
#ifndef CAISSON_CELL_CGROUP_H
#define CAISSON_CELL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/warden.h"

struct err;

#define CGROUP_DIRS_MAX 6
#define CGROUP_PATH_MAX 384
#define CGROUP_NAME_MAX 64 /* with the NUL: a name is [a-z0-9-]{1,63} */

enum cgroup_kind {
	CGROUP_NONE,   /* nothing usable: err says which controller is missing and the fix */
	CGROUP_V2,     /* all controllers on the unified tree */
	CGROUP_V1,     /* all controllers on v1 hierarchies, no usable v2 tree */
	CGROUP_HYBRID, /* controllers on v1, bare v2 tree beside them (cgroup.kill, clone-into) */
	CGROUP_KINDS_,
};

enum cgroup_role {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT, /* v1 only */
	CGROUP_UNIFIED,
	CGROUP_ROLES_,
};

struct cgroup_site {
	enum cgroup_kind kind;
	size_t n_dirs;
	/* Paths before a cell's name, distinct: co-mounted controllers share one. */
	char prefix[CGROUP_DIRS_MAX][CGROUP_PATH_MAX];
	int8_t dir_of[CGROUP_ROLES_]; /* role -> index in prefix[], -1 when absent */
	/* v2: the cgroup that cgroup_site_prepare() has to empty first, or "". */
	char vacate[CGROUP_PATH_MAX];
};

struct cgroup_limits {
	uint64_t memory_bytes; /* 0 = no limit; rounded down to pages; swap is never given on top */
	uint64_t pids;         /* 0 = no limit */
	uint32_t cpu_milli;    /* quota, 1000 = one cpu; 0 = no quota */
	uint32_t cpu_weight;   /* v2 scale 1..10000, 0 = leave the default (100) */
	bool oom_group;        /* out of memory ends all of it: watched, memory.oom.group on v2 */
};

struct cgroup {
	enum cgroup_kind kind;
	size_t n_dirs;
	char path[CGROUP_DIRS_MAX][CGROUP_PATH_MAX]; /* absolute, what the journal records */
	int dirfd[CGROUP_DIRS_MAX];
	int8_t dir_of[CGROUP_ROLES_];
	/* With oom_group: becomes readable (v1 eventfd: POLLIN) or POLLPRI (v2 memory.events); -1
	 * none. Poll for both; it may wake without an out-of-memory kill, so ask
	 * cgroup_oom_kills(). */
	int oom_fd;
	struct cgroup_limits limits; /* as the kernel took them */
};

struct cgroup_usage {
	uint64_t cpu_ns;
	uint64_t memory_bytes, memory_peak; /* peak 0 where it is not counted (v2 < 5.19) */
	uint64_t memory_files;    /* shmem/tmpfs part of memory: the writable layer lives there */
	uint64_t pids, pids_peak; /* peak 0 where it is not counted (v2 < 6.1, v1 < 6.11) */
	uint64_t oom_kills;       /* processes killed by the out-of-memory killer in this cgroup */
	uint64_t pids_denied;     /* forks refused by the pids limit */
	uint64_t throttled_ns;    /* time spent throttled by the cpu quota */
};

/* cgroup_name_valid() - Whether @name is [a-z0-9-]{1,63}. */
bool cgroup_name_valid(const char *name);

/*
 * cgroup_site_find() - Look where cells may live.
 *
 * Cells are placed at or below our own position, so that every outer limit on us also binds them:
 * on v1 directly below our own cgroup in each hierarchy. On v2, where a cgroup with processes may
 * not hand out controllers, the first of these in which we may create directories and in which
 * memory, pids and cpu are available:
 *   1. our own cgroup, if it is the real root;
 *   2. our own cgroup, if it was delegated to us: then ret->vacate names it, and
 *      cgroup_site_prepare() has to move its processes into a leaf before the first create;
 *   3. the nearest ancestor;
 *   4. the topmost cgroup we can see (a container with a writable cgroup tree), vacated as in 2.
 * Nothing is created and nothing is written. Return 0, or negative errno with kind CGROUP_NONE and
 * a message that names the missing thing and the fix.
 */
int cgroup_site_find(struct cgroup_site *ret, struct err *e);

/*
 * cgroup_site_is_locked(), cgroup_site_unlock() - In a container: whether an engine mounted trees
 * read-only that begin at our own cgroup; in a mount namespace of our own, make them writable.
 */
bool cgroup_site_is_locked(void);
void cgroup_site_unlock(void);

/* cgroup_site_is_machine() - In a container: whether the v2 tree that we see begins above our
 * cgroup, at the machine's root. Cells there would be outside of the container's limits. */
bool cgroup_site_is_machine(void);

/*
 * cgroup_site_prepare() - Make a found site ready for cgroup_create(). Called once, by the warden.
 *
 * Does nothing unless s->vacate is set. Then it moves every process of that cgroup, ourselves
 * among them, into the leaf <vacate>/caisson.self and hands memory, pids and cpu out to the
 * children. The leaf stays (we live in it), later runs that start there find it and need no
 * preparation. On success s->vacate is cleared. On failure nothing has lost a limit: processes are
 * in the cgroup or in its leaf.
 */
int cgroup_site_prepare(struct cgroup_site *s, struct err *e);

/* cgroup_plan() - Which directories cgroup_create() would make for @name; touches nothing.
 * Fills path, n_dirs, kind, dir_of; dirfds and oom_fd are set to -1. */
int cgroup_plan(const struct cgroup_site *s, const char *name, struct cgroup *ret, struct err *e);

/*
 * cgroup_create() - Make the planned directories and set limits; a limit that does not take is an
 * error. Memory is rounded down to whole pages here, so no value is left for the kernel to round
 * and c->limits is what it holds (cgroup_limits_read() proves it). A directory that exists already
 * is an error: it is never adopted.
 * On failure removes what it made; the plan stays valid.
 */
int cgroup_create(struct cgroup *c, const struct cgroup_limits *limits, struct err *e);

/* cgroup_clone_fd() - Descriptor for CLONE_INTO_CGROUP, or -1 without a unified tree. Borrowed. */
int cgroup_clone_fd(const struct cgroup *c);

/* cgroup_limits_read() - The limits as the kernel holds them now (for receipts); 0 = none. */
int cgroup_limits_read(const struct cgroup *c, struct cgroup_limits *ret, struct err *e);

/*
 * cgroup_open_files() - Open files that show something, for reading, in the kind of tree that @c
 * has. @fds[to] becomes the descriptor of the first of its rows whose file is there, or -1.
 * Return: 1u << to of those opened.
 */
struct cgroup_file {
	bool v2;
	enum cgroup_role role;
	const char *name;
	unsigned int to;
};
uint32_t cgroup_open_files(const struct cgroup *c, const struct cgroup_file *rows, size_t n,
			   int *fds, unsigned int n_fds);

/* cgroup_gauges() - Open the files that show the use of resources, for a reader without rights; -1
 * where a file is missing. Return: 1u << gauge of those opened. */
uint32_t cgroup_gauges(const struct cgroup *c, int fds[GAUGE_MAX_]);

int cgroup_usage(const struct cgroup *c, struct cgroup_usage *ret, struct err *e);

/* cgroup_oom_kills() - Consume a wake-up of oom_fd (re-arms it) and count the kills so far. */
int cgroup_oom_kills(const struct cgroup *c, uint64_t *ret_kills, struct err *e);

/*
 * How a cell's first process enters its v1 cgroups without waiting. Writing another process's pid
 * to cgroup.procs takes a lock whose writer waits for an RCU grace period: 4 to 15 ms on an idle
 * machine, more than all the rest of making a cell. The Linux kernel skips that lock for one case:
 * a single thread that moves itself, by writing "0" to `tasks`. So the parent opens the files (the
 * permission is the opener's) and the child, which is one thread, does the writing. The unified
 * tree needs none of this: clone3() makes the child inside it.
 */
struct cgroup_enter {
	int fd[CGROUP_DIRS_MAX];
	size_t n;
};

/* cgroup_enter_open() - In the parent: the descriptors to write to; none on pure v2. */
int cgroup_enter_open(const struct cgroup *c, struct cgroup_enter *ret, struct err *e);

/*
 * cgroup_join_open() - The same for a process of @uid that another process clones: a zygote's
 * kernel.
 *
 * On v1 the Linux kernel lets the holder of `tasks` move the processes that the user who opened it
 * may move: for root every process of the machine, for another user that user's own. So the files
 * are opened as @uid (caps.h), and the holder can put its own processes into this cell and no
 * others.
 *
 * On pure v2 no users are compared, so no descriptor is given away there: cgroup_move().
 */
int cgroup_join_open(const struct cgroup *c, uid_t uid, struct cgroup_enter *ret, struct err *e);

/*
 * cgroup_move() - On pure v2: move a process in, whole. It waits for the lock described above. On
 * v1 the process has moved itself, and this does nothing.
 * @pid: a child of the caller's that was not waited for, so that the number cannot be another
 *       process's
 */
int cgroup_move(const struct cgroup *c, pid_t pid, struct err *e);

/* cgroup_enter_self() - In the child, still one thread: move in. System calls only. 0 or -errno. */
int cgroup_enter_self(const struct cgroup_enter *c);

void cgroup_enter_close(struct cgroup_enter *c);

/* cgroup_close() - Close descriptors, remove nothing. */
void cgroup_close(struct cgroup *c);

/*
 * cgroup_remove_path() - Kill whatever is left in one cgroup directory and rmdir it, with retries
 * until @deadline_ms from now. Needs only the path (crash recovery). Missing directory = success.
 * Refuses a path that is not one that cgroup_plan() makes (".../caisson/<name>",
 * ".../caisson-<name>") and on a cgroup filesystem (statfs magic checked). Tries to rmdir the
 * "caisson" parent too (not empty is fine).
 */
int cgroup_remove_path(const char *path, unsigned int deadline_ms, struct err *e);

/* cgroup_stop_path() - Forbid forks in it, where the directory can. Does nothing for a path that
 * cgroup_remove_path() refuses. For use before the removal of several that belong together. */
void cgroup_stop_path(const char *path);

/*
 * cgroup_kill() - SIGKILL to every process in it, without waiting for their ends. Pid 1 of a cell
 * alone would do: all others end with it. But it has to get its turn first, among hundreds of
 * processes that fork.
 */
void cgroup_kill(const struct cgroup *c);

/*
 * cgroup_try_remove() - Remove every directory, and a "caisson" parent when it is empty. Processes
 * in a busy one are killed, and not waited for: -EBUSY, with the descriptors still open, means to
 * try again. On success they are closed. Works on a plan that was never created, and again after
 * success.
 */
int cgroup_try_remove(struct cgroup *c, struct err *e);

/*
 * cgroup_remove() - The same until it is done, at most for @deadline_ms; closes the descriptors. On
 * failure the directories that are left can be removed later by path.
 */
int cgroup_remove(struct cgroup *c, unsigned int deadline_ms, struct err *e);

#endif

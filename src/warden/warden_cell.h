/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_cell.h - Cells, zygotes and their remains as the warden holds them.
 *
 * Life of a cell: cell_begin() -> making -> cell_made() -> running -> (ended, by itself or by
 * cell_kill()) -> cell_reaped() -> cell_remove(). None of these waits; what has to be waited for is
 * a descriptor that the loop watches: sync while it is being made, pidfd until pid 1 is dead. An
 * ended cell stays until it is destroyed, so that its client can always learn how it ended.
 */
#ifndef CAISSON_WARDEN_WARDEN_CELL_H
#define CAISSON_WARDEN_WARDEN_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cgroup.h"
#include "cell/journal.h"
#include "cell/plan.h"
#include "wire/init.h"
#include "wire/warden.h"

struct remains_list;

#define CELL_REAP_MS 10000
#define CELL_STUCK "the cell did not die within 10 s; it is tried again, and stays journalled"

/* Shared by all cells of one warden. */
struct cell_host {
	int records; /* the journal directory */
	char init_path[4096];
	int init_fd; /* stage_open_init() of it, or -1 */
	struct cgroup_site site;
	int site_code; /* 0, or why there is no site: reported when a cell needs one */
	char site_msg[504];
};

struct cell {
	uint32_t handle; /* 0 while it is being made, and once its end was asked for */
	uint32_t index;  /* in the warden's table */
	uint32_t serial; /* unlike the index never used twice: tells old events from new */
	int epoll;       /* where its descriptors are watched */
	struct launched l;
	struct plan *plan; /* while it is being made */
	struct cell_spec spec;
	struct init_config config; /* what init was told: a zygote's kernel is told the same */
	struct machine_cpus cpus;
	struct record record;
	bool has_cgroup;
	struct cgroup cgroup;
	uint64_t created_ns;
	uint64_t killed_ns; /* when pid 1 was killed first; 0 = not yet */
	uint64_t check_ns;  /* when to look at its limits and deadlines next; 0 = never */
	uint64_t reap_ns;   /* once its end was asked for: when it is given up */
	enum cell_end end;
	uint64_t memory_files; /* as it was when memory ran out: the files die with the cell */
	int init_status;
	bool counted;            /* the last numbers were read: its cgroup may be half gone */
	struct cell_usage final; /* they are these */
	bool claimed;            /* a client that came after the one it was made for wants it */
	uint32_t zygote;         /* whose kernels may enter, 0 = nobody's */
	/* The kernel that a zygote forked into it. */
	enum kernel_state kernel;
	pid_t kernel_pid;
	int kernel_pidfd;
	int kernel_status;
	unsigned int kernel_tries; /* it is dead, and could not be collected yet */
	/* Requests that are answered when something has happened; 0 = none. */
	uint64_t create_seq, destroy_seq, kernel_seq;
	uint64_t kernel_due_ns; /* by when the zygote has to have answered kernel_seq */
	int lease_fd;           /* its image is in use; or -1 */
	bool want_gauges, want_live;
	uid_t agent; /* the host's number of the cell's user; 0 when that is the warden's own */
	/* The client's ends of the kernel's line, from the request to the answer; otherwise -1. */
	int hello_fd, pipes[KERNEL_PIPES];
};

/*
 * cell_begin() - Journal, cgroup, clone; c->l.sync_fd tells when it is over.
 * @owner: the zygote's user, 0 = none
 */
int cell_begin(struct cell_host *h, const struct cell_spec *spec, uid_t owner, const int *fds,
	       size_t n_fds, struct cell *ret, struct err *e);

/* cell_made() - Sync is readable. On failure nothing of the cell is left. */
int cell_made(struct cell *c, struct err *e);

/* cell_kill() - Kill all of it, and remember why. Idempotent, does not wait. */
void cell_kill(struct cell *c, enum cell_end why);

/* cell_reaped() - Pid 1 is gone (its pidfd is readable): collect it. */
void cell_reaped(struct cell *c);

/*
 * cell_unwatch() - Close a descriptor that epoll watches.
 *
 * Closing alone is not enough: epoll watches the open file, and that lives on in every process that
 * has a copy (a child before its exec, the client), so the event of a closed descriptor would come
 * for ever.
 */
int cell_unwatch(int epoll, int fd);

/* cell_kernel_reaped() - The same for the kernel. -EAGAIN: it lives. */
int cell_kernel_reaped(struct cell *c);

/* cell_line_init() - Set the descriptors of the kernel's line to -1. */
void cell_line_init(struct cell *c);

/* cell_line_close() - Close the client's ends of the kernel's line, after they were sent or when
 * they will not be. Idempotent. */
void cell_line_close(struct cell *c);

/* cell_memory_event() - The out-of-memory descriptor fired, which only a cell of CELL_OOM_CELL has:
 * it dies as one. */
void cell_memory_event(struct cell *c);

/* cell_check() - Enforce cpu time and wall time; and kill all processes of a cell whose pid 1 was
 * killed and still lives. Returns when to call it next (ns); 0: never. */
uint64_t cell_check(struct cell *c, uint64_t now_ns);

void cell_usage(const struct cell *c, struct cell_usage *ret);

/*
 * cell_remove() - Pid 1 is reaped: read the last numbers, remove the cgroup and the record. After
 * success nothing of the cell exists. Does not wait: -EAGAIN means that a process in its cgroup is
 * still dying (a zygote can put processes there that are not in its pid namespace); call it again,
 * or give the cell up. On any other failure the journal record stays, and the next start tries
 * again.
 */
int cell_remove(struct cell *c, struct cell_usage *ret, struct err *e);

/*
 * cell_abandon() - For a cell that does not die: its cgroup and record go to @remains, everything
 * else is closed.
 */
void cell_abandon(struct cell *c, struct remains_list *remains);

/* cell_destroy() - Kill, wait (bounded), cell_remove(). Also for a cell that was never made. */
void cell_destroy(struct cell *c, struct remains_list *remains);

/* cell_cgroup() - A journalled cgroup with these limits, for @record's slot. */
int cell_cgroup(struct cell_host *h, struct record *record, const struct cell_limits *limits,
		struct cgroup *ret, struct err *e);

/* ---- zygotes -------------------------------------------------------------------------------- */

struct zygote {
	uint32_t handle;
	uint32_t index, serial;
	int epoll;
	struct launched l; /* channel_fd: our end of its socket */
	struct plan *plan; /* while it is being made */
	struct cell_spec spec;
	struct record record;
	bool has_cgroup;
	struct cgroup cgroup;
	uid_t uid;            /* its user, who owns the user namespaces of its cells */
	uint64_t deadline_ns; /* by when it has to be made */
	uint64_t create_seq;
};

/* zygote_begin() - Journal, cgroup, clone; z->l.sync_fd tells when it is over. */
int zygote_begin(struct cell_host *h, const struct cell_spec *spec, struct zygote *ret,
		 struct err *e);

/* zygote_made() - Sync is readable. On failure nothing is left. */
int zygote_made(struct zygote *z, struct err *e);

/*
 * zygote_fork() - Ask for a kernel in @c. The answer comes on z->l.channel_fd, with c->handle as
 * its number. The client's ends of the kernel's pipes and of its hello socket are in @c.
 */
int zygote_fork(struct zygote *z, struct cell *c, struct err *e);

/*
 * zygote_answer() - Read one answer.
 * Return: 1 with @ret_handle, @ret_code and @ret_pid, 0 when it is gone, -EAGAIN for nothing yet.
 */
int zygote_answer(struct zygote *z, uint32_t *ret_handle, int *ret_code, pid_t *ret_pid);

/*
 * zygote_adopt() - @pid is the process that a zygote reports as its kernel in @c. Check it, hold
 * it, put it into the cell's cgroups where it could not do so itself, and let it continue.
 */
int zygote_adopt(struct cell *c, pid_t pid, struct err *e);

/*
 * zygote_end() - Kill it and every process that it forked that is not in a cell. Does not wait: its
 * cgroup and record go to @remains. Return: the pid to wait for, or 0.
 */
pid_t zygote_end(struct zygote *z, struct remains_list *remains);

/* ---- remains -------------------------------------------------------------------------------- */

#define REMAINS_MAX 64u

struct remains;

struct remains_list {
	struct remains *first;
	size_t n;
};

/*
 * remains_add() - Take over @record, @cgroup (NULL: none), and @lease_fd (-1: none), which
 * is held as long as anything may still run. Tried at once. Without room for them, or memory, the
 * record stays for the next warden.
 */
void remains_add(struct remains_list *l, struct record *record, struct cgroup *cgroup,
		 int lease_fd);

/* remains_full() - Too many do not die: make nothing that may add to them. */
bool remains_full(const struct remains_list *l);

/* remains_check() - Try those whose time has come. Returns when to call it next (ns); 0: never. */
uint64_t remains_check(struct remains_list *l, uint64_t now_ns);

/* remains_end() - The last tries, for at most @deadline_ms; the journal keeps the others. */
void remains_end(struct remains_list *l, unsigned int deadline_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - Everything a cell will be, computed before anything is cloned.
 *
 * Between clone and exec only system calls run (stage.h): no allocation, no formatting, no lookups
 * that could be done earlier. So whatever needs thought happens here, in the warden, and the result
 * is a flat struct that the child only reads.
 */
#ifndef CAISSON_CELL_PLAN_H
#define CAISSON_CELL_PLAN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/cgroup.h"
#include "cell/idmap.h"
#include "cell/machine.h"
#include "wire/init.h"
#include "wire/warden.h"

struct cgroup;
struct err;
struct plan;

#define PLAN_TOP_MAX 8
#define PLAN_PTYS "32" /* terminals of one cell; kernel.pty.max is the machine's */

/* One of /bin /sbin /lib ...: a link to recreate, or on unmerged systems a directory to bind. */
struct plan_top {
	const char *name;
	char link[64]; /* empty: a real directory, bound read-only */
};

struct plan_mount {
	int fd;    /* privileged: a detached, prepared mount; otherwise -1 */
	dev_t dev; /* unprivileged: what must be found again at src */
	ino_t ino;
	bool is_dir;
	bool rw;
	bool apart;      /* to be shown through an overlay: see place_mount.c */
	uint32_t flags;  /* enum cell_mount_flag */
	char *src;       /* unprivileged: where the client's descriptor points; the plan's own */
	const char *dst; /* without the leading slash */
};

struct plan {
	const struct cell_spec *spec;
	struct idmap ids;
	char inotify_instances[24], inotify_watches[24]; /* the cell's share, see stage.c */
	struct init_config config;                       /* what init will be told */
	struct machine_plan machine;
	char init_path[PATH_MAX];
	int init_fd; /* privileged: stage_open_init() of it, borrowed; -1: the child opens it */
	char layer_size[32], layer_inodes[32];
	size_t n_top;
	struct plan_top top[PLAN_TOP_MAX];
	uint32_t cover;  /* host image: see root_host.c */
	int nodes_fd;    /* privileged: a detached mount, see root.c; otherwise -1 */
	int lease_fd;    /* what came with layers, to be held as long as the cell lives; or -1 */
	size_t n_layers; /* of the image, the uppermost first; 0 for the host image */
	struct plan_mount layers[CELL_LAYERS_MAX];
	char lowers[3 * CELL_LAYERS_MAX]; /* names for them, as overlayfs takes them: "aa:ab:ac" */
	size_t n_mounts;
	struct plan_mount mounts[CELL_MOUNTS_MAX];
	struct cgroup_enter enter; /* the v1 cgroups the child moves itself into; set by launch() */
	int channel_fd;            /* init's end; a zygote's end of its warden socket */
	int sync_fd;               /* the child's end; see launch.c */
	/* The user who makes, owns and is charged for the cell's user namespace (stage.c): the
	 * cell's first id, or a zygote's user; without privilege 0, which stands for the warden. */
	uid_t owner;
	bool zygote;               /* the child becomes a zygote: see stage_zygote.c */
	int status_fd;             /* a zygote's end of its status socket */
	char guest_path[PATH_MAX]; /* zygote: its path to the directory of kernel.pyz, enter.so */
	char guest_script[PATH_MAX + 16]; /* zygote: kernel.pyz in it */
};

/*
 * plan_make() - Compute the plan of one cell.
 * @spec: checked by spec_check(); must outlive the plan
 * @fds:  the client's descriptors: the image's (enum cell_image), then one per mount that is not a
 *        part. Borrowed.
 *
 * With privilege this clones and restricts the mounts; plan_free() drops them. Large: keep static
 * or on the heap. On failure nothing is held.
 */
int plan_make(const struct cell_spec *spec, uint32_t slot, const char *init_path, const int *fds,
	      size_t n_fds, struct plan *ret, struct err *e);

void plan_free(struct plan *p);
/* plan_drop() - The same for a plan on the heap: frees it and sets *@p to NULL, which it may be. */
void plan_drop(struct plan **p);

/* ---- the parent's half of making it: launch.c ----------------------------------------------- */

struct launched {
	pid_t pid;      /* init, as the host counts; a child of the caller, to be waited for */
	int pidfd;      /* the same, safe to signal */
	int channel_fd; /* the client's end of init's channel; INIT_CONFIG is already on its way. A
			 * zygote's: the warden's end of its socket */
	int sync_fd;    /* readable when the child has become what it shall be, or failed */
	int status_fd;  /* zygote: the client's end of its status socket, otherwise -1 */
};

#define LAUNCH_DEADLINE_NS 20000000000ull

/*
 * launch_begin() - Clone what @p describes and set it going.
 * @cgroup: created, or NULL when the caller chose to go without
 *
 * Does not wait: when ret->sync_fd is readable, launch_end() tells how it went. @p must live until
 * then. On failure nothing is held.
 */
int launch_begin(struct plan *p, const struct cgroup *cgroup, struct launched *ret, struct err *e);

/*
 * launch_end() - Whether init (or the zygote) has been executed. Closes ret->sync_fd.
 * On failure the child is gone and reaped, nothing is held, and the message names the step and,
 * where known, the fix.
 */
int launch_end(const struct plan *p, struct launched *l, struct err *e);

/* launch_abort() - Kill and reap the child of a begun launch; close everything. */
void launch_abort(struct launched *l);

#endif

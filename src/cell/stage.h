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

#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>

#include "wire/gate.h"

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

/*
 * stage_open_init() - The program of init on a read-only copy of its mount, so that /proc/1/exe is
 * not writable. -1 with errno. A warden that may mount opens one for all cells: the Linux kernel
 * takes such a copy down when its last descriptor closes, and waits for all processors for that.
 */
int stage_open_init(const char *path);

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
/* stage_net_settings() - Low ports are free to all, TCP does not pace. @proc: root_proc() */
void stage_net_settings(const struct plan *p, int proc);

/* ---- root ----------------------------------------------------------------------------------- */

/*
 * The parts that the root filesystem of a cell is built of. A function that takes the plan and
 * returns nothing ends the child on failure. All but the parent's halves run between clone and
 * exec: system calls only.
 */

/* Where the gate answers at once, if there is egress; otherwise the port refuses. Resolvers that do
 * not notice a refusal (musl's) wait for a second instead of five. */
#define ROOT_RESOLV_CONF "nameserver " GATE_SELF4_TEXT "\noptions timeout:1 attempts:2\n"
/* The cell's own names; CELL_HOSTNAME is in cell/spec.h. */
#define ROOT_HOSTS "127.0.0.1 localhost " CELL_HOSTNAME "\n::1 localhost\n"

/* root_node_preload() - The text of CELL_NODE_PRELOAD. */
const char *root_node_preload(void);

/* root_proc() - root.c: a /proc of the namespaces of the cell, detached, which may be written to.
 */
int root_proc(const struct plan *p);
/* root_build() - root.c: make the root filesystem and move into it. @own_proc: root_proc(), which
 * becomes read-only and is closed. */
void root_build(const struct plan *p, int own_proc);

/*
 * root_host() - root_host.c: the tree of the host image, in the empty @root, which is attached.
 * Afterwards /usr and /etc of the old root may be covered: files that are found there by path must
 * be opened before.
 */
void root_host(const struct plan *p, int root);

/* root_put_file() - A new file below @root, 0644. 0, or -1 with errno. */
int root_put_file(int root, const char *path, const char *text);

/* cover_choose() - The parent's half of root_host(): the directories to cover, as bits. */
uint32_t cover_choose(void);
/* cover_from() - The same over an open mountinfo, for tests. */
uint32_t cover_from(int mountinfo);

/* nodes_make() - The parent's half of /dev: a detached mount with the device nodes; -1 where it is
 * not allowed. */
int nodes_make(void);

/*
 * place_mount() - place_mount.c: put mount @i of the plan, with the parts that follow it, below
 * @root.
 * @tree: the mount, detached and restricted
 * Return: 0, or -1 with errno.
 */
int place_mount(const struct plan *p, uint32_t i, int root, int tree);

/* ---- steps: mnt.c --------------------------------------------------------------------------- */

#define MNT_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

struct mnt_option {
	const char *key, *value; /* no value: a flag. The list ends with no key. */
};

/* mnt_beneath() - Open below @root; no link is followed. */
int mnt_beneath(int root, const char *path, int flags);

/* mnt_ensure_dir() - A directory below @root, made with all its missing parents. */
int mnt_ensure_dir(int root, const char *path);

/* mnt_place() - Move a detached mount onto @path below @root, which is made if missing. */
int mnt_place(int mount, int root, const char *path, bool is_dir);

/*
 * mnt_bind() - Bind what is at @from onto @to, which is made if it is missing; its parent is there.
 * One system call, where placing a restricted copy takes ten: for sources whose mount already has
 * the attributes that the bind shall have, and is private, and for targets in directories that only
 * we have written to. Both are paths for the current directory. 0, or -1 with errno.
 */
int mnt_bind(const char *from, const char *to, bool is_dir);

/*
 * mnt_over_host() - Attach a detached mount where mnt_bind() can name what is in it: over the
 * host's /dev in our own mount namespace. It goes with the host's root.
 */
#define MNT_OVER_HOST "/dev/"
int mnt_over_host(int mount);

/* mnt_restrict() - Set attributes of a tree of mounts, and make it private. */
int mnt_restrict(int mount, uint64_t attrs);

/* mnt_of_host() - A restricted private copy of what is at a path of the host. */
int mnt_of_host(const char *path, uint64_t attrs);

/* mnt_make() - A new filesystem instance. */
int mnt_make(const char *type, const struct mnt_option *options, uint64_t attrs);

/* mnt_view() - A read-only overlay of these directories ("a:b"), at least two. */
int mnt_view(const char *lower);

#endif

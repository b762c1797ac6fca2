/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h - The parts that the root file system of a cell is built of, for root.c and plan.c.
 *
 * Functions that take the plan and return nothing end the child on failure (stage.h). All of them
 * but the parent's halves run between clone and exec: system calls only.
 */
#ifndef CAISSON_CELL_ROOT_H
#define CAISSON_CELL_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>

#include "wire/gate.h"

struct plan;

/* Where the gate answers, if there is egress; otherwise it refuses at once. */
#define ROOT_RESOLV_CONF "nameserver " GATE_SELF4_TEXT "\n"

/* root_build() - root.c: make the root filesystem and move into it. */
void root_build(const struct plan *p);

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

/* mnt_restrict() - Set attributes of a tree of mounts, and make it private. */
int mnt_restrict(int mount, uint64_t attrs);

/* mnt_of_host() - A restricted private copy of what is at a path of the host. */
int mnt_of_host(const char *path, uint64_t attrs);

/* mnt_make() - A new filesystem instance. */
int mnt_make(const char *type, const struct mnt_option *options, uint64_t attrs);

/* mnt_view() - A read-only overlay of these directories ("a:b"), at least two. */
int mnt_view(const char *lower);

#endif

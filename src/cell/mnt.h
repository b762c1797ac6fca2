/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnt.h - Steps of building a root: directories and mounts below a root that may be hostile.
 *
 * For the child between clone and exec: system calls only. All return a descriptor or 0, or -1 with
 * errno. Mounts are detached until mnt_place().
 */
#ifndef CAISSON_CELL_MNT_H
#define CAISSON_CELL_MNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_mounter.h - File systems for workspaces, each in a file of its own: how a quota is the
 * kernel's business.
 *
 * A sandbox that writes into a workspace in place is held by nothing but the file system it writes
 * to. So, as root, each workspace is one: as large as its quota, with as many inodes, in a file
 * that is mounted through a loop device. To mount takes a privilege that whoever reads archives of
 * strangers must not have. The mounter has it, is the parent of the workspace store, and is told by
 * it keys and numbers over a socket; it reads nothing else, and no byte of any workspace.
 */
#ifndef CAISSON_WORKSPACE_VOLUME_MOUNTER_H
#define CAISSON_WORKSPACE_VOLUME_MOUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/workspace_store.h"

struct err;

#define VOLUME_DIR_FD 5 /* the directory of the files; none: there are no such workspaces */

enum volume_op { VOLUME_MAKE = 1, VOLUME_MOUNT, VOLUME_REMOVE };

/*
 * volume_start() - Fork: the parent is the mounter from then on and does not return, the child gets
 * the socket. Return: it, -1 when there is no VOLUME_DIR_FD; or -errno.
 */
int volume_start(struct err *e);

/* volume_ask() - In the child, by one process at a time. 0 or -errno; -EPIPE: it is gone; -ENOENT:
 * VOLUME_MOUNT of a workspace that is none of these. */
int volume_ask(int sock, enum volume_op op, const char *key, uint64_t bytes, uint64_t files);

/* volume_size() - How large a file has to be for that quota. Pure. */
uint64_t volume_size(uint64_t bytes, uint64_t files);

#endif

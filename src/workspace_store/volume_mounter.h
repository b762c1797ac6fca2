/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_mounter.h - File systems for workspaces, each in a file: so the Linux kernel enforces the
 * quota.
 *
 * Only the file system limits a sandbox that writes into a workspace in place. So, as root, each
 * workspace is a file system: as large as its quota, with as many inodes, in a file that is mounted
 * through a loop device. To mount takes a privilege that a process which reads archives of
 * strangers must not have. The mounter has it, and is the parent of the workspace store, which
 * sends it keys and numbers over a socket. It reads nothing else, and no byte of any workspace.
 */
#ifndef CAISSON_WORKSPACE_VOLUME_MOUNTER_H
#define CAISSON_WORKSPACE_VOLUME_MOUNTER_H

#include <stdint.h>

#include "wire/workspace_store.h"

struct err;

#define VOLUME_DIR_FD 5 /* the directory of the files; not open: no volumes */

enum volume_op { VOLUME_MAKE = 1, VOLUME_MOUNT, VOLUME_REMOVE };

/*
 * volume_start() - Fork: the parent is the mounter from then on and does not return, the child gets
 * the socket. Return: it, -1 when there is no VOLUME_DIR_FD; or -errno.
 */
int volume_start(struct err *e);

/* volume_ask() - In the child, by one process at a time. 0 or -errno; -EPIPE: the mounter is gone;
 * -ENOENT: VOLUME_MOUNT of a workspace that is a plain directory. */
int volume_ask(int sock, enum volume_op op, const char *key, uint64_t bytes, uint64_t files);

#endif

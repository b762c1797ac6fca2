/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfs.h - SQLite's way to the disk: two descriptors, and nothing else.
 *
 * SQLite opens files by path, makes journals and temporary files beside them, asks for locks and
 * maps memory. In the jail there are no paths. So it gets a file system with two files that are
 * open already, the database and its write-ahead log; opening any other file fails. That works
 * because of three settings that store.c makes: locking_mode EXCLUSIVE (the log's index is in
 * memory, not in a third, shared file), journal_mode WAL reached through MEMORY (no rollback
 * journal), and temp_store MEMORY. The system calls that remain: pread64, pwrite64, ftruncate,
 * fdatasync, fstat.
 *
 * Locks are no-ops here: store_lock() keeps other daemons out, store_files_open() other programs.
 */
#ifndef CAISSON_STORE_VFS_H
#define CAISSON_STORE_VFS_H

#include <sqlite3.h>

#include "store/store.h"

struct store_vfs {
	sqlite3_vfs vfs;
	char name[32];
	struct store_files files; /* borrowed */
	int last_errno;           /* of the last operation that failed */
};

/* store_vfs_add() - Register under a name of its own, v->name. 0 or -ENOMEM. */
int store_vfs_add(struct store_vfs *v, const struct store_files *f);
void store_vfs_remove(struct store_vfs *v);

#endif

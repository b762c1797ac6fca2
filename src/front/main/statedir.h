/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statedir.h - The daemon's state directory: lock it, make what is missing, check the store.
 *
 *   lock          held by the one daemon, with its pid
 *   cells/        the warden's journal (cell/journal.h)
 *   store/        state.db and state.db-wal (store/store.h); damaged ones as state.db.corrupt-TIME
 *   ledger/       the audit log; belongs to the jail's user, who makes its next file
 *   spool/        outputs over the cap
 *   caisson.sock  unless --socket says otherwise
 */
#ifndef CAISSON_FRONT_STATEDIR_H
#define CAISSON_FRONT_STATEDIR_H

#include "store/store.h"

struct err;

struct statedir {
	int lock, ledger, spool;
	struct store_files files;
};

/*
 * statedir_open() - Before the jail and the warden: make, lock and open what is in @path.
 * @lock, @pid: as for store_lock()
 *
 * A damaged store is put aside, and the log has a line about it. A child in the jail reads it.
 * Return: 0; -EBUSY when another daemon has the directory; or -errno. A daemon does not start
 * without a state directory: the message is for the person who starts it.
 */
int statedir_open(const char *path, int lock, pid_t pid, struct statedir *ret, struct err *e);

/*
 * statedir_load() - In the jail: open the store. Sandboxes that ran when the last daemon ended are
 * lost, except the @n ids in @kept; the log has their number. Return: 0 or -errno.
 */
int statedir_load(struct statedir *d, const char *const *kept, size_t n, struct store **ret,
		  struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statedir.h - The daemon's directory: who may have it, what is in it, and what of it is still
 * good.
 *
 *   lock          held by the one daemon, with its pid
 *   cells/        the warden's journal (cell/record.h)
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
 * A store that is damaged is put aside and logged. The look into it happens in a child that has
 * entered the jail. Return: 0; -EBUSY when another daemon has it; or -errno. There is no daemon
 * without a state directory: the message is for whoever starts one.
 */
int statedir_open(const char *path, int lock, pid_t pid, struct statedir *ret, struct err *e);

/*
 * statedir_load() - In the jail: open the store. What ran when the last daemon ended is lost, but
 * for the @n ids in @kept, and the log says how many those were. Return: 0 or -errno.
 */
int statedir_load(struct statedir *d, const char *const *kept, size_t n, struct store **ret,
		  struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.h - After everything is open: give up what is not needed to serve.
 */
#ifndef CAISSON_FRONT_JAIL_H
#define CAISSON_FRONT_JAIL_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;

/*
 * How a file can still be opened in the jail: one that was not there, below the ledger's directory,
 * with exactly these flags. Besides, renameat2() with RENAME_NOREPLACE works within that directory.
 */
#define JAIL_LEDGER_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC)

/* The layers that hold, for the log, /health and the receipt. */
struct jail_report {
	bool user;     /* an id of our own instead of root's */
	bool caps;     /* no capability in any set; started by root: none in the bounding set */
	bool landlock; /* only files of the ledger, no TCP connect or bind, scopes: by the ABI */
	bool seccomp;  /* the filter of policy/front.policy */
	bool no_new_privs; /* an execve could gain nothing, if there were one */
	unsigned int uid;
	unsigned int landlock_abi; /* 0 when the kernel has none */
};

/*
 * jail_identity() - Whom jail_enter() will become; as an ordinary user, who we are. 0 or -errno.
 */
int jail_identity(uid_t *ret_uid, gid_t *ret_gid, struct err *e);

/*
 * jail_enter() - Give up everything but the descriptors that are open, for ever.
 * @ledger_dir: where files may still be made, owned by jail_identity(); -1: nowhere.
 *
 * As root: become an id of our own (the user "caisson" when it exists, else 0x6ffffffe), no groups,
 * no capabilities, empty bounding set. Always: no-new-privileges, not dumpable, RLIMIT_CORE 0, an
 * empty session keyring, Landlock (no path may be opened but below @ledger_dir, no TCP connect or
 * bind where the ABI has it, scopes), the system call filter of policy/front.policy, and one that
 * ties the calls that make files to the descriptor @ledger_dir.
 *
 * A filter does not see paths, and an absolute one ignores the descriptor. So on a kernel without
 * Landlock nothing is made or renamed: both answer EACCES, and the ledger is not rotated there.
 *
 * Call it once, from the only thread, when all files are read, all listeners bound and the warden
 * runs: later nothing else can be opened, bound, connected or started. So a unix socket is not
 * unlinked at the end, and /proc is read through descriptors opened before (pread of
 * /proc/self/statm and readdir of /proc/self/fd work).
 *
 * A feature that the Linux kernel lacks is reported, and is not an error; but as root the change of
 * user must succeed. A build with sanitizers has neither filter nor Landlock and stays dumpable,
 * because the leak check at its end opens /proc, starts a thread and traces: @ret reports that.
 *
 * Return: 0 or -errno. After a failure the process is part of the way in: it must end.
 */
int jail_enter(int ledger_dir, struct jail_report *ret, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail.h - After everything is open: give up what is not needed to serve.
 */
#ifndef CAISSON_FRONT_JAIL_H
#define CAISSON_FRONT_JAIL_H

#include <stdbool.h>

struct err;

/* What holds now, for the log, /health and the receipt. */
struct jail_report {
	bool user;         /* an id of our own instead of root's */
	bool caps;         /* no capability in any set; started by root: none in the bounding set */
	bool landlock;     /* no file, no TCP connect or bind, scopes: as far as the ABI has them */
	bool seccomp;      /* the filter of policy/front.policy */
	bool no_new_privs; /* an execve could gain nothing, if there were one */
	unsigned int uid;
	unsigned int landlock_abi; /* 0 when the kernel has none */
};

/*
 * jail_enter() - Give up everything but the descriptors that are open, for ever.
 *
 * As root: become an id of our own (the user "caisson" when it exists, else 0x6ffffffe), no groups,
 * no capabilities, empty bounding set. Always: no-new-privileges, not dumpable, RLIMIT_CORE 0, an
 * empty session keyring, Landlock (no path at all may be opened, no TCP connect or bind where the
 * ABI has it, scopes), the system call filter of policy/front.policy.
 *
 * Call it once, from the only thread, when all files are read, all listeners bound and the warden
 * runs: later nothing can be opened, bound, connected or started. What comes after has to live with
 * that: a unix socket is not unlinked at the end, and /proc is read through descriptors opened
 * before (pread of /proc/self/statm and readdir of /proc/self/fd work).
 *
 * What the kernel lacks is reported, not an error, except that as root the change of user must
 * succeed. A build with sanitizers has neither filter nor Landlock and stays dumpable, because the
 * leak check at its end opens /proc, starts a thread and traces: @ret says so.
 *
 * Return: 0 or -errno. After a failure the process is part of the way in: it must end.
 */
int jail_enter(struct jail_report *ret, struct err *e);

#endif

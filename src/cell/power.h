/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power.h - How a service of the daemon gives up what it does not need.
 *
 * The front, the gate, and those who keep packages, workspaces, images and buckets each end in a
 * jail of their own: another user, another set of files, another filter. What is the same for all
 * of them is here, in the order in which it has to happen: power_root() for those who keep files,
 * power_leave(), power_settle(), power_confine(). There is no way back out, so whoever fails in
 * between has to exit.
 *
 * All of it but the user acts on the calling thread alone: there must be no other.
 */
#ifndef CAISSON_CELL_POWER_H
#define CAISSON_CELL_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct landlock_dir;
struct sock_filter;

/* The runtime of a sanitizer opens files and makes calls that nobody else does: such a build has
 * neither of the two last layers. */
#ifdef CAISSON_SANITIZED
#define POWER_SANITIZED 1
#else
#define POWER_SANITIZED 0
#endif

/* Whom to become. */
struct power_user {
	const char *name; /* for messages; NULL: has none */
	uid_t uid;        /* 0: nobody, who is not root stays who he is */
	gid_t gid;
};

/* power_user() - For root the user @name, or @id where there is none; nobody for others. */
int power_user(const char *name, uid_t id, struct power_user *ret, struct err *e);

/*
 * power_root() - Make the directory @dir the root of all paths, before power_leave(). Landlock lets
 * everybody hold a directory (O_PATH), and these services hand directories to cells: so no path may
 * lead to one that is not below @dir. Who is not root does it in a user namespace of its own, with
 * the same ids.
 */
int power_root(int dir, struct err *e);

/* power_leave() - Become that user, without groups; no capability is left, and no way back. */
int power_leave(const struct power_user *u, struct err *e);

/* power_settle() - No core file, no privileges by execve, nothing for a debugger of the same user,
 * no keys that we came with. */
int power_settle(struct err *e);

/* power_has_filters() - Whether this kernel has filters of system calls. */
bool power_has_filters(void);

/* power_confine() - No files, signals and ports but what @dirs say (as far as this kernel has
 * Landlock), and the calls of @filter. */
int power_confine(const struct landlock_dir *dirs, size_t n, const struct sock_filter *filter,
		  size_t len, struct err *e);

#endif

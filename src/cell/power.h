/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power.h - How a service of the daemon gives up the rights that it does not need.
 *
 * The front, the gate, and the programs that keep packages, workspaces, images and buckets each end
 * in a jail of their own: another user, another set of files, another filter. The steps that are
 * the same for all of them are here, in the order in which they have to happen: power_root() for
 * those that keep files, power_leave(), power_settle(), power_confine(). There is no way back, so a
 * program in which a step fails has to exit.
 *
 * All steps but the change of user act on the calling thread alone: there must be no other.
 */
#ifndef CAISSON_CELL_POWER_H
#define CAISSON_CELL_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct landlock_dir;
struct sock_filter;

/* The runtime of a sanitizer opens files and makes calls that no other program does: such a build
 * has neither of the two last layers. */
#ifdef CAISSON_SANITIZED
#define POWER_SANITIZED 1
#else
#define POWER_SANITIZED 0
#endif

/* The user to become. */
struct power_user {
	const char *name; /* for messages; NULL: has no name */
	uid_t uid;        /* 0: stay the user who started the program, which was not root */
	gid_t gid;
};

/* power_user() - For root the user @name, or @id where that user is missing; others: uid 0. */
int power_user(const char *name, uid_t id, struct power_user *ret, struct err *e);

/*
 * power_root() - Make the directory @dir the root of all paths, before power_leave(). Landlock does
 * not forbid to hold a directory (O_PATH), and these services hand directories to cells: so no path
 * may lead to one that is not below @dir. Without root this takes a user namespace of its own, with
 * the same ids.
 */
int power_root(int dir, struct err *e);

/* power_leave() - Become that user, without groups; no capability is left, and no way back. */
int power_leave(const struct power_user *u, struct err *e);

/* power_settle() - No core file, no new privileges, no debugger, no inherited keys. */
int power_settle(struct err *e);

/* power_has_filters() - Whether this kernel has filters of system calls. */
bool power_has_filters(void);

/* power_confine() - Landlock: no files but in @dirs, no signals and no ports (as far as this Linux
 * kernel has it); and no system calls but those of @filter. */
int power_confine(const struct landlock_dir *dirs, size_t n, const struct sock_filter *filter,
		  size_t len, struct err *e);

/*
 * power_confine_client() - The same for a client of servers: TCP sockets may be connected, and the
 * files of the resolver and of the TLS library may be read.
 * @own: a directory of its own, or NULL
 */
int power_confine_client(const struct landlock_dir *own, const struct sock_filter *filter,
			 size_t len, struct err *e);

#endif

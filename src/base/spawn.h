/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - Start a program with exactly the descriptors, environment and signals of a table.
 *
 * A child that changes its user does so itself (cell/power.h), after the last step that needs the
 * starter's rights: the user and the group are arguments of such a program.
 */
#ifndef CAISSON_BASE_SPAWN_H
#define CAISSON_BASE_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SPAWN_FDS_MAX 4

struct err;

struct spawn {
	const char *path;  /* NULL: argv[0] is looked for in PATH */
	char *const *argv; /* spawn_program() writes to no string */
	char *const *envp; /* NULL: an empty environment */
	/* Where descriptors go: numbers @to differ; one with a negative @from is skipped. */
	struct spawn_fd {
		int from, to;
	} fds[SPAWN_FDS_MAX];
	size_t n_fds;
	bool no_input, no_output;  /* /dev/null is descriptor 0, or 1 */
	bool keep_others;          /* also descriptors that are neither standard nor in @fds */
	bool own_group;            /* the terminal's signals do not reach it */
	const sigset_t *mask;      /* of blocked signals; NULL: none is blocked */
	const sigset_t *unignored; /* signals that get their default action; NULL: none */
};

/*
 * spawn_program() - Start it. The descriptors in @fds stay the caller's; the child's copies are not
 * close-on-exec, and every descriptor above 2 that is not among them is closed there.
 * @ret_pid: may be NULL.
 * Return: 0, or -errno with "start PATH: ..." when anything could not be set up; no child is left.
 */
int spawn_program(const struct spawn *s, pid_t *ret_pid, struct err *e);

/*
 * spawn_pick_env() - The variables of @env that a child may have, in @ret, ended by NULL.
 * @names: each with its '='; ended by NULL. @size: of @ret, in pointers.
 */
void spawn_pick_env(char *const *env, const char *const *names, char **ret, size_t size);

#endif

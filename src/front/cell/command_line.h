/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_line.h - The program of a request: arguments, environment, directory. No shell interprets
 * it.
 *
 * The environment is put together from the cell, the image, installed packages, the sandbox and the
 * request, in this order: the last value of a name counts.
 */
#ifndef CAISSON_FRONT_COMMAND_LINE_H
#define CAISSON_FRONT_COMMAND_LINE_H

#include <jansson.h>
#include <stdbool.h>

struct refusal;

#define COMMAND_ENV_MAX 1024 /* members of `env` in a request */
#define COMMAND_ARGS_MAX 4096
#define COMMAND_CWD_MAX 4095 /* characters */

struct command_line {
	char **argv, **envp; /* NULL-terminated; owned, as are their strings */
	char *cwd;           /* absolute */
	const char *other;   /* static: the program to try if argv[0] does not exist, or NULL */
};

/* The parts of a command line. Members that are NULL are absent. */
struct command_words {
	const char *program;
	const char *other;       /* static: to try if program does not exist; or NULL */
	const json_t *args;      /* array of strings */
	const char *const *tail; /* NULL-terminated arguments, instead of @args */
	const json_t *image_env; /* objects of strings, as the next three */
	const json_t *packages_env;
	const json_t *sandbox_env, *env;
	const char *cwd; /* relative: below the working directory of cells */
	bool terminal;   /* the environment gets a TERM */
	bool fetcher;    /* it has no tools of the daemon's (cell/spec.h) */
};

/*
 * command_line_make() - 0, or -1 with @ret_why: an invalid name in the environment, a path that is
 * too long, more than pid 1 takes, or no memory. The caller calls command_line_free() in either
 * case.
 */
int command_line_make(const struct command_words *w, struct command_line *ret,
		      struct refusal *ret_why);
void command_line_free(struct command_line *l); /* idempotent, also on a zeroed struct */

/* command_env_name() - Whether a variable may have this name. Pure. */
bool command_env_name(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.h - The verbs that the command runs itself; becoming another program, and the first work
 * of every program that becomes the daemon. */
#ifndef CAISSON_CLI_PREPARE_H
#define CAISSON_CLI_PREPARE_H

struct err;

/*
 * prepare_daemon() - Change @argv and the environment into those of the daemon: secrets are moved
 * to inherited descriptors, and the package indexes are named (cli/package_index.h). Right before
 * execve(). Return: 0, or a negative errno: an option or variable is wrong.
 */
int prepare_daemon(char **argv, struct err *e);

/* become() - Execute a program of ours. Returns only when that failed, an exit code. */
int become(const char *program, char **argv);

/* One function per verb. argv[0] is the verb; the return value is the exit code. */
int verb_run(int argc, char **argv);
int verb_exec(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_serve(int argc, char **argv);

#endif

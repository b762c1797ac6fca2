/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.h - The first work of every program that becomes the daemon: secrets out of sight,
 * package indexes found. */
#ifndef CAISSON_CLI_PREPARE_H
#define CAISSON_CLI_PREPARE_H

struct err;

/*
 * prepare_daemon() - Change @argv and the environment into those of the daemon: secrets are in
 * descriptors that are inherited, and the package indexes are named (cli/index.h). Right before
 * execve(). Return: 0, or a negative errno: an option or variable is wrong.
 */
int prepare_daemon(char **argv, struct err *e);

#endif

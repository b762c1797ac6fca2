/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervisor.h - Whoever starts gates: the first process of caisson-gate, with the rights of
 * whoever started the daemon.
 */
#ifndef CAISSON_GATE_SUPERVISOR_H
#define CAISSON_GATE_SUPERVISOR_H

#include "vault/source.h"

/* supervisor_sources() - Takes --secrets-file=, --secrets-env= and --secrets-command= out of @argv.
 */
struct sources supervisor_sources(char **argv);

/* supervisor_run() - Until the front is gone. @argv: of the gates. Return: an exit status. */
int supervisor_run(char **argv, char **env, const struct sources *from);

#endif

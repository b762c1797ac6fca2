/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minder.h - Whoever starts gates: the first process of caisson-gate, with the rights of whoever started the daemon.
 */
#ifndef CAISSON_GATE_MINDER_H
#define CAISSON_GATE_MINDER_H

#include "vault/source.h"

/* minder_sources() - Takes "secrets-file=", "secrets-env=" and "secrets-command=" out of @argv, in place. */
struct sources minder_sources(char **argv);

/* minder_run() - Until the front is gone. @argv: of the gates. Return: an exit status. */
int minder_run(char **argv, char **env, const struct sources *from);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - One function per verb. argv[0] is the verb; the return value is the exit code. */
#ifndef CAISSON_CLI_VERBS_H
#define CAISSON_CLI_VERBS_H

#include "client/fail.h"

int verb_run(int argc, char **argv);
int verb_exec(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_serve(int argc, char **argv);

#endif

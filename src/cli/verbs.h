/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - One function per verb. argv[0] is the verb; the return value is the exit code. */
#ifndef CAISSON_CLI_VERBS_H
#define CAISSON_CLI_VERBS_H

#include "base/err.h"

/* caisson itself failed, or was used wrongly; the program never ran. */
#define EXIT_CAISSON 125

int verb_run(int argc, char **argv);
int verb_exec(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_serve(int argc, char **argv);

/* verb_fail() - The edge: say it once, as a line or as a JSON object. Returns @exit_code. */
int verb_fail(const struct err *e, int json, int exit_code);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* fail.h - The edge of a command: an error, said once. */
#ifndef CAISSON_CLIENT_FAIL_H
#define CAISSON_CLIENT_FAIL_H

#include "base/err.h"

/* caisson itself failed, or was used wrongly; the program never ran. */
#define EXIT_CAISSON 125

/* verb_fail() - The edge: say it once, as a line or as a JSON object. Returns @exit_code. */
int verb_fail(const struct err *e, int json, int exit_code);

#endif

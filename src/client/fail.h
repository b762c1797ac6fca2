/* SPDX-License-Identifier: Apache-2.0 */
/* fail.h - How a command reports that it failed: once, as a line or as a JSON object. */
#ifndef CAISSON_CLIENT_FAIL_H
#define CAISSON_CLIENT_FAIL_H

#include "base/err.h"

/* caisson itself failed, or was used wrongly; the program never ran. */
#define EXIT_CAISSON 125

struct failure {
	const char *code, *message;
	const char *hint;                        /* NULL or empty: none */
	unsigned int http_status, retry_after_s; /* 0: not written */
};

/* fail_json() - {"status":"failed","exit_code":N,"error":{...}} on standard output. */
void fail_json(const struct failure *f, int exit_code);

/* fail_code() - The name of the error, as in "EINVAL"; static. */
const char *fail_code(const struct err *e);

/* verb_fail() - Report @e. Return: @exit_code. */
int verb_fail(const struct err *e, int json, int exit_code);

#endif

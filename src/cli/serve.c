/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - The verb `serve`: become caisson-front.
 *
 * The daemon is a program of its own, because it needs libraries (HTTP, TLS, JSON) that the static
 * command does not. Its options are its own too (src/front/config.c), also for --help.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/verbs.h"
#include "client/program.h"

int verb_serve(int argc, char **argv)
{
	char path[PATH_MAX];
	struct err e = { 0 };

	(void)argc;
	if (program_find("caisson-front", path, sizeof(path), &e) == 0) {
		(void)execv(path, argv);
		(void)err_set(&e, -errno, "execute %s", path);
	}
	return verb_fail(&e, 0, EXIT_CAISSON);
}

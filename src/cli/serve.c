/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - Verbs that are programs of their own: `serve` becomes caisson-keeper, those that ask a
 * daemon or read what it left become caisson-remote.
 *
 * They need libraries (HTTP, TLS, JSON) that the static command does not, and that would make
 * `caisson run` start later. Their options are their own too, also for --help
 * (src/front/support/config.c, src/remote/).
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/prepare.h"
#include "cli/verbs.h"
#include "client/program.h"

static int become(const char *program, char **argv)
{
	char path[PATH_MAX];
	struct err e = { 0 };

	if (program_find(program, path, sizeof(path), &e) == 0) {
		(void)execv(path, argv);
		(void)err_set(&e, -errno, "execute %s", path);
	}
	return verb_fail(&e, 0, EXIT_CAISSON);
}

int verb_serve(int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	if (prepare_daemon(argv, &e) < 0)
		return verb_fail(&e, 0, EXIT_CAISSON);
	return become("caisson-keeper", argv);
}

/* The daemon's own program judges a policy, so that there is one judge. */
int verb_policy(int argc, char **argv)
{
	(void)argc;
	return become("caisson-front", argv);
}

/* Which of them it is, argv[0] says. */
int verb_remote(int argc, char **argv)
{
	(void)argc;
	return become("caisson-remote", argv);
}

int verb_image(int argc, char **argv)
{
	(void)argc;
	return become("caisson-image", argv);
}

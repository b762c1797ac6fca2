/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c - `caisson serve` up to the moment when it becomes the daemon.
 *
 * The environment and the arguments of a process can be read for as long as it lives, and the
 * daemon's processes inherit them. So secrets that came in ours, and credentials of package
 * indexes, are moved to memory that only the holders of its descriptor can read.
 */
#include "cli/prepare.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/options.h"
#include "cell/container.h"
#include "cli/package_index.h"
#include "client/fail.h"
#include "client/program.h"
#include "vault/source.h"

/* Whether the front will use buckets: only then the keys in the environment are for it. */
static bool wants_buckets(char **argv)
{
	return options_peek(argv, environ, "--s3-bucket") ||
	       options_peek(argv, environ, "--workspace-bucket") ||
	       options_lookup(environ, "COREASON_SANDBOX_S3_BUCKET");
}

/* The variable @name has the number of the descriptor @fd. 0, or a negative errno. */
static int put_number(const char *name, int fd, struct err *e)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", fd);
	if (fd >= 0 ? setenv(name, number, 1) : unsetenv(name))
		return err_set(e, -errno, "hand secrets over");
	return 0;
}

/* With these nothing is served, whatever the other options and the environment hold. */
static bool wants_help(char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0 ||
		    strcmp(*argv, "--version") == 0)
			return true;
	return false;
}

/* A wrong prefix is left to the front, which refuses it. */
int prepare_daemon(char **argv, struct err *e)
{
	const char *prefix = options_peek(argv, environ, "--secrets-env");
	_secret_ struct buf lines = BUF_INIT(1u << 16);

	if (prefix && (!*prefix || source_prefix_problem(prefix)))
		prefix = NULL;
	if (!wants_help(argv) &&
	    (container_enter(e) < 0 || container_check(e) < 0 || index_settle(argv, &lines, e) < 0))
		return e->code;
	int fd = source_hide(prefix, environ, buf_str(&lines), e);
	int keys = !e->code && wants_buckets(argv) ? source_hide_s3(environ, e) : -1;

	if (e->code || put_number(SOURCE_FD_ENV, fd, e) < 0 ||
	    put_number(SOURCE_FD_S3, keys, e) < 0)
		return e->code;
	return 0;
}

int become(const char *program, char **argv)
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

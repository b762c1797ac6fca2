/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c - See prepare.h.
 *
 * The environment and the arguments of a process can be read for as long as it lives, and the
 * daemon's processes inherit them. So secrets that came in ours, and credentials of package
 * indexes, go on in memory that only those who are handed it can read.
 */
#include "cli/prepare.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/options.h"
#include "cli/index.h"
#include "vault/hide.h"
#include "vault/source.h"

/* Whether the front will use buckets: only then the keys in the environment are meant for it. */
static bool wants_buckets(char **argv)
{
	return options_peek(argv, environ, "--s3-bucket") ||
	       options_peek(argv, environ, "--workspace-bucket") ||
	       options_lookup(environ, "COREASON_SANDBOX_S3_BUCKET");
}

/* What is in @fd is for whoever is told its number. 0, or -1 with a message. */
static int tell(const char *name, int fd, struct err *e)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", fd);
	if (fd >= 0 ? setenv(name, number, 1) : unsetenv(name))
		return err_set(e, -errno, "hand secrets over");
	return 0;
}

/* Then nothing is served, whatever the other options and the environment hold. */
static bool wants_help(char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0 ||
		    strcmp(*argv, "--version") == 0)
			return true;
	return false;
}

/* A prefix that is wrong is the front's to refuse. */
int prepare_daemon(char **argv, struct err *e)
{
	const char *prefix = options_peek(argv, environ, "--secrets-env");
	_buf_ struct buf lines = BUF_INIT(1u << 16);

	if (prefix && (!*prefix || source_prefix_problem(prefix)))
		prefix = NULL;
	if (!wants_help(argv) && index_settle(argv, &lines, e) < 0)
		return e->code;
	int fd = source_hide(prefix, environ, buf_str(&lines), e);
	int keys = !e->code && wants_buckets(argv) ? hide_s3_keys(environ, e) : -1;

	if (lines.data)
		explicit_bzero(lines.data, lines.len);
	if (e->code || tell(SOURCE_FD_ENV, fd, e) < 0 || tell(HIDE_FD_S3, keys, e) < 0)
		return e->code;
	return 0;
}

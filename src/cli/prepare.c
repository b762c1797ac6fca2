/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c - See prepare.h.
 *
 * The environment and the arguments of a process can be read for as long as it lives, and the daemon's processes inherit
 * them. So secrets that came in ours, and credentials of package indexes, go on in memory that only those who are handed
 * it can read.
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
#include "base/fd.h"
#include "cli/index.h"
#include "vault/hide.h"
#include "vault/source.h"

/* What --secrets-env says, as the front will read it. NULL: nothing. */
static const char *secrets_prefix(char **argv)
{
	static const char flag[] = "--secrets-env";
	const char *v = getenv("CAISSON_SECRETS_ENV");

	for (char **at = argv; *at; at++) {
		if (strcmp(*at, flag) == 0 && at[1])
			v = *++at;
		else if (strncmp(*at, flag, sizeof(flag) - 1) == 0 &&
			 (*at)[sizeof(flag) - 1] == '=')
			v = *at + sizeof(flag);
	}
	return v && *v ? v : NULL;
}

/* Whether the front will be asked for buckets: only then the keys in the environment are meant for it. */
static bool wants_buckets(char **argv)
{
	static const char *const flags[] = { "--s3-bucket", "--workspace-bucket" };
	static const char *const names[] = { "CAISSON_S3_BUCKET", "CAISSON_WORKSPACE_BUCKET",
					     "COREASON_SANDBOX_S3_BUCKET" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (getenv(names[i]))
			return true;
	for (; *argv; argv++)
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			if (strncmp(*argv, flags[i], strlen(flags[i])) == 0)
				return true;
	return false;
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
	const char *prefix = secrets_prefix(argv);
	_buf_ struct buf lines = BUF_INIT(1u << 16);

	if (prefix && source_prefix_problem(prefix))
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.c - `caisson audit ls|verify`: the ledger of a daemon, read from its state directory.
 *
 * No daemon has to run, and none is asked: whoever may read the files can check them.
 */
#include "remote/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/state.h"
#include "remote/args.h"
#include "remote/verbs.h"

enum { LS = 1, VERIFY = 2 };
#define AT(member) offsetof(struct audit_options, member)

static const struct args_row rows[] = {
	{ "--state", "DIR", ARGS_TEXT, LS | VERIFY, AT(state),
	  "the daemon's state directory (default as for serve)" },
	{ "--sandbox", "NAME", ARGS_TEXT, LS, AT(sandbox), "only events of this sandbox" },
	{ "--owner", "OWNER", ARGS_TEXT, LS, AT(owner), "only events of this owner" },
	{ "--event", "EVENT", ARGS_TEXT, LS, AT(event), "only this event" },
	{ "--since", "TIME", ARGS_TEXT, LS, AT(since),
	  "only from then on: 2026-11-16, 2026-11-16T03:25:16Z, or 90s, 30m, 2h ago" },
	{ "--tail", "N", ARGS_COUNT, LS, AT(tail), "only the last N (at most 100000) of these" },
	{ "--head", "SEQ:HASH", ARGS_TEXT, VERIFY, AT(head),
	  "this line, noted earlier, must be there too" },
	{ "--from", "SEQ", ARGS_COUNT, VERIFY, AT(from),
	  "the first line that must be there (1), when older files were archived" },
	{ "--json", NULL, ARGS_FLAG, LS | VERIFY, AT(json), "lines, or the verdict, as JSON" },
};

static int help(FILE *out)
{
	(void)fprintf(out, "The audit log of a daemon: who ran what, when, with which outcome.\n\n"
			   "caisson audit ls [OPTIONS]       show it\n");
	args_usage(rows, ARRAY_SIZE(rows), LS, out);
	(void)fprintf(out, "\ncaisson audit verify [OPTIONS]   check that no line was changed, "
			   "removed, added or moved\n");
	args_usage(rows, ARRAY_SIZE(rows), VERIFY, out);
	(void)fprintf(out, "\nExit code: 0 whole; 1 damaged, with the place; 125 not readable, or "
			   "used wrongly.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

static int open_ledger(const struct audit_options *o, struct err *e)
{
	const char *given = o->state ? o->state : getenv("CAISSON_STATE");
	char state[PATH_MAX - 16], path[PATH_MAX];
	int fd;

	if (given && !*given)
		given = NULL;
	if (state_dir(given, getenv("XDG_RUNTIME_DIR"), state, sizeof(state), e) < 0)
		return e->code;
	(void)snprintf(path, sizeof(path), "%s/ledger", state);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_say(e, -ENOENT,
			       "there is no ledger in %s; --state names another directory", state);
	return fd < 0 ? err_set(e, -errno, "open %s", path) : fd;
}

static int run(unsigned int verb, const struct audit_options *o, struct err *e)
{
	_fd_ int dirfd = open_ledger(o, e);
	int code;

	if (dirfd < 0)
		return e->code;
	code = verb == LS ? audit_ls(o, dirfd, e) : audit_verify(o, dirfd, e);
	if (code >= 0 && (fflush(stdout) != 0 || ferror(stdout)))
		return err_set(e, -EIO, "write to standard output");
	return code;
}

int verb_audit(int argc, char **argv)
{
	struct audit_options o = { .from = 1 };
	struct err e = { 0 };
	_mem_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	unsigned int verb;
	int n, code;

	if (!rest)
		return EXIT_CAISSON;
	if (args_wants_help(argc, argv))
		return help(stdout);
	if (argc < 2)
		return help(stderr);
	verb = strcmp(argv[1], "ls") == 0 ? LS : strcmp(argv[1], "verify") == 0 ? VERIFY : 0;
	if (!verb) {
		(void)err_say(&e, -EINVAL,
			      "'audit %.60s' is not known: caisson audit ls, or verify", argv[1]);
		return verb_fail(&e, 0, EXIT_CAISSON);
	}
	n = args_parse(rows, ARRAY_SIZE(rows), verb, argc - 1, argv + 1, &o, rest, &e);
	if (n > 0)
		n = err_say(&e, -EINVAL, "audit %s takes options only, not '%.100s'", argv[1],
			    rest[0]);
	code = n < 0 ? n : run(verb, &o, &e);
	return code < 0 ? verb_fail(&e, o.json, EXIT_CAISSON) : code;
}

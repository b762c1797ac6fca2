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
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "client/state.h"
#include "remote/verbs.h"

enum { LS = 1, VERIFY = 2 };
#define AT(member) offsetof(struct audit_options, member)

static const struct option_row rows[] = {
	{ "--state", NULL, "DIR", OPTION_TEXT, AT(state), .env = true,
	  .help = "state directory of the daemon (as for caisson serve)" },
	{ "--sandbox", NULL, "NAME", OPTION_TEXT, AT(sandbox), .verbs = LS,
	  .help = "only events of this sandbox" },
	{ "--owner", NULL, "OWNER", OPTION_TEXT, AT(owner), .verbs = LS,
	  .help = "only events of this owner" },
	{ "--event", NULL, "EVENT", OPTION_TEXT, AT(event), .verbs = LS,
	  .help = "only this event" },
	{ "--since", NULL, "TIME", OPTION_TEXT, AT(since), .verbs = LS,
	  .help = "only from then on: 2026-11-16, 2026-11-16T03:25:16Z, or 90s, 30m, 2h ago" },
	{ "--tail", NULL, "N", OPTION_NUMBER, AT(tail), .verbs = LS, .min = 1, .max = INT64_MAX,
	  .help = "only the last N (at most 100000) of these" },
	{ "--head", NULL, "SEQ:HASH", OPTION_TEXT, AT(head), .verbs = VERIFY,
	  .help = "this line, noted earlier, must be there too" },
	{ "--from", NULL, "SEQ", OPTION_NUMBER, AT(from), .verbs = VERIFY, .min = 1,
	  .max = INT64_MAX,
	  .help = "the first line that must be there (1), when older files were archived" },
	{ "--json", NULL, NULL, OPTION_FLAG, AT(json), .help = "lines, or the verdict, as JSON" },
};

static struct options table(unsigned int verb)
{
	return (struct options){ .rows = rows,
				 .n_rows = ARRAY_SIZE(rows),
				 .verb = verb,
				 .command = verb == LS     ? "caisson audit ls" :
					    verb == VERIFY ? "caisson audit verify" :
							     "caisson audit",
				 .env = environ };
}

static int help(FILE *out)
{
	const struct options ls = table(LS), verify = table(VERIFY);

	(void)fprintf(out, "The audit log of a daemon: who ran what, when, with which outcome.\n\n"
			   "caisson audit ls [OPTIONS]       show it\n");
	options_help(&ls, 0, out);
	(void)fprintf(out, "\ncaisson audit verify [OPTIONS]   check that no line was changed, "
			   "removed, added or moved\n");
	options_help(&verify, 0, out);
	(void)fprintf(out, "\nExit code: 0 whole; 1 damaged, with the place; 125 not readable, or "
			   "used wrongly.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

static int open_ledger(const struct audit_options *o, struct err *e)
{
	char state[PATH_MAX - 16], path[PATH_MAX];
	int fd;

	if (state_dir(o->state, getenv("XDG_RUNTIME_DIR"), state, sizeof(state), e) < 0)
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
	unsigned int verb = argc < 2                       ? 0 :
			    strcmp(argv[1], "ls") == 0     ? LS :
			    strcmp(argv[1], "verify") == 0 ? VERIFY :
							     0;
	struct options p = table(verb ? verb : LS | VERIFY);
	int r, code;

	p.target = &o;
	if (options_has(&p, argc, argv, "--help") || options_has(&p, argc, argv, "-h"))
		return help(stdout);
	if (argc < 2)
		return help(stderr);
	if (!verb) {
		(void)err_say(&e, -EINVAL,
			      "unknown verb 'audit %.60s'; caisson audit ls, or verify", argv[1]);
		return verb_fail(&e, 0, EXIT_CAISSON);
	}
	r = options_parse(&p, argc - 1, argv + 1, &e);
	code = r < 0 ? r : run(verb, &o, &e);
	o.json |= r < 0 && options_has_word(argc, argv, "--json");
	return code < 0 ? verb_fail(&e, o.json, EXIT_CAISSON) : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_verb.c - `caisson audit ls|verify`: the ledger of a daemon, read from its state directory.
 *
 * No daemon has to run, and none is asked: every user who may read the files can check them. The
 * chain of hashes proves everything between the first line and the last. The two ends need facts
 * from outside: --from, when the beginning is in an archive, and --head, a line that was noted
 * where nobody could change it.
 */
#include "remote/audit_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/options.h"
#include "client/fail.h"
#include "client/program.h"
#include "ledger/ledger_reader.h"
#include "remote/tty.h"
#include "remote/verb.h"

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
	  .help = "only events with this name" },
	{ "--since", NULL, "TIME", OPTION_TEXT, AT(since), .verbs = LS,
	  .help = "only events since TIME: 2026-11-16, 2026-11-16T03:25:16Z, or 90s, 30m, 2h ago" },
	{ "--tail", NULL, "N", OPTION_NUMBER, AT(tail), .verbs = LS, .min = 1, .max = INT64_MAX,
	  .help = "only the last N of these, at most 100000" },
	{ "--head", NULL, "SEQ:HASH", OPTION_TEXT, AT(head), .verbs = VERIFY,
	  .help = "line that must exist, as an earlier verify printed it" },
	{ "--from", NULL, "SEQ", OPTION_NUMBER, AT(from), .verbs = VERIFY, .min = 1,
	  .max = INT64_MAX, .help = "first line of the ledger, if older files were archived (1)" },
	{ "--json", NULL, NULL, OPTION_FLAG, AT(json),
	  .help = "print the lines, or the verdict, as JSON" },
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
			   "caisson audit ls [OPTIONS]       show the lines\n");
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

void audit_progress(struct meter *m, const struct reader_report *so_far)
{
	m->total = so_far->total_bytes;
	meter_add(m, so_far->bytes - m->done);
}

/* ---- verify -------------------------------------------------------------------------------- */

struct verify {
	struct meter meter;
	struct chain_link noted; /* known: --head was given */
	bool found, differs;
};

static int parse_head(const char *s, struct chain_link *ret, struct err *e)
{
	char number[24];
	const char *colon = strchr(s, ':');
	size_t len = colon ? (size_t)(colon - s) : 0;

	if (!colon || len >= sizeof(number) || strlen(colon + 1) != CHAIN_HEX ||
	    strspn(colon + 1, "0123456789abcdef") != CHAIN_HEX)
		return err_say(e, -EINVAL,
			       "--head: '%.100s' is not a line's number, a colon and its hash of "
			       "64 digits, as verify prints them",
			       s);
	memcpy(number, s, len);
	number[len] = '\0';
	if (num_parse_u64(number, 1, UINT64_MAX, &ret->seq, e) < 0)
		return err_wrap(e, "--head");
	memcpy(ret->hash, colon + 1, CHAIN_HEX);
	ret->known = true;
	return 0;
}

static int look(const struct reader_line *line, const struct reader_report *so_far, void *arg)
{
	struct verify *v = arg;

	(void)line;
	if (v->noted.known && so_far->head.seq == v->noted.seq) {
		v->found = true;
		v->differs = memcmp(so_far->head.hash, v->noted.hash, CHAIN_HEX) != 0;
	}
	if (so_far->lines % 1024 == 0)
		audit_progress(&v->meter, so_far);
	return 0;
}

/* The beginning and the end of the ledger, which its chain of hashes does not prove. */
static void judge_ends(const struct audit_options *o, const struct verify *v,
		       struct reader_report *r)
{
	if (r->damaged)
		return;
	r->damaged = true;
	if (r->first_seq > o->from)
		(void)snprintf(
			r->why, sizeof(r->why),
			"it begins with line number %" PRIu64
			", what was before is not here; if that was archived: --from %" PRIu64,
			r->first_seq, r->first_seq);
	else if (v->noted.known && !v->found && v->noted.seq < r->first_seq)
		(void)snprintf(r->why, sizeof(r->why),
			       "the noted line number %" PRIu64 " is older than what is here",
			       v->noted.seq);
	else if (v->noted.known && !v->found)
		(void)snprintf(r->why, sizeof(r->why),
			       "it ends with line number %" PRIu64 ", before the noted %" PRIu64
			       ": lines were taken from its end",
			       r->head.seq, v->noted.seq);
	else if (v->differs)
		(void)snprintf(r->why, sizeof(r->why),
			       "line number %" PRIu64
			       " is not the one that was noted: the ledger was made anew",
			       v->noted.seq);
	else
		r->damaged = false;
}

static void print_text(const struct reader_report *r)
{
	char size[NUM_FORMAT_MAX];

	tty_style(r->damaged ? "31" : "32"); /* red, green */
	(void)printf("%s", r->damaged ? "damaged" : "whole");
	tty_style("0");
	if (r->damaged && r->file[0])
		(void)printf(": %s, line %" PRIu64 ": %s\n", r->file, r->line, r->why);
	else if (r->damaged)
		(void)printf(": %s\n", r->why);
	else
		(void)printf(": %" PRIu64 " line%s in %" PRIu64 " file%s, %s\n", r->lines,
			     r->lines == 1 ? "" : "s", r->files, r->files == 1 ? "" : "s",
			     num_format_size(r->bytes, size, sizeof(size)));
	if (r->head.seq > 0)
		(void)printf("%s %" PRIu64 ":%s\n", r->damaged ? "good up to" : "head", r->head.seq,
			     r->head.hash);
}

static void print_json(const struct reader_report *r)
{
	json_t *damage = json_null();

	if (r->damaged)
		damage = json_pack("{s:s?, s:I, s:s, s:I}", "file", r->file[0] ? r->file : NULL,
				   "line", (json_int_t)r->line, "reason", r->why, "torn_bytes",
				   (json_int_t)r->torn);
	json_auto_t *v = json_pack("{s:s, s:I, s:I, s:I, s:I, s:{s:I, s:s}, s:o}", "status",
				   r->damaged ? "damaged" : "whole", "files", (json_int_t)r->files,
				   "lines", (json_int_t)r->lines, "bytes", (json_int_t)r->bytes,
				   "first_seq", (json_int_t)r->first_seq, "head", "seq",
				   (json_int_t)r->head.seq, "hash", r->head.hash, "damage", damage);

	session_json(v);
}

static int audit_verify(const struct audit_options *o, int dirfd, struct err *e)
{
	struct verify v = { 0 };
	struct reader_report report;
	int r;

	if (o->head && parse_head(o->head, &v.noted, e) < 0)
		return e->code;
	meter_begin(&v.meter, 0);
	r = reader_run(dirfd, false, look, &v, &report, e);
	meter_end(&v.meter);
	if (r < 0)
		return r;
	judge_ends(o, &v, &report);
	if (o->json)
		print_json(&report);
	else
		print_text(&report);
	return report.damaged ? AUDIT_EXIT_DAMAGED : 0;
}

/* ---- the verb ------------------------------------------------------------------------------ */

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

int audit_main(int argc, char **argv)
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

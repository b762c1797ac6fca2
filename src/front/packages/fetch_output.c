/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_output.c - Lines of JSON from the fetcher (progress, the closure, an error), and its end.
 *
 * Once a package has been built, its code may have written them. So they are bounded, control
 * characters are replaced, and a false line harms nobody but the client of this request. The
 * install pays for the front's time as a cell does for the lines of its kernels (kernel_share.h):
 * while it owes too much, the output is not read, and the fetcher waits.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/cell/kernel_share.h"
#include "front/egress/egress.h"
#include "front/packages/closure.h"
#include "front/packages/fetcher.h"
#include "front/packages/install_int.h"
#include "front/packages/package_rules.h"
#include "front/packages/packages.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/json_alloc.h"
#include "front/support/schema.h"

#define DEPTH_MAX 5u
#define VALUES_MAX 200000u /* ten of each package, and the packages that need each other */
#define TEXT_MAX 240u
#define PROGRESS_MAX 100000
#define NOT_FOUND 127 /* the exit code of a shell (init_explain()) */

/* A text of the fetcher, without control characters. */
static void clean(char to[TEXT_MAX + 1], const char *s)
{
	size_t n = 0;

	for (; s && *s && n < TEXT_MAX; s++)
		to[n++] = *s == '\n' || *s == '\t' ? ' ' : *s;
	while (s && *s && n > 0 && (*s & 0xc0) == 0x80) { /* not in the middle of a character */
		s--;
		n--;
	}
	to[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)to[i] < 0x20 || to[i] == 0x7f)
			to[i] = '?';
}

/* The operator's policy file, for each fetched package. */
static int judge_all(const struct install *in, struct refusal *why)
{
	size_t i;
	json_t *p;

	json_array_foreach(in->closure, i, p)
	{
		if (!closure_of_image(p) &&
		    policy_package(in->packages->sandboxes->admission, in->owner,
				   closure_text(p, "name"), why) < 0)
			return -1;
	}
	return 0;
}

static void on_closure(struct install *in, const json_t *said)
{
	char installer[TEXT_MAX + 1];
	struct refusal why;

	if (in->closure ||
	    !(in->closure = closure_take(in->eco, json_object_get(said, "packages")))) {
		install_fail_text(in, REFUSAL_BAD_ANSWER, "install_failed", NULL,
				  "the fetcher's report on '%s' is malformed", in->first);
		return;
	}
	if (json_is_true(json_object_get(said, "recalled")) && install_widen(in) < 0) {
		(void)refusal_no_memory(&why);
		install_fail(in, &why);
		return;
	}
	clean(installer, closure_text(said, "installer"));
	(void)snprintf(in->installer, sizeof(in->installer), "%.31s", installer);
	if (rules_closure(&in->packages->daemon->config, in->closure, in->packages->pins, &why) <
		    0 ||
	    judge_all(in, &why) < 0) {
		install_fail(in, &why);
		return;
	}
	(void)command_input(&in->command, "go\n", 3);
}

#define CHECK_INDEX                                                                                \
	"try again later; an operator checks --pip-index or --npm-registry, and --package-host "   \
	"for files on another host or port"

/* The index did not answer: the gate may know why. Whether it does. */
static bool explain_by_gate(struct install *in)
{
	const struct egress_note *n = egress_last(in->command.sandbox, in->began_ns);

	if (n && n->kind == GATE_NAME_REFUSED)
		install_fail_text(
			in, REFUSAL_BAD_ANSWER, "index_unavailable",
			"if the index keeps its files there, the operator adds that host with --package-host; it may be at a private address",
			"'%.60s': the index leads to %.100s, a host that the fetcher may not reach",
			in->first, n->host);
	else if (n && n->kind == GATE_REFUSED)
		install_fail_text(
			in, REFUSAL_BAD_ANSWER, "index_unavailable",
			"the index and the hosts of --package-host may be at private addresses, but not at link-local ones or metadata services",
			"'%.60s': the connection to %.100s:%u was refused: %.100s", in->first,
			n->host, n->port, n->why);
	else if (n && n->kind == GATE_FAILED)
		install_fail_text(in, REFUSAL_BAD_ANSWER, "index_unavailable", CHECK_INDEX,
				  "'%.60s': the connection to %.100s:%u failed: %.100s", in->first,
				  n->host, n->port, n->why);
	return in->ended;
}

/* The reason, and as much of the end of a log as there is room for. */
static void fail(struct install *in, enum refusal_kind kind, const char *code, const char *hint,
		 const char *text, const char *log)
{
	char head[TEXT_MAX + 80], tail[TEXT_MAX + 1];
	size_t len = log ? strlen(log) : 0;
	int n = snprintf(head, sizeof(head), "'%.60s': %.*s%s", in->first,
			 len ? 100 : (int)TEXT_MAX, text, len ? "; its log ends with: " : "");
	size_t room = sizeof(in->refusal.message) - 1 - (size_t)n;

	room = room < TEXT_MAX ? room : TEXT_MAX;
	if (len > room) {
		log += len - room;
		while ((*log & 0xc0) == 0x80)
			log++;
	}
	clean(tail, log);
	install_fail_text(in, kind, code, hint, "%s%s", head, tail);
}

/* The fetcher's errors, and what a client gets for each. */
static void on_error(struct install *in, const json_t *said)
{
	static const struct {
		const char *said, *code, *hint;
		enum refusal_kind kind;
	} known[] = {
		{ "package_not_found", "package_not_found", "check the name", REFUSAL_NOT_FOUND },
		{ "version_not_found", "version_not_found",
		  "try another version, or none; a package without a wheel is built, unless the daemon has --package-wheels-only",
		  REFUSAL_INVALID },
		{ "conflict", "package_conflict", "ask for versions that fit together",
		  REFUSAL_CONFLICT },
		{ "index_unavailable", "index_unavailable", CHECK_INDEX, REFUSAL_BAD_ANSWER },
		{ "too_big", "package_too_big", "the operator's limit: --package-size",
		  REFUSAL_TOO_LARGE },
		{ "build_failed", "build_failed", "a version that has a wheel needs no build",
		  REFUSAL_INVALID },
		{ "invalid_package", "invalid_package", NULL, REFUSAL_INVALID },
		{ "hash_mismatch", "hash_mismatch", NULL, REFUSAL_INVALID },
	};
	const char *code = closure_text(said, "code");
	const char *log = closure_text(said, "log");
	char text[TEXT_MAX + 1];

	clean(text, closure_text(said, "message"));
	if (code && strcmp(code, "no_installer") == 0) {
		install_no_tool(in, "%.150s", text);
		return;
	}
	if (code && strcmp(code, "index_unavailable") == 0 && explain_by_gate(in))
		return;
	for (size_t i = 0; code && i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].said, code) == 0) {
			bool show = strcmp(code, "build_failed") == 0;

			fail(in, known[i].kind, known[i].code, known[i].hint, text,
			     show ? log : NULL);
			return;
		}
	fail(in, REFUSAL_BAD_ANSWER, "install_failed", NULL, text, log);
}

static void on_progress(struct install *in, const json_t *said)
{
	json_int_t done = json_integer_value(json_object_get(said, "done"));
	json_int_t total = json_integer_value(json_object_get(said, "total"));
	bool sane = done >= 0 && done <= total && total <= PROGRESS_MAX;
	char text[TEXT_MAX + 1];
	const struct install_progress p = { text, sane ? (unsigned int)done : 0,
					    sane ? (unsigned int)total : 0 };

	if (!in->ops || !in->ops->progress)
		return;
	clean(text, closure_text(said, "text"));
	in->ops->progress(in, &p);
}

static void on_line(struct install *in, const char *line, size_t len)
{
	json_t *said = schema_depth_ok(line, len, DEPTH_MAX) &&
				       schema_values_ok(line, len, VALUES_MAX) ?
			       json_alloc_load(line, len, JSON_REJECT_DUPLICATES, NULL) :
			       NULL;
	const char *event = closure_text(said, "event");

	if (event && strcmp(event, "progress") == 0) {
		on_progress(in, said);
	} else if (event && strcmp(event, "closure") == 0) {
		on_closure(in, said);
	} else if (event && strcmp(event, "error") == 0) {
		on_error(in, said);
	} else if (event && strcmp(event, "done") == 0) {
		in->reported_done = true;
	}
	json_decref(said);
}

static void feed(struct install *in, const char *data, size_t len)
{
	const char *newline;

	if (in->ended)
		return;
	while (!in->ended && (newline = memchr(data, '\n', len))) {
		size_t n = (size_t)(newline - data);

		if (buf_append(&in->line, data, n) < 0)
			break;
		on_line(in, buf_str(&in->line), in->line.len);
		buf_clear(&in->line);
		data += n + 1;
		len -= n + 1;
	}
	if (!in->ended && (in->line.err || buf_append(&in->line, data, len) < 0))
		install_fail_text(in, REFUSAL_BAD_ANSWER, "install_failed", NULL,
				  "the fetcher sent too long a line");
}

/* ---- the program --------------------------------------------------------------------------- */

static void on_output(struct command *c, enum command_stream stream, const char *data, size_t len)
{
	struct install *in = c->owner;
	uint64_t began_ns = kernel_share_clock();

	if (stream == COMMAND_STDOUT)
		feed(in, data, len);
	kernel_share_charge(&in->share, kernel_share_clock() - began_ns, clock_now_ns());
}

static void on_rested(struct timer *t)
{
	struct install *in = t->arg;

	kernel_share_rested(&in->owing);
	command_resume(&in->command);
}

static bool is_congested(struct command *c)
{
	struct install *in = c->owner;
	uint64_t ns = kernel_share_rest(&in->share, &in->owing);

	if (ns == 0)
		return false;
	in->rest.fn = on_rested;
	in->rest.arg = in;
	timer_after(in->packages->loop, &in->rest, ns);
	return true;
}

static void on_fetched(struct command *c)
{
	struct install *in = c->owner;

	if (in->ended)
		return;
	if (c->refusal.kind) {
		install_fail(in, &c->refusal);
	} else if (in->reported_done && in->closure && c->verdict.exit_code == 0) {
		install_keep(in);
	} else if (c->not_started && c->verdict.exit_code == NOT_FOUND) {
		install_no_tool(in, "it has no %s", fetcher_program(in->eco));
	} else if (c->wall_hit) {
		install_fail_text(
			in, REFUSAL_TIMEOUT, "index_timeout",
			"the operator's limit: --package-timeout",
			"'%.60s' was not fetched and built in %llu s", in->first,
			(unsigned long long)(in->packages->daemon->config.package_timeout_ms /
					     1000));
	} else if (c->verdict.status == RESULT_LIMIT) {
		install_fail_text(in, REFUSAL_TOO_LARGE, "package_too_big",
				  "the operator's limit: --package-size",
				  "'%.60s' needed more than the fetcher's cell has: %.150s",
				  in->first, c->verdict.hint);
	} else {
		install_fail_text(in, REFUSAL_BAD_ANSWER, "install_failed", NULL,
				  "the fetcher ended without a report: %.200s", c->verdict.hint);
	}
}

const struct command_ops fetch_output_ops = { .output = on_output,
					      .congested = is_congested,
					      .done = on_fetched };

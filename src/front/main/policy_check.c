/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_check.c - `caisson policy check FILE`: check a policy before a daemon uses it.
 *
 * caisson-front does this, and not the command or its client half, so that there is one judge: the
 * tools, the options and their defaults are those of the daemon that will read the file. No daemon
 * is started.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/options.h"
#include "client/fail.h"
#include "front/main/policy_load.h"
#include "front/mcp/tool.h"
#include "front/policy/rules.h"
#include "front/support/config.h"

#define EXIT_REFUSED 1

static int help(FILE *out)
{
	(void)fprintf(
		out,
		"caisson policy check FILE [--json] [-- SERVE OPTIONS]\n\n"
		"Checks whether a daemon would accept FILE as its --policy, and prints each\n"
		"error with line and column. The daemon's defaults must be within the policy;\n"
		"they come from SERVE OPTIONS and the environment (CAISSON_...), as for caisson\n"
		"serve.\n\n"
		"Exit code: 0 valid; 1 refused; 125 not readable, or used wrongly.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

static int print_text(const char *path, const struct rules *r, const struct rules_report *report)
{
	for (size_t i = 0; i < report->n && i < RULES_ERRORS_MAX; i++)
		(void)fprintf(stderr, "%s:%u:%u: %s\n", path, report->errors[i].at.line,
			      report->errors[i].at.column, report->errors[i].message);
	if (report->n > RULES_ERRORS_MAX)
		(void)fprintf(stderr, "%s: and %zu more\n", path, report->n - RULES_ERRORS_MAX);
	if (r)
		(void)printf("%s: good, %zu owner%s, sha256 %s\n", path, r->n_owners,
			     r->n_owners == 1 ? "" : "s", r->sha256);
	return r ? 0 : EXIT_REFUSED;
}

static int print_json(const char *path, const struct rules *r, const struct rules_report *report)
{
	_buf_ struct buf b = BUF_INIT(65536);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "file", path);
	json_member_str(&j, "status", r ? "good" : "refused");
	json_member_str(&j, "sha256", r ? r->sha256 : NULL);
	json_member_array(&j, "errors");
	for (size_t i = 0; i < report->n && i < RULES_ERRORS_MAX; i++) {
		json_object_begin(&j);
		json_member_uint(&j, "line", report->errors[i].at.line);
		json_member_uint(&j, "column", report->errors[i].at.column);
		json_member_str(&j, "message", report->errors[i].message);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_member_uint(&j, "errors_in_all", report->n);
	json_object_end(&j);
	(void)json_finish(&j);
	(void)printf("%s\n", buf_str(&b));
	return r ? 0 : EXIT_REFUSED;
}

static int check(const char *path, bool json, const struct config *c, struct err *e)
{
	static struct rules_report report;
	_buf_ struct buf text = BUF_INIT(RULES_TEXT_MAX);
	int code;

	if (policy_read_path(path, &text, e) < 0)
		return err_wrap(e, "%s", path);
	struct rules *all = rules_parse(buf_str(&text), text.len, &report), *r = all;

	if (r && !rules_agree(r, c, &report))
		r = NULL;
	code = json ? print_json(path, r, &report) : print_text(path, r, &report);
	rules_free(all);
	if (fflush(stdout) != 0)
		return err_set(e, -EIO, "write to standard output");
	return code;
}

struct check_options {
	bool json;
};

static const struct option_row rows[] = {
	{ "--json", NULL, NULL, OPTION_FLAG, offsetof(struct check_options, json),
	  .help = "print the verdict as JSON" },
};

/* Arguments after "--" are options of caisson serve; "serve" takes the place of the "--". */
static int check_with(struct options *p, int argc, char **argv, char **env, struct err *e)
{
	const struct check_options *o = p->target;
	char serve[] = "serve", *alone[] = { serve, NULL }, **args = alone;
	struct config c = { 0 };
	int code;

	if (p->n_before != 1)
		return err_say(e, -EINVAL,
			       "usage: caisson policy check FILE [--json] [-- SERVE OPTIONS]");
	if (p->dashes) {
		args = argv + p->end - 1;
		args[0] = serve;
	}
	code = config_parse(p->dashes ? argc - p->end + 1 : 1, args, env, mcp_tools_option, &c, e);
	if (code == 0)
		code = check(p->rest[0], o->json, &c, e);
	config_free(&c);
	return code;
}

int policy_verb(int argc, char **argv, char **env)
{
	_mem_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct check_options o = { 0 };
	struct options p = { .rows = rows,
			     .n_rows = ARRAY_SIZE(rows),
			     .command = "caisson policy",
			     .target = &o,
			     .rest = rest };
	struct err e = { 0 };
	int code = rest ? 0 : err_set(&e, -ENOMEM, "read the arguments");

	if (options_has_word(argc, argv, "--help") || options_has_word(argc, argv, "-h"))
		return help(stdout);
	if (argc < 2)
		return help(stderr);
	if (code == 0 && strcmp(argv[1], "check") != 0)
		code = err_say(&e, -EINVAL,
			       "unknown verb 'policy %.60s'; caisson policy check FILE", argv[1]);
	if (code == 0)
		code = options_parse(&p, argc - 1, argv + 1, &e);
	if (code == 0)
		code = check_with(&p, argc - 1, argv + 1, env, &e);
	else
		o.json |= options_has_word(argc, argv, "--json");
	return code < 0 ? verb_fail(&e, o.json, EXIT_CAISSON) : code;
}

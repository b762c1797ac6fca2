/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - The option table of the remote verbs, and the parser over it. */
#include "remote/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/near.h"
#include "base/num.h"
#include "base/utf8.h"

#define TAIL_MAX 1000000u

/* ---- one parser per kind of value ---------------------------------------------------------- */

/* The setters of plain strings and switches differ in the member only. */
#define SET_TEXT(member)                                                                           \
	static int set_##member(struct options *o, const char *v, struct err *e)                   \
	{                                                                                          \
		if (!*v)                                                                           \
			return err_say(e, -EINVAL, "must not be empty");                           \
		o->member = v;                                                                     \
		return 0;                                                                          \
	}
#define SET_FLAG(member)                                                                           \
	static int set_##member(struct options *o, const char *v, struct err *e)                   \
	{                                                                                          \
		(void)v;                                                                           \
		(void)e;                                                                           \
		o->member = true;                                                                  \
		return 0;                                                                          \
	}

SET_TEXT(socket)
SET_TEXT(url)
SET_TEXT(state)
SET_TEXT(token_file)
SET_TEXT(ca_file)
SET_TEXT(name)
SET_TEXT(lang)
SET_TEXT(workdir)
SET_TEXT(image)
SET_TEXT(workspace)
SET_TEXT(listen)
SET_TEXT(tools)
SET_TEXT(print_config)
SET_FLAG(json)
SET_FLAG(all)
SET_FLAG(follow)
SET_FLAG(recursive)
SET_FLAG(send_stdin)
SET_FLAG(force)
SET_FLAG(close)
SET_FLAG(deny)
SET_TEXT(reason)
SET_TEXT(tool_rules)

static int set_code(struct options *o, const char *v, struct err *e)
{
	(void)e;
	o->code = v;
	return 0;
}

static int set_memory(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_MEMORY;
	return num_parse_size(v, &o->memory_bytes, e);
}

static int set_disk(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_DISK;
	return num_parse_size(v, &o->disk_bytes, e);
}

static int set_cpus(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_CPUS;
	return num_parse_cpus_milli(v, &o->cpus_milli, e);
}

static int set_pids(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_PIDS;
	return num_parse_u64(v, 1, UINT32_MAX, &o->pids, e);
}

static int set_timeout(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_TIMEOUT;
	return num_parse_duration_ms(v, &o->timeout_ms, e);
}

static int set_idle(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_IDLE;
	return num_parse_duration_ms(v, &o->idle_ms, e);
}

static int set_grace(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_GRACE;
	return num_parse_duration_ms(v, &o->grace_ms, e);
}

static int set_tail(struct options *o, const char *v, struct err *e)
{
	o->given |= GIVEN_TAIL;
	return num_parse_u64(v, 0, TAIL_MAX, &o->tail, e);
}

static int add_pair(const char *list[], size_t *n, const char *v, const char *form, struct err *e)
{
	const char *eq = strchr(v, '=');

	if (!eq || eq == v)
		return err_say(e, -EINVAL, "must be %s", form);
	if (*n == OPTIONS_LIST_MAX)
		return err_say(e, -EINVAL, "at most %d of them", OPTIONS_LIST_MAX);
	list[(*n)++] = v;
	return 0;
}

static int set_env(struct options *o, const char *v, struct err *e)
{
	return add_pair(o->env, &o->n_env, v, "NAME=VALUE", e);
}

static int set_label(struct options *o, const char *v, struct err *e)
{
	return add_pair(o->label, &o->n_label, v, "KEY=VALUE", e);
}

static int set_egress(struct options *o, const char *v, struct err *e)
{
	if (!*v)
		return err_say(e, -EINVAL, "must not be empty; none stands for nothing");
	if (o->n_egress == OPTIONS_LIST_MAX)
		return err_say(e, -EINVAL, "at most %d of them", OPTIONS_LIST_MAX);
	o->egress[o->n_egress++] = v;
	return 0;
}

static int set_mount(struct options *o, const char *v, struct err *e)
{
	if ((v[0] != '/' || strstr(v, ":/")) && strcmp(v, "none") != 0)
		return err_say(
			e, -EINVAL,
			"takes a place in the sandbox, as in /data or /data:ro, and no path of "
			"this machine; none stands for nothing");
	if (o->n_mounts == OPTIONS_LIST_MAX)
		return err_say(e, -EINVAL, "at most %d of them", OPTIONS_LIST_MAX);
	o->mounts[o->n_mounts++] = v;
	return 0;
}

static int set_server(struct options *o, const char *v, struct err *e)
{
	if (!*v)
		return err_say(e, -EINVAL, "must not be empty");
	if (o->n_server == OPTIONS_LIST_MAX)
		return err_say(e, -EINVAL, "at most %d of them", OPTIONS_LIST_MAX);
	o->server[o->n_server++] = v;
	return 0;
}

static int set_secret(struct options *o, const char *v, struct err *e)
{
	if (strchr(v, '='))
		return err_say(e, -EINVAL,
			       "takes the name of a secret that the daemon has, and no value");
	if (o->n_secrets == OPTIONS_LIST_MAX)
		return err_say(e, -EINVAL, "at most %d of them", OPTIONS_LIST_MAX);
	o->secrets[o->n_secrets++] = v;
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ALL 0xffffffu
#define PROGRAMS (OPT_EXEC | OPT_RUN)

static const struct option_row {
	const char *name, *alias;
	const char *value; /* NULL: a switch */
	const char *env;   /* environment twin */
	unsigned int verbs;
	int (*set)(struct options *o, const char *v, struct err *e);
	const char *help;
} rows[] = {
	{ "--name", NULL, "NAME", NULL, PROGRAMS, set_name, "the sandbox to run it in" },
	{ "--all", "-a", NULL, NULL, OPT_PS | OPT_TOP, set_all, "also those that do not run" },
	{ "--memory", "-m", "SIZE", NULL, OPT_CREATE, set_memory,
	  "memory of the whole sandbox, as in 512M" },
	{ "--cpus", NULL, "N", NULL, OPT_CREATE, set_cpus, "share of processors, as in 0.5" },
	{ "--pids", NULL, "N", NULL, OPT_CREATE, set_pids, "processes and threads" },
	{ "--disk", NULL, "SIZE", NULL, OPT_CREATE, set_disk, "size of the writable layer" },
	{ "--disk", NULL, "SIZE", NULL, OPT_WORKSPACE, set_disk, "how much it may hold (1G)" },
	{ "--workspace", "-w", "NAME[:MODE]", NULL, OPT_CREATE, set_workspace,
	  "a workspace, at /workspace: cow (a copy), ro or rw" },
	{ "--mount-only", NULL, "PLACE[:MODE]", NULL, OPT_CREATE, set_mount,
	  "of the daemon's mounts only this one, ro or rw, or none; may be repeated (all)" },
	{ "--image", NULL, "IMAGE", NULL, OPT_CREATE, set_image,
	  "what it is made from: a pulled image (the daemon's own)" },
	{ "--env", "-e", "NAME=VALUE", NULL, OPT_CREATE | OPT_EXEC | OPT_SHELL, set_env,
	  "set a variable; may be repeated" },
	{ "--label", NULL, "KEY=VALUE", NULL, OPT_CREATE | OPT_WORKSPACE, set_label,
	  "mark it; may be repeated" },
	{ "--label", NULL, "KEY=VALUE", NULL, OPT_PS | OPT_TOP, set_label,
	  "only those with this mark; may be repeated" },
	{ "--egress", NULL, "HOST", NULL, OPT_CREATE | OPT_NET, set_egress,
	  "it may reach HOST, *.DOMAIN or HOST:PORT, or none; may be repeated" },
	{ "--secret", NULL, "NAME[@HOST]", NULL, OPT_CREATE, set_secret,
	  "give it a secret of the daemon's, or bind one to HOST; may be repeated" },
	{ "--timeout", "-t", "TIME", NULL, OPT_CREATE, set_timeout,
	  "its life, as in 90, 30m, 1h (no end)" },
	{ "--timeout", "-t", "TIME", NULL, PROGRAMS, set_timeout, "wall time, as in 10, 2m" },
	{ "--idle", NULL, "TIME", NULL, OPT_CREATE, set_idle,
	  "end it when nobody used it for so long" },
	{ "--server", NULL, "NAME", NULL, OPT_CREATE, set_server,
	  "MCP server whose tools its code may call; may be repeated" },
	{ "--tool-rules", NULL, "JSON", NULL, OPT_CREATE, set_tool_rules,
	  "what to take away of those, as in {\"allow\": [\"github.get_*\"], \"budget\": 20}" },
	{ "--workdir", "-w", "DIR", NULL, OPT_EXEC | OPT_SHELL, set_workdir,
	  "working directory in the sandbox (/workspace)" },
	{ "--cwd", NULL, "DIR", NULL, OPT_EXEC | OPT_SHELL, set_workdir, "the same as --workdir" },
	{ "--lang", "-l", "LANG", NULL, OPT_RUN | OPT_INSTALL, set_lang,
	  "python (default), bash, javascript or r; a file's suffix decides otherwise" },
	{ "--code", "-c", "CODE", NULL, OPT_RUN, set_code, "run CODE, whatever it looks like" },
	{ "--stdin", "-i", NULL, NULL, PROGRAMS, set_send_stdin,
	  "send our standard input to the program" },
	{ "--follow", "-f", NULL, NULL, OPT_LOGS, set_follow, "go on with what is written later" },
	{ "--tail", NULL, "N", NULL, OPT_LOGS, set_tail, "only the last N lines" },
	{ "--recursive", "-r", NULL, NULL, OPT_CP | OPT_WORKSPACE, set_recursive,
	  "directories, with all in them" },
	{ "--grace", NULL, "TIME", NULL, OPT_STOP, set_grace,
	  "how long programs may take to end after SIGTERM" },
	{ "--listen", NULL, "[ADDRESS:]PORT", NULL, OPT_PORT, set_listen,
	  "be that port of the sandbox here, until Ctrl-C" },
	{ "--close", NULL, NULL, NULL, OPT_PORT, set_close,
	  "close PORT; what goes through it is cut off" },
	{ "--force", "-f", NULL, NULL, OPT_RM | OPT_WORKSPACE, set_force,
	  "one that is not there is no error" },
	{ "--deny", NULL, NULL, NULL, OPT_APPROVE, set_deny, "say no" },
	{ "--reason", NULL, "TEXT", NULL, OPT_APPROVE, set_reason,
	  "why; of a no the code is told" },
	{ "--tools", NULL, "NAMES", NULL, OPT_MCP, set_tools,
	  "tools of a daemon of our own: default, all, or names" },
	{ "--print-config", NULL, "HOST", NULL, OPT_MCP, set_print_config,
	  "what to tell claude, cursor, vscode, mcpo or openwebui, as JSON" },
	{ "--json", NULL, NULL, "CAISSON_JSON", ALL & ~(unsigned)(OPT_SHELL | OPT_MCP), set_json,
	  "for programs: JSON on standard output" },
	{ "--socket", NULL, "PATH", "CAISSON_SOCKET", ALL, set_socket,
	  "unix socket of the daemon (caisson.sock in the state directory)" },
	{ "--state", NULL, "DIR", "CAISSON_STATE", ALL, set_state, "the daemon's state directory" },
	{ "--url", NULL, "URL", "CAISSON_URL", ALL, set_url,
	  "a daemon elsewhere, as in https://host:8001" },
	{ "--token-file", NULL, "FILE", "CAISSON_TOKEN_FILE", ALL, set_token_file,
	  "the token for it, in a file of mode 600; or in CAISSON_TOKEN" },
	{ "--ca-file", NULL, "FILE", "CAISSON_CA_FILE", ALL, set_ca_file,
	  "certificates that its own must come from, instead of the system's" },
};

static int from_environment(enum options_verb verb, struct options *o, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *v = rows[i].env && rows[i].verbs & verb ? getenv(rows[i].env) : NULL;

		if (!v || !*v || (!rows[i].value && strcmp(v, "0") == 0))
			continue;
		if (rows[i].set(o, v, e) < 0)
			return err_wrap(e, "%s", rows[i].env);
	}
	return 0;
}

static const struct option_row *find_row(unsigned int verbs, const char *arg, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = rows[i].name, *alias = rows[i].alias;

		if (rows[i].verbs & verbs &&
		    ((strlen(name) == len && strncmp(name, arg, len) == 0) ||
		     (alias && strlen(alias) == len && strncmp(alias, arg, len) == 0)))
			return &rows[i];
	}
	return NULL;
}

static int unknown(enum options_verb verb, const char *verb_name, const char *arg, size_t len,
		   struct err *e)
{
	/* Who knows `caisson run --memory` looks for it here too. */
	if (verb & PROGRAMS && find_row(OPT_CREATE, arg, len))
		return err_say(e, -EINVAL,
			       "%.*s belongs to the sandbox: give it to 'caisson create'", (int)len,
			       arg);
	struct near n = near_word(arg, len);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].verbs & verb)
			near_try(&n, rows[i].name);
	return err_say(e, -EINVAL, "unknown option '%.*s'%s 'caisson %s --help' lists them",
		       len > 80 ? 80 : (int)len, arg, near_hint(&n), verb_name);
}

/* One option at argv[*at]; moves *at past it. */
static int parse_one(enum options_verb verb, int argc, char **argv, int *at, struct options *o,
		     struct err *e)
{
	const char *arg = argv[*at], *eq = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
	size_t len = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct option_row *row = find_row(verb, arg, len);
	const char *value = "";

	if (!row)
		return unknown(verb, argv[0], arg, len, e);
	if (row->value) {
		if (!eq && *at + 1 >= argc)
			return err_say(e, -EINVAL, "%s needs a value: %s %s", row->name, row->name,
				       row->value);
		value = eq ? eq + 1 : argv[++*at];
	} else if (eq) {
		return err_say(e, -EINVAL, "%s takes no value", row->name);
	}
	++*at;
	if (value && row->verbs != ALL && !utf8_valid(value, strlen(value)))
		return err_say(e, -EILSEQ, "%s: is no UTF-8 text, which is all that can be sent",
			       row->name);
	return row->set(o, value, e) < 0 ? err_wrap(e, "%s", row->name) : 0;
}

static int parse_all(enum options_verb verb, int argc, char **argv, struct options *o,
		     struct err *e)
{
	int at = 1, r = 0;

	while (r == 0 && at < argc) {
		const char *arg = argv[at];

		if (strcmp(arg, "--") == 0) {
			o->dashes = true;
			at++;
			break;
		}
		if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
			return 1;
		if (arg[0] == '-' && arg[1]) {
			r = parse_one(verb, argc, argv, &at, o, e);
			continue;
		}
		if (verb & PROGRAMS)
			break;
		o->rest[o->n_rest++] = argv[at++];
	}
	o->n_before = o->n_rest;
	while (at < argc)
		o->rest[o->n_rest++] = argv[at++];
	o->rest[o->n_rest] = NULL;
	return r;
}

/* Who names a place does not mean the one in the environment. */
static int one_place(struct options *o, const char *env_socket, const char *env_url, struct err *e)
{
	if (o->socket != env_socket && o->url != env_url)
		return err_say(e, -EINVAL, "--socket and --url do not go together");
	if (o->socket != env_socket)
		o->url = NULL;
	else if (o->url)
		o->socket = NULL;
	return 0;
}

int options_parse(enum options_verb verb, int argc, char **argv, struct options *ret, struct err *e)
{
	struct options *o = ret;

	memset(o, 0, sizeof(*o));
	o->rest = calloc((size_t)argc + 1, sizeof(*o->rest));
	if (!o->rest)
		return err_set(e, -ENOMEM, "read the arguments");
	int r = from_environment(verb, o, e);
	const char *env_socket = o->socket, *env_url = o->url;

	if (r == 0)
		r = parse_all(verb, argc, argv, o, e);
	if (r == 0)
		r = one_place(o, env_socket, env_url, e);
	for (int i = 1; r < 0 && i < argc && strcmp(argv[i], "--") != 0; i++)
		o->json |= strcmp(argv[i], "--json") == 0;
	return r < 0 ? -EINVAL : r;
}

void options_free(struct options *o)
{
	free(o->rest);
	o->rest = NULL;
}

json_t *options_pairs(const char *const *list, size_t n)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++) {
		const char *eq = strchr(list[i], '=');
		json_t *key = eq ? json_stringn(list[i], (size_t)(eq - list[i])) : NULL;

		if (key)
			(void)json_object_set_new(o, json_string_value(key), json_string(eq + 1));
		json_decref(key);
	}
	return o;
}

static void help_lines(unsigned int verb, bool common, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char left[64];

		if (!(rows[i].verbs & verb) || (rows[i].verbs == ALL) != common)
			continue;
		(void)snprintf(left, sizeof(left), "%s%s%s%s%s", rows[i].alias ? rows[i].alias : "",
			       rows[i].alias ? ", " : "    ", rows[i].name,
			       rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		(void)fprintf(out, "  %-26s %s\n", left, rows[i].help);
	}
}

void options_help(enum options_verb verb, FILE *out)
{
	help_lines(verb, false, out);
	(void)fprintf(out, "\nWhich daemon:\n");
	help_lines(verb, true, out);
}

static json_t *words_or_none(const char *const words[], size_t n)
{
	json_t *list = n ? json_array() : NULL;

	for (size_t i = 0; i < n; i++)
		if (n > 1 || strcmp(words[i], "none") != 0)
			(void)json_array_append_new(list, json_string(words[i]));
	return list;
}

json_t *options_egress(const struct options *o)
{
	return words_or_none(o->egress, o->n_egress);
}

json_t *options_mounts(const struct options *o)
{
	return words_or_none(o->mounts, o->n_mounts);
}

json_t *options_secrets(const struct options *o)
{
	json_t *list = json_array();

	for (size_t i = 0; i < o->n_secrets; i++)
		(void)json_array_append_new(list, json_string(o->secrets[i]));
	return list;
}

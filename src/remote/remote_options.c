/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_options.c - The options of the verbs that ask a daemon.
 *
 * The table below is read by base/options.c. Values go to the daemon as JSON, so they have to be
 * UTF-8; only the options that name the daemon stay here and may hold any bytes.
 */
#include "remote/remote_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"

#define TAIL_MAX 1000000u

static int check_mount(const char *v, struct err *e)
{
	if (strcmp(v, "none") == 0 || (v[0] == '/' && !strstr(v, ":/")))
		return 0;
	return err_say(
		e, -EINVAL,
		"must be a path in the sandbox, as in /data or /data:ro, and no path of this "
		"machine; or none");
}

static int check_secret(const char *v, struct err *e)
{
	if (!*v || strchr(v, '='))
		return err_say(e, -EINVAL,
			       "must be the name of a secret that the daemon has, without a value");
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define PROGRAMS (OPT_EXEC | OPT_RUN)
#define AT(member) offsetof(struct remote_options, member)

enum { OWN, DAEMON }; /* sections of --help */

static const struct option_row rows[] = {
	{ "--name", NULL, "NAME", OPTION_TEXT, AT(name), .verbs = PROGRAMS,
	  .help = "sandbox to run it in" },
	{ "--all", "-a", NULL, OPTION_FLAG, AT(all), .verbs = OPT_PS | OPT_TOP,
	  .help = "also list sandboxes that do not run" },
	{ "--memory", "-m", "SIZE", OPTION_SIZE, AT(memory_bytes), .verbs = OPT_CREATE,
	  .help = "memory of the whole sandbox, as in 512M" },
	{ "--cpus", NULL, "N", OPTION_CPUS, AT(cpus_milli), .verbs = OPT_CREATE,
	  .help = "processors that the sandbox may use, as in 0.5" },
	{ "--pids", NULL, "N", OPTION_NUMBER, AT(pids), .verbs = OPT_CREATE, .min = 1,
	  .max = UINT32_MAX, .help = "processes and threads" },
	{ "--disk", NULL, "SIZE", OPTION_SIZE, AT(disk_bytes), .verbs = OPT_CREATE,
	  .help = "size of the writable layer" },
	{ "--oom", NULL, "WHAT", OPTION_TEXT, AT(oom), .verbs = OPT_CREATE,
	  .help = "what ends when memory is used up: process (default; files stay) or sandbox" },
	{ "--disk", NULL, "SIZE", OPTION_SIZE, AT(disk_bytes), .verbs = OPT_WORKSPACE,
	  .help = "size of the workspace (1G)" },
	{ "--workspace", "-w", "NAME[:MODE]", OPTION_TEXT, AT(workspace), .verbs = OPT_CREATE,
	  .help = "mount a workspace at /workspace; MODE: cow (a copy), ro or rw" },
	{ "--mount-only", NULL, "PLACE[:MODE]", OPTION_LIST, AT(mounts), .verbs = OPT_CREATE,
	  .max = REMOTE_LIST_MAX, .check = check_mount,
	  .help = "use only this mount of the daemon, or none; MODE: ro or rw; may be "
		  "repeated (all)" },
	{ "--image", NULL, "IMAGE", OPTION_TEXT, AT(image), .verbs = OPT_CREATE,
	  .help = "image of the sandbox (the daemon's default)" },
	{ "--env", "-e", "NAME=VALUE", OPTION_PAIRS, AT(env),
	  .verbs = OPT_CREATE | OPT_EXEC | OPT_SHELL, .max = REMOTE_LIST_MAX,
	  .help = "set an environment variable; may be repeated" },
	{ "--label", NULL, "KEY=VALUE", OPTION_PAIRS, AT(label),
	  .verbs = OPT_CREATE | OPT_WORKSPACE, .max = REMOTE_LIST_MAX,
	  .help = "add a label; may be repeated" },
	{ "--label", NULL, "KEY=VALUE", OPTION_PAIRS, AT(label), .verbs = OPT_PS | OPT_TOP,
	  .max = REMOTE_LIST_MAX, .help = "list only sandboxes with this label; may be repeated" },
	{ "--egress", NULL, "HOST", OPTION_LIST, AT(egress), .verbs = OPT_CREATE | OPT_NET,
	  .max = REMOTE_LIST_MAX,
	  .help = "allow connections to HOST, *.DOMAIN or HOST:PORT, or none; may be repeated" },
	{ "--secret", NULL, "NAME[@HOST]", OPTION_LIST, AT(secrets), .verbs = OPT_CREATE,
	  .max = REMOTE_LIST_MAX, .check = check_secret,
	  .help = "give the sandbox a secret, with @HOST only for requests to HOST; may be repeated" },
	{ "--timeout", "-t", "TIME", OPTION_DURATION, AT(timeout_ms), .verbs = OPT_CREATE,
	  .help = "remove the sandbox after TIME, as in 90, 30m, 1h (no limit)" },
	{ "--timeout", "-t", "TIME", OPTION_DURATION, AT(timeout_ms), .verbs = PROGRAMS,
	  .help = "wall time of this execution, as in 10, 2m" },
	{ "--idle", NULL, "TIME", OPTION_DURATION, AT(idle_ms), .verbs = OPT_CREATE,
	  .help = "end the sandbox when it was idle for TIME (the daemon's: 5m by default)" },
	{ "--server", NULL, "NAME", OPTION_LIST, AT(server), .verbs = OPT_CREATE,
	  .max = REMOTE_LIST_MAX,
	  .help = "MCP server whose tools the code may call; may be repeated" },
	{ "--tool-rules", NULL, "JSON", OPTION_TEXT, AT(tool_rules), .verbs = OPT_CREATE,
	  .help = "restrict these tools, as in {\"allow\": [\"github.get_*\"], \"budget\": 20}" },
	{ "--workdir", "-w", "DIR", OPTION_TEXT, AT(workdir), .verbs = OPT_EXEC | OPT_SHELL,
	  .help = "working directory in the sandbox (/workspace)" },
	{ "--cwd", NULL, "DIR", OPTION_TEXT, AT(workdir), .verbs = OPT_EXEC | OPT_SHELL,
	  .help = "the same as --workdir" },
	{ "--lang", "-l", "LANG", OPTION_TEXT, AT(lang), .verbs = OPT_RUN,
	  .help = "python (default), bash, javascript or r; without it the suffix of "
		  "a file decides" },
	{ "--lang", "-l", "LANG", OPTION_TEXT, AT(lang), .verbs = OPT_INSTALL,
	  .help = "python (default) or javascript" },
	{ "--upgrade", "-U", NULL, OPTION_FLAG, AT(upgrade), .verbs = OPT_INSTALL,
	  .help = "install the newest version, also if the image has one that would do" },
	{ "--code", "-c", "CODE", OPTION_STRING, AT(code), .verbs = OPT_RUN,
	  .help = "run CODE, even if it looks like a file name" },
	{ "--stdin", "-i", NULL, OPTION_FLAG, AT(send_stdin), .verbs = PROGRAMS,
	  .help = "send standard input to the program" },
	{ "--follow", "-f", NULL, OPTION_FLAG, AT(follow), .verbs = OPT_LOGS,
	  .help = "continue with new output as it is written" },
	{ "--tail", NULL, "N", OPTION_NUMBER, AT(tail), .verbs = OPT_LOGS, .max = TAIL_MAX,
	  .help = "print only the last N lines" },
	{ "--recursive", "-r", NULL, OPTION_FLAG, AT(recursive), .verbs = OPT_CP | OPT_WORKSPACE,
	  .help = "copy directories with everything in them" },
	{ "--grace", NULL, "TIME", OPTION_DURATION, AT(grace_ms), .verbs = OPT_STOP,
	  .help = "how long programs may take to end after SIGTERM" },
	{ "--listen", NULL, "[ADDRESS:]PORT", OPTION_TEXT, AT(listen), .verbs = OPT_PORT,
	  .help = "forward this local port to the port of the sandbox, until Ctrl-C" },
	{ "--close", NULL, NULL, OPTION_FLAG, AT(close), .verbs = OPT_PORT,
	  .help = "close PORT and its connections" },
	{ "--force", "-f", NULL, OPTION_FLAG, AT(force), .verbs = OPT_RM | OPT_WORKSPACE,
	  .help = "ignore missing names" },
	{ "--deny", NULL, NULL, OPTION_FLAG, AT(deny), .verbs = OPT_APPROVE,
	  .help = "deny the call" },
	{ "--reason", NULL, "TEXT", OPTION_TEXT, AT(reason), .verbs = OPT_APPROVE,
	  .help = "reason, shown to the code on denial" },
	{ "--tools", NULL, "NAMES", OPTION_TEXT, AT(tools), .verbs = OPT_MCP,
	  .help = "tools of a private daemon: default, all, or names" },
	{ "--print-config", NULL, "HOST", OPTION_TEXT, AT(print_config), .verbs = OPT_MCP,
	  .help = "print the configuration for claude, cursor, vscode, mcpo or openwebui as JSON" },
	{ "--json", NULL, NULL, OPTION_FLAG, AT(json), .verbs = ~(unsigned)(OPT_SHELL | OPT_MCP),
	  .env = true, .help = "print JSON on standard output" },
	{ "--socket", NULL, "PATH", OPTION_TEXT, AT(socket), .section = DAEMON, .env = true,
	  .help = "unix socket of the daemon (caisson.sock in the state directory)" },
	{ "--state", NULL, "DIR", OPTION_TEXT, AT(state), .section = DAEMON, .env = true,
	  .help = "state directory of the daemon" },
	{ "--url", NULL, "URL", OPTION_TEXT, AT(url), .section = DAEMON, .env = true,
	  .help = "URL of the daemon, as in https://host:8001" },
	{ "--token-file", NULL, "FILE", OPTION_TEXT, AT(token_file), .section = DAEMON, .env = true,
	  .help = "file of mode 600 with the token (default: the variable CAISSON_TOKEN)" },
	{ "--ca-file", NULL, "FILE", OPTION_TEXT, AT(ca_file), .section = DAEMON, .env = true,
	  .help = "CA certificates for the daemon, instead of those of the system" },
};

static int check_utf8(const struct option_row *row, const char *v, struct err *e)
{
	if (row->section == DAEMON || utf8_valid(v, strlen(v)))
		return 0;
	return err_say(e, -EINVAL, "the value is not valid UTF-8");
}

static struct options table(enum remote_verb verb)
{
	return (struct options){
		.rows = rows,
		.n_rows = ARRAY_SIZE(rows),
		.verb = verb,
		.env = environ,
		.stop = verb & PROGRAMS,
		.check = check_utf8,
		/* `caisson run --memory` exists too, without a daemon. */
		.other_verbs = verb & PROGRAMS    ? OPT_CREATE :
			       verb == OPT_CREATE ? PROGRAMS :
						    0,
		.other_remedy =
			verb & PROGRAMS ?
				"belongs to the sandbox: give it to 'caisson create'" :
				"belongs to 'caisson run' and 'caisson exec'; the name of a new "
				"sandbox is an argument: caisson create NAME",
	};
}

/* A daemon that was named on the command line overrides the one in the environment. */
static int one_daemon(struct remote_options *o, const char *env_socket, const char *env_url,
		      struct err *e)
{
	if (o->socket != env_socket && o->url != env_url)
		return err_say(e, -EINVAL, "--socket and --url do not go together");
	if (o->socket != env_socket)
		o->url = NULL;
	else if (o->url)
		o->socket = NULL;
	return 0;
}

static int parse(struct remote_options *o, int argc, char **argv, struct err *e)
{
	int r = options_environment(&o->parsed, e);
	const char *env_socket = o->socket, *env_url = o->url;

	if (r == 0)
		r = options_arguments(&o->parsed, argc, argv, e);
	o->n_rest = o->parsed.n_rest;
	o->n_before = o->parsed.n_before;
	o->dashes = o->parsed.dashes;
	return r == 0 ? one_daemon(o, env_socket, env_url, e) : r;
}

int remote_options_parse(enum remote_verb verb, int argc, char **argv, struct remote_options *ret,
			 struct err *e)
{
	struct remote_options *o = ret;

	memset(o, 0, sizeof(*o));
	(void)snprintf(o->command, sizeof(o->command), "caisson %.20s",
		       verb == OPT_WORKSPACE ? "workspace" : argv[0]);
	o->rest = calloc((size_t)argc + 1, sizeof(*o->rest));
	if (!o->rest)
		return err_set(e, -ENOMEM, "read the arguments");
	o->parsed = table(verb);
	o->parsed.command = o->command;
	o->parsed.target = o;
	o->parsed.rest = o->rest;
	if (options_has(&o->parsed, argc, argv, "--help") ||
	    options_has(&o->parsed, argc, argv, "-h"))
		return 1;
	int r = parse(o, argc, argv, e);

	if (r < 0)
		o->json |= options_has_word(argc, argv, "--json");
	return r < 0 ? -EINVAL : 0;
}

void remote_options_free(struct remote_options *o)
{
	options_free(&o->parsed);
	free(o->rest);
	o->rest = NULL;
}

void remote_options_help(enum remote_verb verb, FILE *out)
{
	struct options p = table(verb);

	options_help(&p, OWN, out);
	(void)fprintf(out, "\nWhich daemon:\n");
	options_help(&p, DAEMON, out);
}

/* ---- lists as JSON -------------------------------------------------------------------------- */

json_t *remote_options_pairs(const char *const *list)
{
	json_t *o = json_object();

	for (; *list; list++) {
		const char *equals = strchr(*list, '=');
		json_t *key = equals ? json_stringn(*list, (size_t)(equals - *list)) : NULL;

		if (key)
			(void)json_object_set_new(o, json_string_value(key),
						  json_string(equals + 1));
		json_decref(key);
	}
	return o;
}

json_t *remote_options_list(const char *const *list, bool none)
{
	json_t *array = *list ? json_array() : NULL;

	if (none && *list && !list[1] && strcmp(*list, "none") == 0)
		return array;
	for (; *list; list++)
		(void)json_array_append_new(array, json_string(*list));
	return array;
}

json_t *remote_options_seconds(uint64_t ms)
{
	return ms % 1000 ? json_real((double)ms / 1000) : json_integer((json_int_t)(ms / 1000));
}

int remote_options_units(json_t *body, const char *key, const char *option, uint64_t value,
			 uint64_t unit, const char *what, struct err *e)
{
	if (value == 0 || value % unit)
		return err_say(e, -EINVAL, "%s: must be a whole number of %s, and at least one%s",
			       option, what,
			       unit > 1000 ? "; a number without a unit (K, M, G) is one of bytes" :
					     "");
	(void)json_object_set_new(body, key, json_integer((json_int_t)(value / unit)));
	return 0;
}

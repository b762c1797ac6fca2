/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_verb.c - `caisson mcp`: the MCP server that a host of models starts, and its configuration in
 * the form of each host.
 *
 * It uses the daemon that runs, so that sandboxes are shared with the other clients of that daemon.
 * When none runs, or options were given for one, it starts a daemon of its own, which ends with it.
 *
 * --print-config: hosts that can start programs are told to start this one, unless --url names a
 * daemon. A token is never printed: the host reads it from its environment or asks for it; where it
 * can do neither, a line on stderr tells the user to insert it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/own_daemon.h"
#include "remote/relay.h"
#include "remote/tty.h"
#include "remote/verb.h"

#define DEFAULT_URL "http://127.0.0.1:8001"
#define URL_MAX (sizeof(((struct url *)0)->base) + 8)

struct facts {
	const struct remote_options *o;
	char program[PATH_MAX];
	char url[URL_MAX]; /* empty: start the program */
	bool token;        /* the daemon requires one */
};

/* ---- the facts ------------------------------------------------------------------------------ */

/* Beside ourselves in a build tree; else where it was installed. */
static void find_program(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 16);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		memcpy(slash + 1, "caisson", sizeof("caisson"));
		if (access(path, X_OK) == 0)
			return;
	}
	(void)snprintf(path, size, "%s/caisson", CAISSON_BINDIR);
}

static void add(json_t *args, const char *name, const char *value)
{
	if (!value)
		return;
	(void)json_array_append_new(args, json_string(name));
	(void)json_array_append_new(args, json_string(value));
}

/* A host starts us in a directory of its own, so paths are made absolute. */
static void add_path(json_t *args, const char *name, const char *path)
{
	char here[PATH_MAX], whole[2 * PATH_MAX];

	if (path && path[0] != '/' && getcwd(here, sizeof(here))) {
		(void)snprintf(whole, sizeof(whole), "%s/%s", here, path);
		path = whole;
	}
	add(args, name, path);
}

static json_t *arguments(const struct remote_options *o)
{
	json_t *args = json_pack("[s]", "mcp");

	add_path(args, "--socket", o->socket);
	add(args, "--url", o->url);
	add_path(args, "--state", o->state);
	add_path(args, "--token-file", o->token_file);
	add_path(args, "--ca-file", o->ca_file);
	add(args, "--tools", o->tools);
	if (o->dashes)
		(void)json_array_append_new(args, json_string("--"));
	for (int i = 0; i < o->n_rest; i++)
		(void)json_array_append_new(args, json_string(o->rest[i]));
	return args;
}

static json_t *program(const struct facts *f)
{
	return json_pack("{s:s,s:o}", "command", f->program, "args", arguments(f->o));
}

/* @type: NULL where the host infers it from the URL. @bearer: how the host finds the token. */
static json_t *address(const struct facts *f, const char *type, const char *bearer)
{
	json_t *v = json_object();

	if (type)
		(void)json_object_set_new(v, "type", json_string(type));
	(void)json_object_set_new(v, "url", json_string(f->url));
	if (f->token)
		(void)json_object_set_new(v, "headers",
					  json_pack("{s:s}", "Authorization", bearer));
	return v;
}

static json_t *named(const char *list, json_t *server)
{
	return json_pack("{s:{s:o}}", list, "caisson", server);
}

/* ---- the hosts ------------------------------------------------------------------------------ */

static json_t *for_claude(const struct facts *f)
{
	return named("mcpServers",
		     f->url[0] ? address(f, "http", "Bearer ${CAISSON_TOKEN}") : program(f));
}

static json_t *for_cursor(const struct facts *f)
{
	return named("mcpServers",
		     f->url[0] ? address(f, NULL, "Bearer ${env:CAISSON_TOKEN}") : program(f));
}

static json_t *for_vscode(const struct facts *f)
{
	json_t *server = f->url[0] ? address(f, "http", "Bearer ${input:caisson_token}") :
				     program(f);
	json_t *all;

	if (!f->url[0])
		(void)json_object_set_new(server, "type", json_string("stdio"));
	all = named("servers", server);
	if (f->url[0] && f->token)
		(void)json_object_set_new(all, "inputs",
					  json_pack("[{s:s,s:s,s:s,s:b}]", "type", "promptString",
						    "id", "caisson_token", "description",
						    "Token of the Caisson daemon", "password", 1));
	return all;
}

/* It reads no variables: with a token it starts us, and we read the token from the file. */
static json_t *for_mcpo(const struct facts *f)
{
	return named("mcpServers",
		     f->url[0] && !f->token ? address(f, "streamable-http", NULL) : program(f));
}

/* It starts nothing, and has a list of its own (TOOL_SERVER_CONNECTIONS). */
static json_t *for_openwebui(const struct facts *f)
{
	if (f->token)
		(void)fprintf(stderr, "caisson: put the daemon's token into \"key\"\n");
	return json_pack("[{s:s,s:s,s:s,s:s,s:s,s:{s:b},s:{s:s,s:s,s:s}}]", "type", "mcp", "url",
			 f->url[0] ? f->url : DEFAULT_URL "/mcp", "path", "", "auth_type",
			 f->token ? "bearer" : "none", "key", "", "config", "enable", 1, "info",
			 "id", "caisson", "name", "Caisson", "description",
			 "Runs code in sealed sandboxes");
}

static const struct host {
	const char *name;
	json_t *(*make)(const struct facts *f);
} hosts[] = {
	{ "claude", for_claude }, { "cursor", for_cursor },       { "vscode", for_vscode },
	{ "mcpo", for_mcpo },     { "openwebui", for_openwebui },
};

static int collect(const struct remote_options *o, struct facts *f, struct err *e)
{
	const char *token = getenv("CAISSON_TOKEN");
	struct url url;

	*f = (struct facts){ .o = o, .token = o->token_file || (token && *token) };
	find_program(f->program, sizeof(f->program));
	if (!o->url)
		return 0;
	if (url_parse(o->url, &url, e) < 0)
		return err_wrap(e, "--url");
	(void)snprintf(f->url, sizeof(f->url), "%s/mcp", url.base);
	return 0;
}

static int print_config(const struct remote_options *o, struct err *e)
{
	struct facts f;

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		json_t *v;

		if (strcmp(hosts[i].name, o->print_config) != 0)
			continue;
		if (collect(o, &f, e) < 0)
			return -EINVAL;
		v = hosts[i].make(&f);
		(void)json_dumpf(v, stdout, JSON_INDENT(2));
		(void)printf("\n");
		json_decref(v);
		return 0;
	}
	return err_say(e, -EINVAL,
		       "--print-config %.32s: must be claude, cursor, vscode, mcpo or openwebui",
		       o->print_config);
}

/* ---- the verb ------------------------------------------------------------------------------- */

/* A daemon of our own, and a connection to it. */
static struct relay *open_private(struct session *s, struct own_daemon *d, int signals)
{
	struct remote_options at = { .socket = d->socket };
	struct api api;
	struct relay *r = NULL;

	s->problem = (struct problem){ 0 };
	if (own_daemon_start(d, s->o.tools, s->o.rest, signals, &s->problem) < 0)
		return NULL;
	if (api_open(&api, &at, &s->problem) == 0)
		r = relay_open(&api, signals, &s->problem);
	api_close(&api);
	return r;
}

static int serve(struct session *s)
{
	bool given = s->o.url || s->o.socket, own = s->o.dashes || s->o.tools;
	struct own_daemon d = { .keeper = -1, .lease = -1 };
	_fd_ int signals = tty_signals(false);
	struct relay *r = NULL;
	int code = -1;

	if (!own)
		r = relay_open(&s->api, signals, &s->problem);
	if (!r && (own || (!given && s->problem.exit_code == EXIT_NO_DAEMON)))
		r = open_private(s, &d, signals);
	if (r) {
		s->problem = (struct problem){ 0 };
		code = relay_run(r, &s->problem);
	}
	relay_close(r);
	own_daemon_stop(&d);
	return code;
}

int remote_mcp(struct session *s)
{
	const struct remote_options *o = &s->o;
	struct err e = { 0 };
	int code;

	if (o->print_config)
		return print_config(o, &e) < 0 ? problem_ours(&s->problem, &e) : 0;
	if (o->n_before > 0)
		return problem_wrong(&s->problem, "'%.64s': options of a daemon follow after --",
				     o->rest[0]);
	if ((o->url || o->socket) && (o->dashes || o->tools))
		return problem_wrong(
			&s->problem,
			"%s is for a daemon of our own: leave out --socket and --url, and "
			"CAISSON_SOCKET and CAISSON_URL",
			o->tools ? "--tools" : "--");
	code = serve(s);
	s->code = code < 0 ? 0 : code;
	return code < 0 ? -1 : 0;
}

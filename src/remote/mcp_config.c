/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_config.c - `caisson mcp --print-config`: the configuration of hosts of models, in the form of
 * each.
 *
 * Hosts that can start programs are told to start this one, unless --url names a daemon. A token is
 * never printed: the host reads it from its environment or asks for it; where it can do neither, a
 * line on stderr tells the user to insert it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/program.h"
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

/* ---- the hosts ------------------------------------------------------------------------------ */

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
	const char *list;   /* the member that has the servers; NULL: see for_openwebui() */
	const char *type;   /* of a URL; NULL: the host infers it */
	const char *bearer; /* how the host finds the token; NULL: it starts us where there is one,
			       and we read the token from the file */
	const char *local;  /* type of a program; NULL: none */
} hosts[] = {
	{ "claude", "mcpServers", "http", "Bearer ${CAISSON_TOKEN}" },
	{ "cursor", "mcpServers", NULL, "Bearer ${env:CAISSON_TOKEN}" },
	{ "vscode", "servers", "http", "Bearer ${input:caisson_token}", "stdio" },
	{ "mcpo", "mcpServers", "streamable-http", NULL },
	{ "openwebui", NULL, NULL, NULL },
};

static json_t *make(const struct host *h, const struct facts *f)
{
	bool remote = f->url[0] && (h->bearer || !f->token);

	if (!h->list)
		return for_openwebui(f);
	json_t *server = remote ? json_pack("{s:s*, s:s}", "type", h->type, "url", f->url) :
				  json_pack("{s:s, s:o, s:s*}", "command", f->program, "args",
					    arguments(f->o), "type", h->local);

	if (remote && f->token)
		(void)json_object_set_new(server, "headers",
					  json_pack("{s:s}", "Authorization", h->bearer));
	json_t *all = json_pack("{s:{s:o}}", h->list, "caisson", server);

	if (h->local && remote && f->token)
		(void)json_object_set_new(all, "inputs",
					  json_pack("[{s:s,s:s,s:s,s:b}]", "type", "promptString",
						    "id", "caisson_token", "description",
						    "Token of the Caisson daemon", "password", 1));
	return all;
}

static int collect(const struct remote_options *o, struct facts *f, struct err *e)
{
	const char *token = getenv("CAISSON_TOKEN");
	struct url url;

	*f = (struct facts){ .o = o, .token = o->token_file || (token && *token) };
	/* Beside ourselves in a build tree; else where it was installed. */
	if (program_find("caisson", f->program, sizeof(f->program), NULL) < 0)
		(void)snprintf(f->program, sizeof(f->program), "%s/caisson", CAISSON_BINDIR);
	if (!o->url)
		return 0;
	if (url_parse(o->url, &url, e) < 0)
		return err_wrap(e, "--url");
	(void)snprintf(f->url, sizeof(f->url), "%s/mcp", url.base);
	return 0;
}

int mcp_print_config(const struct remote_options *o, struct err *e)
{
	struct facts f;

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		if (strcmp(hosts[i].name, o->print_config) != 0)
			continue;
		if (collect(o, &f, e) < 0)
			return -EINVAL;
		json_auto_t *v = make(&hosts[i], &f);

		(void)json_dumpf(v, stdout, JSON_INDENT(2));
		(void)printf("\n");
		return 0;
	}
	return err_say(e, -EINVAL,
		       "--print-config %.32s: must be claude, cursor, vscode, mcpo or openwebui",
		       o->print_config);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - From the text of a configuration to the servers in it.
 *
 * Every value is checked here, so that no later step fails because of the text: types, line ends in
 * headers, NUL in arguments, addresses without a scheme. The message has the path of the key.
 */
#include "bridge/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "mcp/tool_rules.h"
#include "wire/bridge.h"

#define NAME_MAX_BYTES 128

/* One entry that is being read. */
struct entry {
	const struct bridge_config *config;
	const char *file, *group, *name;
	struct server_config *s;
	struct err *e;
};

__attribute__((format(printf, 3, 4))) static int wrong(const struct entry *x, const char *key,
						       const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_say(x->e, -EINVAL, "%s: %s.%s%s%s: %s", x->file, x->group, x->name,
		       key[0] ? "." : "", key, text);
}

/* A text, expanded. @v: NULL is no error, and leaves @ret alone. */
static int take_text(const struct entry *x, const json_t *v, const char *key, char **ret)
{
	struct err why = { 0 };

	if (!v)
		return 0;
	if (!json_is_string(v))
		return wrong(x, key, "must be a string");
	if (strlen(json_string_value(v)) != json_string_length(v))
		return wrong(x, key, "must not contain a NUL character");
	*ret = bridge_expand(json_string_value(v), x->config->variable, &why);
	return *ret ? 0 : wrong(x, key, "%s", why.msg);
}

static int take_args(const struct entry *x, const json_t *command, const json_t *args)
{
	size_t n = json_array_size(args);
	char key[32];

	if (args && !json_is_array(args))
		return wrong(x, "args", "must be a list of strings");
	x->s->argv = calloc(n + 2, sizeof(char *));
	if (!x->s->argv)
		return err_set(x->e, -ENOMEM, "read %s", x->file);
	if (take_text(x, command, "command", &x->s->argv[0]) < 0)
		return x->e->code;
	if (!x->s->argv[0][0])
		return wrong(x, "command", "must name a program");
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "args[%zu]", i);
		if (take_text(x, json_array_get(args, i), key, &x->s->argv[i + 1]) < 0)
			return x->e->code;
	}
	return 0;
}

/* env and headers: an object of strings, as NAME<between>value. */
static int take_pairs(const struct entry *x, json_t *pairs, const char *key, const char *between,
		      char ***ret)
{
	const char *name;
	json_t *v;
	size_t n = 0;
	char path[160];

	if (pairs && !json_is_object(pairs) && !json_is_null(pairs))
		return wrong(x, key, "must be an object of strings");
	*ret = calloc(json_object_size(pairs) + 1, sizeof(char *));
	if (!*ret)
		return err_set(x->e, -ENOMEM, "read %s", x->file);
	json_object_foreach(pairs, name, v)
	{
		_mem_ char *text = NULL;
		bool header = between[0] == ':';

		(void)snprintf(path, sizeof(path), "%s.%.100s", key, name);
		if (!name[0] || strpbrk(name, header ? ": \t\r\n" : "="))
			return wrong(x, path, "is not a valid name of a %s",
				     header ? "header" : "variable");
		if (take_text(x, v, path, &text) < 0)
			return x->e->code;
		if (header && strpbrk(text, "\r\n"))
			return wrong(x, path, "must be one line");
		if (asprintf(&(*ret)[n], "%s%s%s", name, between, text) < 0) {
			(*ret)[n] = NULL;
			return err_set(x->e, -ENOMEM, "read %s", x->file);
		}
		n++;
	}
	return 0;
}

static int take_remote(const struct entry *x, const json_t *entry, const json_t *type)
{
	const char *kind = json_string_value(type);

	if (take_text(x, json_object_get(entry, "url"), "url", &x->s->url) < 0)
		return x->e->code;
	if ((strncmp(x->s->url, "http://", 7) != 0 && strncmp(x->s->url, "https://", 8) != 0) ||
	    strpbrk(x->s->url, " \t\r\n"))
		return wrong(x, "url", "must begin with http:// or https://, and have no blanks");
	x->s->transport = BRIDGE_HTTP;
	x->s->maybe_sse = !kind;
	if (kind && strcmp(kind, "sse") == 0)
		x->s->transport = BRIDGE_SSE;
	else if (kind && strcmp(kind, "http") != 0 && strcmp(kind, "streamable-http") != 0 &&
		 strcmp(kind, "streamable_http") != 0 && strcmp(kind, "streamableHttp") != 0)
		return wrong(x, "type", "'%.40s' is unknown with a url; there are: http, sse",
			     kind);
	return take_pairs(x, json_object_get(entry, "headers"), "headers", ": ", &x->s->headers);
}

static int take_local(const struct entry *x, const json_t *entry, const json_t *type)
{
	const char *kind = json_string_value(type);

	if (kind && strcmp(kind, "stdio") != 0)
		return wrong(x, "type", "'%.40s' needs a url; with a command it is stdio", kind);
	x->s->transport = BRIDGE_STDIO;
	if (take_args(x, json_object_get(entry, "command"), json_object_get(entry, "args")) < 0 ||
	    take_pairs(x, json_object_get(entry, "env"), "env", "=", &x->s->env) < 0)
		return x->e->code;
	return take_text(x, json_object_get(entry, "cwd"), "cwd", &x->s->cwd);
}

static int take_patience(const struct entry *x, const json_t *entry)
{
	static const struct {
		const char *key;
		double ms;
	} keys[] = { { "startup_timeout_sec", 1000 }, { "startup_timeout_ms", 1 } };

	x->s->start_ms = BRIDGE_START_MS;
	for (size_t i = 0; i < 2; i++) {
		const json_t *v = json_object_get(entry, keys[i].key);
		double ms = json_number_value(v) * keys[i].ms;

		if (!v || json_is_null(v))
			continue;
		if (!json_is_number(v) || !(ms >= 1) || ms > BRIDGE_START_MAX_MS)
			return wrong(x, keys[i].key, "must be a number above 0, of at most %u s",
				     BRIDGE_START_MAX_MS / 1000);
		x->s->start_ms = (unsigned int)ms;
	}
	return 0;
}

static int take_rules(const struct entry *x, json_t *rules)
{
	char where[NAME_MAX_BYTES + 64];
	struct tool_rules parsed;
	struct err why = { 0 };

	if (!rules)
		return 0;
	(void)snprintf(where, sizeof(where), "%s.%s.caisson", x->group, x->name);
	int r = tool_rules_parse(rules, false, where, &parsed, &why);

	tool_rules_free(&parsed);
	if (r < 0)
		return err_say(x->e, -EINVAL, "%s: %s", x->file, why.msg);
	x->s->rules = json_incref(rules);
	return 0;
}

static int take_entry(const struct entry *x, json_t *entry)
{
	const json_t *type = json_object_get(entry, "type");
	bool url = json_object_get(entry, "url"), command = json_object_get(entry, "command");

	if (!type)
		type = json_object_get(entry, "transport");
	if (type && !json_is_string(type))
		return wrong(x, "type", "must be a string");
	if (url == command)
		return wrong(x, "", "%s",
			     url ? "has both a command and a url: remove one" :
				   "needs a command (of a program to start) or a url");
	x->s->name = strdup(x->name);
	x->s->file = strdup(x->file);
	if (!x->s->name || !x->s->file)
		return err_set(x->e, -ENOMEM, "read %s", x->file);
	if (take_text(x, json_object_get(entry, "description"), "description", &x->s->description) <
		    0 ||
	    take_patience(x, entry) < 0 || take_rules(x, json_object_get(entry, "caisson")) < 0)
		return x->e->code;
	return url ? take_remote(x, entry, type) : take_local(x, entry, type);
}

/* ---- all of them --------------------------------------------------------------------------- */

static void free_server(struct server_config *s)
{
	free(s->name);
	free(s->description);
	free(s->cwd);
	free(s->url);
	free(s->file);
	mem_free_list(s->argv);
	mem_free_list(s->env);
	mem_free_list(s->headers);
	json_decref(s->rules);
	*s = (struct server_config){ 0 };
}

void bridge_config_free(struct bridge_config *c)
{
	for (size_t i = 0; i < c->n; i++)
		free_server(&c->servers[i]);
	free(c->servers);
	c->servers = NULL;
	c->n = c->cap = 0;
}

static bool alias_taken(const void *arg, const char *alias)
{
	const struct bridge_config *c = arg;

	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->servers[i].alias, alias) == 0)
			return true;
	return false;
}

static const struct server_config *named(const struct bridge_config *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->servers[i].name, name) == 0)
			return &c->servers[i];
	return NULL;
}

static void note(const struct bridge_config *c, const struct entry *x, const char *text)
{
	char line[600];

	(void)snprintf(line, sizeof(line), "%s: %s.%s: %s", x->file, x->group, x->name, text);
	if (c->note)
		c->note(c->arg, line);
}

/* Hosts have keys of their own, so an unknown one is no error; but a key like "agrs" is noted. */
static void note_typos(const struct bridge_config *c, const struct entry *x, json_t *entry)
{
	const char *key, *meant;
	char text[200];
	json_t *v;

	json_object_foreach(entry, key, v)
	{
		meant = bridge_key_meant(key);
		if (!meant || json_object_get(entry, meant))
			continue;
		(void)snprintf(text, sizeof(text),
			       "'%.64s' is not known, and passed over: is '%s' meant?", key, meant);
		note(c, x, text);
	}
}

static int keep(struct bridge_config *c, struct server_config *s, struct err *e)
{
	if (mem_grow(&c->servers, &c->cap, c->n + 1, sizeof(*c->servers)) < 0)
		return err_set(e, -ENOMEM, "remember a server");
	bridge_alias(s->name, alias_taken, c, s->alias, sizeof(s->alias));
	c->servers[c->n++] = *s;
	*s = (struct server_config){ 0 };
	return 0;
}

static int add_entry(struct bridge_config *c, const struct entry *x, json_t *entry, bool ours)
{
	const struct server_config *other = named(c, x->name);
	const json_t *disabled = json_object_get(entry, "disabled");
	const json_t *enabled = json_object_get(entry, "enabled");
	struct server_config s = { 0 };
	int r;

	if (!json_is_object(entry))
		return wrong(x, "", "must be an object");
	if (!x->name[0] || strlen(x->name) > NAME_MAX_BYTES)
		return wrong(x, "", "a name has 1 to 128 bytes");
	if ((disabled && !json_is_boolean(disabled)) || (enabled && !json_is_boolean(enabled)))
		return wrong(x, disabled ? "disabled" : "enabled", "must be true or false");
	if (json_is_true(disabled) || json_is_false(enabled))
		return 0;
	if (other && ours)
		return wrong(x, "", "there is a server of that name in %.120s already",
			     other->file);
	if (other)
		return 0;
	if (c->n == BRIDGE_SERVERS_MAX)
		return err_say(x->e, -E2BIG, "%s: more than %u servers in all", x->file,
			       BRIDGE_SERVERS_MAX);
	struct entry filled = *x;

	filled.s = &s;
	note_typos(c, x, entry);
	r = take_entry(&filled, entry);
	if (r == 0 && bridge_is_self(&s, c->self))
		note(c, x, "left out: it is caisson itself, and calls would go round in circles");
	else if (r == 0)
		r = keep(c, &s, x->e);
	free_server(&s);
	return r;
}

int bridge_config_add(struct bridge_config *c, const char *file, const char *text, size_t len,
		      bool ours, struct err *e)
{
	json_error_t where;
	json_auto_t *all = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	json_t *servers, *entry;
	const char *group = json_object_get(all, "mcpServers") ? "mcpServers" : "servers";
	struct entry x = { .config = c, .file = file, .group = group, .e = e };
	int r = 0;

	if (!all)
		return err_say(e, -EINVAL, "%s:%d:%d: %s", file, where.line, where.column,
			       where.text);
	servers = json_object_get(all, group);
	if (!json_is_object(servers) && (ours || servers))
		r = err_say(
			e, -EINVAL,
			"%s: must be an object with a member mcpServers (or servers), an object of "
			"servers by name",
			file);
	json_object_foreach(servers, x.name, entry)
	{
		r = add_entry(c, &x, entry, ours);
		if (r == -EINVAL && !ours && c->note) {
			c->note(c->arg, e->msg);
			*e = (struct err){ 0 };
			r = 0;
		}
		if (r < 0)
			break;
	}
	return r;
}

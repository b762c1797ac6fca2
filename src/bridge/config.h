/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - MCP servers as hosts write them down: mcpServers (or servers, as VS Code has it) in
 * JSON.
 *
 *   { "mcpServers": { "github": { "command": "npx", "args": ["-y", "..."], "env": {"TOKEN":
 * "${env:TOKEN}"} }, "weather": { "url": "https://...", "type": "http", "headers": {...} } } }
 *
 * Of an entry are known: command, args, env, cwd; url, type (or transport), headers;
 * startup_timeout_sec (or _ms); description, disabled (or enabled), caisson (the rules for its
 * tools, src/mcp/tool_rules.h). Others are hosts' own, and passed over, with a note where one of
 * these was meant. Texts may have ${NAME}, ${env:NAME} and
 * ${NAME:-default}. A server that is this daemon is left out. Errors name file and key.
 */
#ifndef CAISSON_BRIDGE_CONFIG_H
#define CAISSON_BRIDGE_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

enum bridge_transport { BRIDGE_STDIO, BRIDGE_HTTP, BRIDGE_SSE };

/* Less than the default time of an execution: a call to a server that does not answer fails before
 * the time of its caller is over. */
#define BRIDGE_START_MS 20000u
#define BRIDGE_START_MAX_MS 600000u

struct server_config {
	char *name;
	char alias[80];
	char *description; /* or NULL */
	enum bridge_transport transport;
	bool maybe_sse; /* the entry has no type: the older wire is tried after BRIDGE_HTTP */
	/* stdio; lists end with NULL */
	char **argv;
	char **env; /* NAME=value */
	char *cwd;  /* or NULL */
	/* http, sse */
	char *url;
	char **headers;        /* "Name: value" */
	unsigned int start_ms; /* how long it may take until it answers */
	json_t *rules;         /* or NULL */
	char *file;            /* where it was found */
};

struct bridge_config {
	struct server_config *servers;
	size_t n, cap;
	/* A note that is no error: an entry or key that was left out, and why. May be NULL. */
	void (*note)(void *arg, const char *text);
	void *arg;
	const char *const *self; /* addresses of this daemon, as in 127.0.0.1:8001; ends with NULL;
				    may be NULL */
	const char *(*variable)(const char *name); /* getenv, or a test's */
};

/*
 * bridge_config_add() - The servers of one file. @text: its content. @ours: a server of a name that
 * is already there is an error; otherwise (files that were looked for) it is passed over, and so is
 * a file without servers. Return: 0, -EINVAL, -E2BIG (too many), -ENOMEM.
 */
int bridge_config_add(struct bridge_config *c, const char *file, const char *text, size_t len,
		      bool ours, struct err *e);
void bridge_config_free(struct bridge_config *c);

/* bridge_expand() - ${...} in @s; the caller's to free. NULL with @e set: a variable is not there.
 */
char *bridge_expand(const char *s, const char *(*variable)(const char *), struct err *e);

/*
 * bridge_alias() - An identifier of Python and JavaScript for a name: other characters are _, a
 * leading digit gets one in front, a keyword one behind it. @taken: whether there is that one
 * already; then a number is put behind it.
 */
void bridge_alias(const char *name, bool (*taken)(const void *arg, const char *alias),
		  const void *arg, char *ret, size_t size);

/* bridge_key_meant() - The key of an entry that @key is nearly, but not quite; NULL: it is one, or
 * nothing like one. Pure. */
const char *bridge_key_meant(const char *key);

/* bridge_is_self() - Whether this entry is caisson's own MCP server: calls would go round in
 * circles. */
bool bridge_is_self(const struct server_config *s, const char *const *addresses);

/* bridge_read_file() - All of a configuration file into @ret, which has no content yet. */
#define BRIDGE_FILE_MAX (16u << 20)
int bridge_read_file(int fd, const char *name, struct buf *ret, struct err *e);

/*
 * bridge_discover() - Add the servers in the usual hosts' files below @home and in the directory
 * @cwd. A file that is not there is passed over; one that makes no sense is noted. @cwd: or NULL.
 */
int bridge_discover(struct bridge_config *c, const char *home, const char *cwd, struct err *e);

/*
 * bridge_supervise() - The worker, which serves the front (worker.c), and another one when it is
 * killed, until the front closes @fd. Return: the exit status.
 */
int bridge_supervise(const struct bridge_config *c, int fd);

#endif

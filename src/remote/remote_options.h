/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_options.h - The options of all verbs that ask a daemon (base/options.h).
 *
 * Options and other arguments may be mixed and end at "--". For `run` and `exec` they end at the
 * first other argument, because the rest belongs to the program.
 */
#ifndef CAISSON_REMOTE_REMOTE_OPTIONS_H
#define CAISSON_REMOTE_REMOTE_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"

struct err;

#define REMOTE_LIST_MAX 256

enum remote_verb {
	OPT_PS = 1u << 0,
	OPT_CREATE = 1u << 1,
	OPT_EXEC = 1u << 2,
	OPT_RUN = 1u << 3,
	OPT_SHELL = 1u << 4,
	OPT_LOGS = 1u << 5,
	OPT_CP = 1u << 6,
	OPT_RM = 1u << 7,
	OPT_STOP = 1u << 8,
	OPT_KILL = 1u << 9,
	OPT_TOP = 1u << 10,
	OPT_PORT = 1u << 11,
	OPT_MCP = 1u << 12,
	OPT_NET = 1u << 13,
	OPT_APPROVE = 1u << 14,
	OPT_INSTALL = 1u << 15,
	OPT_WORKSPACE = 1u << 16,
	OPT_REPORT = 1u << 17,
};

struct remote_options {
	const char *socket, *url, *state;  /* where the daemon is */
	const char *token_file, *ca_file;  /* its token, its certificates */
	const char *name;                  /* --name */
	const char *lang, *code, *workdir; /* NULL: not given */
	const char *image, *workspace, *oom;
	const char *listen;               /* [ADDRESS:]PORT */
	const char *tools, *print_config; /* of `mcp` */
	const char *tool_rules;           /* JSON */
	const char *reason;               /* of `approve` */
	/* Lists end with NULL. */
	const char *server[REMOTE_LIST_MAX + 1];
	const char *env[REMOTE_LIST_MAX + 1], *label[REMOTE_LIST_MAX + 1]; /* "K=V" */
	const char *egress[REMOTE_LIST_MAX + 1];                           /* hosts */
	const char *secrets[REMOTE_LIST_MAX + 1];                          /* names */
	const char *mounts[REMOTE_LIST_MAX + 1]; /* paths in the sandbox */
	uint64_t memory_bytes, pids, disk_bytes;
	uint32_t cpus_milli;
	uint64_t timeout_ms, idle_ms, grace_ms, tail;
	bool json, all, follow, recursive, send_stdin, force, close, deny, upgrade;
	char **rest; /* the other arguments, in order; ends with NULL */
	int n_rest;
	bool dashes;           /* there was a "--" */
	int n_before;          /* how many of rest stood before it */
	char command[32];      /* "caisson ps" */
	struct options parsed; /* options_given() */
};

/*
 * remote_options_parse() - The environment, then the arguments.
 * @argv: argv[0] is the verb.
 * Return: 0, 1 when help was asked for, or -EINVAL with one line that names the option and the
 * remedy; then json is set if it was asked for. remote_options_free() in every case.
 */
int remote_options_parse(enum remote_verb verb, int argc, char **argv, struct remote_options *ret,
			 struct err *e);
void remote_options_free(struct remote_options *o);

/* remote_options_help() - The option lines of a verb: its own first, then those of the daemon. */
void remote_options_help(enum remote_verb verb, FILE *out);

/*
 * remote_options_list() - A list as a new array; NULL: it is empty.
 * @none: the word "none" alone is an array without items.
 */
json_t *remote_options_list(const char *const *list, bool none);

/* remote_options_pairs() - "K=V" as a new object; the last value of a key counts. */
json_t *remote_options_pairs(const char *const *list);

/*
 * remote_options_units() - @value of @option as whole units, at least one: a daemon that is asked
 * for MiB must not be given less than was typed. 0 or -EINVAL.
 */
int remote_options_units(json_t *body, const char *key, const char *option, uint64_t value,
			 uint64_t unit, const char *what, struct err *e);

/* remote_options_seconds() - A new number: an integer where @ms are whole seconds. */
json_t *remote_options_seconds(uint64_t ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - What a person asked for, for all verbs that speak to a daemon.
 *
 * One table describes every option: its names, its CAISSON_* variable, its verbs, its help line and its
 * parser. Options and other arguments may be mixed and end at "--"; for `run` and `exec` they end at the
 * first argument that is none, because what follows belongs to the program.
 */
#ifndef CAISSON_REMOTE_OPTIONS_H
#define CAISSON_REMOTE_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

#define OPTIONS_LIST_MAX 256

enum options_verb {
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
	OPT_INSTALL = 1u << 20,
	OPT_WORKSPACE = 1u << 21,
};

/* Which of the numbers below were given. */
enum options_given {
	GIVEN_MEMORY = 1u << 0,
	GIVEN_CPUS = 1u << 1,
	GIVEN_PIDS = 1u << 2,
	GIVEN_DISK = 1u << 3,
	GIVEN_TIMEOUT = 1u << 4,
	GIVEN_IDLE = 1u << 5,
	GIVEN_GRACE = 1u << 6,
	GIVEN_TAIL = 1u << 7,
};

struct options {
	const char *socket, *url, *state;  /* where the daemon is */
	const char *token_file, *ca_file;  /* who we are, who it is */
	const char *name;                  /* --name */
	const char *lang, *code, *workdir; /* NULL: not given */
	const char *image, *workspace;
	const char *listen;               /* [ADDRESS:]PORT */
	const char *tools, *print_config; /* of `mcp` */
	const char *tool_rules;           /* JSON */
	const char *reason;               /* of a word */
	const char *server[OPTIONS_LIST_MAX];
	const char *env[OPTIONS_LIST_MAX], *label[OPTIONS_LIST_MAX]; /* "K=V" */
	const char *egress[OPTIONS_LIST_MAX];                        /* hosts */
	const char *secrets[OPTIONS_LIST_MAX];                       /* names */
	const char *mounts[OPTIONS_LIST_MAX];                        /* places */
	size_t n_env, n_label, n_egress, n_server, n_secrets, n_mounts;
	uint64_t memory_bytes, cpus_milli, pids, disk_bytes;
	uint64_t timeout_ms, idle_ms, grace_ms, tail;
	unsigned int given; /* enum options_given */
	bool json, all, follow, recursive, send_stdin, force, close, deny;
	char **rest; /* what is no option, in order; ends with NULL */
	int n_rest;
	bool dashes;  /* a "--" stood before what is left in rest */
	int n_before; /* how many of rest stood before it */
};

/*
 * options_parse() - The environment, then the arguments.
 * @argv: argv[0] is the verb.
 * Return: 0, 1 when help was asked for, or -EINVAL with one line that names the option and the fix; json is
 * set even then when it was asked for. options_free() in every case.
 */
int options_parse(enum options_verb verb, int argc, char **argv, struct options *ret,
		  struct err *e);
void options_free(struct options *o);

/* options_help() - The option lines of a verb: its own first, then how the daemon is found. */
void options_help(enum options_verb verb, FILE *out);

/* options_egress() - The hosts as a new array; NULL: none were given. "none" alone is an empty one. */
json_t *options_egress(const struct options *o);
/* options_mounts() - Places, likewise. */
json_t *options_mounts(const struct options *o);
/* options_secrets() - Their names as a new array. */
json_t *options_secrets(const struct options *o);

/* options_pairs() - "K=V" as a new object; of a key that comes twice the last value counts. */
json_t *options_pairs(const char *const *list, size_t n);

#endif

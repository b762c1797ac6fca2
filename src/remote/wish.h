/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wish.h - What a person asked for, for all verbs that speak to a daemon.
 *
 * One table describes every option: its names, its CAISSON_* variable, its verbs, its help line and its
 * parser. Options and other arguments may be mixed and end at "--"; for `run` and `exec` they end at the
 * first argument that is none, because what follows belongs to the program.
 */
#ifndef CAISSON_REMOTE_WISH_H
#define CAISSON_REMOTE_WISH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

#define WISH_LIST_MAX 256

enum wish_verb {
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
enum wish_given {
	GIVEN_MEMORY = 1u << 0,
	GIVEN_CPUS = 1u << 1,
	GIVEN_PIDS = 1u << 2,
	GIVEN_DISK = 1u << 3,
	GIVEN_TIMEOUT = 1u << 4,
	GIVEN_IDLE = 1u << 5,
	GIVEN_GRACE = 1u << 6,
	GIVEN_TAIL = 1u << 7,
};

struct wish {
	const char *socket, *url, *state;  /* where the daemon is */
	const char *token_file, *ca_file;  /* who we are, who it is */
	const char *name;                  /* --name */
	const char *lang, *code, *workdir; /* NULL: not given */
	const char *image, *workspace;
	const char *listen;               /* [ADDRESS:]PORT */
	const char *tools, *print_config; /* of `mcp` */
	const char *tool_rules;           /* JSON */
	const char *reason;               /* of a word */
	const char *server[WISH_LIST_MAX];
	const char *env[WISH_LIST_MAX], *label[WISH_LIST_MAX]; /* "K=V" */
	const char *egress[WISH_LIST_MAX];                     /* hosts */
	const char *secrets[WISH_LIST_MAX];                    /* names */
	const char *mounts[WISH_LIST_MAX];                     /* places */
	size_t n_env, n_label, n_egress, n_server, n_secrets, n_mounts;
	uint64_t memory_bytes, cpus_milli, pids, disk_bytes;
	uint64_t timeout_ms, idle_ms, grace_ms, tail;
	unsigned int given; /* enum wish_given */
	bool json, all, follow, recursive, send_stdin, force, close, deny;
	char **rest; /* what is no option, in order; ends with NULL */
	int n_rest;
	bool dashes;  /* a "--" stood before what is left in rest */
	int n_before; /* how many of rest stood before it */
};

/*
 * wish_parse() - The environment, then the arguments.
 * @argv: argv[0] is the verb.
 * Return: 0, 1 when help was asked for, or -EINVAL with one line that names the option and the fix; json is
 * set even then when it was asked for. wish_free() in every case.
 */
int wish_parse(enum wish_verb verb, int argc, char **argv, struct wish *ret, struct err *e);
void wish_free(struct wish *o);

/* wish_help() - The option lines of a verb: its own first, then how the daemon is found. */
void wish_help(enum wish_verb verb, FILE *out);

/* wish_egress() - The hosts as a new array; NULL: none were given. "none" alone is an empty one. */
json_t *wish_egress(const struct wish *o);
/* wish_mounts() - Places, likewise. */
json_t *wish_mounts(const struct wish *o);
/* wish_secrets() - Their names as a new array. */
json_t *wish_secrets(const struct wish *o);

/* wish_pairs() - "K=V" as a new object; of a key that comes twice the last value counts. */
json_t *wish_pairs(const char *const *list, size_t n);

#endif

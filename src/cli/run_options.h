/* SPDX-License-Identifier: Apache-2.0 */
/* run_options.h - The options of `caisson run`, `exec` and `doctor` (base/options.h). */
#ifndef CAISSON_CLI_RUN_OPTIONS_H
#define CAISSON_CLI_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "wire/warden.h"

struct err;

#define RUN_ENV_MAX 1024

struct run_options {
	struct cell_spec spec;
	const char *lang;        /* NULL: by suffix, else python */
	const char *workdir;     /* NULL: /workspace */
	const char *state;       /* NULL: the default place */
	const char *code;        /* -c */
	const char *image_path;  /* for dir: images */
	const char *image_ref;   /* for images of the store */
	const char *image_store; /* NULL: the default place */
	const char *image_pull;  /* missing, never */
	const char *mount_src[CELL_MOUNTS_MAX];
	const char *env[RUN_ENV_MAX + 1]; /* "K=V", ends with NULL */
	uint32_t uid, gid;
	uint64_t timeout_ms;
	uint64_t max_output; /* 0 = none */
	uint64_t capture_chars;
	bool json, receipt, tty;
	struct options parsed; /* where each value came from; the first other argument */
};

enum run_verb { VERB_RUN = 1u << 0, VERB_EXEC = 1u << 1, VERB_DOCTOR = 1u << 2 };

/*
 * run_options_parse() - Defaults, then the environment, then the arguments.
 * @argv: argv[0] is the verb. Options end at the first other argument, or at "--".
 * Return: 0, 1 when help was asked for, or -EINVAL with one line that names the option and the fix.
 */
int run_options_parse(enum run_verb verb, int argc, char **argv, struct run_options *ret,
		      struct err *e);

/* run_options_sandbox() - Whether --name is among the options: then caisson-remote parses them. */
bool run_options_sandbox(enum run_verb verb, int argc, char **argv);

/* run_options_help() - The option lines of a verb. */
void run_options_help(enum run_verb verb, FILE *out);

#endif

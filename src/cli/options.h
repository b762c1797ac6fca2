/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - What a person asked for on the command line or in the environment.
 *
 * One table describes every option: its name, its CAISSON_* variable, its help line and its
 * parser; the help text, the parser and the messages come from it.
 */
#ifndef CAISSON_CLI_OPTIONS_H
#define CAISSON_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wire/warden.h"

struct err;

#define OPTIONS_ENV_MAX 1024

struct options {
	struct cell_spec spec;
	const char *lang;        /* NULL: by suffix, else python */
	const char *workdir;     /* NULL: /workspace */
	const char *state;       /* NULL: the default place */
	const char *code;        /* -c */
	const char *image_path;  /* for dir: images */
	const char *image_ref;   /* for images of the store */
	const char *image_store; /* NULL: the default place */
	const char *mount_src[CELL_MOUNTS_MAX];
	const char *env[OPTIONS_ENV_MAX]; /* "K=V" */
	size_t n_env;
	uint32_t uid, gid;
	uint64_t timeout_ms;
	uint64_t max_output; /* 0 = none */
	uint64_t capture_chars;
	bool json, receipt, tty;
	bool cpus_given, user_given;  /* asked for, not the default */
	int rest;                     /* index of the first argument that is not an option */
	char *owned[CELL_MOUNTS_MAX]; /* copies that mount_src points into */
};

enum options_verb { OPTIONS_RUN = 1u << 0, OPTIONS_EXEC = 1u << 1, OPTIONS_DOCTOR = 1u << 2 };

/*
 * options_parse() - Defaults, then the environment, then the arguments.
 * @argv: argv[0] is the verb. Options end at the first other argument, or at "--".
 * Return: 0, 1 when help was asked for, or -EINVAL with one line that names the option and the fix.
 */
int options_parse(enum options_verb verb, int argc, char **argv, struct options *ret,
		  struct err *e);

/* options_sandbox() - Whether --name is among the options: then they are caisson-remote's to parse. */
bool options_sandbox(enum options_verb verb, int argc, char **argv);

void options_free(struct options *o);

/* options_help() - The option lines of a verb. */
void options_help(enum options_verb verb, FILE *out);

/* options_state_dir() - Where the journal is kept. */
int options_state_dir(const struct options *o, char *path, size_t size, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - One function per verb of `caisson image`, and what they share. argv[0] is the verb. */
#ifndef CAISSON_IMAGE_VERBS_H
#define CAISSON_IMAGE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "image/ref.h"
#include "image/store.h"

int verb_pull(int argc, char **argv);
int verb_import(int argc, char **argv);
int verb_ls(int argc, char **argv);
int verb_inspect(int argc, char **argv);
int verb_rm(int argc, char **argv);
int verb_prune(int argc, char **argv);
int verb_build(int argc, char **argv);
int verb_verify(int argc, char **argv);

#define ALLOW_MAX 64

/* Options of all of them; each verb has those that its form names. */
struct image_options {
	const char *store, *ca, *authfile, *name;
	bool json, quiet, insecure, all;
	const char *package, *suite, *mirror; /* of build */
	const char *allow; /* patterns with commas between them; NULL: anything */
	char **rest;       /* the other arguments; owned */
	int n_rest;
};

enum image_verb {
	OPT_PULL = 1 << 0,
	OPT_IMPORT = 1 << 1,
	OPT_LS = 1 << 2,
	OPT_INSPECT = 1 << 3,
	OPT_RM = 1 << 4,
	OPT_PRUNE = 1 << 5,
	OPT_BUILD = 1 << 6,
	OPT_VERIFY = 1 << 7,
	OPT_ALL = (1 << 8) - 1,
};

struct form {
	enum image_verb verb;
	const char *usage, *text;
	int min, max; /* of other arguments */
};

/*
 * image_begin() - Parse the options.
 * Return: true, go on and call image_end(); false: *ret_exit is all there is to say.
 */
bool image_begin(struct image_options *o, const struct form *form, int argc, char **argv,
		 int *ret_exit);
/* image_end() - Say what went wrong, if anything. Return: the exit code. */
int image_end(struct image_options *o, const struct err *e);

/* image_allowed() - Whether --allow lets this one through. 0 or -EACCES. */
int image_allowed(const struct image_options *o, const struct ref *ref, struct err *e);

/* image_change() - Open the store to change it; says so when it has to wait. */
int image_change(const struct image_options *o, struct store *s, struct err *e);

/* image_dropped() - A line on stderr about what layers had that is not in the store. */
struct pull_result;
void image_dropped(const struct image_options *o, const struct pull_result *r);
/* image_done() - The last word of pull and import. */
void image_done(const struct image_options *o, const struct pull_result *r);

#endif

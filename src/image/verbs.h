/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - One function per verb of `caisson image`, and functions that they share. */
#ifndef CAISSON_IMAGE_VERBS_H
#define CAISSON_IMAGE_VERBS_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "base/err.h"
#include "image/image_store.h"
#include "image/ref.h"

#define IMAGE_BUILD_NAME "caisson/base" /* of an image that is built without a name */

struct incoming_result;
struct refs;
struct refs_row;

/* The options of all verbs; the table in main.c has the verbs that each option belongs to. */
struct image_options {
	const char *store, *ca, *authfile, *name;
	bool json, quiet, insecure, all;
	const char *package, *suite, *mirror; /* of build */
	const char *allow; /* patterns, separated by commas; NULL: anything is allowed */
	char **rest;       /* the other arguments */
	int n_rest;
	bool prune; /* the verb is prune, not rm */
};

/*
 * A verb prints its result on stdout. @s is closed by the caller, and is not open yet: most verbs
 * check their arguments first. Return: 0, or a negative errno with a message.
 */
int verb_pull(const struct image_options *o, struct store *s, struct err *e);
int verb_import(const struct image_options *o, struct store *s, struct err *e);
int verb_build(const struct image_options *o, struct store *s, struct err *e);
int verb_ls(const struct image_options *o, struct store *s, struct err *e);
int verb_inspect(const struct image_options *o, struct store *s, struct err *e);
int verb_verify(const struct image_options *o, struct store *s, struct err *e);
int verb_rm(const struct image_options *o, struct store *s, struct err *e); /* and prune */

/* image_allowed() - Whether @allow, the patterns of --allow or NULL, permits @ref. 0 or -EACCES. */
int image_allowed(const char *allow, const struct ref *ref, struct err *e);

/* image_change() - Open the store to change it; reports on stderr when it has to wait. */
int image_change(const struct image_options *o, struct store *s, struct err *e);

/* image_find() - The image that an argument names; or NULL, with the command to pull it. */
const struct refs_row *image_find(const struct refs *refs, const char *text, struct err *e);

/* image_done() - Report an image that is in the store now. */
void image_done(const struct image_options *o, const struct incoming_result *r);

/* image_print() - A JSON value as one line on stdout. @v: the reference is taken. */
void image_print(json_t *v);

/* image_time() - "2026-11-18T10:20:30Z". Return: @ret. */
#define IMAGE_TIME_MAX 32
const char *image_time(time_t time, char ret[IMAGE_TIME_MAX]);

#endif

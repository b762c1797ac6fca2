/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - What every verb begins and ends with: options, the daemon, output. */
#ifndef CAISSON_REMOTE_SESSION_H
#define CAISSON_REMOTE_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "remote/api.h"
#include "remote/options.h"
#include "remote/problem.h"

/* What --help says, and how many arguments there are besides the options. */
struct form {
	enum remote_verb verb;
	const char *usage; /* after "Usage: caisson " */
	const char *text;  /* a paragraph, or NULL */
	int min, max;      /* arguments; max -1: any number */
};

struct session {
	struct remote_options o;
	struct api api;
	struct problem problem;
	bool programs; /* run, exec, shell: every problem is exit code 125 */
	int code;
};

/*
 * session_begin() - Read the arguments; nothing is sent yet. Return: false when all is said, and
 * s->code is what to exit with. session_end() in every case.
 */
bool session_begin(struct session *s, const struct form *form, int argc, char **argv);

/* session_end() - Return: s->code; or 125 when what was printed did not get out. */
int session_end(struct session *s);

/* session_fail() - Print s->problem and keep its exit code, if it is the first. */
void session_fail(struct session *s);

/* session_fail_err() - The same for something that happened here. */
void session_fail_err(struct session *s, const struct err *e);

/* session_json() - One object on stdout, on a line of its own. */
void session_json(const json_t *v);

/* session_color() - Whether stdout wants colours: a terminal, and NO_COLOR is not set. */
bool session_color(void);

#endif

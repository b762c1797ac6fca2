/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - Why something did not happen, as a line, as an object and as an exit code.
 *
 * A problem is our own (struct err), one of the way to the daemon, or an answer of the daemon. Its
 * kind decides the exit code of the verbs that run no program; verbs that run one exit with 125.
 */
#ifndef CAISSON_REMOTE_PROBLEM_H
#define CAISSON_REMOTE_PROBLEM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

enum {
	EXIT_OTHER = 1,     /* the daemon failed, or sent an answer that we do not know */
	EXIT_NO_DAEMON = 3, /* nothing answers there */
	EXIT_AUTH = 4,      /* 401, 403, 421 */
	EXIT_MISSING = 5,   /* 404, 410 */
	EXIT_CONFLICT = 6,  /* 409, 412 */
	EXIT_INVALID = 7,   /* 400, 413, 415, 422, 501 and the other refusals */
	EXIT_BUSY = 8,      /* 429, 503: later */
	EXIT_OURS = 125,    /* used wrongly, or something failed here */
};

struct problem {
	int exit_code; /* 0: none */
	unsigned int status;
	unsigned int retry_after_s;
	char code[64];
	char message[504];
	char hint[400];
};

/* problem_ours() - @e happened here. Return: -1, so that it can be returned. */
int problem_ours(struct problem *p, const struct err *e);

/* problem_say() - The same from a message. problem_wrong() - For arguments that make no sense. */
int problem_say(struct problem *p, int exit_code, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define problem_wrong(p, ...) problem_say(p, EXIT_OURS, "EINVAL", __VA_ARGS__)
#define problem_no_memory(p) problem_say(p, EXIT_OURS, "ENOMEM", "no memory")
void problem_hint(struct problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* problem_answer() - An answer that is an error. The body may be anything. Return: -1. */
int problem_answer(struct problem *p, unsigned int status, const char *body, size_t len,
		   unsigned int retry_after_s);
/* problem_refusal() - The same from a parsed answer: {"error": {...}}. */
int problem_refusal(struct problem *p, unsigned int status, const json_t *answer,
		    unsigned int retry_after_s);

/* problem_about() - Put @what it is about before the message. */
void problem_about(struct problem *p, const char *what);

/* problem_exit_code() - Of a status: the kinds above. */
int problem_exit_code(unsigned int status);

/* problem_print() - "caisson: MESSAGE (HINT)" on stderr, or an object on stdout. */
void problem_print(const struct problem *p, bool json, int exit_code);

#endif

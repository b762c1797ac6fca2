/* SPDX-License-Identifier: Apache-2.0 */
/* verb.h - The verbs that ask a daemon: a row for each, and the session in which one runs. */
#ifndef CAISSON_REMOTE_VERB_H
#define CAISSON_REMOTE_VERB_H

#include <jansson.h>
#include <stdbool.h>

#include "remote/api.h"
#include "remote/problem.h"
#include "remote/remote_options.h"

struct session;

struct verb {
	const char *name;
	enum remote_verb options;
	const char *usage; /* after "Usage: caisson " */
	const char *text;  /* a paragraph of --help */
	int min, max;      /* arguments besides the options; max -1: any number */
	bool named;        /* the first argument is the name of a sandbox, and is checked */
	/* 0: s->code is the exit code. -1: session_run() prints s->problem. */
	int (*run)(struct session *s);
};

struct session {
	struct remote_options o;
	struct api api;
	struct problem problem;
	bool programs; /* run, exec, shell: every problem is exit code 125 */
	int code;
};

/* The functions of the verbs; see struct verb. */
int remote_approve(struct session *s);
int remote_cp(struct session *s);
int remote_create(struct session *s);
int remote_exec(struct session *s);
int remote_install(struct session *s);
int remote_kill(struct session *s);
int remote_logs(struct session *s);
int remote_mcp(struct session *s);
int remote_net(struct session *s);
int remote_port(struct session *s);
int remote_ps(struct session *s);
int remote_report(struct session *s);
int remote_rm(struct session *s);
int remote_run(struct session *s);
int remote_shell(struct session *s);
int remote_stop(struct session *s);
int remote_top(struct session *s);

/* mcp_print_config() - `mcp --print-config HOST` (mcp_config.c). 0 or -EINVAL. */
int mcp_print_config(const struct remote_options *o, struct err *e);

/* Verbs with verbs of their own. argv[0] is the verb. Return: the exit code. */
int audit_main(int argc, char **argv);
int workspace_main(int argc, char **argv);

/*
 * session_run() - Read the arguments, run the verb, print its problem.
 * Return: the exit code; 125 when standard output could not be written.
 */
int session_run(const struct verb *v, int argc, char **argv);

/* session_fail() - Print s->problem; its exit code is kept if it is the first. */
void session_fail(struct session *s);

/* session_json() - Print one object on standard output, on a line of its own. */
void session_json(const json_t *v);

/*
 * session_show() - Print an answer of the daemon: as JSON with --json, otherwise by @print (NULL:
 * not at all).
 * @v: the reference is taken. Return: 0; -1 where it is NULL, because the call failed.
 */
int session_show(const struct session *s, json_t *v,
		 void (*print)(const struct session *s, const json_t *v));

/* session_print_name() - The first argument, on a line. */
void session_print_name(const struct session *s, const json_t *v);

/*
 * session_call() - api_json_ms() of /v1/@kind/@name@rest; an invalid name is a problem.
 * @body: the reference is taken; may be NULL.
 */
json_t *session_call(struct session *s, const char *method, const char *kind, const char *name,
		     const char *rest, json_t *body, uint64_t timeout_ms);

#endif

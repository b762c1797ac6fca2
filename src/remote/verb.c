/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb.c - One run of a verb, from its arguments to its exit code.
 *
 * A verb makes its calls and returns. Problems are printed here, once, as a line or as JSON. A verb
 * that goes on after a problem (`rm` of several names) prints each with session_fail().
 */
#include "remote/verb.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

static void help(const struct verb *v)
{
	(void)printf("Usage: caisson %s\n\n%s\n", v->usage, v->text);
	remote_options_help(v->options, stdout);
}

static int check(const struct verb *v, const struct remote_options *o, struct err *e)
{
	if (o->n_rest < v->min || (v->max >= 0 && o->n_rest > v->max))
		return err_say(e, -EINVAL, "%s: caisson %s ('%s --help' says more)",
			       o->n_rest < v->min ? "an argument is missing" : "too many arguments",
			       v->usage, o->command);
	return v->named && o->n_rest > 0 ? sandbox_name_check(o->rest[0], e) : 0;
}

/* Standard output may be a full disk, or a pipe whose reader has seen enough. */
static void flush(struct session *s)
{
	struct err e = { 0 };

	if (fflush(stdout) == 0 && !ferror(stdout))
		return;
	if (errno == EPIPE) {
		s->code = s->code ? s->code : 128 + SIGPIPE;
		return;
	}
	(void)err_set(&e, -errno, "write to standard output");
	(void)problem_ours(&s->problem, &e);
	session_fail(s);
}

int session_run(const struct verb *v, int argc, char **argv)
{
	struct session s = { .programs = v->options & (OPT_EXEC | OPT_RUN | OPT_SHELL) };
	struct err e = { 0 };
	int r = remote_options_parse(v->options, argc, argv, &s.o, &e);

	(void)signal(SIGPIPE, SIG_IGN); /* a reader that left is an error of write() */
	if (r == 1) {
		help(v);
	} else {
		r = r == 0 ? check(v, &s.o, &e) : r;
		r = r < 0 ? problem_ours(&s.problem, &e) : api_open(&s.api, &s.o, &s.problem);
		if (r < 0 || v->run(&s) < 0)
			session_fail(&s);
	}
	api_close(&s.api);
	flush(&s);
	remote_options_free(&s.o);
	return s.code;
}

void session_fail(struct session *s)
{
	int code = s->programs ? EXIT_OURS : s->problem.exit_code;

	problem_print(&s->problem, s->o.json, code);
	s->code = s->code ? s->code : code;
}

void session_json(const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(15));

	if (text)
		(void)printf("%s\n", text);
	free(text);
}

int session_show(const struct session *s, json_t *v,
		 void (*print)(const struct session *s, const json_t *v))
{
	if (!v)
		return -1;
	if (s->o.json)
		session_json(v);
	else if (print)
		print(s, v);
	json_decref(v);
	return 0;
}

void session_print_name(const struct session *s, const json_t *v)
{
	(void)v;
	(void)printf("%s\n", s->o.rest[0]);
}

json_t *session_call(struct session *s, const char *method, const char *kind, const char *name,
		     const char *rest, json_t *body, uint64_t timeout_ms)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct err e = { 0 };

	if (sandbox_name_check(name, &e) < 0) {
		json_decref(body);
		(void)problem_ours(&s->problem, &e);
		return NULL;
	}
	(void)buf_printf(&path, "/v1/%s/%s%s", kind, name, rest);
	return api_json_ms(&s->api, method, buf_str(&path), body, timeout_ms, &s->problem);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - The frame of a verb. */
#include "remote/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

static void help(const struct form *f)
{
	(void)printf("Usage: caisson %s\n\n%s%s", f->usage, f->text ? f->text : "",
		     f->text ? "\n" : "");
	remote_options_help(f->verb, stdout);
}

static int check_count(const struct form *f, const struct remote_options *o, struct err *e)
{
	if (o->n_rest >= f->min && (f->max < 0 || o->n_rest <= f->max))
		return 0;
	return err_say(e, -EINVAL, "%s: caisson %s ('%s --help' says more)",
		       o->n_rest < f->min ? "something is missing" : "too many arguments", f->usage,
		       o->command);
}

bool session_begin(struct session *s, const struct form *form, int argc, char **argv)
{
	struct err e = { 0 };

	memset(s, 0, sizeof(*s));
	s->programs = form->verb & (OPT_EXEC | OPT_RUN | OPT_SHELL);
	(void)signal(SIGPIPE, SIG_IGN); /* a reader that left is an error of write() */
	int r = remote_options_parse(form->verb, argc, argv, &s->o, &e);

	if (r == 1) {
		help(form);
		return false;
	}
	if (r == 0)
		r = check_count(form, &s->o, &e);
	if (r < 0) {
		session_fail_err(s, &e);
		return false;
	}
	if (api_open(&s->api, &s->o, &s->problem) < 0) {
		session_fail(s);
		return false;
	}
	return true;
}

int session_end(struct session *s)
{
	struct err e = { 0 };

	api_close(&s->api);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		int number = errno;

		/* A reader that has seen enough needs no message. */
		if (number == EPIPE) {
			s->code = s->code ? s->code : 128 + SIGPIPE;
		} else {
			(void)err_set(&e, -number, "write to standard output");
			session_fail_err(s, &e);
		}
	}
	remote_options_free(&s->o);
	return s->code;
}

void session_fail(struct session *s)
{
	int code = s->programs ? EXIT_OURS : s->problem.exit_code;

	(void)problem_print_as(&s->problem, s->o.json, code);
	s->code = s->code ? s->code : code;
}

void session_fail_err(struct session *s, const struct err *e)
{
	(void)problem_ours(&s->problem, e);
	session_fail(s);
}

void session_json(const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(15));

	if (text)
		(void)printf("%s\n", text);
	free(text);
}

bool session_color(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - `caisson exec --name` and `caisson run --name`: from arguments to an execution. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/lang.h"
#include "remote/follow.h"
#include "remote/verb.h"

/* All of @fd, which has to be UTF-8, as the member @key. */
static int put_file(json_t *body, const char *key, int fd, const char *name, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(LANG_SOURCE_MAX);

	if (lang_read(fd, name, &b, e) < 0)
		return e->code;
	if (!utf8_valid(buf_str(&b), b.len))
		return err_say(e, -EILSEQ, "%s: is not UTF-8 text; code and its input must be",
			       name);
	if (b.len == 0 && strcmp(key, "code") == 0)
		return err_say(e, -EINVAL, "%s: is empty", name);
	(void)json_object_set_new(body, key, json_stringn(buf_str(&b), b.len));
	return 0;
}

/* Wait for the end, and print the result as one object. */
static int run_json(struct session *s, const char *route, json_t *body)
{
	_buf_ struct buf path = BUF_INIT(1024);
	_answer_ struct api_answer answer = { 0 };

	url_sandbox(&path, s->o.name, route);
	struct api_call call = {
		.method = "POST", .path = buf_str(&path), .json = body, .timeout_ms = API_ENDLESS
	};

	if (api_call(&s->api, &call, &answer, &s->problem) < 0) {
		session_fail(s);
		return EXIT_OURS;
	}
	json_auto_t *root =
		json_loadb(buf_str(&answer.body), answer.body.len, JSON_ALLOW_NUL, NULL);
	const json_t *code = json_object_get(root, "exit_code");

	(void)printf("%s\n", buf_str(&answer.body));
	return json_is_integer(code) ? (int)json_integer_value(code) : EXIT_OURS;
}

/* @make: the request for @route. @attached: the program of a request with --stdin is attached to
 * ours, unless JSON is wanted. */
static int run(struct session *s, const char *route,
	       int (*make)(const struct remote_options *o, json_t *body, struct err *e),
	       bool attached)
{
	const struct remote_options *o = &s->o;
	json_auto_t *body = json_object();
	struct err e = { 0 };

	if (!o->name)
		return problem_wrong(&s->problem, "--name is missing: the name of a sandbox");
	if (options_given(&o->parsed, "--timeout"))
		(void)json_object_set_new(body, "timeout", remote_options_seconds(o->timeout_ms));
	if (sandbox_name_check(o->name, &e) < 0 || make(o, body, &e) < 0 ||
	    (o->send_stdin && (o->json || !attached) &&
	     put_file(body, "stdin", STDIN_FILENO, "standard input", &e) < 0))
		return problem_ours(&s->problem, &e);
	s->code = o->json                   ? run_json(s, route, body) :
		  o->send_stdin && attached ? interactive_run(s, o->name, body, false) :
					      follow_run(s, o->name, route, body);
	return 0;
}

/* ---- exec ---------------------------------------------------------------------------------- */

static int make_exec(const struct remote_options *o, json_t *body, struct err *e)
{
	json_t *args = json_array();

	(void)json_object_set_new(body, "args", args);
	for (int i = 0; i < o->n_rest; i++) {
		json_t *word = json_string(o->rest[i]);

		if (!word)
			return err_say(e, -EILSEQ, "argument %d is not UTF-8 text", i + 1);
		if (i == 0)
			(void)json_object_set_new(body, "cmd", word);
		else
			(void)json_array_append_new(args, word);
	}
	if (o->env[0])
		(void)json_object_set_new(body, "env", remote_options_pairs(o->env));
	if (o->workdir)
		(void)json_object_set_new(body, "cwd", json_string(o->workdir));
	return 0;
}

int remote_exec(struct session *s)
{
	return run(s, "/exec", make_exec, true);
}

/* ---- run ----------------------------------------------------------------------------------- */

static int put_source(const struct remote_options *o, json_t *body, struct err *e)
{
	struct source s;

	if (lang_source(o->lang, o->code, o->code ? NULL : o->rest[0], &s, e) < 0)
		return e->code;
	(void)json_object_set_new(body, "language", json_string(s.lang->name));
	if (!s.code) {
		bool is_stdin = strcmp(s.name, "-") == 0;
		_fd_ int fd = is_stdin ? -1 : s.fd;

		return put_file(body, "code", s.fd, is_stdin ? "standard input" : s.name, e);
	}
	if (!*s.code || json_object_set_new(body, "code", json_string(s.code)) < 0)
		return err_say(e, -EINVAL, "the code is empty, or not UTF-8 text");
	return 0;
}

static int make_run(const struct remote_options *o, json_t *body, struct err *e)
{
	if (!o->code && o->n_rest == 0)
		return err_say(e, -EINVAL, "nothing to run: caisson run --name NAME 'print(6*7)'");
	if (o->n_rest > (o->code ? 0 : 1))
		return err_say(
			e, -EINVAL,
			"code in a sandbox's interpreter has no arguments: send them in the code, "
			"or use 'caisson exec --name'");
	if (!o->code && o->send_stdin && strcmp(o->rest[0], "-") == 0)
		return err_say(e, -EINVAL, "standard input cannot be both the code and its input");
	return put_source(o, body, e);
}

int remote_run(struct session *s)
{
	return run(s, "/execute", make_run, false);
}

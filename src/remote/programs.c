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
#include "remote/interactive.h"
#include "remote/sandbox_path.h"
#include "remote/verb.h"

/* All of @fd, which has to be UTF-8, as the member @key. */
static int put_file(json_t *body, const char *key, int fd, const char *name, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(LANG_SOURCE_MAX);

	if (lang_read(fd, name, &b, e) < 0)
		return e->code;
	if (!utf8_valid(buf_str(&b), b.len))
		return err_say(e, -EILSEQ, "%s: is not UTF-8 text, and nothing else can be sent so",
			       name);
	if (b.len == 0 && strcmp(key, "code") == 0)
		return err_say(e, -EINVAL, "%s: is empty", name);
	(void)json_object_set_new(body, key, json_stringn(buf_str(&b), b.len));
	return 0;
}

static int put_stdin(json_t *body, struct err *e)
{
	return put_file(body, "stdin", STDIN_FILENO, "standard input", e);
}

static void put_timeout(json_t *body, const struct remote_options *o)
{
	if (options_given(&o->parsed, "--timeout"))
		(void)json_object_set_new(body, "timeout", remote_options_seconds(o->timeout_ms));
}

/* Wait for the end, and print the result as one object. */
static int run_json(struct session *s, const char *route, json_t *body)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct api_answer answer = { 0 };
	int code = EXIT_OURS;

	url_sandbox(&path, s->o.name, route);
	struct api_call call = {
		.method = "POST", .path = buf_str(&path), .json = body, .timeout_ms = API_ENDLESS
	};

	if (api_call(&s->api, &call, &answer, &s->problem) < 0) {
		session_fail(s);
	} else {
		json_t *root =
			json_loadb(buf_str(&answer.body), answer.body.len, JSON_ALLOW_NUL, NULL);
		const json_t *exit_code = json_object_get(root, "exit_code");

		(void)printf("%s\n", buf_str(&answer.body));
		if (json_is_integer(exit_code))
			code = (int)json_integer_value(exit_code);
		json_decref(root);
	}
	api_answer_free(&answer);
	return code;
}

static int check(const struct remote_options *o, struct err *e)
{
	if (!o->name)
		return err_say(e, -EINVAL, "--name is missing: the name of a sandbox");
	return sandbox_name_check(o->name, e);
}

/* ---- exec ---------------------------------------------------------------------------------- */

static int make_exec(const struct remote_options *o, json_t *body, struct err *e)
{
	json_t *args = json_array();

	for (int i = 0; i < o->n_rest; i++) {
		json_t *word = json_string(o->rest[i]);

		if (!word) {
			json_decref(args);
			return err_say(e, -EILSEQ, "argument %d is not UTF-8 text", i + 1);
		}
		if (i == 0)
			(void)json_object_set_new(body, "cmd", word);
		else
			(void)json_array_append_new(args, word);
	}
	(void)json_object_set_new(body, "args", args);
	if (o->env[0])
		(void)json_object_set_new(body, "env", remote_options_pairs(o->env));
	if (o->workdir)
		(void)json_object_set_new(body, "cwd", json_string(o->workdir));
	put_timeout(body, o);
	return 0;
}

int remote_exec(struct session *s)
{
	json_t *body = json_object();
	struct err e = { 0 };
	int r = check(&s->o, &e);

	if (r == 0)
		r = make_exec(&s->o, body, &e);
	if (r == 0 && s->o.json && s->o.send_stdin)
		r = put_stdin(body, &e);
	if (r < 0)
		(void)problem_ours(&s->problem, &e);
	else if (s->o.json)
		s->code = run_json(s, "/exec", body);
	else if (s->o.send_stdin)
		s->code = interactive_run(s, s->o.name, body, false);
	else
		s->code = follow_run(s, s->o.name, "/exec", body);
	json_decref(body);
	return r < 0 ? -1 : 0;
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
	if (put_source(o, body, e) < 0 || (o->send_stdin && put_stdin(body, e) < 0))
		return e->code;
	put_timeout(body, o);
	return 0;
}

int remote_run(struct session *s)
{
	json_t *body = json_object();
	struct err e = { 0 };
	int r = check(&s->o, &e);

	if (r == 0)
		r = make_run(&s->o, body, &e);
	if (r < 0)
		(void)problem_ours(&s->problem, &e);
	else if (s->o.json)
		s->code = run_json(s, "/execute", body);
	else
		s->code = follow_run(s, s->o.name, "/execute", body);
	json_decref(body);
	return r < 0 ? -1 : 0;
}

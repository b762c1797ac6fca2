/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - `caisson exec --name` and `caisson run --name`: from arguments to an execution. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/lang.h"
#include "remote/follow.h"
#include "remote/place.h"
#include "remote/pump.h"
#include "remote/session.h"
#include "remote/verbs.h"

#define INPUT_MAX (64u << 20)

static int slurp(int fd, const char *name, struct buf *b, struct err *e)
{
	for (;;) {
		char *room = buf_reserve(b, 65536);

		if (!room)
			return err_say(e, -EFBIG, "%s: larger than %u MiB", name, INPUT_MAX >> 20);
		ssize_t n = read(fd, room, 65536);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read %s", name);
		if (n == 0)
			break;
		buf_commit(b, (size_t)n);
	}
	if (!utf8_valid(buf_str(b), b->len))
		return err_say(e, -EILSEQ, "%s: is no UTF-8 text, which is all that can be sent so",
			       name);
	return 0;
}

static void put_text(json_t *body, const char *key, const struct buf *b)
{
	(void)json_object_set_new(body, key, json_stringn(buf_str(b), b->len));
}

static int put_stdin(json_t *body, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(INPUT_MAX);
	int r = slurp(STDIN_FILENO, "standard input", &b, e);

	if (r == 0)
		put_text(body, "stdin", &b);
	return r;
}

static void put_timeout(json_t *body, const struct remote_options *o)
{
	if (!options_given(&o->parsed, "--timeout"))
		return;
	(void)json_object_set_new(body, "timeout",
				  o->timeout_ms % 1000 ?
					  json_real((double)o->timeout_ms / 1000) :
					  json_integer((json_int_t)o->timeout_ms / 1000));
}

/* The result as one object, when it is over. */
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
		return err_say(e, -EINVAL, "--name is missing: which sandbox?");
	return place_check_name(o->name, e);
}

/* ---- exec ---------------------------------------------------------------------------------- */

static int make_exec(const struct remote_options *o, json_t *body, struct err *e)
{
	json_t *args = json_array();

	for (int i = 0; i < o->n_rest; i++) {
		json_t *word = json_string(o->rest[i]);

		if (!word) {
			json_decref(args);
			return err_say(e, -EILSEQ, "argument %d is no UTF-8 text", i + 1);
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

int verb_exec(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_EXEC,
		.usage = "exec --name NAME [OPTIONS] -- PROGRAM [ARGS...]",
		.text = "Runs a program in a sandbox, without a shell in between. Output comes while it runs, byte\n"
			"for byte; the exit code is the program's. Without --name: a fresh cell on this machine.\n",
		.min = 1,
		.max = -1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		json_t *body = json_object();
		struct err e = { 0 };
		int r = check(&s.o, &e);

		if (r == 0)
			r = make_exec(&s.o, body, &e);
		if (r == 0 && s.o.json && s.o.send_stdin)
			r = put_stdin(body, &e);
		if (r < 0)
			session_fail_err(&s, &e);
		else if (s.o.json)
			s.code = run_json(&s, "/exec", body);
		else if (s.o.send_stdin)
			s.code = pump_run(&s, s.o.name, body);
		else
			s.code = follow_run(&s, s.o.name, "/exec", body);
		json_decref(body);
	}
	return session_end(&s);
}

/* ---- run ----------------------------------------------------------------------------------- */

static int use_file(int fd, const char *name, json_t *body, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(INPUT_MAX);
	int r = slurp(fd, name, &b, e);

	if (r == 0 && b.len == 0)
		r = err_say(e, -EINVAL, "%s: is empty", name);
	if (r == 0)
		put_text(body, "code", &b);
	return r;
}

static int use_code(const char *text, json_t *body, struct err *e)
{
	json_t *code = *text ? json_string(text) : NULL;

	if (!code)
		return err_say(e, -EINVAL, "the code is empty, or no UTF-8 text");
	(void)json_object_set_new(body, "code", code);
	return 0;
}

/* As `caisson run` does: a file when there is one of that name, else code. */
static int use_source(const struct remote_options *o, const char *source, json_t *body,
		      const struct lang **lang, struct err *e)
{
	struct stat st;

	if (strcmp(source, "-") == 0)
		return use_file(STDIN_FILENO, "standard input", body, e);
	if (strlen(source) < 4096 && stat(source, &st) == 0) {
		_fd_ int fd = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY);

		if (fd < 0)
			return err_set(e, -errno, "open %s", source);
		if (S_ISDIR(st.st_mode))
			return err_say(e, -EISDIR,
				       "%s is a directory (for code of that look use -c)", source);
		if (!o->lang && lang_of_file(source))
			*lang = lang_of_file(source);
		return use_file(fd, source, body, e);
	}
	if (lang_of_file(source) && !strpbrk(source, " \t\n()[]{}'\"=;"))
		return err_say(e, -ENOENT, "%s: no such file (for code of that look use -c)",
			       source);
	return use_code(source, body, e);
}

static int make_run(const struct remote_options *o, json_t *body, struct err *e)
{
	const struct lang *lang = lang_find(o->lang ? o->lang : "python", e);

	if (!lang)
		return e->code;
	if (!o->code && o->n_rest == 0)
		return err_say(e, -EINVAL, "nothing to run: caisson run --name NAME 'print(6*7)'");
	if (o->n_rest > (o->code ? 0 : 1))
		return err_say(
			e, -EINVAL,
			"code in a sandbox's interpreter has no arguments: send them in the code, "
			"or use 'caisson exec --name'");
	if (!o->code && o->send_stdin && strcmp(o->rest[0], "-") == 0)
		return err_say(e, -EINVAL, "standard input can not be both the code and its input");
	int r = o->code ? use_code(o->code, body, e) : use_source(o, o->rest[0], body, &lang, e);

	if (r == 0 && o->send_stdin)
		r = put_stdin(body, e);
	(void)json_object_set_new(body, "language", json_string(lang->name));
	put_timeout(body, o);
	return r;
}

int verb_run(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_RUN,
		.usage = "run --name NAME [OPTIONS] CODE|FILE|-",
		.text = "Runs code in the interpreter of a sandbox, which keeps its variables for the next time.\n"
			"The value of a last expression is printed. Without --name: a fresh cell on this machine.\n",
		.min = 0,
		.max = -1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		json_t *body = json_object();
		struct err e = { 0 };

		if (check(&s.o, &e) < 0 || make_run(&s.o, body, &e) < 0)
			session_fail_err(&s, &e);
		else if (s.o.json)
			s.code = run_json(&s, "/execute", body);
		else
			s.code = follow_run(&s, s.o.name, "/execute", body);
		json_decref(body);
	}
	return session_end(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_verbs.c - The life of a sandbox, its packages and its output: `caisson create`, `rm`,
 * `stop`, `kill`, `install`, `logs`.
 *
 * The progress of `install`, and of an image that `create` makes the daemon pull, is one line on
 * stderr, on a terminal, with a bar, that is removed at the end. The packages that were installed
 * are printed on stdout, one per line.
 *
 * For `logs` the daemon keeps the last bytes, and counts all that there ever were. Following means
 * to ask again: the difference of two counts is how much of the answer is new.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/lines.h"
#include "remote/list.h"
#include "remote/stream_event.h"
#include "remote/tty.h"
#include "remote/verb.h"

#define MIB (UINT64_C(1) << 20)
#define PROGRESS_MAX 200
#define BAR 20
#define BAR_FULL "####################"
#define BAR_EMPTY "...................."
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 1000

/* ---- answers with progress ----------------------------------------------------------------- */

struct steps {
	struct lines lines;
	json_t *result, *refused; /* owned; at most one is there at the end */
	bool show, shown;
};

/* "[#####...............]  25% " before the text, once the total is known. */
static void show_progress(struct steps *in, const char *text, json_int_t done, json_int_t total)
{
	char line[PROGRESS_MAX];
	_buf_ struct buf plain = BUF_INIT(PROGRESS_MAX * 8);
	uint16_t rows, cols;
	int at = 0;

	if (!in->show)
		return;
	text_escape(&plain, text, strlen(text)); /* a package's build may have written it */
	tty_size(&rows, &cols);
	if (total > 0 && done >= 0 && done <= total) {
		int full = (int)(done * BAR / total);

		at = snprintf(line, sizeof(line), "[%.*s%.*s] %3d%% ", full, BAR_FULL, BAR - full,
			      BAR_EMPTY, (int)(done * 100 / total));
	}
	(void)snprintf(line + at, sizeof(line) - (size_t)at, "%s", buf_str(&plain));
	(void)fprintf(stderr, "\r\033[K%.*s", cols > 1 && cols < PROGRESS_MAX ? cols - 1 : 79,
		      line);
	(void)fflush(stderr);
	in->shown = true;
}

static int on_line(void *arg, char *line, size_t len)
{
	struct steps *in = arg;
	_event_ struct event ev = { 0 };

	if (event_parse(line, len, &ev) < 0)
		return 0;
	if (event_is(&ev, "progress"))
		show_progress(in, list_text(ev.root, "text"),
			      json_integer_value(json_object_get(ev.root, "done")),
			      json_integer_value(json_object_get(ev.root, "total")));
	else if (event_is(&ev, "done"))
		in->result = json_incref(ev.root);
	else if (event_is(&ev, "refused"))
		in->refused = json_incref(ev.root);
	return 0;
}

static int on_data(void *arg, const char *data, size_t len)
{
	return lines_feed(&((struct steps *)arg)->lines, data, len);
}

/* The status that the answer would have had without events. */
static unsigned int status_of(const json_t *refused)
{
	static const struct {
		const char *code;
		unsigned int status;
	} rows[] = {
		{ "image_not_found", 404 },
		{ "registry_unavailable", 502 },
		{ "image_pull_failed", 502 },
		{ "image_pull_timeout", 504 },
		{ "policy_refused", 403 },
		{ "image_pull_denied", 403 },
		{ "spec_conflict", 409 },
		{ "sandbox_stopped", 409 },
		{ "busy", 429 },
		{ "policy_busy", 429 },
		{ "image_pulls_busy", 429 },
		{ "sandbox_failed", 503 },
		{ "draining", 503 },
	};
	const char *code = list_text(json_object_get(refused, "error"), "code");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].code, code) == 0)
			return rows[i].status;
	return 422;
}

/* POST @path, and show its progress. Return: the object of the last event, a new reference; or NULL
 * with s->problem. @body: borrowed. */
static json_t *post_steps(struct session *s, const char *path, json_t *body)
{
	struct steps in = { .show = isatty(STDERR_FILENO) && !s->o.json };
	_answer_ struct api_answer answer = { 0 };
	const struct api_call call = { .method = "POST",
				       .path = path,
				       .json = body,
				       .accept = "application/x-ndjson",
				       .sink = on_data,
				       .arg = &in,
				       .timeout_ms = API_ENDLESS };

	lines_init(&in.lines, on_line, &in);
	int r = api_call(&s->api, &call, &answer, &s->problem);

	if (in.shown)
		(void)fprintf(stderr, "\r\033[K");
	if (r == 0 && in.refused)
		(void)problem_refusal(&s->problem, status_of(in.refused), in.refused, 0);
	else if (r == 0 && !in.result)
		(void)problem_say(&s->problem, EXIT_OTHER, "cut",
				  "the daemon ended the answer before the result");
	if (r < 0) {
		json_decref(in.result);
		in.result = NULL;
	}
	(void)json_object_del(in.result, "type");
	(void)json_object_del(in.result, "id");
	lines_free(&in.lines);
	json_decref(in.refused);
	return in.result;
}

/* ---- create -------------------------------------------------------------------------------- */

static int put_rules(const struct remote_options *o, json_t *body, struct err *e)
{
	json_error_t wrong;
	json_t *rules;

	if (!o->tool_rules)
		return 0;
	rules = json_loads(o->tool_rules, JSON_REJECT_DUPLICATES, &wrong);
	if (!rules)
		return err_say(e, -EINVAL, "--tool-rules: not JSON at character %d: %s",
			       wrong.position, wrong.text);
	(void)json_object_set_new(body, "tools", rules);
	return 0;
}

/* Options with a unit: the daemon takes whole ones. */
static int put_numbers(const struct remote_options *o, json_t *body, struct err *e)
{
	const struct {
		const char *key, *option;
		uint64_t value, unit;
		const char *what;
	} rows[] = {
		{ "memory_mib", "--memory", o->memory_bytes, MIB, "MiB" },
		{ "disk_mib", "--disk", o->disk_bytes, MIB, "MiB" },
		{ "timeout_seconds", "--timeout", o->timeout_ms, 1000, "seconds" },
		{ "idle_seconds", "--idle", o->idle_ms, 1000, "seconds" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (options_given(&o->parsed, rows[i].option) &&
		    remote_options_units(body, rows[i].key, rows[i].option, rows[i].value,
					 rows[i].unit, rows[i].what, e) < 0)
			return e->code;
	if (options_given(&o->parsed, "--cpus"))
		(void)json_object_set_new(body, "cpus", json_real((double)o->cpus_milli / 1000));
	if (options_given(&o->parsed, "--pids"))
		(void)json_object_set_new(body, "pids", json_integer((json_int_t)o->pids));
	return 0;
}

/* Members whose option was not given are left out. */
static json_t *make_spec(const struct remote_options *o)
{
	return json_pack("{s:s, s:s*, s:s*, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "name",
			 o->rest[0], "image", o->image, "workspace", o->workspace, "oom", o->oom,
			 "env", o->env[0] ? remote_options_pairs(o->env) : NULL, "labels",
			 o->label[0] ? remote_options_pairs(o->label) : NULL, "secrets",
			 remote_options_list(o->secrets, false), "egress",
			 remote_options_list(o->egress, true), "mounts",
			 remote_options_list(o->mounts, true), "servers",
			 remote_options_list(o->server, false));
}

/* A name that no other sandbox has, for people who need none of their own. */
static int make_name(struct remote_options *o, struct err *e)
{
	static char name[24];
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_set(e, -EIO, "make a name");
	(void)snprintf(name, sizeof(name), "box-%08x", number);
	o->rest[o->n_rest++] = name;
	return 0;
}

int remote_create(struct session *s)
{
	struct err e = { 0 };

	if (s->o.n_rest == 0 && make_name(&s->o, &e) < 0)
		return problem_ours(&s->problem, &e);
	json_auto_t *body = make_spec(&s->o);

	if (put_numbers(&s->o, body, &e) < 0 || put_rules(&s->o, body, &e) < 0)
		return problem_ours(&s->problem, &e);
	/* With an image it may take a while: the daemon pulls it first. */
	json_t *made = s->o.image ? post_steps(s, "/v1/sandboxes", body) :
				    api_json(&s->api, "POST", "/v1/sandboxes", json_incref(body),
					     &s->problem);

	return session_show(s, made, session_print_name);
}

/* ---- rm, stop, kill: the same for each of several names ------------------------------------ */

/* One call for one sandbox. With --json the daemon's answer, or {"name","removed":true}. */
static int act(struct session *s, const char *name, const char *method, const char *rest,
	       json_t *body, uint64_t timeout_ms)
{
	json_auto_t *answer =
		session_call(s, method, "sandboxes", name, rest, json_incref(body), timeout_ms);

	if (!answer)
		return -1;
	if (json_object_size(answer) == 0) {
		(void)json_object_set_new(answer, "name", json_string(name));
		(void)json_object_set_new(answer, "removed", json_true());
	}
	if (s->o.json)
		session_json(answer);
	else
		(void)printf("%s\n", name);
	return 0;
}

static int act_on_all(struct session *s, const char *method, const char *rest)
{
	uint64_t timeout = 0;
	json_auto_t *body = NULL;

	if (options_given(&s->o.parsed, "--grace")) {
		body = json_pack("{s:o}", "grace_seconds", remote_options_seconds(s->o.grace_ms));
		timeout = s->o.grace_ms + API_TIMEOUT_MS;
	}
	for (int i = 0; i < s->o.n_rest; i++) {
		if (act(s, s->o.rest[i], method, rest, body, timeout) == 0)
			continue;
		if (!(s->o.force && s->problem.status == 404))
			session_fail(s);
		if (s->problem.exit_code == EXIT_NO_DAEMON)
			break;
	}
	return 0;
}

int remote_rm(struct session *s)
{
	return act_on_all(s, "DELETE", "");
}

int remote_stop(struct session *s)
{
	return act_on_all(s, "POST", "/stop");
}

int remote_kill(struct session *s)
{
	return act_on_all(s, "POST", "/kill");
}

/* ---- install ------------------------------------------------------------------------------- */

static void print_packages(const struct session *s, const json_t *result)
{
	const json_t *p;
	size_t i;

	(void)s;
	json_array_foreach(json_object_get(result, "packages"), i, p)
	{
		(void)printf("%s %s%s\n", list_text(p, "name"), list_text(p, "version"),
			     strcmp(list_text(p, "origin"), "image") == 0 ? " (of the image)" : "");
	}
}

static void put_origin(struct table *t, const json_t *p)
{
	const char *replaces = list_text(p, "replaces");

	if (!json_is_true(json_object_get(p, "active")))
		table_cell(t, STYLE_DIM, "replaced by a later request");
	else
		table_printf(t, "%s%s%s", list_text(p, "origin"),
			     replaces[0] ? ", instead of the image's " : "", replaces);
}

static int list_packages(struct session *s)
{
	static const struct list_column columns[] = {
		{ "PACKAGE", .key = "name" },      { "VERSION", .key = "version" },
		{ "LANGUAGE", .key = "language" }, { "ORIGIN", .put = put_origin },
		{ "REQUEST", .key = "request" },
	};
	_buf_ struct buf path = BUF_INIT(1024);

	url_sandbox(&path, s->o.rest[0], "/packages");
	return list_show(s, api_json(&s->api, "GET", buf_str(&path), NULL, &s->problem), "packages",
			 columns, ARRAY_SIZE(columns));
}

int remote_install(struct session *s)
{
	_buf_ struct buf path = BUF_INIT(1024);
	json_t *requirements = json_array();
	json_auto_t *body = json_pack("{s:o, s:s, s:o*}", "packages", requirements, "language",
				      s->o.lang ? s->o.lang : "python", "upgrade",
				      s->o.upgrade ? json_true() : NULL);

	if (s->o.n_rest == 1)
		return list_packages(s);
	for (int i = 1; i < s->o.n_rest; i++)
		(void)json_array_append_new(requirements, json_string(s->o.rest[i]));
	url_sandbox(&path, s->o.rest[0], "/packages");
	return session_show(s, post_steps(s, buf_str(&path), body), print_packages);
}

/* ---- logs ---------------------------------------------------------------------------------- */

static int fetch_logs(struct session *s, bool whole, struct api_answer *answer, uint64_t *ret_bytes)
{
	_buf_ struct buf path = BUF_INIT(1024);

	url_sandbox(&path, s->o.rest[0], "/logs");
	if (!whole && options_given(&s->o.parsed, "--tail"))
		url_query_uint(&path, "tail", s->o.tail);
	struct api_call c = { .method = "GET",
			      .path = buf_str(&path),
			      .accept = "text/plain",
			      .header = "X-Log-Bytes" };
	int r = api_call(&s->api, &c, answer, &s->problem);

	*ret_bytes = strtoull(answer->header, NULL, 10);
	return r;
}

/* As it was written: this is the output of programs, and may be piped to a file. */
static bool put_logs(struct session *s, const char *data, size_t len)
{
	struct err e = { 0 };
	int r = fd_write_all(STDOUT_FILENO, data, len);

	if (r == 0)
		return true;
	s->code = 128 + SIGPIPE; /* a reader that has seen enough */
	if (r != -EPIPE) {
		(void)err_set(&e, r, "write to standard output");
		(void)problem_ours(&s->problem, &e);
		session_fail(s);
	}
	return false;
}

static bool is_running(struct session *s)
{
	json_auto_t *v = api_sandbox(&s->api, "GET", s->o.rest[0], "", NULL, &s->problem);

	return strcmp(list_text(v, "state"), "running") == 0;
}

/* Until the sandbox is gone or does not run any more. */
static int follow_logs(struct session *s, struct api_answer *answer, uint64_t seen)
{
	int pause = PAUSE_MIN_MS;

	for (;;) {
		struct pollfd reader = { .fd = STDOUT_FILENO };
		uint64_t bytes;
		bool running = is_running(s);

		if (fetch_logs(s, true, answer, &bytes) < 0)
			return s->problem.status == 404 ? 0 : -1;
		uint64_t fresh = bytes > seen ? bytes - seen : 0;

		if (fresh > answer->body.len) {
			(void)fprintf(stderr, "caisson: %llu bytes were missed\n",
				      (unsigned long long)(fresh - answer->body.len));
			fresh = answer->body.len;
		}
		if (!put_logs(s, buf_str(&answer->body) + answer->body.len - fresh,
			      (size_t)fresh) ||
		    !running)
			return 0;
		seen = bytes;
		pause = fresh ? PAUSE_MIN_MS : pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
		/* poll() reports a pipe whose reader left, without a write to it. */
		if (poll(&reader, 1, pause) > 0 && reader.revents & POLLERR) {
			s->code = 128 + SIGPIPE;
			return 0;
		}
	}
}

static void print_object(const struct session *s, const struct buf *b)
{
	json_t *text = json_stringn(buf_str(b), b->len);
	json_auto_t *root = json_pack("{s:s}", "name", s->o.rest[0]);

	/* JSON cannot hold bytes that are not UTF-8. */
	(void)json_object_set_new(root, "logs", text ? text : json_null());
	session_json(root);
}

int remote_logs(struct session *s)
{
	_answer_ struct api_answer answer = { 0 };
	uint64_t bytes;

	if (s->o.json && s->o.follow)
		return problem_wrong(&s->problem, "--json and --follow do not go together");
	if (fetch_logs(s, false, &answer, &bytes) < 0)
		return -1;
	if (s->o.json)
		print_object(s, &answer.body);
	else if (put_logs(s, buf_str(&answer.body), answer.body.len) && s->o.follow)
		return follow_logs(s, &answer, bytes);
	return 0;
}

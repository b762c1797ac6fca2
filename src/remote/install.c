/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.c - `caisson install NAME PACKAGE...`: packages for a sandbox.
 *
 * What goes on is one line on stderr, on a terminal, with a bar, that is taken away at the end;
 * what was installed is on stdout, a package per line.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "remote/event.h"
#include "remote/lines.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/text.h"
#include "remote/tty.h"
#include "remote/verbs.h"

#define PROGRESS_MAX 200
#define BAR 20
#define BAR_FULL "####################"
#define BAR_EMPTY "...................."

struct install {
	struct lines lines;
	json_t *result, *refused; /* owned; at most one is there at the end */
	bool show, shown;
};

/* "[#####...............]  25% " in front of what goes on, once it is known how much there is. */
static void show(struct install *in, const char *text, json_int_t done, json_int_t total)
{
	char line[PROGRESS_MAX];
	uint16_t rows, cols;
	int at = 0;

	if (!in->show)
		return;
	tty_size(&rows, &cols);
	if (total > 0 && done >= 0 && done <= total) {
		int full = (int)(done * BAR / total);

		at = snprintf(line, sizeof(line), "[%.*s%.*s] %3d%% ", full, BAR_FULL, BAR - full,
			      BAR_EMPTY, (int)(done * 100 / total));
	}
	(void)snprintf(line + at, sizeof(line) - (size_t)at, "%s", text);
	(void)fprintf(stderr, "\r\033[K%.*s", cols > 1 && cols < PROGRESS_MAX ? cols - 1 : 79,
		      line);
	(void)fflush(stderr);
	in->shown = true;
}

static int on_line(void *arg, const char *line, size_t len)
{
	struct install *in = arg;
	struct event ev;
	const char *text;

	if (event_parse(line, len, &ev) < 0)
		return 0;
	text = json_string_value(json_object_get(ev.root, "text"));
	if (event_is(&ev, "progress") && text)
		show(in, text, json_integer_value(json_object_get(ev.root, "done")),
		     json_integer_value(json_object_get(ev.root, "total")));
	else if (event_is(&ev, "done"))
		in->result = json_incref(ev.root);
	else if (event_is(&ev, "refused"))
		in->refused = json_incref(ev.root);
	event_free(&ev);
	return 0;
}

static int on_data(void *arg, const char *data, size_t len)
{
	return lines_feed(&((struct install *)arg)->lines, data, len);
}

static int refuse(struct session *s, const json_t *refused)
{
	char *text = json_dumps(refused, JSON_COMPACT);
	int r = problem_answer(&s->problem, 422, text ? text : "", text ? strlen(text) : 0, 0);

	free(text);
	return r;
}

static void print(const struct session *s, json_t *result)
{
	size_t i;
	json_t *p;

	(void)json_object_del(result, "type");
	(void)json_object_del(result, "id");
	if (s->o.json) {
		session_json(result);
		return;
	}
	json_array_foreach(json_object_get(result, "packages"), i, p)(void)
		printf("%s %s\n", json_string_value(json_object_get(p, "name")),
		       json_string_value(json_object_get(p, "version")));
}

static int ask(struct session *s, struct install *in, json_t *body)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct api_answer answer = { 0 };

	url_sandbox(&path, s->o.rest[0], "/packages");
	const struct api_call call = { .method = "POST",
				       .path = buf_str(&path),
				       .json = body,
				       .accept = "application/x-ndjson",
				       .sink = on_data,
				       .arg = in,
				       .timeout_ms = API_ENDLESS };
	int r = api_call(&s->api, &call, &answer, &s->problem);

	api_answer_free(&answer);
	if (in->shown)
		(void)fprintf(stderr, "\r\033[K");
	if (r == 0 && in->refused)
		r = refuse(s, in->refused);
	else if (r == 0 && !in->result)
		r = problem_say(&s->problem, EXIT_OTHER, "cut",
				"the daemon ended before it said how it went");
	return r;
}

int verb_install(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_INSTALL,
		.usage = "install NAME PACKAGE... [--lang LANG]",
		.text = "Installs packages into the sandbox NAME: names on the daemon's index, perhaps with\n"
			"versions, as in numpy or 'requests>=2,<3'. They can be imported at once.\n",
		.min = 2,
		.max = -1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		struct install in = { .show = isatty(STDERR_FILENO) && !s.o.json };
		json_t *requirements = json_array();
		json_t *body = json_pack("{s:o, s:s}", "packages", requirements, "language",
					 s.o.lang ? s.o.lang : "python");
		struct err e = { 0 };

		lines_init(&in.lines, on_line, &in);
		for (int i = 1; i < s.o.n_rest; i++)
			(void)json_array_append_new(requirements, json_string(s.o.rest[i]));
		if (place_check_name(s.o.rest[0], &e) < 0)
			session_fail_err(&s, &e);
		else if (ask(&s, &in, body) < 0)
			session_fail(&s);
		else
			print(&s, in.result);
		lines_free(&in.lines);
		json_decref(in.result);
		json_decref(in.refused);
		json_decref(body);
	}
	return session_end(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_verb.c - `caisson install NAME PACKAGE...`: packages for a sandbox.
 *
 * The progress is one line on stderr, on a terminal, with a bar, that is removed at the end. The
 * packages that were installed are printed on stdout, one per line.
 */
#include <stdio.h>
#include <unistd.h>

#include "client/lines.h"
#include "remote/event.h"
#include "remote/list.h"
#include "remote/tty.h"
#include "remote/verb.h"

#define PROGRESS_MAX 200
#define BAR 20
#define BAR_FULL "####################"
#define BAR_EMPTY "...................."

struct install {
	struct lines lines;
	json_t *result, *refused; /* owned; at most one is there at the end */
	bool show, shown;
};

/* "[#####...............]  25% " before the text, once the total is known. */
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

static int on_line(void *arg, char *line, size_t len)
{
	struct install *in = arg;
	struct event ev;

	if (event_parse(line, len, &ev) < 0)
		return 0;
	if (event_is(&ev, "progress"))
		show(in, list_text(ev.root, "text"),
		     json_integer_value(json_object_get(ev.root, "done")),
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

static void print(const struct session *s, const json_t *result)
{
	const json_t *p;
	size_t i;

	(void)s;
	json_array_foreach(json_object_get(result, "packages"), i, p)
	{
		(void)printf("%s %s\n", list_text(p, "name"), list_text(p, "version"));
	}
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
		r = problem_refusal(&s->problem, 422, in->refused, 0);
	else if (r == 0 && !in->result)
		r = problem_say(&s->problem, EXIT_OTHER, "cut",
				"the daemon ended the answer before the result");
	return r;
}

int remote_install(struct session *s)
{
	struct install in = { .show = isatty(STDERR_FILENO) && !s->o.json };
	json_t *requirements = json_array();
	json_t *body = json_pack("{s:o, s:s}", "packages", requirements, "language",
				 s->o.lang ? s->o.lang : "python");
	int r;

	lines_init(&in.lines, on_line, &in);
	for (int i = 1; i < s->o.n_rest; i++)
		(void)json_array_append_new(requirements, json_string(s->o.rest[i]));
	r = ask(s, &in, body);
	if (r == 0) {
		(void)json_object_del(in.result, "type");
		(void)json_object_del(in.result, "id");
		r = session_show(s, json_incref(in.result), print);
	}
	lines_free(&in.lines);
	json_decref(in.result);
	json_decref(in.refused);
	json_decref(body);
	return r;
}

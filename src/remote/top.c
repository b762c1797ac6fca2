/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.c - `caisson top`: the sandboxes and what they use, again and again.
 *
 * The share of processors is the difference of two readings, so the first screen has none. Only as
 * many sandboxes as the screen has lines are asked for their numbers.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "remote/list.h"
#include "remote/session.h"
#include "remote/tty.h"
#include "remote/verbs.h"

#define REFRESH_MS 1000
#define FRAME_MAX (4u << 20)
#define HEAD_LINES 3 /* the line above the table, an empty one, the titles */

/* One look. */
struct look {
	json_t *all;    /* whole objects */
	uint64_t at_ns; /* when */
};

static json_t *fetch_one(struct session *s, const char *name)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct problem gone;

	url_sandbox(&path, name, "");
	return api_json(&s->api, "GET", buf_str(&path), NULL, &gone);
}

/* At most @max of them with their numbers; the others as they are in the list. */
static int look(struct session *s, size_t max, struct look *ret)
{
	json_t *list = list_fetch(s), *v;
	size_t i;

	if (!list)
		return -1;
	ret->at_ns = clock_now_ns();
	ret->all = json_array();
	json_array_foreach(list, i, v)
	{
		json_t *whole = i < max ? fetch_one(s, list_text(v, "name")) : NULL;

		(void)json_array_append_new(ret->all, whole ? whole : json_incref(v));
	}
	json_decref(list);
	return 0;
}

static double cpu_seconds(const json_t *v)
{
	const json_t *usage = json_object_get(v, "usage");
	const json_t *seconds = json_object_get(usage, "cpu_seconds");

	return json_is_number(seconds) ? json_number_value(seconds) :
					 json_number_value(json_object_get(usage, "cpu_ms")) / 1000;
}

static const json_t *find(const json_t *all, const char *name)
{
	size_t i;
	const json_t *v;

	json_array_foreach(all, i, v) if (strcmp(list_text(v, "name"), name) == 0) return v;
	return NULL;
}

static void put_cpu(struct table *t, const json_t *v, const struct look *now,
		    const struct look *before)
{
	const json_t *old = before->all ? find(before->all, list_text(v, "name")) : NULL;
	double seconds = (double)(now->at_ns - before->at_ns) / (double)CLOCK_NS_PER_S;
	double used = cpu_seconds(v) - cpu_seconds(old);

	if (!old || used < 0 || seconds <= 0)
		table_cell(t, STYLE_DIM, "-");
	else
		table_printf(t, "%.0f %%", 100 * used / seconds);
}

static void put_row(struct table *t, const json_t *v, const struct look *now,
		    const struct look *before)
{
	const json_t *spec = json_object_get(v, "spec"), *usage = json_object_get(v, "usage");
	const char *state = list_text(v, "state");
	uint64_t peak = list_uint(usage, "memory_peak");
	char text[NUM_FORMAT_MAX];

	peak = peak ? peak : list_uint(usage, "memory_peak_bytes");
	table_cell(t, STYLE_PLAIN, list_text(v, "name"));
	table_cell(t, list_style(state), state);
	put_cpu(t, v, now, before);
	table_cell(t, STYLE_PLAIN,
		   num_format_ms((uint64_t)(cpu_seconds(v) * 1000), text, sizeof(text)));
	table_cell(t, STYLE_PLAIN, peak ? num_format_size(peak, text, sizeof(text)) : "-");
	table_cell(t, STYLE_PLAIN,
		   num_format_size(list_uint(spec, "memory_mib") << 20, text, sizeof(text)));
	table_printf(t, "%llu", (unsigned long long)list_uint(usage, "pids_peak"));
	table_printf(t, "%llu", (unsigned long long)list_uint(v, "executions"));
	table_printf(t, "%llu", (unsigned long long)list_uint(v, "queued"));
	uint64_t idle = list_uint(v, "idle_seconds");

	table_cell(t, STYLE_PLAIN, idle ? num_format_ms(idle * 1000, text, sizeof(text)) : "0 s");
}

static void render(const struct look *now, const struct look *before, bool color, size_t columns,
		   struct buf *out)
{
	static const struct table_column titles[] = {
		{ "NAME", false },   { "STATE", false }, { "CPU", true },  { "CPU TIME", true },
		{ "PEAK", true },    { "LIMIT", true },  { "PIDS", true }, { "RUNS", true },
		{ "WAITING", true }, { "IDLE", true },
	};
	struct table t;
	size_t i;
	const json_t *v;

	table_init(&t, titles, ARRAY_SIZE(titles));
	json_array_foreach(now->all, i, v) put_row(&t, v, now, before);
	table_render(&t, color, columns, out);
	table_free(&t);
}

/* ---- the screen ---------------------------------------------------------------------------- */

/* Only the lines that fit, each on a line that is cleared first. */
static void put_lines(const struct buf *table, size_t rows, struct buf *frame)
{
	const char *line = buf_str(table);

	for (size_t i = 0; *line && i < rows; i++) {
		size_t n = strcspn(line, "\n");

		(void)buf_append(frame, line, n);
		(void)buf_puts(frame, "\033[K\r\n");
		line += n + (line[n] == '\n');
	}
}

static void show(const struct session *s, const struct look *now, const struct look *before)
{
	_buf_ struct buf table = BUF_INIT(FRAME_MAX), frame = BUF_INIT(FRAME_MAX);
	uint16_t rows, cols;

	tty_size(&rows, &cols);
	render(now, before, session_color(), cols, &table);
	(void)buf_printf(&frame, "\033[H%zu sandbox%s %.*s, q to quit\033[K\r\n\033[K\r\n",
			 json_array_size(now->all), json_array_size(now->all) == 1 ? "" : "es",
			 cols > 40 ? cols - 40 : 0, s->api.where);
	put_lines(&table, rows > HEAD_LINES ? rows - HEAD_LINES + 1u : 1u, &frame);
	(void)buf_puts(&frame, "\033[J");
	(void)fd_write_all(STDOUT_FILENO, buf_str(&frame), frame.len);
}

/* Wait for the next round. True: it is over. */
static bool wait_for_key(struct session *s, int signals, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = clock_now_ns();
		struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				      { .fd = signals, .events = POLLIN } };
		struct signalfd_siginfo info;
		char key;

		if (now >= until_ns)
			return false;
		(void)poll(p, 2, (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1);
		if (p[0].revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
			return true;
		if (!p[1].revents || read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
			continue;
		if (info.ssi_signo == SIGWINCH)
			return false;
		if (info.ssi_signo == SIGTSTP) {
			tty_stop();
			return false;
		}
		s->code = info.ssi_signo == SIGINT ? 0 : 128 + (int)info.ssi_signo;
		return true;
	}
}

static void live(struct session *s)
{
	struct look before = { 0 }, now = { 0 };
	uint16_t rows, cols;
	sigset_t set;
	bool over = false;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	_fd_ int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	(void)tty_enter(TTY_KEYS);
	while (!over) {
		uint64_t until = clock_now_ns() + REFRESH_MS * CLOCK_NS_PER_MS;

		tty_size(&rows, &cols);
		if (look(s, rows, &now) < 0) {
			tty_leave();
			session_fail(s);
			break;
		}
		show(s, &now, &before);
		json_decref(before.all);
		before = now;
		now.all = NULL;
		over = wait_for_key(s, signals, until);
	}
	tty_leave();
	json_decref(before.all);
}

static void once(struct session *s)
{
	_buf_ struct buf out = BUF_INIT(FRAME_MAX);
	struct look now = { 0 }, before = { 0 };

	if (look(s, SIZE_MAX, &now) < 0) {
		session_fail(s);
		return;
	}
	if (s->o.json) {
		json_t *root = json_pack("{s:O}", "sandboxes", now.all);

		session_json(root);
		json_decref(root);
	} else {
		render(&now, &before, session_color(), 0, &out);
		(void)fwrite(buf_str(&out), 1, out.len, stdout);
	}
	json_decref(now.all);
}

int verb_top(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_TOP,
		.usage = "top [-a] [--label KEY=VALUE] [OPTIONS]",
		.text = "Shows the sandboxes and what they use, once a second; q quits. Without a terminal, or with\n"
			"--json, once.\n",
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		if (!s.o.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
			live(&s);
		else
			once(&s);
	}
	return session_end(&s);
}

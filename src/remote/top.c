/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.c - `caisson top`: the sandboxes and their use of resources, once a second.
 *
 * The share of processors is the difference of two readings, so the first screen has none. The
 * daemon is asked for the numbers of as many sandboxes as the screen has lines.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "remote/list.h"
#include "remote/tty.h"
#include "remote/verb.h"

#define REFRESH_MS 1000
#define FRAME_MAX (4u << 20)
#define HEAD_LINES 3 /* the line above the table, an empty one, the titles */

/* One look. */
struct look {
	json_t *all;    /* whole objects */
	uint64_t at_ns; /* when */
};

/* At most @max of them with their numbers; the others as they are in the list. */
static int look(struct session *s, size_t max, struct look *ret)
{
	json_auto_t *list = list_fetch(s);
	json_t *v;
	size_t i;

	if (!list)
		return -1;
	ret->at_ns = clock_now_ns();
	ret->all = json_array();
	json_array_foreach(list, i, v)
	{
		struct problem gone;
		json_t *whole = i < max ? api_sandbox(&s->api, "GET", list_text(v, "name"), "",
						      NULL, &gone) :
					  NULL;

		(void)json_array_append_new(ret->all, whole ? whole : json_incref(v));
	}
	return 0;
}

static double cpu_seconds(const json_t *v)
{
	return json_number_value(json_object_get(json_object_get(v, "usage"), "cpu_seconds"));
}

static const json_t *find(const json_t *all, const char *name)
{
	const json_t *v;
	size_t i;

	json_array_foreach(all, i, v)
	{
		if (strcmp(list_text(v, "name"), name) == 0)
			return v;
	}
	return NULL;
}

/* The share of processors since the look before, as a member of each sandbox. */
static void compare(const struct look *now, const struct look *before)
{
	double seconds = (double)(now->at_ns - before->at_ns) / (double)CLOCK_NS_PER_S;
	json_t *v;
	size_t i;

	json_array_foreach(now->all, i, v)
	{
		const json_t *old = find(before->all, list_text(v, "name"));
		double used = cpu_seconds(v) - cpu_seconds(old);

		if (old && used >= 0 && seconds > 0)
			(void)json_object_set_new(v, "cpu_percent",
						  json_real(100 * used / seconds));
	}
}

static void put_cpu(struct table *t, const json_t *v)
{
	const json_t *percent = json_object_get(v, "cpu_percent");

	if (percent)
		table_printf(t, "%.0f %%", json_number_value(percent));
	else
		table_cell(t, STYLE_DIM, "-");
}

static void put_cpu_time(struct table *t, const json_t *v)
{
	char text[NUM_FORMAT_MAX];

	table_cell(t, STYLE_PLAIN,
		   num_format_ms((uint64_t)(cpu_seconds(v) * 1000), text, sizeof(text)));
}

static void put_bytes(struct table *t, const json_t *v, const char *key)
{
	uint64_t n = list_uint(json_object_get(v, "usage"), key);
	char text[NUM_FORMAT_MAX];

	table_cell(t, STYLE_PLAIN, n ? num_format_size(n, text, sizeof(text)) : "-");
}

static void put_memory(struct table *t, const json_t *v)
{
	put_bytes(t, v, "memory");
}

static void put_peak(struct table *t, const json_t *v)
{
	put_bytes(t, v, "memory_peak");
}

/* Processes and threads, as --pids counts them, but for pid 1. */
static void put_pids(struct table *t, const json_t *v)
{
	const json_t *receipt = json_object_get(v, "receipt");

	table_printf(t, "%llu",
		     (unsigned long long)list_uint(json_object_get(receipt, "commands"),
						   "threads"));
}

static const struct list_column columns[] = {
	{ "NAME", .key = "name" },
	{ "STATE", .put = list_put_state },
	{ "CPU", LIST_NUMBER, .put = put_cpu },
	{ "CPU TIME", LIST_NUMBER, .put = put_cpu_time },
	{ "MEMORY", LIST_NUMBER, .put = put_memory },
	{ "PEAK", LIST_NUMBER, .put = put_peak },
	{ "LIMIT", LIST_MIB, .key = "memory_mib", .in = "spec" },
	{ "PIDS", LIST_NUMBER, .put = put_pids },
	{ "RUNS", LIST_NUMBER, .key = "executions" },
	{ "WAITING", LIST_NUMBER, .key = "queued" },
	{ "IDLE", LIST_SECONDS, .key = "idle_seconds" },
};

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

static void show(const struct session *s, const struct look *now)
{
	_buf_ struct buf table = BUF_INIT(FRAME_MAX), frame = BUF_INIT(FRAME_MAX);
	uint16_t rows, cols;

	tty_size(&rows, &cols);
	list_render(columns, ARRAY_SIZE(columns), now->all, cols, &table);
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
		char key;

		if (now >= until_ns)
			return false;
		(void)poll(p, 2, (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1);
		if (p[0].revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
			return true;
		int signo = p[1].revents ? tty_signal(signals) : 0;

		if (signo == 0)
			continue;
		if (signo == SIGTSTP)
			tty_stop();
		if (signo == SIGTSTP || signo == SIGWINCH || signo == SIGCONT)
			return false;
		s->code = signo == SIGINT ? 0 : 128 + signo;
		return true;
	}
}

static int live(struct session *s)
{
	struct look before = { 0 }, now = { 0 };
	_fd_ int signals = tty_signals(true);
	uint16_t rows, cols;
	bool over = false;
	int r = 0;

	(void)tty_enter(TTY_KEYS);
	while (!over && r == 0) {
		uint64_t until = clock_now_ns() + REFRESH_MS * CLOCK_NS_PER_MS;

		tty_size(&rows, &cols);
		r = look(s, rows, &now);
		if (r < 0)
			break;
		compare(&now, &before);
		show(s, &now);
		json_decref(before.all);
		before = now;
		over = wait_for_key(s, signals, until);
	}
	tty_leave();
	json_decref(before.all);
	return r;
}

int remote_top(struct session *s)
{
	struct look now = { 0 };

	if (!s->o.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return live(s);
	if (look(s, SIZE_MAX, &now) < 0)
		return -1;
	return list_show(s, json_pack("{s:o}", "sandboxes", now.all), "sandboxes", columns,
			 ARRAY_SIZE(columns));
}

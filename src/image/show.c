/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - One row per layer: drawn again and again on a terminal, printed once elsewhere. */
#include "image/show.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "image/image_store.h"
#include "remote/tty.h"

#define BAR_MAX 40
#define SHORT_DIGEST 12

static const char *const words[] = {
	[SHOW_WAITS] = "waiting",     [SHOW_LOADS] = "loading", [SHOW_LOADED] = "loaded",
	[SHOW_UNPACKS] = "unpacking", [SHOW_DONE] = "done",     [SHOW_HERE] = "already here",
};

void show_begin(struct show *s, bool json, bool quiet)
{
	*s = (struct show){ .mode = json                  ? SHOW_EVENTS :
				    quiet                 ? SHOW_NOTHING :
				    isatty(STDERR_FILENO) ? SHOW_BARS :
							    SHOW_LINES };
}

static void event(const char *name, const char *text, const struct show *s,
		  const struct show_row *row)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "event", name);
	if (text)
		json_member_str(&j, "text", text);
	if (row) {
		json_member_uint(&j, "layer", (uint64_t)(row - s->rows) + 1);
		json_member_uint(&j, "layers", s->n);
		json_member_str(&j, "digest", row->digest);
		json_member_str(&j, "state", words[row->state]);
		json_member_uint(&j, "bytes", row->done);
		json_member_uint(&j, "total", row->total);
	}
	json_object_end(&j);
	if (json_finish(&j) == 0)
		(void)printf("%s\n", buf_str(&b));
	(void)fflush(stdout);
}

void show_step(struct show *s, const char *name, const char *text)
{
	if (s->mode == SHOW_EVENTS)
		event(name, text, s, NULL);
	else if (s->mode != SHOW_NOTHING)
		(void)fprintf(stderr, "%s\n", text);
}

void show_add(struct show *s, const char *digest, uint64_t total)
{
	s->rows[s->n++] = (struct show_row){ .digest = digest, .total = total };
}

void show_plan(struct show *s)
{
	for (size_t i = 0; i < s->n && s->mode == SHOW_EVENTS; i++)
		event("layer", NULL, s, &s->rows[i]);
}

void show_row(struct show *s, size_t i, enum show_state state, uint64_t done)
{
	struct show_row *row = &s->rows[i];
	char size[NUM_FORMAT_MAX];
	bool news = row->state != state;

	row->state = state;
	row->done = done;
	if (!news)
		return;
	if (s->mode == SHOW_EVENTS)
		event("layer", NULL, s, row);
	else if (s->mode == SHOW_LINES && state != SHOW_LOADS && state != SHOW_UNPACKS)
		(void)fprintf(stderr, "layer %zu of %zu, %.*s, %s: %s\n", i + 1, s->n, SHORT_DIGEST,
			      digest_hex(row->digest),
			      num_format_size(row->total, size, sizeof(size)), words[state]);
	s->next_ns = 0;
}

static void draw_row(const struct show_row *row, size_t columns)
{
	char bar[BAR_MAX + 1], done[NUM_FORMAT_MAX], total[NUM_FORMAT_MAX];
	size_t width = columns > 80 ? BAR_MAX : columns > 60 ? 20 : 0;
	size_t filled = row->total ? (size_t)(row->done * width / row->total) : width;

	if (row->state != SHOW_LOADS)
		filled = row->state == SHOW_WAITS ? 0 : width;
	memset(bar, ' ', sizeof(bar));
	memset(bar, '=', filled < width ? filled : width);
	bar[width] = '\0';
	(void)fprintf(stderr, "\r%.*s [%s] %9s of %9s  %s\033[K\n", SHORT_DIGEST,
		      digest_hex(row->digest), bar, num_format_size(row->done, done, sizeof(done)),
		      num_format_size(row->total, total, sizeof(total)), words[row->state]);
}

static void draw(struct show *s)
{
	uint16_t rows = 24, columns = 80;

	tty_size(&rows, &columns);
	if (s->drawn)
		(void)fprintf(stderr, "\033[%zuA", s->drawn);
	s->drawn = 0;
	for (size_t i = 0; i < s->n && s->drawn + 2 < rows; i++, s->drawn++)
		draw_row(&s->rows[i], columns);
	(void)fflush(stderr);
}

void show_tick(struct show *s)
{
	uint64_t now = clock_now_ns();

	if (now < s->next_ns)
		return;
	s->next_ns = now + (s->mode == SHOW_EVENTS ? CLOCK_NS_PER_S : CLOCK_NS_PER_S / 10);
	if (s->mode == SHOW_BARS)
		draw(s);
	else if (s->mode == SHOW_EVENTS)
		for (size_t i = 0; i < s->n; i++)
			if (s->rows[i].state == SHOW_LOADS)
				event("progress", NULL, s, &s->rows[i]);
}

void show_end(struct show *s)
{
	if (s->mode == SHOW_BARS)
		draw(s);
	s->mode = s->mode == SHOW_BARS ? SHOW_NOTHING : s->mode;
}

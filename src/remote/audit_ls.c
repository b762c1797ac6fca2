/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_ls.c - Lines of the ledger that somebody asked for, as a table or as they are.
 *
 * They are checked on the way. Damage does not hide what comes after it, which may be what one
 * looks for: those lines are marked, and the exit code and a line on stderr say so.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "ledger/reader.h"
#include "remote/audit.h"
#include "remote/terminal.h"

#define TIME_ROOM 32

struct kept {
	char *text;
	size_t len;
	bool good;
};

struct ls {
	const struct audit_options *o;
	struct progress progress;
	char since[TIME_ROOM]; /* in the ledger's own form, which sorts as text */
	struct kept *ring;     /* of o->tail, when that is asked for */
	uint64_t matches;
};

/* ---- --since ------------------------------------------------------------------------------- */

/* "Z", "+02:00", or nothing. */
static int parse_zone(const char *s, long *ret)
{
	static const char shape[] = "+hh:mm";
	long part[2] = { 0 }; /* hours, minutes */

	*ret = 0;
	if (!*s || strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
		return 0;
	if (strlen(s) != strlen(shape) || (*s != '+' && *s != '-') || s[3] != ':')
		return -EINVAL;
	for (size_t i = 1; i < strlen(shape); i++) {
		if (i == 3)
			continue;
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		part[i > 3] = part[i > 3] * 10 + (s[i] - '0');
	}
	if (part[0] > 23 || part[1] > 59)
		return -EINVAL;
	*ret = (part[0] * 3600 + part[1] * 60) * (*s == '-' ? -1 : 1);
	return 0;
}

static int parse_since(const char *s, char ret[TIME_ROOM], struct err *e)
{
	struct tm tm = { 0 };
	uint64_t ago_ms;
	unsigned int ms = 0;
	long zone = 0;
	time_t when;
	const char *rest = strptime(s, "%Y-%m-%d", &tm);

	if (!rest) {
		if (num_parse_duration_ms(s, &ago_ms, NULL) < 0)
			goto wrong;
		when = time(NULL) - (time_t)(ago_ms / 1000);
	} else {
		if (*rest == 'T' || *rest == 't' || *rest == ' ')
			rest = strptime(rest + 1, "%H:%M:%S", &tm);
		if (rest && *rest == '.') {
			unsigned int scale = 100;

			for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
				ms += (unsigned int)(*rest - '0') * scale;
		}
		if (!rest || parse_zone(rest, &zone) < 0)
			goto wrong;
		when = timegm(&tm) - zone;
	}
	if (!gmtime_r(&when, &tm) || tm.tm_year < -1900 || tm.tm_year > 8099)
		goto wrong;
	(void)snprintf(ret, TIME_ROOM, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		       (unsigned int)(tm.tm_year + 1900) % 10000, (unsigned int)tm.tm_mon + 1,
		       (unsigned int)tm.tm_mday, (unsigned int)tm.tm_hour, (unsigned int)tm.tm_min,
		       (unsigned int)tm.tm_sec, ms % 1000);
	return 0;
wrong:
	return err_say(
		e, -EINVAL,
		"--since: '%.60s' is no time; 2026-11-16, 2026-11-16T03:25:16Z, 90s, 30m and "
		"2h are",
		s);
}

/* ---- which --------------------------------------------------------------------------------- */

static const char *member(const json_t *line, const char *key)
{
	const char *s = json_string_value(json_object_get(line, key));

	return s ? s : "";
}

static bool is_wanted(const struct ls *l, const json_t *line)
{
	const struct audit_options *o = l->o;

	return (!o->sandbox || strcmp(member(line, "sandbox"), o->sandbox) == 0) &&
	       (!o->owner || strcmp(member(line, "owner"), o->owner) == 0) &&
	       (!o->event || strcmp(member(line, "event"), o->event) == 0) &&
	       (!l->since[0] || strcmp(member(line, "time"), l->since) >= 0);
}

/* ---- a line of the table ------------------------------------------------------------------- */

static void put_cell(const char *s, size_t width)
{
	size_t n = terminal_text(stdout, s, strlen(s));

	(void)printf("%*s", (int)(n < width ? width - n : 0) + 1, "");
}

static void put_detail(const char *key, const json_t *value)
{
	const char *s = json_string_value(value);

	(void)printf(" %s=", key);
	if (s && strlen(s) == CHAIN_HEX && strspn(s, "0123456789abcdef") == CHAIN_HEX)
		(void)printf("%.12s", s);
	else if (s)
		(void)terminal_text(stdout, s, strlen(s));
	else if (json_is_integer(value))
		(void)printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		(void)printf("%s", json_is_true(value)  ? "true" :
				   json_is_false(value) ? "false" :
							  "-");
}

static bool is_column(const char *key)
{
	static const char *const columns[] = { "seq",     "time", "event", "owner",
					       "sandbox", "prev", "hash" };

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (strcmp(key, columns[i]) == 0)
			return true;
	return false;
}

static void put_row(json_t *line, bool good)
{
	const char *key, *inner_key;
	json_t *value, *inner;

	terminal_colour(good ? TERMINAL_DIM : TERMINAL_RED);
	put_cell(member(line, "time"), 24);
	(void)printf("%c%6" JSON_INTEGER_FORMAT " ", good ? ' ' : '!',
		     json_integer_value(json_object_get(line, "seq")));
	terminal_colour(TERMINAL_PLAIN);
	terminal_colour(TERMINAL_BOLD);
	put_cell(member(line, "event"), 18);
	terminal_colour(TERMINAL_PLAIN);
	put_cell(*member(line, "owner") ? member(line, "owner") : "-", 10);
	put_cell(*member(line, "sandbox") ? member(line, "sandbox") : "-", 15);
	json_object_foreach(line, key, value)
	{
		if (is_column(key))
			continue;
		if (!json_is_object(value))
			put_detail(key, value);
		json_object_foreach(value, inner_key, inner) put_detail(inner_key, inner);
	}
	(void)putchar('\n');
}

/* A line that is not JSON is one that was damaged: it is shown as what it is. */
static void show(const struct ls *l, const char *text, size_t len, bool good)
{
	json_t *line;

	if (l->o->json) {
		(void)printf("%.*s\n", (int)len, text);
		return;
	}
	line = json_loadb(text, len, 0, NULL);
	if (line) {
		put_row(line, good);
	} else {
		(void)printf("!      ");
		(void)terminal_text(stdout, text, len);
		(void)putchar('\n');
	}
	json_decref(line);
}

/* ---- all of them --------------------------------------------------------------------------- */

static int keep(struct ls *l, const struct reader_line *line)
{
	struct kept *k = &l->ring[l->matches % l->o->tail];
	char *copy = malloc(line->len + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, line->text, line->len);
	free(k->text);
	*k = (struct kept){ copy, line->len, line->good };
	return 0;
}

static int take(const struct reader_line *line, const struct reader_report *so_far, void *arg)
{
	struct ls *l = arg;
	const struct audit_options *o = l->o;
	bool wanted = true;
	int r = 0;

	if (o->sandbox || o->owner || o->event || l->since[0] || o->json) {
		json_t *parsed = json_loadb(line->text, line->len, 0, NULL);

		wanted = parsed && is_wanted(l, parsed);
		json_decref(parsed);
	}
	if (wanted) {
		if (l->ring)
			r = keep(l, line);
		else
			show(l, line->text, line->len, line->good);
		l->matches++;
	}
	if (so_far->lines % 1024 == 0 && (l->ring || l->matches == 0))
		progress_update(&l->progress, so_far->bytes, so_far->total_bytes);
	return r;
}

static void show_ring(struct ls *l)
{
	uint64_t tail = l->o->tail, from = l->matches > tail ? l->matches - tail : 0;

	for (uint64_t i = from; i < l->matches; i++) {
		struct kept *k = &l->ring[i % tail];

		show(l, k->text, k->len, k->good);
		free(k->text);
		k->text = NULL;
	}
}

int audit_ls(const struct audit_options *o, int dirfd, struct err *e)
{
	struct ls l = { .o = o };
	struct reader_report report;
	_mem_ struct kept *ring = NULL;
	int r;

	if (o->since && parse_since(o->since, l.since, e) < 0)
		return e->code;
	if (o->tail > AUDIT_TAIL_MAX)
		return err_say(e, -EINVAL, "--tail: at most %u", AUDIT_TAIL_MAX);
	if (o->tail > 0) {
		l.ring = ring = calloc((size_t)o->tail, sizeof(*ring));
		if (!ring)
			return err_set(e, -ENOMEM, "keep %" PRIu64 " lines", o->tail);
	}
	if (!o->json)
		(void)printf("%-24s %7s %-18s %-10s %-16s DETAILS\n", "TIME", "SEQ", "EVENT",
			     "OWNER", "SANDBOX");
	progress_begin(&l.progress, "reading the ledger");
	r = reader_run(dirfd, true, take, &l, &report, e);
	progress_end(&l.progress);
	if (l.ring)
		show_ring(&l);
	if (r < 0)
		return e->code ? r : err_set(e, r, "read the ledger");
	if (!report.damaged)
		return 0;
	(void)fflush(stdout);
	(void)fprintf(stderr,
		      "caisson: the ledger is damaged: %s, line %" PRIu64
		      ": %s; what comes from there on proves nothing\n",
		      report.file, report.line, report.why);
	return AUDIT_EXIT_DAMAGED;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_ls.c - `caisson audit ls`: lines of the ledger, as a table or as they are.
 *
 * The lines are checked on the way. Lines after a damage are printed too, as they may be the ones
 * that the reader looks for; they are marked, and the exit code and a line on stderr report it.
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
#include "ledger/ledger_reader.h"
#include "remote/audit_verb.h"
#include "remote/list.h"
#include "remote/table.h"
#include "remote/tty.h"

#define TIME_ROOM 32
#define DAY_S 86400

struct kept {
	char *text;
	size_t len;
	bool good;
};

struct ls {
	const struct audit_options *o;
	struct meter meter;
	char since[TIME_ROOM]; /* in the ledger's own form, which sorts as text */
	struct kept *ring;     /* of o->tail, when that is asked for */
	uint64_t matches;
};

/* ---- --since ------------------------------------------------------------------------------- */

static int parse_since(const char *s, char ret[TIME_ROOM], struct err *e)
{
	struct tm tm = { 0 };
	uint64_t ago_ms;
	unsigned int ms = 0;
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
		if (rest && *rest) /* "Z", "+02:00" */
			rest = *rest == 'z' ? rest + 1 : strptime(rest, "%z", &tm);
		if (!rest || *rest || labs(tm.tm_gmtoff) >= DAY_S)
			goto wrong;
		long zone = tm.tm_gmtoff;

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
	return err_say(e, -EINVAL,
		       "--since: '%.60s' is not a time; use the form of 2026-11-16, "
		       "2026-11-16T03:25:16Z, 90s, 30m or 2h",
		       s);
}

/* ---- which --------------------------------------------------------------------------------- */

static bool is_wanted(const struct ls *l, const json_t *line)
{
	const struct audit_options *o = l->o;

	return (!o->sandbox || strcmp(list_text(line, "sandbox"), o->sandbox) == 0) &&
	       (!o->owner || strcmp(list_text(line, "owner"), o->owner) == 0) &&
	       (!o->event || strcmp(list_text(line, "event"), o->event) == 0) &&
	       (!l->since[0] || strcmp(list_text(line, "time"), l->since) >= 0);
}

/* ---- a line of the table ------------------------------------------------------------------- */

static void put_cell(const char *s, size_t width)
{
	size_t n = text_print(stdout, s, strlen(s));

	(void)printf("%*s", (int)(n < width ? width - n : 0) + 1, "");
}

static void put_detail(const char *key, const json_t *value)
{
	const char *s = json_string_value(value);

	(void)printf(" %s=", key);
	if (s && strlen(s) == CHAIN_HEX && strspn(s, "0123456789abcdef") == CHAIN_HEX)
		(void)printf("%.12s", s);
	else if (s)
		(void)text_print(stdout, s, strlen(s));
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

	tty_style(good ? "2" : "31"); /* dim, red */
	put_cell(list_text(line, "time"), 24);
	(void)printf("%c%6" JSON_INTEGER_FORMAT " ", good ? ' ' : '!',
		     json_integer_value(json_object_get(line, "seq")));
	tty_style("0");
	tty_style("1"); /* bold */
	put_cell(list_text(line, "event"), 18);
	tty_style("0");
	put_cell(*list_text(line, "owner") ? list_text(line, "owner") : "-", 10);
	put_cell(*list_text(line, "sandbox") ? list_text(line, "sandbox") : "-", 15);
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

/* A line that is not JSON is a damaged one: it is shown as text. */
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
		(void)text_print(stdout, text, len);
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
		audit_progress(&l->meter, so_far);
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
	meter_begin(&l.meter, 0);
	r = reader_run(dirfd, true, take, &l, &report, e);
	meter_end(&l.meter);
	if (l.ring)
		show_ring(&l);
	if (r < 0)
		return e->code ? r : err_set(e, r, "read the ledger");
	if (!report.damaged)
		return 0;
	(void)fflush(stdout);
	(void)fprintf(stderr,
		      "caisson: the ledger is damaged: %s, line %" PRIu64
		      ": %s; the lines from there on prove nothing\n",
		      report.file, report.line, report.why);
	return AUDIT_EXIT_DAMAGED;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_read.c - A policy from its text.
 *
 * toml.c calls on_table() and on_pair() in the order of the text. An error is added to the report
 * and reading goes on, so that the operator sees all errors at once. Only a syntax error ends it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "front/policy/rule_rows.h"
#include "front/policy/rules.h"
#include "hash/hash.h"

/* ---- errors -------------------------------------------------------------------------------- */

void rules_complain(struct rules_report *report, struct toml_at at, const char *fmt, ...)
{
	size_t n = report->n++;
	va_list ap;

	if (n >= RULES_ERRORS_MAX)
		return;
	report->errors[n].at = at;
	va_start(ap, fmt);
	(void)vsnprintf(report->errors[n].message, sizeof(report->errors[n].message), fmt, ap);
	va_end(ap);
}

/* ---- building ------------------------------------------------------------------------------ */

struct build {
	struct rules *rules;
	struct rules_section *section; /* NULL: of a table that was refused, or before any */
	unsigned int where;            /* enum where; 0: before any table */
	struct rules_report *report;
	size_t room; /* for owners */
};

static void unknown_key(struct build *b, const struct toml_word *key)
{
	struct near n = near_word(key->text, strlen(key->text));

	for (size_t i = 0; i < RULE_MAX_; i++)
		near_try(&n, rule_rows[i].name);
	rules_complain(b->report, key->at, "unknown key '%.60s'%s man caisson-policy lists them",
		       key->text, near_hint(&n));
}

static const char *kind_name(enum toml_kind kind)
{
	static const char *const names[] = { [TOML_INTEGER] = "a number",
					     [TOML_DECIMAL] = "a decimal number",
					     [TOML_BOOLEAN] = "true or false",
					     [TOML_STRING] = "a string",
					     [TOML_LIST] = "a list" };

	return names[kind];
}

static void out_of_range(struct build *b, enum rule rule, struct toml_at at)
{
	const struct rule_row *row = &rule_rows[rule];

	if (rule == RULE_CPUS)
		rules_complain(b->report, at, "cpus: must be between %.2f and %.0f",
			       (double)row->min / 1000, (double)row->max / 1000);
	else
		rules_complain(b->report, at, "%s: must be between %" PRIu64 " and %" PRIu64,
			       row->name, row->min, row->max);
}

static void set_number(struct build *b, enum rule rule, const struct toml_value *v,
		       struct rule_value *ret)
{
	const struct rule_row *row = &rule_rows[rule];
	uint64_t n = 0;
	int r;

	if (v->kind != TOML_INTEGER && !(rule == RULE_CPUS && v->kind == TOML_DECIMAL)) {
		rules_complain(b->report, v->at, "%s: must be %s, not %s", row->name,
			       rule == RULE_CPUS ? "a number as in 2 or 0.5" : "a whole number",
			       kind_name(v->kind));
		return;
	}
	r = rule == RULE_CPUS ? num_parse_cpus_milli(v->text, &n, NULL) :
				num_parse_u64(v->text, row->min, row->max, &n, NULL);
	if (r < 0 || n < row->min || n > row->max)
		out_of_range(b, rule, v->at);
	ret->number = n;
}

static void set_list(struct build *b, enum rule rule, const struct toml_value *v,
		     struct rule_value *ret)
{
	const struct rule_row *row = &rule_rows[rule];

	if (v->kind != TOML_LIST) {
		rules_complain(b->report, v->at,
			       "%s: must be a list as in [\"one\", \"two\"], not %s", row->name,
			       kind_name(v->kind));
		return;
	}
	ret->words = calloc(v->n + 1, sizeof(char *));
	for (size_t i = 0; i < v->n; i++) {
		char *word = ret->words ? strdup(v->words[i].text) : NULL;

		if (!word) {
			rules_complain(b->report, v->at, "out of memory");
			return;
		}
		ret->words[ret->n++] = word;
		if (!row->check(word))
			rules_complain(b->report, v->words[i].at, "%s: '%.60s' is not %s",
				       row->name, v->words[i].text, row->word);
	}
}

static void on_pair(void *arg, const struct toml_word *key, const struct toml_value *v)
{
	struct build *b = arg;
	enum rule rule = 0;

	if (!b->where)
		rules_complain(b->report, key->at,
			       "'%.60s' stands before the first table: [default] should come first",
			       key->text);
	if (!b->section)
		return;
	while (rule < RULE_MAX_ && strcmp(rule_rows[rule].name, key->text) != 0)
		rule++;
	if (rule == RULE_MAX_) {
		unknown_key(b, key);
		return;
	}
	struct rule_value *to = &b->section->values[rule];

	if (!(rule_rows[rule].where & b->where)) {
		rules_complain(b->report, key->at,
			       "'%s' is not for [daemon]: put it into [default] or [owners.NAME]",
			       key->text);
		return;
	}
	if (to->at.line) {
		rules_complain(b->report, key->at, "'%s' was given in line %u already", key->text,
			       to->at.line);
		return;
	}
	to->at = key->at;
	if (rule < RULE_NUMBERS_)
		set_number(b, rule, v, to);
	else
		set_list(b, rule, v, to);
}

/* ---- tables -------------------------------------------------------------------------------- */

static bool owner_chars(const char *s)
{
	return s[0] && strlen(s) < OWNER_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		       strlen(s);
}

static struct rules_section *owner_section(struct build *b, const struct toml_word *name)
{
	struct rules *r = b->rules;

	if (!owner_chars(name->text)) {
		rules_complain(
			b->report, name->at,
			"'%.60s' is not an owner: a name of 1 to %d letters, digits, '-', '_' or "
			"'.'",
			name->text, OWNER_MAX - 1);
		return NULL;
	}
	for (size_t i = 0; i < r->n_owners; i++)
		if (strcmp(r->owners[i].owner, name->text) == 0)
			return &r->owners[i];
	if (r->n_owners == RULES_OWNERS_MAX) {
		rules_complain(b->report, name->at, "there are more than %d owners",
			       RULES_OWNERS_MAX);
		return NULL;
	}
	if (r->n_owners == b->room) {
		size_t room = b->room ? 2 * b->room : 8;
		struct rules_section *more = realloc(r->owners, room * sizeof(*more));

		if (!more) {
			rules_complain(b->report, name->at, "out of memory");
			return NULL;
		}
		r->owners = more;
		b->room = room;
	}
	struct rules_section *s = &r->owners[r->n_owners++];

	*s = (struct rules_section){ 0 };
	(void)snprintf(s->owner, sizeof(s->owner), "%s", name->text);
	return s;
}

static void on_table(void *arg, struct toml_at at, const struct toml_word *parts, size_t n)
{
	struct build *b = arg;
	const char *name = parts[0].text;

	b->section = NULL;
	b->where = IN_OWNER;
	if (n == 1 && strcmp(name, "daemon") == 0) {
		b->section = &b->rules->daemon;
		b->where = IN_DAEMON;
	} else if (n == 1 && strcmp(name, "default") == 0) {
		b->section = &b->rules->fallback;
	} else if (strcmp(name, "owners") == 0 && n == 2) {
		b->section = owner_section(b, &parts[1]);
	} else if (strcmp(name, "owners") == 0 && n > 2) {
		rules_complain(b->report, parts[2].at,
			       "a name with a dot is in quotes: [owners.\"%.40s.%.40s\"]",
			       parts[1].text, parts[2].text);
	} else {
		rules_complain(b->report, parts[0].at,
			       "unknown table '%.60s': the tables are [daemon], [default] and "
			       "[owners.NAME]",
			       name);
	}
	if (b->section && b->section->at.line) {
		rules_complain(b->report, at, "this table was begun in line %u already",
			       b->section->at.line);
		b->section = NULL;
	}
	if (b->section)
		b->section->at = at;
}

static void on_fail(void *arg, struct toml_at at, const char *why)
{
	const struct build *b = arg;

	rules_complain(b->report, at, "%s", why);
}

/* ---- whole ones ---------------------------------------------------------------------------- */

struct rules *rules_parse(const char *text, size_t len, struct rules_report *report)
{
	struct build b = { .rules = calloc(1, sizeof(struct rules)), .report = report };
	const struct toml_reader reader = { on_table, on_pair, on_fail, &b };
	const struct toml_at start = { 1, 1 };
	size_t before = report->n;

	if (!b.rules)
		rules_complain(report, start, "out of memory");
	else if (len > RULES_TEXT_MAX)
		rules_complain(report, start, "a policy has at most %u KiB", RULES_TEXT_MAX >> 10);
	else
		toml_read(text, len, &reader);
	if (report->n == before && !hash_sha256_hex(text, len, b.rules->sha256))
		rules_complain(report, start, "out of memory");
	if (report->n == before)
		return b.rules;
	rules_free(b.rules);
	return NULL;
}

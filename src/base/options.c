/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - Collect the options of a program from its table, and print them.
 *
 * Every source of values (defaults, variables, arguments) ends in options_give(), which notes the
 * source of the row, empties a list that another source had filled, and puts the name of the option
 * or variable before the message of a value that is refused. The arguments are walked in one way
 * only, by next_option(): the search for --help skips the same values as the parser.
 */
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/near.h"

#define VARIABLE_MAX 64
#define HELP_COLUMNS 26 /* of an option and its value; a longer one has a line of its own */

/* ---- rows ----------------------------------------------------------------------------------- */

static bool same(const char *name, const char *arg, size_t len)
{
	return name && strlen(name) == len && strncmp(name, arg, len) == 0;
}

static bool has_verb(const struct option_row *row, unsigned int verbs)
{
	return !row->verbs || row->verbs & verbs;
}

static const struct option_row *find(const struct options *p, unsigned int verbs, const char *arg,
				     size_t len)
{
	for (const struct option_row *row = p->rows; row < p->rows + p->n_rows; row++)
		if (has_verb(row, verbs) &&
		    (same(row->name, arg, len) || same(row->alias, arg, len)))
			return row;
	return NULL;
}

static const struct option_row *named(const struct options *p, const char *name)
{
	const struct option_row *row = find(p, p->verb, name, strlen(name));

	assert(row);
	return row;
}

bool options_given(const struct options *p, const char *name)
{
	const struct option_row *row = find(p, p->verb, name, strlen(name));

	return row && p->from[row - p->rows] != OPTION_BY_DEFAULT;
}

size_t options_count(const char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* ---- strings -------------------------------------------------------------------------------- */

struct owned {
	struct owned *next;
	char text[];
};

char *options_own(struct options *p, const char *text, size_t len)
{
	struct owned *o = malloc(sizeof(*o) + len + 1);

	if (!o)
		return NULL;
	memcpy(o->text, text, len);
	o->text[len] = '\0';
	o->next = p->owned;
	p->owned = o;
	return o->text;
}

void options_free(struct options *p)
{
	while (p->owned) {
		struct owned *o = p->owned;

		p->owned = o->next;
		free(o);
	}
}

/* ---- values --------------------------------------------------------------------------------- */

static int options_give(struct options *p, const struct option_row *row, enum option_source by,
			const char *label, const char *value, struct err *e)
{
	uint8_t *from = &p->from[row - p->rows];
	struct err inner = { 0 };

	assert(p->n_rows <= OPTIONS_ROWS_MAX);
	if (*from != by || by == OPTION_BY_DEFAULT)
		option_clear(p, row);
	*from = (uint8_t)by;
	int r = option_store(p, row, value, &inner);

	if (r == 0)
		return 0;
	return err_say(e, r == -ENOMEM ? r : -EINVAL, "%s: %s", label, inner.msg);
}

int options_set(struct options *p, const char *name, enum option_source by, const char *label,
		const char *value, struct err *e)
{
	return options_give(p, named(p, name), by, label, value, e);
}

/* Of every verb: a program may look at a member whose option this verb does not have. */
int options_defaults(struct options *p, struct err *e)
{
	int r = 0;

	for (const struct option_row *row = p->rows; r == 0 && row < p->rows + p->n_rows; row++)
		if (row->initial)
			r = options_give(p, row, OPTION_BY_DEFAULT, row->name, row->initial, e);
	return r;
}

/* ---- the environment ------------------------------------------------------------------------ */

/* "--max-body" is CAISSON_MAX_BODY. */
static void variable_of(const char *name, char ret[VARIABLE_MAX])
{
	(void)snprintf(ret, VARIABLE_MAX, "CAISSON_%s", name + 2);
	for (char *c = ret; *c; c++)
		*c = (char)(*c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
}

const char *options_lookup(char **env, const char *variable)
{
	size_t len = strlen(variable);

	for (; env && *env; env++)
		if (strncmp(*env, variable, len) == 0 && (*env)[len] == '=')
			return (*env)[len + 1] ? *env + len + 1 : NULL;
	return NULL;
}

int options_environment(struct options *p, struct err *e)
{
	int r = 0;

	for (const struct option_row *row = p->rows; r == 0 && row < p->rows + p->n_rows; row++) {
		char variable[VARIABLE_MAX];

		if (!has_verb(row, p->verb) || !(row->env || p->all_variables))
			continue;
		variable_of(row->name, variable);
		const char *v = options_lookup(p->env, variable);

		if (v && (row->kind != OPTION_FLAG || strcmp(v, "0") != 0))
			r = options_give(p, row, OPTION_BY_VARIABLE, variable, v, e);
	}
	return r;
}

/* ---- the arguments -------------------------------------------------------------------------- */

struct word {
	const struct option_row *row; /* NULL: unknown */
	const char *name;             /* as it was typed, @len bytes */
	size_t len;
	const char *value; /* NULL: none follows */
	bool joined;       /* by '=' */
	int next;          /* where the next argument is */
};

static bool is_option(const char *arg)
{
	return arg[0] == '-' && arg[1];
}

/* An unknown option has a value when something follows that can be one. */
static struct word next_option(const struct options *p, int argc, char **argv, int at)
{
	struct word w = { .name = argv[at], .next = at + 1 };
	const char *equals = strncmp(w.name, "--", 2) == 0 ? strchr(w.name, '=') : NULL;

	w.len = equals ? (size_t)(equals - w.name) : strlen(w.name);
	w.row = find(p, p->verb, w.name, w.len);
	if (equals) {
		w.joined = true;
		w.value = equals + 1;
	} else if (w.next < argc && (w.row ? w.row->value != NULL : !is_option(argv[w.next]))) {
		w.value = argv[w.next++];
	}
	return w;
}

bool options_has(const struct options *p, int argc, char **argv, const char *name)
{
	for (int at = 1; at < argc && strcmp(argv[at], "--") != 0;) {
		if (!is_option(argv[at])) {
			if (p->stop)
				return false;
			at++;
			continue;
		}
		struct word w = next_option(p, argc, argv, at);

		if (same(name, w.name, w.len))
			return true;
		at = w.next;
	}
	return false;
}

bool options_has_word(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

static int unknown(const struct options *p, const struct word *w, struct err *e)
{
	struct near near = near_word(w->name, w->len);
	int len = w->len > 80 ? 80 : (int)w->len;

	if (p->other_verbs && find(p, p->other_verbs, w->name, w->len))
		return err_say(e, -EINVAL, "%.*s %s", len, w->name, p->other_remedy);
	if (!p->command)
		return err_say(e, -EINVAL, "unknown option '%.*s'", len, w->name);
	for (size_t i = 0; i < p->n_rows; i++)
		if (has_verb(&p->rows[i], p->verb))
			near_try(&near, p->rows[i].name);
	return err_say(e, -EINVAL, "unknown option '%.*s'%s '%s --help' lists them", len, w->name,
		       near_hint(&near), p->command);
}

static int take_option(struct options *p, const struct word *w, struct err *e)
{
	const struct option_row *row = w->row;
	bool alone = row && !row->value;

	if (!row)
		return unknown(p, w, e);
	if (row->kind == OPTION_FLAG && w->joined)
		return err_say(e, -EINVAL, "%s takes no value", row->name);
	if (!alone && !w->value)
		return err_say(e, -EINVAL, "%s needs a value: %s %s", row->name, row->name,
			       row->value);
	const char *value = w->value ? w->value : "yes";
	struct err inner = { 0 };

	if (p->check && p->check(row, value, &inner) < 0)
		return err_say(e, -EINVAL, "%s: %s", row->name, inner.msg);
	return options_give(p, row, OPTION_BY_ARGUMENT, row->name, value, e);
}

static int take_other(struct options *p, char *arg, struct err *e)
{
	if (p->rest)
		p->rest[p->n_rest++] = arg;
	else if (!p->stop)
		return err_say(e, -EINVAL, "'%.64s': %s takes options only", arg,
			       p->command ? p->command : "this program");
	return 0;
}

int options_arguments(struct options *p, int argc, char **argv, struct err *e)
{
	int at = 1, r = 0;

	while (r == 0 && at < argc && !p->dashes) {
		if (strcmp(argv[at], "--") == 0) {
			p->dashes = true;
			at++;
		} else if (is_option(argv[at])) {
			struct word w = next_option(p, argc, argv, at);

			r = take_option(p, &w, e);
			at = w.next;
		} else if (p->stop) {
			break;
		} else {
			r = take_other(p, argv[at++], e);
		}
	}
	p->end = at;
	p->n_before = p->n_rest;
	for (; r == 0 && at < argc; at++)
		r = take_other(p, argv[at], e);
	if (p->rest)
		p->rest[p->n_rest] = NULL;
	return r;
}

int options_parse(struct options *p, int argc, char **argv, struct err *e)
{
	if (options_has(p, argc, argv, "--help") || options_has(p, argc, argv, "-h"))
		return 1;
	int r = options_defaults(p, e);

	if (r == 0)
		r = options_environment(p, e);
	return r == 0 ? options_arguments(p, argc, argv, e) : r;
}

/* ---- help ----------------------------------------------------------------------------------- */

void options_help(const struct options *p, unsigned int section, FILE *out)
{
	bool aliases = false;

	for (size_t i = 0; i < p->n_rows; i++)
		aliases |= p->rows[i].alias && has_verb(&p->rows[i], p->verb);
	for (const struct option_row *row = p->rows; row < p->rows + p->n_rows; row++) {
		bool shown = row->initial && *row->initial && row->kind != OPTION_SWITCH &&
			     row->kind != OPTION_CUSTOM && row->kind != OPTION_COMMAS;
		char left[64];

		if (!has_verb(row, p->verb) || row->section != section)
			continue;
		(void)snprintf(left, sizeof(left), "%s%s%s%s%s", row->alias ? row->alias : "",
			       row->alias ? ", " :
			       aliases    ? "    " :
					    "",
			       row->name, row->value ? " " : "", row->value ? row->value : "");
		if (strlen(left) > HELP_COLUMNS)
			(void)fprintf(out, "  %s\n  %-*s", left, HELP_COLUMNS, "");
		else
			(void)fprintf(out, "  %-*s", HELP_COLUMNS, left);
		(void)fprintf(out, " %s%s%s%s\n", row->help, shown ? " (" : "",
			      shown ? row->initial : "", shown ? ")" : "");
	}
}

/* ---- without a table ------------------------------------------------------------------------ */

char **options_find(char **argv, const char *name, bool *ret_joined)
{
	size_t len = strlen(name);
	char **found = NULL;

	for (char **at = argv; *at; at++) {
		bool joined = strncmp(*at, name, len) == 0 && (*at)[len] == '=';

		if (!joined && (strcmp(*at, name) != 0 || !at[1]))
			continue;
		found = joined ? at : ++at;
		if (ret_joined)
			*ret_joined = joined;
	}
	return found;
}

const char *options_peek(char **argv, char **env, const char *name)
{
	char variable[VARIABLE_MAX];
	bool joined = false;
	char **at = options_find(argv, name, &joined);

	variable_of(name, variable);
	return at ? *at + (joined ? strlen(name) + 1 : 0) : options_lookup(env, variable);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_value.c - Parse one value of an option, by its kind, into the caller's struct.
 *
 * A row has the offset of its member, and the kind of the row implies the type of that member.
 * Nothing is stored when a value is refused, except the items of a list before the refused one.
 */
#include "base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

static void *member(const struct options *p, const struct option_row *row)
{
	return (char *)p->target + row->offset;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void show(const struct option_row *row, uint64_t n, char out[NUM_FORMAT_MAX])
{
	if (row->kind == OPTION_SIZE)
		(void)num_format_size(n, out, NUM_FORMAT_MAX);
	else if (row->kind == OPTION_DURATION)
		(void)num_format_ms(n, out, NUM_FORMAT_MAX);
	else if (n % 1000)
		(void)snprintf(out, NUM_FORMAT_MAX, "%" PRIu64 ".%03" PRIu64, n / 1000, n % 1000);
	else
		(void)snprintf(out, NUM_FORMAT_MAX, "%" PRIu64, n / 1000);
}

static int out_of_range(const struct option_row *row, const char *v, struct err *e)
{
	bool bytes = row->kind == OPTION_SIZE && strspn(v, "0123456789") == strlen(v);
	char min[NUM_FORMAT_MAX], max[NUM_FORMAT_MAX];

	show(row, row->min, min);
	show(row, row->max, max);
	if (!row->max)
		return err_say(e, -EINVAL, "must be at least %s", min);
	return err_say(e, -EINVAL, "must be between %s and %s%s", min, max,
		       bytes ? "; a number without a unit (K, M, G) is one of bytes" : "");
}

static int store_number(const struct options *p, const struct option_row *row, const char *v,
			struct err *e)
{
	uint64_t n = 0, max = row->max ? row->max : UINT64_MAX;
	int r = row->kind == OPTION_NUMBER ? num_parse_u64(v, row->min, max, &n, e) :
		row->kind == OPTION_SIZE   ? num_parse_size(v, &n, e) :
		row->kind == OPTION_CPUS   ? num_parse_cpus_milli(v, &n, e) :
					     num_parse_duration_ms(v, &n, e);

	if (r < 0)
		return r;
	if (n < row->min || n > max)
		return out_of_range(row, v, e);
	if (row->kind == OPTION_CPUS)
		*(uint32_t *)member(p, row) = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	else
		*(uint64_t *)member(p, row) = n;
	return 0;
}

static int store_switch(const struct options *p, const struct option_row *row, const char *v,
			struct err *e)
{
	bool yes = strcmp(v, "yes") == 0 || strcmp(v, "1") == 0 || strcmp(v, "true") == 0;

	if (!yes && strcmp(v, "no") != 0 && strcmp(v, "0") != 0 && strcmp(v, "false") != 0)
		return err_say(e, -EINVAL, "'%.64s' is neither yes nor no", v);
	*(bool *)member(p, row) = yes;
	return 0;
}

/* ---- texts and lists ------------------------------------------------------------------------ */

static int check_text(const struct option_row *row, const char *v, struct err *e)
{
	const char *equals = strchr(v, '=');

	if (row->kind == OPTION_PATH && v[0] != '/')
		return err_say(e, -EINVAL, "must be an absolute path");
	if (row->kind == OPTION_PAIRS && (!equals || equals == v))
		return err_say(e, -EINVAL, "must be %s", row->value);
	if (!*v && row->kind != OPTION_STRING && !row->check)
		return err_say(e, -EINVAL, "must not be empty");
	return row->check ? row->check(v, e) : 0;
}

static int add(const struct options *p, const struct option_row *row, const char *item,
	       struct err *e)
{
	const char **list = member(p, row);
	size_t n = options_count(list);
	int r = n < row->max ? check_text(row, item, e) :
			       err_say(e, -EINVAL, "takes at most %" PRIu64 " values", row->max);

	if (r < 0)
		return r;
	list[n] = item;
	list[n + 1] = NULL;
	return 0;
}

static int split(struct options *p, const struct option_row *row, const char *v, struct err *e)
{
	int r = 0;

	while (r == 0 && *v) {
		size_t len = strcspn(v, ",");
		const char *next = v + len + (v[len] == ',');

		for (; len > 0 && *v == ' '; len--)
			v++;
		while (len > 0 && v[len - 1] == ' ')
			len--;
		const char *part = len ? options_own(p, v, len) : NULL;

		if (len && !part)
			return err_set(e, -ENOMEM, "store the value");
		if (part)
			r = add(p, row, part, e);
		v = next;
	}
	return r;
}

void option_clear(const struct options *p, const struct option_row *row)
{
	if (row->kind == OPTION_LIST || row->kind == OPTION_PAIRS || row->kind == OPTION_COMMAS)
		*(const char **)member(p, row) = NULL;
}

int option_store(struct options *p, const struct option_row *row, const char *v, struct err *e)
{
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)member(p, row) = true;
		return 0;
	case OPTION_SWITCH:
		return store_switch(p, row, v, e);
	case OPTION_NUMBER:
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_CPUS:
		return store_number(p, row, v, e);
	case OPTION_LIST:
	case OPTION_PAIRS:
		return add(p, row, v, e);
	case OPTION_COMMAS:
		return split(p, row, v, e);
	case OPTION_CUSTOM:
		return row->set(p->target, v, e);
	case OPTION_STRING:
	case OPTION_TEXT:
	case OPTION_PATH:
		break;
	}
	int r = check_text(row, v, e);

	if (r == 0)
		*(const char **)member(p, row) = v;
	return r;
}

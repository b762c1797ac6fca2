/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - A table of options, walked by the parser and by the help. */
#include "remote/args.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/near.h"
#include "base/num.h"

static const struct args_row *find(const struct args_row *rows, size_t n, unsigned int verb,
				   const char *arg, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].verbs & verb && strlen(rows[i].name) == len &&
		    strncmp(rows[i].name, arg, len) == 0)
			return &rows[i];
	return NULL;
}

static int set(const struct args_row *row, const char *value, void *target, struct err *e)
{
	char *at = (char *)target + row->offset;
	uint64_t count;

	switch (row->kind) {
	case ARGS_FLAG:
		*(bool *)at = true;
		return 0;
	case ARGS_TEXT:
		if (!*value)
			return err_say(e, -EINVAL, "%s: the value is empty", row->name);
		*(const char **)at = value;
		return 0;
	case ARGS_COUNT:
		if (num_parse_u64(value, 1, INT64_MAX, &count, e) < 0) {
			(void)err_wrap(e, "%s", row->name);
			return -EINVAL;
		}
		*(uint64_t *)at = count;
		return 0;
	}
	return -EINVAL;
}

static int unknown(const struct args_row *rows, size_t n, unsigned int verb, const char *arg,
		   size_t len, struct err *e)
{
	struct near near = near_word(arg, len);

	for (size_t i = 0; i < n; i++)
		if (rows[i].verbs & verb)
			near_try(&near, rows[i].name);
	return err_say(e, -EINVAL, "unknown option '%.*s'%s --help lists them",
		       len > 80 ? 80 : (int)len, arg, near_hint(&near));
}

int args_parse(const struct args_row *rows, size_t n, unsigned int verb, int argc, char **argv,
	       void *target, char **rest, struct err *e)
{
	int others = 0;
	bool ended = false;

	for (int i = 1; i < argc; i++) {
		char *arg = argv[i];

		if (!ended && strcmp(arg, "--") == 0) {
			ended = true;
			continue;
		}
		if (ended || arg[0] != '-' || !arg[1]) {
			rest[others++] = arg;
			continue;
		}
		size_t len = strcspn(arg, "=");
		const struct args_row *row = find(rows, n, verb, arg, len);
		const char *value = arg[len] ? arg + len + 1 : NULL;

		if (!row)
			return unknown(rows, n, verb, arg, len, e);
		if (!row->value && value)
			return err_say(e, -EINVAL, "%s takes no value", row->name);
		if (row->value && !value)
			value = i + 1 < argc ? argv[++i] : NULL;
		if (row->value && !value)
			return err_say(e, -EINVAL, "%s needs a value: %s %s", row->name, row->name,
				       row->value);
		if (set(row, value, target, e) < 0)
			return -EINVAL;
	}
	rest[others] = NULL;
	return others;
}

int args_wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return 1;
	return 0;
}

void args_usage(const struct args_row *rows, size_t n, unsigned int verb, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		char left[64];

		if (!(rows[i].verbs & verb))
			continue;
		(void)snprintf(left, sizeof(left), "%s%s%s", rows[i].name, rows[i].value ? " " : "",
			       rows[i].value ? rows[i].value : "");
		(void)fprintf(out, "  %-22s %s\n", left, rows[i].help);
	}
}

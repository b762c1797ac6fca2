/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_list.c - Parse the value of a setting that is a list.
 *
 * One function splits at commas and hands each part to the check of its kind, which may rewrite it (a package name becomes
 * canonical). Empty parts are no parts. The parts live in blocks that struct config owns (config_value.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "front/support/config_value.h"
#include "front/support/mounts.h"
#include "front/support/origin.h"
#include "net/prefix.h"
#include "s3/site.h"

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A module of Python as `import` takes it: identifiers in ASCII, with dots between them. */
static int check_module(char *s, struct err *e)
{
	char before = '.';

	for (const char *p = s; *p; before = *p++) {
		bool letter = is_alpha(*p) || *p == '_';

		if (!letter && (before == '.' || (!is_digit(*p) && *p != '.')))
			return err_say(e, -EINVAL, "'%.64s' is no name of a python module", s);
	}
	return before == '.' ? err_say(e, -EINVAL, "'%.64s' ends with a dot", s) : 0;
}

static int check_host(char *s, struct err *e)
{
	struct origin o;

	if (origin_parse_host(s, &o) && o.port == 0)
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is no host: a name or address without a port, as in box.example or "
		       "[fd00::1]",
		       s);
}

static int check_origin(char *s, struct err *e)
{
	struct origin o;

	if (origin_parse(s, &o))
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is no origin: scheme, host and port only, as in "
		       "https://app.example or http://localhost:3000",
		       s);
}

static int check_net(char *s, struct err *e)
{
	struct prefix ignored;

	if (prefix_parse(s, &ignored))
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is no range of addresses: as in 10.1.0.0/16, with no bits set "
		       "behind the range",
		       s);
}

/* PEP 503: lower case, each run of '-', '_' and '.' is one '-'. Done in place. */
static int check_package(char *s, struct err *e)
{
	size_t n = 0, len = strlen(s);
	bool good = true, between = false;

	for (size_t i = 0; i < len && good; i++) {
		bool mark = s[i] == '-' || s[i] == '_' || s[i] == '.';

		good = mark ? n > 0 && i + 1 < len : is_alpha(s[i]) || is_digit(s[i]);
		if (good && !(mark && between))
			s[n++] = mark ? '-' : (char)(s[i] | (is_alpha(s[i]) ? 0x20 : 0));
		between = mark;
	}
	if (!good)
		return err_say(e, -EINVAL, "'%.64s' is no name of a package", s);
	s[n] = '\0';
	return 0;
}

/* As a name is written canonically, of python or npm, with '*' for any letters. */
static int check_pattern(char *s, struct err *e)
{
	if (strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.~@/*") == strlen(s))
		return 0;
	return err_say(
		e, -EINVAL,
		"'%.64s' is no pattern: a name in lower case, as in numpy, types-* or @types/*", s);
}

static int check_mount(char *s, struct err *e)
{
	struct cell_mount ignored;
	size_t len;

	return mounts_parse(s, &ignored, &len, e);
}

static int check_path(char *s, struct err *e)
{
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ')
			return err_say(e, -EINVAL, "a path must not contain control characters");
	return 0;
}

/* [OWNER/]NAME=s3://BUCKET/PREFIX: as workspaces and owners are called. */
static int check_mapping(char *s, struct err *e)
{
	struct s3_place ignored;
	size_t name = strcspn(s, "="), slashes = 0;

	for (size_t i = 0; i < name; i++) {
		if (!is_alpha(s[i]) && !is_digit(s[i]) && !strchr("-_./", s[i]))
			name = 0;
		slashes += s[i] == '/';
	}
	if (name == 0 || name > 63 || !s[name] || slashes > 1 || s[0] == '/' || s[name - 1] == '/')
		return err_say(e, -EINVAL,
			       "'%.64s' is no place of a workspace, as in data=s3://bucket/prefix",
			       s);
	return s3_place_parse(s + name + 1, &ignored, e);
}

int config_list_set(struct config *c, const struct config_row *row, const char *v, bool append,
		    struct err *e)
{
	static int (*const checks[])(char *s, struct err *e) = {
		[CONFIG_MODULES] = check_module,   [CONFIG_HOSTS] = check_host,
		[CONFIG_ORIGINS] = check_origin,   [CONFIG_NETS] = check_net,
		[CONFIG_PACKAGES] = check_package, [CONFIG_FILES] = check_path,
		[CONFIG_PATTERNS] = check_pattern, [CONFIG_MOUNTS] = check_mount,
		[CONFIG_PLACES] = check_mapping,
	};
	const char **list = (const char **)((char *)c + row->offset);
	size_t n = 0;

	while (append && list[n])
		n++;
	list[n] = NULL;
	if (row->kind == CONFIG_PACKAGES && strcmp(v, "none") == 0)
		return 0;
	while (*v) {
		size_t len = strcspn(v, ","), skip = len + (v[len] == ',');

		while (len > 0 && *v == ' ')
			v++, len--, skip--;
		while (len > 0 && v[len - 1] == ' ')
			len--;
		char *part = len ? config_value_own(c, v, len) : NULL;

		if (len && !part)
			return err_set(e, -ENOMEM, "remember it");
		if (part && n + 1 >= row->max)
			return err_say(e, -EINVAL, "at most %" PRIu64 " of them", row->max - 1);
		if (part && checks[row->kind](part, e) < 0)
			return -EINVAL;
		if (part)
			list[n++] = part;
		list[n] = NULL;
		v += skip;
	}
	return 0;
}

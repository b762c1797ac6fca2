/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_check.c - Check one value of a setting that has a form of its own.
 *
 * Each function takes a whole value, or one item of a list, and has no other effect than the
 * message of a value that is refused. The caller puts the name of the option or variable before it.
 */
#include "front/support/config_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/err.h"
#include "front/support/mounts.h"
#include "front/support/origin.h"
#include "image/ref.h"
#include "net/addr.h"
#include "net/conn.h"
#include "s3/site.h"
#include "vault/index.h"
#include "vault/source.h"

/* ---- single values ------------------------------------------------------------------------- */

int config_check_address(const char *v, struct err *e)
{
	return strcmp(v, "none") == 0 || addr_is_loopback(v, e) >= 0 ? 0 : -EINVAL;
}

int config_check_socket(const char *v, struct err *e)
{
	struct sockaddr_un address;

	if (strcmp(v, "none") == 0)
		return 0;
	if (v[0] != '/')
		return err_say(e, -EINVAL, "must be an absolute path, or none");
	if (strlen(v) >= sizeof(address.sun_path))
		return err_say(e, -EINVAL, "the path of a socket has at most %zu bytes",
			       sizeof(address.sun_path) - 1);
	return 0;
}

int config_check_user(const char *v, struct err *e)
{
	for (const char *p = v; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == ',' || *p == ':')
			return err_say(e, -EINVAL, "is not a user name");
	return v[0] ? 0 : err_say(e, -EINVAL, "must name a user");
}

int config_check_image(const char *v, struct err *e)
{
	struct ref ref;

	if (strcmp(v, "host") == 0 || (strncmp(v, "dir:", 4) == 0 && v[4]))
		return 0;
	if (strncmp(v, "dir:", 4) == 0)
		return err_say(e, -EINVAL, "dir: needs a path, as in dir:/srv/root");
	return ref_parse(v, &ref, e) < 0 ? -EINVAL : 0;
}

int config_check_registry(const char *v, struct err *e)
{
	if (ref_registry_ok(v))
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is not a registry: give a host name in lower case, with its port "
		       "if references have one, as in ghcr.io, *.example.com or localhost:5000",
		       v);
}

int config_check_prefix(const char *v, struct err *e)
{
	const char *problem = source_prefix_problem(v);

	return problem ? err_say(e, -EINVAL, "%s", problem) : 0;
}

int config_check_command(const char *v, struct err *e)
{
	return v[strspn(v, " \t")] ? 0 : err_say(e, -EINVAL, "must name a program");
}

int config_check_resolver(const char *v, struct err *e)
{
	struct sockaddr_storage address;

	return addr_parse(v, &address, e) < 0 ? -EINVAL : 0;
}

int config_check_word(const char *v, struct err *e)
{
	if (strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
	    strlen(v))
		return err_say(e, -EINVAL,
			       "'%.64s' may only have letters, digits, '-', '_' and '.'", v);
	return v[0] && strlen(v) < 64 ? 0 : err_say(e, -EINVAL, "must have 1 to 63 characters");
}

int config_check_style(const char *v, struct err *e)
{
	if (strcmp(v, "path") == 0 || strcmp(v, "virtual") == 0)
		return 0;
	return err_say(e, -EINVAL, "'%.64s' is not a style; the styles are: path, virtual", v);
}

int config_check_place(const char *v, struct err *e)
{
	struct s3_place ignored;

	if (strncmp(v, "s3://", 5) == 0)
		return s3_place_parse(v, &ignored, e);
	return s3_bucket_ok(v, strlen(v)) ? 0 :
					    err_say(e, -EINVAL, "'%.64s' is not a bucket name", v);
}

/* It goes into headers and JSON as it is. */
int config_check_url(const char *v, struct err *e)
{
	size_t skip = strncmp(v, "https://", 8) == 0 ? 8 : strncmp(v, "http://", 7) == 0 ? 7 : 0;
	size_t host = skip + strcspn(v + skip, "/");
	char origin[320];
	struct origin o;

	(void)snprintf(origin, sizeof(origin), "%.*s", (int)(host < 300 ? host : 300), v);
	if (!skip || strlen(v) > 1024 || !origin_parse(origin, &o) ||
	    strspn(v + host,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/%+:@") !=
		    strlen(v + host))
		return err_say(
			e, -EINVAL,
			"'%.64s' is not a URL, as in https://auth.example/realm, without a query",
			v);
	return 0;
}

/* Without credentials: `caisson serve` has taken them out (cli/package_index.h). */
int config_check_index(const char *v, struct err *e)
{
	struct index_url ignored;

	return strcmp(v, "none") == 0 || index_url_parse(INDEX_PIP, v, &ignored, NULL, e) >= 0 ?
		       0 :
		       -EINVAL;
}

/* ---- items of lists ------------------------------------------------------------------------ */

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A module of Python as `import` takes it: identifiers in ASCII, with dots between them. */
int config_check_module(const char *s, struct err *e)
{
	char before = '.';

	for (const char *p = s; *p; before = *p++) {
		bool letter = is_alpha(*p) || *p == '_';

		if (!letter && (before == '.' || (!is_digit(*p) && *p != '.')))
			return err_say(e, -EINVAL, "'%.64s' is not the name of a python module", s);
	}
	return before == '.' ? err_say(e, -EINVAL, "'%.64s' ends with a dot", s) : 0;
}

int config_check_host(const char *s, struct err *e)
{
	struct origin o;

	if (origin_parse_host(s, &o) && o.port == 0)
		return 0;
	return err_say(
		e, -EINVAL,
		"'%.64s' is not a host: give a name or address without a port, as in box.example "
		"or [fd00::1]",
		s);
}

int config_check_server(const char *s, struct err *e)
{
	struct origin o;

	if (origin_parse_host(s, &o) && !o.is_address)
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is not the name of a server: as in files.example, or with a port "
		       "other than 80 and 443, files.example:8443",
		       s);
}

int config_check_origin(const char *s, struct err *e)
{
	struct origin o;

	if (origin_parse(s, &o))
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is not an origin: give scheme, host and port only, as in "
		       "https://app.example or http://localhost:3000",
		       s);
}

int config_check_net(const char *s, struct err *e)
{
	struct prefix ignored;

	if (prefix_parse(s, &ignored))
		return 0;
	return err_say(e, -EINVAL,
		       "'%.64s' is not a range of addresses, as in 10.1.0.0/16, with no bits set "
		       "behind the range",
		       s);
}

int config_check_package(const char *s, struct err *e)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++) {
		bool mark = strchr("-_.", s[i]) != NULL;

		if (mark ? i == 0 || i + 1 == len : !is_alpha(s[i]) && !is_digit(s[i]))
			return err_say(e, -EINVAL, "'%.64s' is not a package name", s);
	}
	return 0;
}

/* PEP 503: lower case, each run of '-', '_' and '.' is one '-'. */
void config_canonical_package(char *s)
{
	const char *start = s;
	char *to = s;

	for (; *s; s++) {
		bool mark = strchr("-_.", *s) != NULL;

		if (mark && to > start && to[-1] == '-')
			continue;
		*to++ = mark ? '-' : (char)(*s | (is_alpha(*s) ? 0x20 : 0));
	}
	*to = '\0';
}

/* A canonical name of python or npm; '*' stands for any letters. */
int config_check_pattern(const char *s, struct err *e)
{
	if (strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.~@/*") == strlen(s))
		return 0;
	return err_say(
		e, -EINVAL,
		"'%.64s' is not a pattern: give a name in lower case, as in numpy, types-* or "
		"@types/*",
		s);
}

int config_check_mount(const char *s, struct err *e)
{
	struct cell_mount ignored;
	size_t len;

	return mounts_parse(s, &ignored, &len, e);
}

int config_check_path(const char *s, struct err *e)
{
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ')
			return err_say(e, -EINVAL, "a path must not contain control characters");
	return 0;
}

/* [OWNER/]NAME=s3://BUCKET/PREFIX, with the characters that owners and workspaces may have. */
int config_check_mapping(const char *s, struct err *e)
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
			       "'%.64s' must be NAME=PLACE, as in data=s3://bucket/prefix", s);
	return s3_place_parse(s + name + 1, &ignored, e);
}

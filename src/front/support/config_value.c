/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_value.c - Parse one value of one setting.
 *
 * Each kind has a function that takes the text and the place; those that are plain texts share one, and a table has their
 * checks. Lists are in config_list.c. Strings that are made here live in blocks that struct config chains up and owns.
 */
#include "front/support/config_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "front/mcp/tool.h"
#include "front/support/origin.h"
#include "image/ref.h"
#include "net/addr.h"
#include "net/conn.h"
#include "s3/site.h"
#include "vault/index.h"
#include "vault/source.h"

struct owned {
	struct owned *next;
	char text[];
};

char *config_value_own(struct config *c, const char *s, size_t len)
{
	struct owned *o = malloc(sizeof(*o) + len + 1);

	if (!o)
		return NULL;
	memcpy(o->text, s, len);
	o->text[len] = '\0';
	o->next = c->owned;
	c->owned = o;
	return o->text;
}

void config_free(struct config *c)
{
	while (c->owned) {
		struct owned *o = c->owned;

		c->owned = o->next;
		free(o);
	}
}

bool config_value_stderr_is_log(void)
{
	return isatty(STDERR_FILENO) == 0;
}

/* ---- single texts ---------------------------------------------------------------------------- */

static int check_address(const char *v, struct err *e)
{
	return strcmp(v, "none") == 0 || addr_is_loopback(v, e) >= 0 ? 0 : -EINVAL;
}

static int check_dir(const char *v, struct err *e)
{
	return v[0] == '/' ? 0 : err_say(e, -EINVAL, "must be an absolute path");
}

static int check_socket(const char *v, struct err *e)
{
	struct sockaddr_un address;

	if (strcmp(v, "none") == 0)
		return 0;
	if (v[0] != '/')
		return err_say(e, -EINVAL, "must be an absolute path, or none");
	if (strlen(v) >= sizeof(address.sun_path))
		return err_say(e, -EINVAL, "a socket's path has at most %zu bytes",
			       sizeof(address.sun_path) - 1);
	return 0;
}

static int check_file(const char *v, struct err *e)
{
	return v[0] ? 0 : err_say(e, -EINVAL, "must name a file");
}

static int check_name(const char *v, struct err *e)
{
	for (const char *p = v; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == ',' || *p == ':')
			return err_say(e, -EINVAL, "is no name of a user");
	return v[0] ? 0 : err_say(e, -EINVAL, "must name a user");
}

static int check_image(const char *v, struct err *e)
{
	struct ref ref;

	if (strcmp(v, "host") == 0 || (strncmp(v, "dir:", 4) == 0 && v[4]))
		return 0;
	if (strncmp(v, "dir:", 4) == 0)
		return err_say(e, -EINVAL, "dir: needs a path, as in dir:/srv/root");
	return ref_parse(v, &ref, e) < 0 ? -EINVAL : 0;
}

static int check_tools(const char *v, struct err *e)
{
	char unknown[64];

	if (mcp_tools_check(v, unknown, sizeof(unknown)))
		return 0;
	return err_say(e, -EINVAL, "there is no tool '%.60s'; say default, all, or names of tools",
		       unknown);
}

static int check_prefix(const char *v, struct err *e)
{
	const char *problem = source_prefix_problem(v);

	return problem ? err_say(e, -EINVAL, "%s", problem) : 0;
}

static int check_command(const char *v, struct err *e)
{
	return v[strspn(v, " \t")] ? 0 : err_say(e, -EINVAL, "must name a program");
}

static int check_resolver(const char *v, struct err *e)
{
	struct sockaddr_storage address;

	return addr_parse(v, &address, e) < 0 ? -EINVAL : 0;
}

static int check_word(const char *v, struct err *e)
{
	if (strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
	    strlen(v))
		return err_say(e, -EINVAL, "'%.64s' has more than letters, digits, '-', '_', '.'",
			       v);
	return v[0] && strlen(v) < 64 ? 0 : err_say(e, -EINVAL, "is empty, or too long");
}

static int check_style(const char *v, struct err *e)
{
	if (strcmp(v, "path") == 0 || strcmp(v, "virtual") == 0)
		return 0;
	return err_say(e, -EINVAL, "'%.64s' does not exist; there are: path, virtual", v);
}

static int check_place(const char *v, struct err *e)
{
	struct s3_place ignored;

	if (strncmp(v, "s3://", 5) == 0)
		return s3_place_parse(v, &ignored, e);
	return s3_bucket_ok(v, strlen(v)) ?
		       0 :
		       err_say(e, -EINVAL, "'%.64s' is no name of a bucket", v);
}

static int set_text(struct config *c, const struct config_row *row, const char *v, struct err *e)
{
	static int (*const checks[])(const char *v, struct err *e) = {
		[CONFIG_ADDRESS] = check_address,   [CONFIG_SOCKET] = check_socket,
		[CONFIG_DIR] = check_dir,           [CONFIG_FILE] = check_file,
		[CONFIG_IMAGE] = check_image,       [CONFIG_TOOLS] = check_tools,
		[CONFIG_RESOLVER] = check_resolver, [CONFIG_NAME] = check_name,
		[CONFIG_PREFIX] = check_prefix,     [CONFIG_COMMAND] = check_command,
		[CONFIG_WORD] = check_word,         [CONFIG_STYLE] = check_style,
		[CONFIG_PLACE] = check_place,
	};
	int r = checks[row->kind](v, e);

	if (r == 0)
		*(const char **)((char *)c + row->offset) = v;
	return r;
}

/* ---- numbers and words ------------------------------------------------------------------------- */

static int out_of_range(const struct config_row *row, struct err *e)
{
	char min[NUM_FORMAT_MAX], max[NUM_FORMAT_MAX];
	bool time = row->kind == CONFIG_TIME;

	return err_say(e, -EINVAL, "must be between %s and %s",
		       time ? num_format_ms(row->min, min, sizeof(min)) :
			      num_format_size(row->min, min, sizeof(min)),
		       time ? num_format_ms(row->max, max, sizeof(max)) :
			      num_format_size(row->max, max, sizeof(max)));
}

static int set_number(struct config *c, const struct config_row *row, const char *v, struct err *e)
{
	uint64_t n = 0;
	int r = row->kind == CONFIG_COUNT ? num_parse_u64(v, row->min, row->max, &n, e) :
		row->kind == CONFIG_SIZE  ? num_parse_size(v, &n, e) :
					    num_parse_duration_ms(v, &n, e);

	if (r < 0)
		return -EINVAL;
	if (n < row->min || n > row->max)
		return out_of_range(row, e);
	memcpy((char *)c + row->offset, &n, sizeof(n));
	return 0;
}

static int set_cpus(struct config *c, const char *v, const struct config_row *row, struct err *e)
{
	uint64_t n;

	if (num_parse_cpus_milli(v, &n, e) < 0)
		return -EINVAL;
	if (n < row->min || n > row->max)
		return err_say(e, -EINVAL, "must be between %" PRIu64 ".%03" PRIu64 " and %" PRIu64,
			       row->min / 1000, row->min % 1000, row->max / 1000);
	c->cpu_milli = (uint32_t)n;
	return 0;
}

static int set_level(struct config *c, const char *v, struct err *e)
{
	static const struct {
		const char *name;
		enum log_level level;
	} names[] = {
		{ "debug", LOG_LEVEL_DEBUG },     { "info", LOG_LEVEL_INFO },
		{ "warning", LOG_LEVEL_WARNING }, { "warn", LOG_LEVEL_WARNING },
		{ "error", LOG_LEVEL_ERROR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(v, names[i].name) == 0) {
			c->log_level = names[i].level;
			return 0;
		}
	return err_say(e, -EINVAL, "'%.64s' is no level; there are: debug, info, warning, error",
		       v);
}

static int set_format(struct config *c, const char *v, struct err *e)
{
	bool json = strcmp(v, "json") == 0;

	if (!json && strcmp(v, "text") != 0)
		return err_say(e, -EINVAL, "'%.64s' is no format; there are: text, json", v);
	c->log_json = json;
	return 0;
}

/* It goes into headers and JSON as it is. */
static int set_url(struct config *c, const struct config_row *row, const char *v, struct err *e)
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
			"'%.64s' is no address: as in https://auth.example/realm, without a query",
			v);
	*(const char **)((char *)c + row->offset) = v;
	return 0;
}

/* Without credentials: `caisson serve` has taken them out (cli/index.h). */
static int set_index(struct config *c, const struct config_row *row, const char *v, struct err *e)
{
	bool none = strcmp(v, "none") == 0;
	struct index_url ignored;

	if (!none && index_url_parse(INDEX_PIP, v, &ignored, NULL, e) < 0)
		return -EINVAL;
	*(const char **)((char *)c + row->offset) = none ? NULL : v;
	return 0;
}

static int set_switch(struct config *c, const struct config_row *row, const char *v, struct err *e)
{
	bool yes = strcmp(v, "yes") == 0 || strcmp(v, "1") == 0 || strcmp(v, "true") == 0;

	if (!yes && strcmp(v, "no") != 0 && strcmp(v, "0") != 0 && strcmp(v, "false") != 0)
		return err_say(e, -EINVAL, "'%.64s' is neither yes nor no", v);
	*(bool *)((char *)c + row->offset) = yes;
	return 0;
}

int config_value_set(struct config *c, const struct config_row *row, const char *v, bool append,
		     struct err *e)
{
	switch (row->kind) {
	case CONFIG_ADDRESS:
	case CONFIG_SOCKET:
	case CONFIG_DIR:
	case CONFIG_FILE:
	case CONFIG_NAME:
	case CONFIG_IMAGE:
	case CONFIG_TOOLS:
	case CONFIG_PREFIX:
	case CONFIG_COMMAND:
	case CONFIG_WORD:
	case CONFIG_STYLE:
	case CONFIG_PLACE:
	case CONFIG_RESOLVER:
		return set_text(c, row, v, e);
	case CONFIG_URL:
		return set_url(c, row, v, e);
	case CONFIG_INDEX:
		return set_index(c, row, v, e);
	case CONFIG_MODULES:
	case CONFIG_HOSTS:
	case CONFIG_ORIGINS:
	case CONFIG_NETS:
	case CONFIG_PACKAGES:
	case CONFIG_PATTERNS:
	case CONFIG_PLACES:
	case CONFIG_FILES:
	case CONFIG_MOUNTS:
		return config_list_set(c, row, v, append, e);
	case CONFIG_COUNT:
	case CONFIG_SIZE:
	case CONFIG_TIME:
		return set_number(c, row, v, e);
	case CONFIG_CPUS:
		return set_cpus(c, v, row, e);
	case CONFIG_LEVEL:
		return set_level(c, v, e);
	case CONFIG_FORMAT:
		return set_format(c, v, e);
	case CONFIG_SWITCH:
		return set_switch(c, row, v, e);
	case CONFIG_KIND_MAX_:
		break;
	}
	return err_say(e, -EINVAL, "not a setting");
}

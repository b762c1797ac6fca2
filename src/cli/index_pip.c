/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_pip.c - The index that pip of this machine would use.
 *
 * As pip reads it: the files of all users, then those of this one, then that of the environment it
 * was installed in, then PIP_CONFIG_FILE; a later one wins, the section of a command wins over
 * [global], and a variable wins over both. Of all settings four count: index-url, no-index,
 * trusted-host and extra-index-url, which is not followed: a second index could answer for a name
 * that is meant for the first one.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"
#include "cli/package_index.h"

#define PUBLIC "https://pypi.org/simple"

enum setting { INDEX_URL, NO_INDEX, TRUSTED_HOST, EXTRA_INDEX_URL, SETTINGS };

static const struct {
	const char *key, *variable;
} known[SETTINGS] = {
	[INDEX_URL] = { "index-url", "PIP_INDEX_URL" },
	[NO_INDEX] = { "no-index", "PIP_NO_INDEX" },
	[TRUSTED_HOST] = { "trusted-host", "PIP_TRUSTED_HOST" },
	[EXTRA_INDEX_URL] = { "extra-index-url", "PIP_EXTRA_INDEX_URL" },
};

/* How much a place counts, the last one most. */
enum level { IN_GLOBAL, IN_INSTALL, IN_VARIABLE, LEVELS };

struct reading {
	struct index_files files;
	char value[LEVELS][SETTINGS][INI_VALUE_MAX];
	char from[LEVELS][SETTINGS][INDEX_FROM_MAX];
};

static void set(struct reading *r, enum level l, enum setting s, const char *value,
		const char *from)
{
	(void)snprintf(r->value[l][s], INI_VALUE_MAX, "%s", value);
	(void)snprintf(r->from[l][s], INDEX_FROM_MAX, "%s", from);
}

/* "--Index_URL" is "index-url". */
static bool is_key(const char *text, const char *key)
{
	if (strncmp(text, "--", 2) == 0)
		text += 2;
	for (; *text && *key; text++, key++) {
		char c = (char)(*text == '_'                 ? '-' :
				*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' :
							       *text);

		if (c != *key)
			return false;
	}
	return !*text && !*key;
}

static void on_pair(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	bool install = strcmp(section, "install") == 0;

	if (!install && strcmp(section, "global") != 0)
		return;
	for (size_t i = 0; i < SETTINGS; i++)
		if (is_key(key, known[i].key))
			set(r, install ? IN_INSTALL : IN_GLOBAL, (enum setting)i, value,
			    r->files.path);
}

/* ---- the files ----------------------------------------------------------------------------- */

static void read_files(struct index_files *f, char **env)
{
	const char *named = options_lookup(env, "PIP_CONFIG_FILE");
	const char *dirs = options_lookup(env, "XDG_CONFIG_DIRS");
	const char *home = options_lookup(env, "HOME"),
		   *config = options_lookup(env, "XDG_CONFIG_HOME");

	if (named && strcmp(named, "/dev/null") == 0)
		return;
	for (const char *at = dirs ? dirs : "/etc/xdg"; *at;) {
		size_t len = strcspn(at, ":");
		char dir[INDEX_FROM_MAX];

		(void)snprintf(dir, sizeof(dir), "%.*s", (int)len, at);
		index_read(f, len < sizeof(dir) ? dir : NULL, "/pip/pip.conf");
		at += len + (at[len] == ':');
	}
	index_read(f, "/etc", "/pip.conf");
	if (!named) {
		index_read(f, home, "/.pip/pip.conf");
		index_read(f, config ? config : home,
			   config ? "/pip/pip.conf" : "/.config/pip/pip.conf");
	}
	index_read(f, options_lookup(env, "VIRTUAL_ENV"), "/pip.conf");
	index_read(f, named, "");
}

/* ---- the choice ---------------------------------------------------------------------------- */

/* The level that counts. */
static enum level level_of(const struct reading *r, enum setting s)
{
	enum level l = IN_VARIABLE;

	while (l > IN_GLOBAL && !r->value[l][s][0])
		l--;
	return l;
}

static bool is_true(const char *v)
{
	return strcasecmp(v, "true") == 0 || strcasecmp(v, "yes") == 0 ||
	       strcasecmp(v, "on") == 0 || strcmp(v, "1") == 0;
}

/* "host", or "host:port". */
static bool is_trusted(const char *list, const struct index_url *u)
{
	char with_port[sizeof(u->host) + 8];

	(void)snprintf(with_port, sizeof(with_port), "%s:%u", u->host, u->port);
	for (const char *at = list + strspn(list, " \t\n"); *at; at += strspn(at, " \t\n")) {
		size_t len = strcspn(at, " \t\n");

		if ((len == strlen(u->host) && strncasecmp(at, u->host, len) == 0) ||
		    (len == strlen(with_port) && strncasecmp(at, with_port, len) == 0))
			return true;
		at += len;
	}
	return false;
}

static void choose(const struct reading *r, struct index_choice *ret)
{
	enum level url = level_of(r, INDEX_URL), no = level_of(r, NO_INDEX);
	enum level extra = level_of(r, EXTRA_INDEX_URL), trusted = level_of(r, TRUSTED_HOST);
	char why[INDEX_NOTE_MAX];
	bool named = r->value[url][INDEX_URL][0];

	if (is_true(r->value[no][NO_INDEX])) {
		(void)snprintf(why, sizeof(why),
			       "pip of this machine uses no index (no-index of %s); name one with "
			       "--pip-index",
			       r->from[no][NO_INDEX]);
		index_off(ret, why);
		return;
	}
	if (ret->note[0] && !(named && url == IN_VARIABLE)) {
		index_distrust(ret, "--pip-index");
		return;
	}
	index_take(INDEX_PIP, named ? r->value[url][INDEX_URL] : PUBLIC,
		   named ? r->from[url][INDEX_URL] : "the public index", ret);
	if (ret->on && !ret->url.secure && !index_is_loopback(&ret->url) &&
	    !is_trusted(r->value[trusted][TRUSTED_HOST], &ret->url)) {
		(void)snprintf(
			why, sizeof(why),
			"%.150s of %.200s is not encrypted, and pip itself would not use it: add "
			"its host to trusted-host, or name it with --pip-index",
			ret->url.url, ret->from);
		index_off(ret, why);
	} else if (ret->on && r->value[extra][EXTRA_INDEX_URL][0]) {
		(void)snprintf(ret->note, sizeof(ret->note),
			       "extra-index-url of %s is not followed: one index answers for all "
			       "names",
			       r->from[extra][EXTRA_INDEX_URL]);
	}
}

void index_pip(char **env, const char *root, struct index_choice *ret)
{
	static struct reading r;

	memset(&r, 0, sizeof(r));
	r.files = (struct index_files){ &ini_python, root, on_pair, .note = ret->note };
	read_files(&r.files, env);
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *v = options_lookup(env, known[i].variable);

		if (v)
			set(&r, IN_VARIABLE, (enum setting)i, v, known[i].variable);
	}
	choose(&r, ret);
	explicit_bzero(&r, sizeof(r));
}

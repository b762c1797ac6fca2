/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_npm.c - The registry that npm of this machine would use, and the credentials for it.
 *
 * As npm reads it: /etc/npmrc and etc/npmrc of the prefix that node lies in, then ~/.npmrc, then
 * variables npm_config_..., in upper or lower case; a later one wins. Credentials stand beside a
 * registry, as "//host/path/:_authToken", and the longest path that the registry's begins with
 * counts. "${NAME}" in a value is a variable of the environment. A registry of a scope
 * ("@scope:registry") is not followed.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/options.h"
#include "cli/package_index.h"

#define PUBLIC "https://registry.npmjs.org"
#define KEYS_MAX 32u
#define KEY_TEXT_MAX 512u

enum auth { AUTH_TOKEN, AUTH_BASIC, AUTH_USER, AUTH_PASSWORD, AUTHS };

static const char *const auth_names[AUTHS] = { [AUTH_TOKEN] = "_authToken",
					       [AUTH_BASIC] = "_auth",
					       [AUTH_USER] = "username",
					       [AUTH_PASSWORD] = "_password" };

/* "//host/path/:_authToken = value": place is "//host/path/". */
struct auth_row {
	char place[KEY_TEXT_MAX];
	enum auth kind;
	char value[INDEX_KEY_MAX];
	char variable[64];
};

struct reading {
	struct index_files files;
	char **env;
	char url[INI_VALUE_MAX], from[INDEX_FROM_MAX];
	struct auth_row rows[KEYS_MAX];
	size_t n;
};

/* ---- values -------------------------------------------------------------------------------- */

/* "${NAME}" and "${NAME?}", once each. False: such a variable is not set, or it is too long. */
static bool expand(char **env, const char *value, char *ret, size_t size, char variable[64])
{
	size_t n = 0;

	variable[0] = '\0';
	while (*value) {
		const char *end = strncmp(value, "${", 2) == 0 ? strchr(value, '}') : NULL;
		const char *text = value;
		size_t len = 1;

		if (end && end - value < 64) {
			(void)snprintf(variable, 64, "%.*s", (int)(end - value) - 2, value + 2);
			variable[strcspn(variable, "?")] = '\0';
			text = options_lookup(env, variable);
			len = text ? strlen(text) : 0;
			value = end;
		}
		if (!text || n + len >= size)
			return false;
		memcpy(ret + n, text, len);
		n += len;
		value++;
	}
	ret[n] = '\0';
	return true;
}

static const char *unquote(char *s)
{
	size_t n = strlen(s);

	if (n > 1 && s[0] == s[n - 1] && (s[0] == '"' || s[0] == '\'')) {
		s[n - 1] = '\0';
		s++;
	}
	return s;
}

static void add_auth(struct reading *r, const char *key, const char *value)
{
	const char *colon = strrchr(key, ':');
	struct auth_row *row = &r->rows[r->n];

	if (!colon || r->n == KEYS_MAX || (size_t)(colon - key) >= sizeof(row->place))
		return;
	for (size_t i = 0; i < AUTHS; i++) {
		char raw[INI_VALUE_MAX];

		if (strcmp(colon + 1, auth_names[i]) != 0)
			continue;
		if (!expand(r->env, value, raw, sizeof(raw), row->variable))
			return;
		(void)snprintf(row->place, sizeof(row->place), "%.*s", (int)(colon - key), key);
		row->kind = (enum auth)i;
		if ((size_t)snprintf(row->value, sizeof(row->value), "%s", unquote(raw)) <
		    sizeof(row->value))
			r->n++;
		explicit_bzero(raw, sizeof(raw));
		return;
	}
}

static void on_pair(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	char url[INI_VALUE_MAX], ignored[64];

	if (section[0])
		return;
	if (strncmp(key, "//", 2) == 0) {
		add_auth(r, key, value);
	} else if (strcmp(key, "registry") == 0 &&
		   expand(r->env, value, url, sizeof(url), ignored)) {
		(void)snprintf(r->url, sizeof(r->url), "%s", unquote(url));
		(void)snprintf(r->from, sizeof(r->from), "%s", r->files.path);
	}
}

/* ---- where they stand ---------------------------------------------------------------------- */

/* A variable npm_config_NAME, in upper or lower case. */
static const char *npm_env(char **env, const char *name)
{
	static const char prefix[] = "npm_config_";
	size_t len = strlen(name);

	for (; env && *env; env++) {
		const char *at = *env;

		if (strncasecmp(at, prefix, sizeof(prefix) - 1) != 0)
			continue;
		at += sizeof(prefix) - 1;
		if (strncasecmp(at, name, len) == 0 && at[len] == '=' && at[len + 1])
			return at + len + 1;
	}
	return NULL;
}

/* Above the directory of the first node on the PATH. */
static bool find_prefix(char **env, char ret[INDEX_FROM_MAX])
{
	const char *path = options_lookup(env, "PATH");

	for (const char *at = path ? path : "/usr/local/bin:/usr/bin"; *at;) {
		size_t len = strcspn(at, ":");
		int n = snprintf(ret, INDEX_FROM_MAX, "%.*s/node", (int)len, at);

		if (at[0] == '/' && n > 0 && (size_t)n < INDEX_FROM_MAX && access(ret, X_OK) == 0) {
			ret[len] = '\0';
			char *slash = strrchr(ret, '/');

			*slash = '\0'; /* "" for /bin */
			return true;
		}
		at += len + (at[len] == ':');
	}
	return false;
}

static void read_files(struct index_files *f, char **env)
{
	const char *global = npm_env(env, "globalconfig"), *user = npm_env(env, "userconfig");
	const char *prefix = npm_env(env, "prefix");
	char found[INDEX_FROM_MAX];

	if (!global) {
		index_read(f, "/etc", "/npmrc");
		if (!prefix && find_prefix(env, found) && found[0])
			prefix = found;
		index_read(f, prefix, "/etc/npmrc");
	}
	index_read(f, global, "");
	index_read(f, user ? user : options_lookup(env, "HOME"), user ? "" : "/.npmrc");
}

/* ---- credentials --------------------------------------------------------------------------- */

/* "//host:4873/path/", as npm has it before ":_authToken". */
static void place_of(const struct index_url *u, char ret[KEY_TEXT_MAX])
{
	const char *rest = strstr(u->url, "://") + 1;
	size_t host = strcspn(rest + 2, "/") + 2, len = strlen(rest);
	bool usual = u->port == (u->secure ? 443 : 80);

	if (usual && memchr(rest, ':', host)) /* the default port, written out */
		(void)snprintf(ret, KEY_TEXT_MAX, "//%s%s", u->host, rest + host);
	else
		(void)snprintf(ret, KEY_TEXT_MAX, "%s", rest);
	len = strlen(ret);
	if (ret[len - 1] != '/' && len + 1 < KEY_TEXT_MAX)
		memcpy(ret + len, "/", 2);
}

static bool decode(const char *text, char ret[static INDEX_KEY_MAX])
{
	_secret_ struct buf plain = BUF_INIT(INDEX_KEY_MAX);
	bool good = base64_decode(text, strlen(text), &plain) && plain.len < INDEX_KEY_MAX &&
		    !memchr(buf_str(&plain), '\0', plain.len);

	if (good)
		memcpy(ret, buf_str(&plain), plain.len + 1);
	return good;
}

static void take_row(const struct auth_row *row, struct index_choice *ret)
{
	char(*keys)[INDEX_KEY_MAX] = ret->keys.value;
	char *colon;

	switch (row->kind) {
	case AUTH_TOKEN:
		memcpy(keys[INDEX_TOKEN], row->value, INDEX_KEY_MAX);
		break;
	case AUTH_USER:
		memcpy(keys[INDEX_USER], row->value, INDEX_KEY_MAX);
		break;
	case AUTH_PASSWORD:
		(void)decode(row->value, keys[INDEX_PASSWORD]);
		break;
	case AUTH_BASIC:
		if (!decode(row->value, keys[INDEX_USER]))
			break;
		colon = strchr(keys[INDEX_USER], ':');
		if (colon) {
			(void)snprintf(keys[INDEX_PASSWORD], INDEX_KEY_MAX, "%s", colon + 1);
			*colon = '\0';
		}
		break;
	case AUTHS:
		break;
	}
	if (row->variable[0])
		memcpy(ret->variable, row->variable, sizeof(ret->variable));
}

/* The rows of the longest place that the registry lies in; the last row of each kind counts. */
static void take_keys(const struct reading *r, struct index_choice *ret)
{
	char place[KEY_TEXT_MAX];
	size_t best = 0;

	place_of(&ret->url, place);
	for (size_t i = 0; i < r->n; i++) {
		size_t n = strlen(r->rows[i].place);

		if (n > best && n > 2 && r->rows[i].place[n - 1] == '/' &&
		    strncasecmp(place, r->rows[i].place, n) == 0)
			best = n;
	}
	for (size_t i = 0; best && i < r->n; i++)
		if (strlen(r->rows[i].place) == best &&
		    strncasecmp(place, r->rows[i].place, best) == 0)
			take_row(&r->rows[i], ret);
	if (ret->keys.value[INDEX_TOKEN][0]) { /* npm prefers the token */
		explicit_bzero(ret->keys.value[INDEX_USER], INDEX_KEY_MAX);
		explicit_bzero(ret->keys.value[INDEX_PASSWORD], INDEX_KEY_MAX);
	}
}

void index_npm(char **env, const char *root, struct index_choice *ret)
{
	static struct reading r;
	const char *named = npm_env(env, "registry");

	memset(&r, 0, sizeof(r));
	r.env = env;
	r.files = (struct index_files){ &ini_npm, root, on_pair, .note = ret->note };
	read_files(&r.files, env);
	if (named) {
		(void)snprintf(r.url, sizeof(r.url), "%s", named);
		(void)snprintf(r.from, sizeof(r.from), "NPM_CONFIG_REGISTRY");
	}
	if (!ret->on && !named && ret->note[0])
		index_distrust(ret, "--npm-registry");
	else if (!ret->on) /* the operator named none */
		index_take(INDEX_NPM, r.url[0] ? r.url : PUBLIC,
			   r.url[0] ? r.from : "the public registry", ret);
	if (ret->on && !index_keys_any(&ret->keys))
		take_keys(&r, ret);
	explicit_bzero(&r, sizeof(r));
}

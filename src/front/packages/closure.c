/* SPDX-License-Identifier: Apache-2.0 */
/* closure.c - The packages that the fetcher names, checked member by member. */
#include "front/packages/closure.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define HASH_MAX 160u

const char *closure_text(const json_t *p, const char *key)
{
	return json_string_value(json_object_get(p, key));
}

static bool is_plain(const char *s, size_t min, size_t max)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++)
		if (s[i] <= 0x20 || s[i] >= 0x7f)
			return false;
	return len >= min && len <= max;
}

/* "sha256:<hex>", as pip reports it, or npm's own "sha512-<base64>". */
static bool take_hash(const json_t *p, char *ret, size_t size)
{
	const char *sha = closure_text(p, "sha256");
	const char *integrity = closure_text(p, "integrity");

	ret[0] = '\0';
	if (sha && *sha) {
		(void)snprintf(ret, size, "sha256:%.64s", sha);
		return strlen(sha) == 64 && strspn(sha, "0123456789abcdef") == 64;
	}
	if (integrity)
		(void)snprintf(ret, size, "%.150s", integrity);
	return !integrity || is_plain(integrity, 0, 150);
}

static json_t *take_needs(enum ecosystem eco, const json_t *said)
{
	json_t *needs = json_array(), *one;
	char name[PACKAGE_NAME_MAX + 1];
	size_t i;

	json_array_foreach((json_t *)said, i, one)
	{
		if (i >= CLOSURE_NEEDS_MAX)
			break;
		if (json_is_string(one) && !requirement_name(eco, json_string_value(one), name))
			(void)json_array_append_new(needs, json_string(name));
	}
	return needs;
}

static json_t *take_one(enum ecosystem eco, const json_t *p)
{
	const char *said = closure_text(p, "name");
	const char *version = closure_text(p, "version");
	char name[PACKAGE_NAME_MAX + 1], hash[HASH_MAX];

	if (!said || !version || requirement_name(eco, said, name) ||
	    !is_plain(version, 1, PACKAGE_VERSION_MAX) || !take_hash(p, hash, sizeof(hash)))
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "version", version, "hash",
			 hash, "built", json_is_true(json_object_get(p, "built")), "needs",
			 take_needs(eco, json_object_get(p, "needs")));
}

json_t *closure_take(enum ecosystem eco, const json_t *said)
{
	json_t *ret = json_array(), *p;
	size_t i;

	if (!json_is_array(said) || json_array_size(said) == 0 ||
	    json_array_size(said) > CLOSURE_MAX) {
		json_decref(ret);
		return NULL;
	}
	json_array_foreach((json_t *)said, i, p)
	{
		if (json_array_append_new(ret, take_one(eco, p)) < 0) {
			json_decref(ret);
			return NULL;
		}
	}
	return ret;
}

const char *closure_version(const json_t *closure, const char *name)
{
	size_t i;
	json_t *p;

	json_array_foreach((json_t *)closure, i, p)
	{
		if (strcmp(closure_text(p, "name"), name) == 0)
			return closure_text(p, "version");
	}
	return NULL;
}

void closure_json(const json_t *p, const char *language, struct json *j)
{
	json_object_begin(j);
	json_member_str(j, "name", closure_text(p, "name"));
	json_member_str(j, "version", closure_text(p, "version"));
	json_member_str(j, "hash", closure_text(p, "hash"));
	json_member_bool(j, "built", json_is_true(json_object_get(p, "built")));
	if (language)
		json_member_str(j, "language", language);
	json_object_end(j);
}

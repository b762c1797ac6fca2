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
	const char *replaces = closure_text(p, "replaces");
	char name[PACKAGE_NAME_MAX + 1], hash[HASH_MAX];
	json_t *one;

	if (!said || !version || requirement_name(eco, said, name) ||
	    !is_plain(version, 1, PACKAGE_VERSION_MAX) || !take_hash(p, hash, sizeof(hash)))
		return NULL;
	one = json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "version", version, "hash", hash,
			"built", json_is_true(json_object_get(p, "built")), "needs",
			take_needs(eco, json_object_get(p, "needs")));
	if (json_is_true(json_object_get(p, "image")))
		(void)json_object_set_new(one, "image", json_true());
	else if (replaces && is_plain(replaces, 1, PACKAGE_VERSION_MAX))
		(void)json_object_set_new(one, "replaces", json_string(replaces));
	return one;
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

const json_t *closure_find(const json_t *closure, const char *name)
{
	size_t i;
	json_t *p;

	json_array_foreach((json_t *)closure, i, p)
	{
		if (strcmp(closure_text(p, "name"), name) == 0)
			return p;
	}
	return NULL;
}

const char *closure_version(const json_t *closure, const char *name)
{
	return closure_text(closure_find(closure, name), "version");
}

bool closure_of_image(const json_t *p)
{
	return json_is_true(json_object_get(p, "image"));
}

size_t closure_fetched(const json_t *closure)
{
	size_t i, n = 0;
	json_t *p;

	json_array_foreach((json_t *)closure, i, p)
	{
		n += !closure_of_image(p);
	}
	return n;
}

void closure_pins(const json_t *closure, json_t *pins)
{
	bool any = closure_fetched(closure) > 0;
	size_t i;
	json_t *p;

	json_array_foreach(any ? (json_t *)closure : NULL, i, p)
	{
		const char *name = closure_text(p, "name");

		if (name && !json_object_get(pins, name))
			(void)json_object_set(pins, name, json_object_get(p, "version"));
	}
}

void closure_members(const json_t *p, struct json *j)
{
	json_member_str(j, "name", closure_text(p, "name"));
	json_member_str(j, "version", closure_text(p, "version"));
	json_member_str(j, "hash", closure_text(p, "hash"));
	json_member_bool(j, "built", json_is_true(json_object_get(p, "built")));
	json_member_str(j, "origin", closure_of_image(p) ? "image" : "installed");
	if (closure_text(p, "replaces"))
		json_member_str(j, "replaces", closure_text(p, "replaces"));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_rules.c - The operator's lists, and names that look like misspellings.
 *
 * Attackers publish packages under misspellings of names that many people install. A name counts as
 * such a misspelling when one letter more, less, other or swapped makes it a popular one (two, from
 * 12 letters on) and it is not popular itself: neighbours that are both honest both stand in the
 * list (popular/). Names shorter than five letters have too many honest neighbours. An operator who
 * knows better names the package in --known-packages. Only the names of a request are judged so:
 * nobody types the name of a dependency.
 */
#include "front/packages/package_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/wild.h"
#include "front/packages/closure.h"
#include "front/support/config.h"
#include "front/support/refusal.h"

#define SHORT_NAME 5u
#define LONG_NAME 12u

extern const struct embed_file popular_files[]; /* by the name of the ecosystem */

static bool listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (wild_match(*list, name))
			return true;
	return false;
}

/* ---- misspellings -------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters more, less, other or swapped. Both are at most PACKAGE_NAME_MAX long. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t rows[3][PACKAGE_NAME_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t other = last[j - 1] + (a[i - 1] != b[j - 1]);

			now[j] = least(other, least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		size_t *spare = before;

		before = last;
		last = now;
		now = spare;
	}
	return last[m];
}

bool rules_lookalike(enum ecosystem eco, const char *name, char ret[PACKAGE_NAME_MAX + 1])
{
	const char *p = (const char *)embed_find(popular_files, ecosystem_name(eco))->data;
	size_t n = strnlen(name, PACKAGE_NAME_MAX), m;
	bool found = false;

	p += strcspn(p, "\n"); /* the line with the licence */
	for (; n >= SHORT_NAME && *(p += strspn(p, " \n")); p += m) {
		m = strcspn(p, " \n");
		size_t most = n >= LONG_NAME && m >= LONG_NAME ? 2 : 1;

		if (m == n && memcmp(p, name, n) == 0)
			return false;
		if (found || m < SHORT_NAME || m > PACKAGE_NAME_MAX || m + most < n || n + most < m)
			continue;
		found = distance(name, n, p, m) <= most;
		memcpy(ret, p, m);
		ret[m] = '\0';
	}
	return found;
}

/* ---- rules --------------------------------------------------------------------------------- */

static int refuse(struct refusal *r, const char *code, const char *hint, const char *name,
		  const char *by, const char *text)
{
	return refusal_set(r, REFUSAL_FORBIDDEN, code, "package", hint,
			   "the package '%.100s'%s%.60s%s %s", name, by ? ", which '" : "",
			   by ? by : "", by ? "' needs," : "", text);
}

static int check_lists(const struct config *c, const char *name, const char *by,
		       struct refusal *ret)
{
	if (listed(c->blocked_packages, name))
		return refuse(ret, "package_blocked",
			      "the operator's list: --blocked-packages, BLOCKED_PACKAGES", name, by,
			      "is blocked");
	if (c->allowed_packages[0] && !listed(c->allowed_packages, name))
		return refuse(ret, "package_not_allowed", "the operator's list: --allowed-packages",
			      name, by, "is not among those that may be installed");
	return 0;
}

int rules_name(const struct config *c, enum ecosystem eco, const char *name, struct refusal *ret)
{
	char text[160], other[PACKAGE_NAME_MAX + 1];

	if (check_lists(c, name, NULL, ret) < 0)
		return -1;
	if (listed(c->allowed_packages, name) || listed(c->known_packages, name) ||
	    !rules_lookalike(eco, name, other))
		return 0;
	(void)snprintf(text, sizeof(text), "looks like a misspelling: did you mean '%.100s'?",
		       other);
	return refuse(ret, "package_lookalike",
		      "if the name is right, the operator can list it in --known-packages", name,
		      NULL, text);
}

/* The package of the closure that needs @name; NULL: none, the request names it. */
static const char *needed_by(const json_t *closure, const char *name)
{
	size_t i, k;
	json_t *p, *need;

	json_array_foreach((json_t *)closure, i, p)
	{
		json_array_foreach(json_object_get(p, "needs"), k, need)
		{
			if (strcmp(json_string_value(need), name) == 0)
				return closure_text(p, "name");
		}
	}
	return NULL;
}

static int check_pin(const json_t *pins, const json_t *p, const char *by, struct refusal *ret)
{
	char key[PACKAGE_NAME_MAX + PACKAGE_VERSION_MAX + 4];
	const char *pin;

	(void)snprintf(key, sizeof(key), "%s==%s", closure_text(p, "name"),
		       closure_text(p, "version"));
	pin = json_string_value(json_object_get(pins, key));
	if (!pin)
		return refuse(ret, "package_not_pinned", "the operator's file: --package-pins", key,
			      by, "is not pinned");
	if (strcmp(pin, closure_text(p, "hash")) != 0)
		return refuse(ret, "hash_mismatch", "the operator's file: --package-pins", key, by,
			      "has another hash than it is pinned to");
	return 0;
}

int rules_closure(const struct config *c, const json_t *closure, const json_t *pins,
		  struct refusal *ret)
{
	size_t i;
	json_t *p;

	if (closure_fetched(closure) > c->package_count)
		return refusal_set(ret, REFUSAL_FORBIDDEN, "too_many_packages", "package",
				   "the operator's limit: --package-count",
				   "it takes %zu packages, more than may be installed at once",
				   closure_fetched(closure));
	json_array_foreach((json_t *)closure, i, p)
	{
		const char *by = needed_by(closure, closure_text(p, "name"));

		if (closure_of_image(p))
			continue;
		if (check_lists(c, closure_text(p, "name"), by, ret) < 0 ||
		    (pins && check_pin(pins, p, by, ret) < 0))
			return -1;
	}
	return 0;
}

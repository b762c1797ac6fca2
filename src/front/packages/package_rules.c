/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_rules.c - The operator's lists, and names that look like misspellings.
 *
 * Attackers publish packages under misspellings of names that many people install. Only the names
 * of a request are judged so: nobody types the name of a dependency. The lists in popular/ have
 * popular names, honest names that look like them, and known mistakes. A name that no list has is
 * refused when one letter more, less, other or swapped makes it a popular one (two, from 12 letters
 * on). Where two names differ in one of several words, only that word counts: nvidia-nccl-cu11 is
 * not a misspelling of nvidia-nccl-cu12. Words shorter than five letters have too many honest
 * neighbours; beside other words, two swapped letters count (cross-evn). Capitals, which old names
 * of npm have, count as small letters. A scope of npm (@scope/) has one owner, so names in it do
 * not imitate each other.
 *
 * A request that also names the popular package did not mistake the one for the other. The packages
 * that a name needs prove nothing: an imitation often requires the package that it imitates. An
 * operator who knows better names the package in --known-packages.
 */
#include "front/packages/package_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/wild.h"
#include "front/packages/closure.h"
#include "front/support/config.h"
#include "front/support/config_check.h"
#include "front/support/refusal.h"

#define SHORT_WORD 5u
#define LONG_WORD 12u
#define DISTANCE_MAX 2u
#define WORD_ENDS "-./"

extern const struct embed_file popular_files[]; /* by the name of the ecosystem */

static void to_lower(const char *s, char ret[PACKAGE_NAME_MAX + 1])
{
	size_t len = strnlen(s, PACKAGE_NAME_MAX);

	for (size_t i = 0; i < len; i++)
		ret[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
	ret[len] = '\0';
}

/* The operator's patterns are in lower case, while old packages of npm have capitals. */
static bool listed(const char *const *list, const char *name)
{
	char own[PACKAGE_NAME_MAX + 1];

	to_lower(name, own);
	for (; *list; list++)
		if (wild_match(*list, own))
			return true;
	return false;
}

/* The list has names as PEP 503 writes them: socket.io of npm is socket-io there. */
static bool is_blocked(const struct config *c, const char *name)
{
	char canonical[PACKAGE_NAME_MAX + 1];

	(void)snprintf(canonical, sizeof(canonical), "%s", name);
	config_canonical_package(canonical);
	return listed(c->blocked_packages, name) || listed(c->blocked_packages, canonical);
}

/* ---- likeness ------------------------------------------------------------------------------ */

/* A part of a name; at most PACKAGE_NAME_MAX long. */
struct part {
	const char *s;
	size_t len;
};

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters more, less, other or swapped. */
static size_t distance(struct part a, struct part b)
{
	size_t rows[3][PACKAGE_NAME_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b.len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		now[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			size_t other = last[j - 1] + (a.s[i - 1] != b.s[j - 1]);

			now[j] = least(other, least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a.s[i - 1] == b.s[j - 2] && a.s[i - 2] == b.s[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		size_t *spare = before;

		before = last;
		last = now;
		now = spare;
	}
	return last[b.len];
}

static bool is_word(struct part p)
{
	for (size_t i = 0; i < p.len; i++)
		if (strchr(WORD_ENDS, p.s[i]))
			return false;
	return true;
}

/* Leave of both names the one word in which they differ; if they differ in more, all of them. */
static void differing_word(struct part *a, struct part *b)
{
	size_t shorter = least(a->len, b->len), head = 0, tail = 0;

	for (size_t i = 0; i < shorter && a->s[i] == b->s[i]; i++)
		if (strchr(WORD_ENDS, a->s[i]))
			head = i + 1;
	for (size_t i = 1; i <= shorter - head && a->s[a->len - i] == b->s[b->len - i]; i++)
		if (strchr(WORD_ENDS, a->s[a->len - i]))
			tail = i;
	struct part x = { a->s + head, a->len - head - tail };
	struct part y = { b->s + head, b->len - head - tail };

	if (is_word(x) && is_word(y)) {
		*a = x;
		*b = y;
	}
}

static size_t scope_length(struct part p)
{
	const char *end = p.s[0] == '@' ? memchr(p.s, '/', p.len) : NULL;

	return end ? (size_t)(end - p.s) + 1 : 0;
}

static bool is_swap(struct part a, struct part b)
{
	size_t other = 0;

	for (size_t i = 0; a.len == b.len && i < a.len; i++)
		other += a.s[i] != b.s[i];
	return other == 2 && distance(a, b) == 1;
}

static bool is_alike(struct part a, struct part b)
{
	size_t scope = scope_length(a), other = scope_length(b);
	size_t apart = a.len > b.len ? a.len - b.len : b.len - a.len;
	struct part x = a, y = b;

	if (apart > DISTANCE_MAX || (scope == 0) != (other == 0) ||
	    (scope > 0 && scope == other && memcmp(a.s, b.s, scope) == 0))
		return false;
	differing_word(&x, &y);
	size_t shorter = least(x.len, y.len), longer = x.len + y.len - shorter;
	size_t most = shorter >= LONG_WORD ? DISTANCE_MAX : 1;
	bool beside_others = x.len < a.len;

	if ((beside_others ? longer : shorter) < SHORT_WORD)
		return beside_others && is_swap(x, y);
	return longer - shorter <= most && distance(x, y) <= most;
}

/* ---- the lists ----------------------------------------------------------------------------- */

enum section { NO_SECTION, POPULAR, KNOWN, MISTAKEN };

/* The next word of a list, which begins at @p; its length is 0 at the end of the list. */
static struct part next_word(const char *p, enum section *section)
{
	for (p += strspn(p, " \n"); *p == '#' || *p == '['; p += strspn(p, " \n")) {
		*section += *p == '[';
		p += strcspn(p, "\n");
	}
	return (struct part){ p, strcspn(p, " \n") };
}

static bool is_same(struct part a, struct part b)
{
	return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

static bool is_asked(struct part name, const struct requirement *asked, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_same(name, (struct part){ asked[i].name, strlen(asked[i].name) }))
			return true;
	return false;
}

static void copy_name(char ret[PACKAGE_NAME_MAX + 1], struct part from)
{
	memcpy(ret, from.s, from.len);
	ret[from.len] = '\0';
}

bool rules_lookalike(enum ecosystem eco, const char *name, const struct requirement *asked,
		     size_t n, char ret[PACKAGE_NAME_MAX + 1])
{
	const char *at = (const char *)embed_find(popular_files, ecosystem_name(eco))->data;
	struct part own = { name, strnlen(name, PACKAGE_NAME_MAX) }, word, lower;
	char folded[PACKAGE_NAME_MAX + 1];
	enum section section = NO_SECTION;
	bool found = false;

	to_lower(name, folded);
	lower = (struct part){ folded, own.len };
	for (; (word = next_word(at, &section)).len > 0; at = word.s + word.len) {
		size_t first = section == MISTAKEN ? strcspn(word.s, "=") : word.len;

		if (is_same(own, (struct part){ word.s, first })) {
			if (section != MISTAKEN)
				return false;
			copy_name(ret, (struct part){ word.s + first + 1, word.len - first - 1 });
			return true;
		}
		if (found || section != POPULAR ||
		    (!is_same(lower, word) && !is_alike(lower, word)) || is_asked(word, asked, n))
			continue;
		found = true;
		copy_name(ret, word);
	}
	return found;
}

/* ---- rules --------------------------------------------------------------------------------- */

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

/* @shown: the name as the message has it. @closure: NULL before it is known. */
static int refuse(struct refusal *r, const char *code, const char *hint, const json_t *closure,
		  const char *name, const char *shown, const char *text)
{
	const char *by = needed_by(closure, name);

	return refusal_set(r, REFUSAL_FORBIDDEN, code, "package", hint,
			   "the package '%.100s'%s%.60s%s %s", shown, by ? ", which '" : "",
			   by ? by : "", by ? "' needs," : "", text);
}

static int check_lists(const struct config *c, const json_t *closure, const char *name,
		       struct refusal *ret)
{
	if (is_blocked(c, name))
		return refuse(ret, "package_blocked",
			      "the operator's list: --blocked-packages, BLOCKED_PACKAGES", closure,
			      name, name, "is blocked");
	if (c->allowed_packages[0] && !listed(c->allowed_packages, name))
		return refuse(ret, "package_not_allowed", "the operator's list: --allowed-packages",
			      closure, name, name, "is not among those that may be installed");
	return 0;
}

static int check_name(const struct config *c, enum ecosystem eco, const char *name,
		      const struct requirement *asked, size_t n, struct refusal *ret)
{
	char text[200], other[PACKAGE_NAME_MAX + 1];

	if (check_lists(c, NULL, name, ret) < 0)
		return -1;
	if (listed(c->allowed_packages, name) || listed(c->known_packages, name) ||
	    !rules_lookalike(eco, name, asked, n, other))
		return 0;
	(void)snprintf(text, sizeof(text), "looks like a mistake: did you mean '%.100s'?", other);
	return refuse(ret, "package_lookalike",
		      "if the name is right, the operator can list it in --known-packages", NULL,
		      name, name, text);
}

int rules_request(const struct config *c, enum ecosystem eco, const struct requirement *asked,
		  size_t n, struct refusal *ret)
{
	for (size_t i = 0; i < n; i++)
		if (check_name(c, eco, asked[i].name, asked, n, ret) < 0)
			return -1;
	return 0;
}

static int check_pin(const json_t *pins, const json_t *closure, const json_t *p,
		     struct refusal *ret)
{
	char key[PACKAGE_NAME_MAX + PACKAGE_VERSION_MAX + 4];
	const char *name = closure_text(p, "name"), *pin;

	(void)snprintf(key, sizeof(key), "%s==%s", name, closure_text(p, "version"));
	pin = json_string_value(json_object_get(pins, key));
	if (!pin)
		return refuse(ret, "package_not_pinned", "the operator's file: --package-pins",
			      closure, name, key, "is not pinned");
	if (strcmp(pin, closure_text(p, "hash")) != 0)
		return refuse(ret, "hash_mismatch", "the operator's file: --package-pins", closure,
			      name, key, "has another hash than it is pinned to");
	return 0;
}

int rules_closure(const struct config *c, const json_t *closure, const json_t *pins,
		  struct refusal *ret)
{
	size_t i;
	json_t *p;

	if (closure_fetched(closure) > c->package_count)
		return refusal_set(
			ret, REFUSAL_FORBIDDEN, "too_many_packages", "package",
			"the operator's limit: --package-count",
			"it takes %zu packages, and at most %llu may be installed at once",
			closure_fetched(closure), (unsigned long long)c->package_count);
	json_array_foreach((json_t *)closure, i, p)
	{
		if (closure_of_image(p))
			continue;
		if (check_lists(c, closure, closure_text(p, "name"), ret) < 0 ||
		    (pins && check_pin(pins, closure, p, ret) < 0))
			return -1;
	}
	return 0;
}

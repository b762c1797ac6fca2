/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_words.c - The request for packages: its words, and how often its owner may make one.
 *
 * The words are parsed, judged by name, sorted, and joined to one line: the same request has the
 * same line, and a tree is found by it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/packages/closure.h"
#include "front/packages/install_int.h"
#include "front/packages/package_rules.h"
#include "front/packages/packages.h"
#include "front/packages/trees.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define UPGRADE " --upgrade"

static int check_configured(const struct packages *packages, enum ecosystem eco,
			    struct refusal *why)
{
	const struct config *c = &packages->daemon->config;
	const char *note = c->index_note[eco];

	if (eco == ECO_JAVASCRIPT ? c->npm_registry != NULL : c->pip_index || packages->dir_fd >= 0)
		return 0;
	return refusal_set(
		why, REFUSAL_UNSUPPORTED, "not_configured", "package",
		eco == ECO_JAVASCRIPT ?
			"the operator starts the daemon with --npm-registry URL" :
			"the operator starts the daemon with --pip-index URL or --package-dir DIR; packages of the image are there",
		"this daemon installs no %s packages: %s", ecosystem_name(eco),
		note                  ? note :
		eco == ECO_JAVASCRIPT ? "the operator turned them off (--npm-registry none)" :
					"the operator turned them off (--pip-index none)");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct requirement *)a)->text, ((const struct requirement *)b)->text);
}

/* The words in one line, by which a tree is found. NULL without memory. */
static char *line_of(const struct install *in, const json_t *words)
{
	_buf_ struct buf b = BUF_INIT(1u << 16);
	size_t i;
	json_t *word;

	json_array_foreach((json_t *)words, i, word)
	{
		(void)buf_printf(&b, "%s%s", i ? " " : "", json_string_value(word));
	}
	if (in->upgrade)
		(void)buf_puts(&b, UPGRADE); /* no requirement begins so */
	return b.err ? NULL : strdup(buf_str(&b));
}

static int parse(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why)
{
	static struct requirement all[INSTALL_REQUIREMENTS_MAX];
	size_t n = json_array_size(requirements);

	if (n == 0 || n > ARRAY_SIZE(all))
		return refusal_set(why, REFUSAL_INVALID, "invalid_requirement", "package", NULL,
				   "name at least one package, and at most 64");
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(requirements, i));
		const char *wrong =
			requirement_parse(in->eco, text, n == 1 ? version : NULL, &all[i]);

		if (wrong)
			return refusal_set(why, REFUSAL_INVALID, "invalid_requirement", "package",
					   "as in requests or requests==2.31.0", "'%.100s': %s",
					   text, wrong);
	}
	if (rules_request(&in->packages->daemon->config, in->eco, all, n, why) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (policy_package(in->packages->sandboxes->admission, in->owner, all[i].name,
				   why) < 0)
			return -1;
	(void)snprintf(in->first, sizeof(in->first), "%s", all[0].name);
	qsort(all, n, sizeof(all[0]), by_text);
	in->exact = true;
	in->requirements = json_array();
	for (size_t i = 0; i < n; i++) {
		in->exact &= all[i].exact;
		(void)json_array_append_new(in->requirements, json_string(all[i].text));
	}
	in->request = line_of(in, in->requirements);
	return in->request ? 0 : refusal_no_memory(why);
}

/* The new tree must agree with the packages of the sandbox, and with those of the image that they
 * use: of each package the version of the newest tree, which is the one that is imported. */
void install_constrain(struct install *in, const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	json_t *seen = json_object(), *p;
	size_t i;

	in->constraints = json_array();
	while (s && in->eco == ECO_PYTHON && (t = trees_next(in->packages, s, &at)))
		json_array_foreach(t->eco == in->eco ? t->packages : NULL, i, p)
		{
			const char *name = closure_text(p, "name");
			const char *pin = name ? closure_pin(t->packages, name) : NULL;
			char line[REQUIREMENT_MAX];

			if (!pin || json_object_get(seen, name))
				continue;
			(void)json_object_set_new(seen, name, json_true());
			(void)snprintf(line, sizeof(line), "%s==%s", name, pin);
			(void)json_array_append_new(in->constraints, json_string(line));
		}
	json_decref(seen);
}

/* Add the words of @from whose packages are not in @seen yet. */
static void add_words(enum ecosystem eco, const char *from, json_t *seen, json_t *to)
{
	_mem_ char *text = strdup(from);
	struct requirement r;
	char *save = NULL;

	for (char *word = text ? strtok_r(text, " ", &save) : NULL; word;
	     word = strtok_r(NULL, " ", &save)) {
		if (requirement_parse(eco, word, NULL, &r) || json_object_get(seen, r.name))
			continue;
		(void)json_object_set_new(seen, r.name, json_true());
		(void)json_array_append_new(to, json_string(word));
	}
}

void install_recall(struct install *in, const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	json_t *seen = json_object(), *word;
	struct requirement r;
	size_t i;

	in->recalled = json_copy(in->requirements);
	json_array_foreach(in->requirements, i, word)
	{
		if (!requirement_parse(in->eco, json_string_value(word), NULL, &r))
			(void)json_object_set_new(seen, r.name, json_true());
	}
	while (s && in->eco == ECO_PYTHON && (t = trees_next(in->packages, s, &at)))
		if (t->eco == in->eco)
			add_words(in->eco, t->request, seen, in->recalled);
	json_decref(seen);
}

int install_widen(struct install *in)
{
	char *line = line_of(in, in->recalled);

	if (!line)
		return -1;
	free(in->request);
	in->request = line;
	in->exact = false;
	return 0;
}

int install_take(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why)
{
	return parse(in, requirements, version, why) < 0 ?
		       -1 :
		       check_configured(in->packages, in->eco, why);
}

/* ---- how often ----------------------------------------------------------------------------- */

static uint64_t hash_owner(const char *owner)
{
	uint64_t h = 1469598103934665603u;

	for (; *owner; owner++)
		h = (h ^ (unsigned char)*owner) * 1099511628211u;
	return h | 1;
}

/*
 * A table of fixed size, by a hash of the owner. A full table forgets the owner that began longest
 * ago: that owner may have more than allowed, and never less.
 */
int install_rate(struct packages *packages, const char *owner, struct refusal *why)
{
	uint64_t key = hash_owner(owner), now = packages->loop->now_ns;
	struct package_rate *r = NULL, *oldest = &packages->rates[0];

	for (size_t i = 0; i < PACKAGES_RATES; i++) {
		struct package_rate *at = &packages->rates[i];

		if (at->owner == key)
			r = at;
		if (at->since_ns < oldest->since_ns)
			oldest = at;
	}
	if (!r || now > r->since_ns + HOUR_NS) {
		r = r ? r : oldest;
		*r = (struct package_rate){ .owner = key, .since_ns = now };
	}
	if (r->n >= packages->daemon->config.package_rate) {
		(void)refusal_set(why, REFUSAL_TOO_MANY, "package_rate", "package",
				  "the operator's limit: --package-rate",
				  "too many packages were fetched for you in this hour");
		why->retry_after_s =
			(unsigned int)((r->since_ns + HOUR_NS - now) / CLOCK_NS_PER_S) + 1;
		return -1;
	}
	r->n++;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_words.c - The words of a request for packages.
 *
 * The words are parsed, judged by name, sorted, and joined to one line: the same request has the
 * same line, and a tree is found by it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/packages/closure.h"
#include "front/packages/install_int.h"
#include "front/packages/package_rules.h"
#include "front/packages/packages.h"
#include "front/packages/trees.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/json_alloc.h"
#include "hash/hash.h"

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
static void constrain(struct install *in, const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	const char *name;
	json_t *version;

	in->pins = json_object();
	in->constraints = json_array();
	while (s && in->eco == ECO_PYTHON && (t = trees_next(in->packages, s, &at)))
		if (t->eco == in->eco)
			closure_pins(t->packages, in->pins);
	json_object_foreach(in->pins, name, version)
	{
		char line[REQUIREMENT_MAX];

		(void)snprintf(line, sizeof(line), "%s==%s", name, json_string_value(version));
		(void)json_array_append_new(in->constraints, json_string(line));
	}
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

static void recall(struct install *in, const struct sandbox *s)
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

int install_beside(struct install *in, const struct sandbox *s, struct refusal *why)
{
	constrain(in, s);
	recall(in, s);
	if (json_array_size(in->constraints) == 0 && json_equal(in->recalled, in->requirements))
		return 0;
	json_t *both = json_pack("[O, O]", in->constraints, in->recalled);
	char *text = both ? json_dumps(both, JSON_COMPACT) : NULL;
	bool hashed = text && hash_sha256_hex(text, strlen(text), in->context);

	json_alloc_free(text);
	json_decref(both);
	return hashed ? 0 : refusal_no_memory(why);
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

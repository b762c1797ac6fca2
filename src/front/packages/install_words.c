/* SPDX-License-Identifier: Apache-2.0 */
/* install_words.c - The words of a request: read, judged by name, and put into the one line that a
 * tree is found by. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/packages/rules.h"
#include "front/packages/trees.h"
#include "front/spec/judge.h"
#include "front/support/front.h"

int install_refuse(struct refusal *r, int status, const char *code, const char *hint,
		   const char *text)
{
	*r = (struct refusal){ .status = status, .code = code, .field = "package", .hint = hint };
	(void)snprintf(r->message, sizeof(r->message), "%s", text);
	return -1;
}

static int check_configured(const struct front *f, enum ecosystem eco, struct refusal *why)
{
	const struct config *c = &f->config;
	const char *note = c->index_note[eco];

	if (eco == ECO_JAVASCRIPT ? c->npm_registry != NULL :
				    c->pip_index || f->packages->dir_fd >= 0)
		return 0;
	(void)install_refuse(
		why, 501, "not_configured",
		eco == ECO_JAVASCRIPT ?
			"the operator starts the daemon with --npm-registry URL" :
			"the operator starts the daemon with --pip-index URL or --package-dir DIR; what the image has is there",
		"");
	(void)snprintf(why->message, sizeof(why->message),
		       "this daemon installs no %s packages: %s", ecosystem_name(eco),
		       note ? note :
		       eco == ECO_JAVASCRIPT ?
			      "the operator turned them off (--npm-registry none)" :
			      "the operator turned them off (--pip-index none)");
	return -1;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct requirement *)a)->text, ((const struct requirement *)b)->text);
}

/* The request in one line: what a tree is found by. */
static int parse(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why)
{
	static struct requirement all[INSTALL_REQUIREMENTS_MAX];
	_buf_ struct buf b = BUF_INIT(1u << 16);
	size_t n = json_array_size(requirements);

	if (n == 0 || n > ARRAY_SIZE(all))
		return install_refuse(why, 422, "invalid_requirement", NULL,
				      "name at least one package, and at most 64");
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(requirements, i));
		const char *wrong =
			requirement_parse(in->eco, text, n == 1 ? version : NULL, &all[i]);

		if (wrong) {
			(void)install_refuse(why, 422, "invalid_requirement",
					     "as in requests or requests==2.31.0", "");
			(void)snprintf(why->message, sizeof(why->message), "'%.100s': %s", text,
				       wrong);
			return -1;
		}
		if (rules_name(&in->f->config, in->eco, all[i].name, NULL, why) < 0 ||
		    policy_package(in->f, in->owner, all[i].name, why) < 0)
			return -1;
	}
	(void)snprintf(in->first, sizeof(in->first), "%s", all[0].name);
	qsort(all, n, sizeof(all[0]), by_text);
	in->exact = true;
	in->requirements = json_array();
	for (size_t i = 0; i < n; i++) {
		in->exact &= all[i].exact;
		(void)json_array_append_new(in->requirements, json_string(all[i].text));
		(void)buf_printf(&b, "%s%s", i ? " " : "", all[i].text);
	}
	in->request = strdup(buf_str(&b));
	return in->request && !b.err ? 0 : refusal_no_memory(why);
}

/* What the sandbox has already the new tree has to agree with: of each package the version that is
 * imported, in the newest tree. */
void install_constrain(struct install *in, const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	json_t *seen = json_object(), *p;
	size_t i;

	in->constraints = json_array();
	while (s && in->eco == ECO_PYTHON && (t = trees_next(in->f, s, &at)))
		json_array_foreach(t->eco == in->eco ? t->packages : NULL, i, p)
		{
			const char *name = json_string_value(json_object_get(p, "name"));
			char line[REQUIREMENT_MAX];

			if (!name || json_object_get(seen, name))
				continue;
			(void)json_object_set_new(seen, name, json_true());
			(void)snprintf(line, sizeof(line), "%s==%s", name,
				       json_string_value(json_object_get(p, "version")));
			(void)json_array_append_new(in->constraints, json_string(line));
		}
	json_decref(seen);
}

int install_take(struct install *in, const json_t *requirements, const char *version,
		 struct refusal *why)
{
	return parse(in, requirements, version, why) < 0 ? -1 :
							   check_configured(in->f, in->eco, why);
}

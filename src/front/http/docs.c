/* SPDX-License-Identifier: Apache-2.0 */
/* docs.c - Find a file of the documentation. */
#include "front/http/docs.h"

#include <string.h>

#include "base/embed.h"
#include "base/fd.h"

extern const struct embed_file docs_files[]; /* generated: src/front/docs and Swagger UI */

#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "        \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'self'"

static const struct {
	const char *suffix, *content_type, *policy;
} kinds[] = {
	/* Swagger UI sets styles on its elements. The first suffix that fits counts. */
	{ "swagger.html", "text/html; charset=utf-8", POLICY " 'unsafe-inline'" },
	{ ".html", "text/html; charset=utf-8", POLICY },
	{ ".css", "text/css; charset=utf-8", NULL },
	{ ".js", "text/javascript; charset=utf-8", NULL },
	{ ".txt", "text/plain; charset=utf-8", NULL },
};

bool docs_has_swagger(void)
{
	return embed_find(docs_files, "swagger-ui-bundle.js") != NULL;
}

bool docs_find(const char *path, struct docs_asset *ret)
{
	static const char root[] = "/docs";
	const char *name = path + sizeof(root) - 1;

	if (strncmp(path, root, sizeof(root) - 1) != 0 || (*name && *name != '/'))
		return false;
	if (*name)
		name++;
	else
		name = docs_has_swagger() ? "swagger.html" : "index.html";

	const struct embed_file *file = embed_find(docs_files, name);

	for (size_t i = 0; file && i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i].suffix), len = strlen(name);

		if (len < n || strcmp(name + len - n, kinds[i].suffix) != 0)
			continue;
		*ret = (struct docs_asset){ kinds[i].content_type, kinds[i].policy, file->data,
					    file->len };
		return true;
	}
	return false;
}

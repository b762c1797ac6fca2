/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs.h - The interactive API page and its assets, compiled in.
 *
 * /docs is Swagger UI when the build could get it (tools/swagger.sh), and the small page of our own
 * otherwise; /docs/index.html is always the small one. Neither needs anything from elsewhere.
 */
#ifndef CAISSON_FRONT_DOCS_H
#define CAISSON_FRONT_DOCS_H

#include <stdbool.h>
#include <stddef.h>

struct docs_asset {
	const char *content_type;
	const char *policy; /* Content-Security-Policy, for pages; NULL otherwise */
	const unsigned char *data;
	size_t len;
};

/* docs_find() - @path: "/docs" or "/docs/NAME". False when there is no such file. */
bool docs_find(const char *path, struct docs_asset *ret);

/* docs_has_swagger() - Whether Swagger UI was compiled in. */
bool docs_has_swagger(void);

#endif

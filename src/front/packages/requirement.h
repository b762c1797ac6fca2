/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement.h - A package to be installed: its name in an index, with optional versions.
 *
 * An address, path, option or marker is refused. The resulting text is safe as one argument of the
 * installer, and equal requests have equal texts.
 */
#ifndef CAISSON_FRONT_PACKAGES_REQUIREMENT_H
#define CAISSON_FRONT_PACKAGES_REQUIREMENT_H

#include <stdbool.h>

#define PACKAGE_NAME_MAX 128u
#define PACKAGE_VERSION_MAX 64u
#define REQUIREMENT_MAX 256u

enum ecosystem { ECO_PYTHON, ECO_JAVASCRIPT, ECO_MAX_ };

struct requirement {
	char name[PACKAGE_NAME_MAX + 1]; /* canonical: PEP 503, or npm's own */
	char text[REQUIREMENT_MAX + 1];  /* "requests>=2,<3", "left-pad@^1.3" */
	bool exact;                      /* names one version */
};

/* ecosystem_find() - By the name of its language, or pip, npm; ECO_MAX_: unknown. */
enum ecosystem ecosystem_find(const char *name);
const char *ecosystem_name(enum ecosystem eco);

/* requirement_parse() - NULL, or the problem (static). @version NULL, "" or "latest": any. Pure. */
const char *requirement_parse(enum ecosystem eco, const char *text, const char *version,
			      struct requirement *ret);

/* requirement_name() - The canonical form of a bare name. NULL, or the problem. Pure. */
const char *requirement_name(enum ecosystem eco, const char *name, char ret[PACKAGE_NAME_MAX + 1]);

#endif

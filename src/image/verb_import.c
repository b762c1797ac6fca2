/* SPDX-License-Identifier: Apache-2.0 */
/* verb_import.c - `caisson image import PATH`. */
#include "image/import.h"
#include "image/verbs.h"

static int allowed(void *arg, const struct ref *ref, struct err *e)
{
	return image_allowed(arg, ref, e);
}

int verb_import(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_IMPORT,
		.usage = "import PATH",
		.text = "Takes an image from an OCI layout (a directory, or an archive of one) or from what 'docker save'\n"
			"or 'podman save' wrote. Prints the canonical reference and the manifest's digest.\n",
		.min = 1,
		.max = 1,
	};
	_store_ struct store s = STORE_NONE;
	struct image_options o;
	struct pull_result result;
	struct show show;
	struct ref ref;
	struct err e = { 0 };
	int code;

	if (!image_begin(&o, &form, argc, argv, &code))
		return code;
	show_begin(&show, o.json, o.quiet);
	if ((!o.name || ref_parse(o.name, &ref, &e) == 0) && image_change(&o, &s, &e) == 0 &&
	    import(&s, o.rest[0], o.name ? &ref : NULL, allowed, &o, &show, &result, &e) == 0)
		image_done(&o, &result);
	return image_end(&o, &e);
}

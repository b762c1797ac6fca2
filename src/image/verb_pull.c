/* SPDX-License-Identifier: Apache-2.0 */
/* verb_pull.c - `caisson image pull REF`. */
#include "image/pull.h"
#include "image/verbs.h"

int verb_pull(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_PULL,
		.usage = "pull REF",
		.text = "Brings an image from its registry into the store: python:3.11-slim,\n"
			"registry.example.com/x/y@sha256:... What is there already is not loaded again, and what an\n"
			"earlier pull began is gone on with. Prints the canonical reference and the manifest's digest.\n",
		.min = 1,
		.max = 1,
	};
	_store_ struct store s = STORE_NONE;
	struct image_options o;
	struct pull_result result;
	struct show show;
	struct ref ref;
	struct err e = { 0 };
	char text[IMAGE_REF_MAX + 16];
	int code;

	if (!image_begin(&o, &form, argc, argv, &code))
		return code;
	const struct registry_options ro = { o.insecure, o.ca, o.authfile };

	if (ref_parse(o.rest[0], &ref, &e) == 0 && image_allowed(&o, &ref, &e) == 0 &&
	    image_change(&o, &s, &e) == 0) {
		show_begin(&show, o.json, o.quiet);
		(void)snprintf(text, sizeof(text), "pulling %s", o.rest[0]);
		show_step(&show, "pulling", text);
		if (pull(&s, &ref, &ro, &show, &result, &e) == 0)
			image_done(&o, &result);
	}
	return image_end(&o, &e);
}

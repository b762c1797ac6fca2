/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - What kinds of kernels there are, and what a kernel says of itself. */
#include <string.h>

#include "base/json.h"
#include "front/cell/image_use.h"
#include "front/jupyter/jupyter.h"
#include "front/support/front.h"

/* In the order of enum language_id. */
static const struct about {
	const char *display, *name, *mimetype, *extension, *lexer, *mode;
} abouts[LANG_MAX_] = {
	{ "Python 3 (Caisson)", "python", "text/x-python", ".py", "ipython3", "python" },
	{ "Bash (Caisson)", "bash", "text/x-sh", ".sh", "bash", "shell" },
	{ "JavaScript (Caisson)", "javascript", "text/javascript", ".js", "javascript",
	  "javascript" },
	{ "R (Caisson)", "R", "text/x-r-source", ".r", "r", "r" },
};

/* As the image's interpreter said it: when it was first started, or when its zygote was. */
static const char *version_of(const struct jkernel *k)
{
	const struct image_use *g = k->sandbox->image;
	const char *said = g->versions[k->language->id];

	if (!said[0] && k->language->id == LANG_PYTHON)
		said = g->supply.version[0] ? g->supply.version : "3";
	return said;
}

void jinfo_reply(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(4096);
	const struct about *a = &abouts[r->kernel->language->id];
	bool python = r->kernel->language->id == LANG_PYTHON;
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "status", "ok");
	json_member_str(&j, "protocol_version", "5.3");
	json_member_str(&j, "implementation", "caisson");
	json_member_str(&j, "implementation_version", CAISSON_VERSION);
	json_member_str(&j, "banner", a->display);
	json_member_bool(&j, "debugger", false);
	json_key(&j, "help_links");
	json_array_begin(&j);
	json_array_end(&j);
	json_key(&j, "language_info");
	json_object_begin(&j);
	json_member_str(&j, "name", a->name);
	json_member_str(&j, "version", version_of(r->kernel));
	json_member_str(&j, "mimetype", a->mimetype);
	json_member_str(&j, "file_extension", a->extension);
	json_member_str(&j, "pygments_lexer", a->lexer);
	json_key(&j, "codemirror_mode");
	if (python) {
		json_object_begin(&j);
		json_member_str(&j, "name", "ipython");
		json_member_int(&j, "version", 3);
		json_object_end(&j);
	} else {
		(void)json_str(&j, a->mode);
	}
	json_member_str(&j, "nbconvert_exporter", a->name);
	json_object_end(&j);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		jrequest_say(r, r->channel, "kernel_info_reply", &b);
	jrequest_end(r);
}

static void write_spec(const struct language *l, struct json *j)
{
	const struct about *a = &abouts[l->id];

	json_object_begin(j);
	json_member_str(j, "name", jkernel_spec_name(l));
	json_key(j, "spec");
	json_object_begin(j);
	json_key(j, "argv");
	json_array_begin(j);
	(void)json_str(j, "caisson");
	(void)json_str(j, "{connection_file}");
	json_array_end(j);
	json_key(j, "env");
	json_object_begin(j);
	json_object_end(j);
	json_member_str(j, "display_name", a->display);
	json_member_str(j, "language", a->name);
	json_member_str(j, "interrupt_mode", "message");
	json_key(j, "metadata");
	json_object_begin(j);
	json_object_end(j);
	json_object_end(j);
	json_key(j, "resources");
	json_object_begin(j);
	json_object_end(j);
	json_object_end(j);
}

void jinfo_specs(const struct front *f, struct json *j)
{
	json_object_begin(j);
	json_member_str(j, "default", jkernel_spec_name(&languages[LANG_PYTHON]));
	json_key(j, "kernelspecs");
	json_object_begin(j);
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (f->images->own.has_language[i]) {
			json_key(j, jkernel_spec_name(&languages[i]));
			write_spec(&languages[i], j);
		}
	json_object_end(j);
	json_object_end(j);
}

bool jinfo_spec(const struct front *f, const char *name, struct json *j)
{
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (f->images->own.has_language[i] &&
		    strcmp(name, jkernel_spec_name(&languages[i])) == 0) {
			write_spec(&languages[i], j);
			return true;
		}
	return false;
}

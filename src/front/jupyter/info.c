/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - The kernelspecs of this daemon, and the reply to kernel_info_request. */
#include <string.h>

#include "base/json.h"
#include "front/cell/image_use.h"
#include "front/jupyter/jupyter.h"

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

/* As an interpreter of the image reported it, or its zygote. */
static const char *version_of(const struct jkernel *k)
{
	const struct image_use *g = k->sandbox->image;
	const char *version = g->versions[k->language->id];

	if (!version[0] && k->language->id == LANG_PYTHON)
		version = g->supply.version[0] ? g->supply.version : "3";
	return version;
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
	json_member_raw(&j, "help_links", "[]");
	json_member_object(&j, "language_info");
	json_member_str(&j, "name", a->name);
	json_member_str(&j, "version", version_of(r->kernel));
	json_member_str(&j, "mimetype", a->mimetype);
	json_member_str(&j, "file_extension", a->extension);
	json_member_str(&j, "pygments_lexer", a->lexer);
	if (python)
		json_member_raw(&j, "codemirror_mode", "{\"name\":\"ipython\",\"version\":3}");
	else
		json_member_str(&j, "codemirror_mode", a->mode);
	json_member_str(&j, "nbconvert_exporter", a->name);
	json_object_end(&j);
	json_object_end(&j);
	(void)json_finish(&j); /* b.err */
	jrequest_reply(r, "kernel_info_reply", &b);
}

const struct language *jinfo_find(const struct image_use *g, const char *name)
{
	for (size_t i = 0; name && i < LANG_MAX_; i++)
		if (g->has_language[i] && strcmp(name, jkernel_spec_name(&languages[i])) == 0)
			return &languages[i];
	return NULL;
}

void jinfo_spec(const struct language *l, struct json *j)
{
	const struct about *a = &abouts[l->id];

	json_object_begin(j);
	json_member_str(j, "name", jkernel_spec_name(l));
	json_member_object(j, "spec");
	json_member_raw(j, "argv", "[\"caisson\",\"{connection_file}\"]");
	json_member_raw(j, "env", "{}");
	json_member_str(j, "display_name", a->display);
	json_member_str(j, "language", a->name);
	json_member_str(j, "interrupt_mode", "message");
	json_member_raw(j, "metadata", "{}");
	json_object_end(j);
	json_member_raw(j, "resources", "{}");
	json_object_end(j);
}

void jinfo_specs(const struct image_use *g, struct json *j)
{
	json_object_begin(j);
	json_member_str(j, "default", jkernel_spec_name(&languages[LANG_PYTHON]));
	json_member_object(j, "kernelspecs");
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (g->has_language[i]) {
			json_key(j, jkernel_spec_name(&languages[i]));
			jinfo_spec(&languages[i], j);
		}
	json_object_end(j);
	json_object_end(j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_install.c - `%pip install` in code: a kernel sends install_request and receives
 * install_response.
 *
 * The descriptor tells which sandbox sends the request. The kernel waits for the response, so it
 * has one request at a time; further requests, which code may write itself, are refused. The end of
 * an execution does not end its installation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "front/cell/cell.h"
#include "front/packages/closure.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/sandbox/sandbox.h"
#include "front/support/refusal.h"

struct asker {
	json_int_t id;
	int pid; /* of the kernel that sent the request */
	enum language_id language;
};

static void answer_refusal(struct kernel *s, json_int_t id, const struct refusal *r)
{
	char text[640];

	(void)snprintf(text, sizeof(text), "%s%s%s%s (%s)", r->message, r->hint ? " (" : "",
		       r->hint ? r->hint : "", r->hint ? ")" : "", r->code);
	packages_send(s, json_pack("{s:s, s:I, s:s}", "type", "install_response", "id", id, "error",
				   text));
}

/* Of the image, or installed. */
static json_t *names_of(const json_t *packages, bool of_image)
{
	json_t *names = json_array(), *p;
	size_t i;

	json_array_foreach((json_t *)packages, i, p)
	{
		char text[PACKAGE_NAME_MAX + PACKAGE_VERSION_MAX + 2];

		if (closure_of_image(p) != of_image)
			continue;
		(void)snprintf(text, sizeof(text), "%s %s", closure_text(p, "name"),
			       closure_text(p, "version"));
		(void)json_array_append_new(names, json_string(text));
	}
	return names;
}

static void on_done(struct install *in)
{
	struct asker *a = in->arg;
	struct sandbox *s = install_sandbox(in);
	struct kernel *kernel = s && s->cell ? &s->cell->kernels[a->language] : NULL;

	if (kernel && kernel->attached && kernel->pid == a->pid) {
		kernel->asked_packages = false;
		if (in->refusal.kind) {
			answer_refusal(kernel, a->id, &in->refusal);
		} else {
			packages_tell(s, kernel);
			packages_send(kernel,
				      json_pack("{s:s, s:I, s:o, s:o}", "type", "install_response",
						"id", a->id, "packages",
						names_of(in->tree->packages, false), "image",
						names_of(in->tree->packages, true)));
		}
	}
	free(a);
}

static const struct install_ops ops = { .done = on_done };

void packages_request(struct sandbox *s, struct kernel *kernel, const json_t *m)
{
	const json_t *requirements = json_object_get(m, "packages");
	json_int_t id = json_integer_value(json_object_get(m, "id"));
	struct refusal why;
	struct asker *a = NULL;
	size_t i;
	json_t *one;

	(void)refusal_set(&why, REFUSAL_INVALID, "invalid_requirement", NULL, NULL,
			  "packages are a list of names");
	json_array_foreach((json_t *)requirements, i, one) if (!json_is_string(one))
		requirements = NULL;
	if (kernel->asked_packages) {
		(void)refusal_set(&why, REFUSAL_INVALID, "busy", NULL, NULL,
				  "one installation at a time");
	} else if (json_is_array(requirements) && (a = calloc(1, sizeof(*a)))) {
		*a = (struct asker){ id, kernel->pid, kernel->language->id };
		kernel->asked_packages = true;
		const struct install_request q = {
			.eco = ECO_PYTHON,
			.requirements = requirements,
			.upgrade = json_is_true(json_object_get(m, "upgrade")),
		};

		if (install_begin(packages_of(s), s, s->owner, &q, &ops, a, &why))
			return;
		kernel->asked_packages = false;
	}
	free(a);
	answer_refusal(kernel, id, &why);
}

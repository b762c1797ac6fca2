/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_install.c - `%pip install` in code: a kernel asks (install_request), and is answered
 * (install_response).
 *
 * Which sandbox asks is known by the descriptor. The kernel waits, so one request of a kernel is
 * answered before the next; code that sends more itself is refused. An execution that ends does not
 * end what it began.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/cell/cell.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"
#include "front/support/json_alloc.h"

#define MESSAGE_MAX (1u << 20)

struct asker {
	json_int_t id;
	int pid; /* of the kernel that asked: another one has not */
	enum language_id language;
};

static void answer(struct kernel *s, json_t *message)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

	if (text)
		(void)buf_puts(&b, text);
	json_alloc_free(text);
	json_decref(message);
	kernel_pipes_send(&s->pipes, &b);
}

static void answer_refusal(struct kernel *s, json_int_t id, const struct refusal *r)
{
	char text[640];

	(void)snprintf(text, sizeof(text), "%s%s%s%s (%s)", r->message, r->hint ? " (" : "",
		       r->hint ? r->hint : "", r->hint ? ")" : "", r->code);
	answer(s,
	       json_pack("{s:s, s:I, s:s}", "type", "install_response", "id", id, "error", text));
}

static json_t *names_of(const json_t *packages)
{
	json_t *names = json_array(), *p;
	size_t i;

	json_array_foreach((json_t *)packages, i, p)
	{
		char text[PACKAGE_NAME_MAX + PACKAGE_VERSION_MAX + 2];

		(void)snprintf(text, sizeof(text), "%s %s",
			       json_string_value(json_object_get(p, "name")),
			       json_string_value(json_object_get(p, "version")));
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
		if (in->refusal.status) {
			answer_refusal(kernel, a->id, &in->refusal);
		} else {
			packages_tell(s, kernel);
			answer(kernel,
			       json_pack("{s:s, s:I, s:o}", "type", "install_response", "id", a->id,
					 "packages", names_of(in->tree->packages)));
		}
	}
	free(a);
}

static const struct install_ops ops = { .done = on_done };

void packages_request(struct sandbox *s, struct kernel *kernel, const json_t *m)
{
	const json_t *requirements = json_object_get(m, "packages");
	json_int_t id = json_integer_value(json_object_get(m, "id"));
	struct refusal why = { .status = 422, .code = "invalid_requirement" };
	struct asker *a = NULL;
	size_t i;
	json_t *one;

	(void)snprintf(why.message, sizeof(why.message), "packages are a list of names");
	json_array_foreach((json_t *)requirements, i, one) if (!json_is_string(one))
		requirements = NULL;
	if (kernel->asked_packages) {
		why.code = "busy";
		(void)snprintf(why.message, sizeof(why.message), "one installation at a time");
	} else if (json_is_array(requirements) && (a = calloc(1, sizeof(*a)))) {
		*a = (struct asker){ id, kernel->pid, kernel->language->id };
		kernel->asked_packages = true;
		if (install_begin(s->f, s, s->owner, ECO_PYTHON, requirements, NULL, &ops, a, &why))
			return;
		kernel->asked_packages = false;
	}
	free(a);
	answer_refusal(kernel, id, &why);
}

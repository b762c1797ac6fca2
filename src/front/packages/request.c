/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - `%pip install` in code: a kernel asks (install_request), and is answered (install_response).
 *
 * Which sandbox asks is known by the descriptor. The kernel waits, so one request of a seat is answered before
 * the next; code that sends more itself is refused. An execution that ends does not end what it began.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "front/front.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/room/room.h"
#include "front/room/spare.h"
#include "front/run/execution.h"
#include "front/sandbox/sandbox.h"

#define MESSAGE_MAX (1u << 20)

struct asker {
	json_int_t id;
	int pid; /* of the kernel that asked: another one has not */
	enum language_id language;
};

static void answer(struct seat *s, json_t *message)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

	if (text)
		(void)buf_puts(&b, text);
	spare_free(text);
	json_decref(message);
	kernel_send(&s->kernel, &b);
}

static void answer_refusal(struct seat *s, json_int_t id, const struct refusal *r)
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
	struct seat *seat = s && s->room ? &s->room->seats[a->language] : NULL;

	if (seat && seat->attached && seat->pid == a->pid) {
		seat->asked_packages = false;
		if (in->refusal.status) {
			answer_refusal(seat, a->id, &in->refusal);
		} else {
			packages_tell(s, seat);
			answer(seat, json_pack("{s:s, s:I, s:o}", "type", "install_response", "id",
					       a->id, "packages", names_of(in->tree->packages)));
		}
	}
	free(a);
}

static const struct install_ops ops = { .done = on_done };

void packages_request(struct sandbox *s, struct seat *seat, const json_t *m)
{
	const json_t *wishes = json_object_get(m, "packages");
	json_int_t id = json_integer_value(json_object_get(m, "id"));
	struct refusal why = { .status = 422, .code = "invalid_requirement" };
	struct asker *a = NULL;
	size_t i;
	json_t *one;

	(void)snprintf(why.message, sizeof(why.message), "packages are a list of names");
	json_array_foreach((json_t *)wishes, i, one) if (!json_is_string(one)) wishes = NULL;
	if (seat->asked_packages) {
		why.code = "busy";
		(void)snprintf(why.message, sizeof(why.message), "one installation at a time");
	} else if (json_is_array(wishes) && (a = calloc(1, sizeof(*a)))) {
		*a = (struct asker){ id, seat->pid, seat->language->id };
		seat->asked_packages = true;
		if (install_begin(s->f, s, s->owner, ECO_PYTHON, wishes, NULL, &ops, a, &why))
			return;
		seat->asked_packages = false;
	}
	free(a);
	answer_refusal(seat, id, &why);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* install_end.c - How an install ends: its cell, the ledger and the metrics, the client. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "front/cell/image_use.h"
#include "front/packages/closure.h"
#include "front/packages/fetcher.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/packages/trees.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "ledger/ledger.h"

/* ---- records ------------------------------------------------------------------------------- */

static void record(const struct install *in)
{
	char names[CHAIN_VALUE_MAX] = "";
	struct err e = { 0 };
	size_t at = 0, i;
	json_t *p;

	json_array_foreach(in->tree ? in->tree->packages : NULL, i, p)
	{
		struct err one = { 0 };

		if (at < sizeof(names) - 1 && !closure_of_image(p))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? " " : "", closure_text(p, "name"));
		if (!in->cached && !closure_of_image(p) &&
		    ledger_record(in->packages->daemon->ledger, &one, "package", in->owner,
				  in->sandbox, L_STR("id", in->id),
				  L_STR("name", closure_text(p, "name")),
				  L_STR("version", closure_text(p, "version")),
				  L_STR("digest", closure_text(p, "hash")),
				  L_BOOL("built", json_is_true(json_object_get(p, "built")))) < 0)
			e = one;
	}
	if (ledger_record(in->packages->daemon->ledger, &e, "packages.end", in->owner, in->sandbox,
			  L_STR("id", in->id),
			  L_STR("outcome", in->refusal.kind ? in->refusal.code : "installed"),
			  L_BOOL("cached", in->cached), L_STR("packages", names),
			  L_STR("installer", in->tree ? in->tree->installer : NULL),
			  L_STR("tree", in->tree ? in->tree->sha256 : NULL)) < 0 ||
	    e.code)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("owner", in->owner),
			  F_STR("why", e.msg));
}

static const char *outcome_of(const struct install *in)
{
	if (!in->refusal.kind)
		return "installed";
	return in->refusal.kind == REFUSAL_FORBIDDEN ? "blocked" : "failed";
}

/* ---- the end ------------------------------------------------------------------------------- */

void install_free(struct install *in)
{
	LIST_DROP(in->packages->installs, in);
	json_decref(in->requirements);
	json_decref(in->constraints);
	json_decref(in->pins);
	json_decref(in->recalled);
	json_decref(in->closure);
	buf_free(&in->line);
	image_release(in->image);
	free(in->request);
	free(in);
}

/* Deferred: callers still use the objects that are released here. */
static void conclude(struct deferred *d)
{
	struct install *in = d->arg;
	struct sandbox *s = install_sandbox(in);
	bool again = false;

	install_keep_stop(in);
	fetcher_stop(in);
	in->packages->n_installs -= in->cached ? 0 : 1;
	in->ended_ns = clock_now_ns();
	if (!in->refusal.kind && in->sandbox_id[0] && !s)
		(void)refusal_set(&in->refusal, REFUSAL_CONFLICT, "session_ended", NULL, NULL,
				  "the sandbox ended before its packages were there");
	if (!in->refusal.kind)
		again = !trees_use(in->packages, s, in->owner, in->tree);
	metric_package(outcome_of(in));
	/* Code can request what it has without end: the ledger has the first time. */
	if (!in->cached || !again)
		record(in);
	if (in->ops)
		in->ops->done(in);
	install_free(in);
}

void install_end(struct install *in)
{
	if (in->ended)
		return;
	in->ended = true;
	in->later.fn = conclude;
	in->later.arg = in;
	loop_defer(in->packages->loop, &in->later);
}

void install_fail(struct install *in, const struct refusal *why)
{
	if (in->ended)
		return;
	in->refusal = *why;
	install_end(in);
}

void install_fail_text(struct install *in, enum refusal_kind kind, const char *code,
		       const char *hint, const char *fmt, ...)
{
	struct refusal why = { .kind = kind, .code = code, .hint = hint };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why.message, sizeof(why.message), fmt, ap);
	va_end(ap);
	if (kind == REFUSAL_UNAVAILABLE)
		why.retry_after_s = 5;
	install_fail(in, &why);
}

void install_no_tool(struct install *in, const char *fmt, ...)
{
	const char *hint = in->eco == ECO_PYTHON ?
				   "use an image that has python3 with pip (22.2 or later) or uv" :
				   "use an image that has node and npm";
	char missing[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(missing, sizeof(missing), fmt, ap);
	va_end(ap);
	install_fail_text(in, REFUSAL_UNSUPPORTED, "no_installer", hint,
			  "'%.60s' cannot be installed with the image %.150s: %s", in->first,
			  in->image->name, missing);
}

/* ---- for the client ------------------------------------------------------------------------ */

void install_message(const struct install *in, char *ret, size_t size)
{
	const char *version = closure_version(in->tree->packages, in->first);

	if (closure_of_image(closure_find(in->tree->packages, in->first)))
		(void)snprintf(ret, size, "%s %s is there already: the image has it", in->first,
			       version ? version : "");
	else
		(void)snprintf(ret, size, "%s %s is installed%s%s", in->first,
			       version ? version : "", in->sandbox[0] ? " in " : "",
			       in->sandbox[0] ? in->sandbox : " for all of your sandboxes");
}

void install_json(const struct install *in, struct json *j)
{
	size_t i;
	json_t *p;

	json_key(j, "packages");
	json_array_begin(j);
	json_array_foreach(in->tree->packages, i, p)
	{
		json_object_begin(j);
		closure_members(p, j);
		json_object_end(j);
	}
	json_array_end(j);
	json_member_str(j, "language", ecosystem_name(in->eco));
	json_member_str(j, "installer", in->tree->installer);
	json_member_bool(j, "cached", in->cached);
	json_member_uint(j, "bytes", in->tree->bytes);
	json_member_uint(j, "files", in->tree->files);
	json_key(j, "seconds");
	json_double(j, (double)(in->ended_ns - in->began_ns) / (double)CLOCK_NS_PER_S, 3);
}

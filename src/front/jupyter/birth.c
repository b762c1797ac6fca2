/* SPDX-License-Identifier: Apache-2.0 */
/*
 * birth.c - A kernel is asked for: a sandbox with limits that its `env` may choose, and one that exists already if `env` names it.
 *
 * KERNEL_MEMORY_MIB, KERNEL_CPUS, KERNEL_PIDS, KERNEL_DISK_MIB, KERNEL_IMAGE, KERNEL_TIMEOUT_SECONDS and KERNEL_IDLE_SECONDS are the
 * fields of a SandboxSpec, judged as those are; KERNEL_SANDBOX is the name of a sandbox of the caller's that is to be the
 * kernel. Other names that begin with KERNEL_ are the sandbox's environment; the rest is left out, as Jupyter's own gateway
 * leaves it out: notebook servers send everything that they have, and a PATH of theirs means nothing here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "front/execution.h"
#include "front/front.h"
#include "front/handlers.h"
#include "front/jupyter/jupyter.h"
#include "front/own.h"
#include "front/reply.h"
#include "front/route.h"
#include "front/schema.h"
#include "front/serve.h"
#include "net/http.h"

/* ---- the request's words ---------------------------------------------------------------------------------------- */

/* JupyterLab says text/plain, others say nothing. A page of another site could send that, too; it was refused by its Origin. */
json_t *jupyter_body(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	struct schema_error bad = { 0 };

	json_t *body = q->body_len > 0 ? schema_load(q->body, q->body_len, &bad) : json_object();

	if (!body) {
		reply_schema(x, &bad);
		return NULL;
	}
	if (json_is_null(body)) {
		json_decref(body);
		return json_object();
	}
	if (json_is_object(body))
		return body;
	json_decref(body);
	reply_error(x, 422, "not_an_object", NULL, NULL, "the body is a JSON object");
	return NULL;
}

static const struct {
	const char *variable, *field;
	bool number;
} chosen[] = {
	{ "KERNEL_MEMORY_MIB", "memory_mib", true },
	{ "KERNEL_CPUS", "cpus", true },
	{ "KERNEL_PIDS", "pids", true },
	{ "KERNEL_DISK_MIB", "disk_mib", true },
	{ "KERNEL_TIMEOUT_SECONDS", "timeout_seconds", true },
	{ "KERNEL_IDLE_SECONDS", "idle_seconds", true },
	{ "KERNEL_IMAGE", "image", false },
};

/* A whole number as one; what is none stays text, and the field's own check says so. */
static json_t *value_of(const char *text, bool number)
{
	char *end = NULL;
	double d = number ? strtod(text, &end) : 0;

	if (!number || end == text || *end)
		return json_string(text);
	return d == (double)(json_int_t)d ? json_integer((json_int_t)d) : json_real(d);
}

static bool is_chosen(const char *variable, const char *value, json_t *spec)
{
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		if (strcmp(variable, chosen[i].variable) == 0) {
			(void)json_object_set_new(spec, chosen[i].field,
						  value_of(value, chosen[i].number));
			return true;
		}
	return false;
}

static const struct field *spec_fields(void)
{
	const struct route *r;

	for (size_t i = 0; (r = route_at(i)); i++)
		if (r->handler == handle_sandbox_create)
			return r->body;
	abort();
}

/* The body of a POST /v1/sandboxes that means the same; NULL: answered. */
static json_t *spec_of(struct http_exchange *x, const json_t *body, const struct language *l,
		       const char *name)
{
	json_t *spec = json_pack("{s:s, s:{s:s}, s:{}}", "name", name, "labels", JUPYTER_LABEL,
				 jkernel_spec_name(l), "env");
	json_t *env = json_object_get(spec, "env");
	struct schema_error bad;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)json_object_get(body, "env"), key, value)
	{
		if (!json_is_string(value)) {
			reply_error(x, 422, "wrong_type", "env", NULL, "env.%.64s is not a string",
				    key);
			json_decref(spec);
			return NULL;
		}
		if (strncmp(key, "KERNEL_", 7) == 0 &&
		    !is_chosen(key, json_string_value(value), spec))
			(void)json_object_set(env, key, value);
	}
	if (schema_check(spec, spec_fields(), &bad))
		return spec;
	reply_schema(x, &bad);
	json_decref(spec);
	return NULL;
}

static const struct language *language_of(struct front *f, struct http_exchange *x,
					  const json_t *body)
{
	const json_t *name = json_object_get(body, "name");

	if (!name || json_is_null(name))
		return &languages[LANG_PYTHON];
	for (size_t i = 0; json_is_string(name) && i < LANG_MAX_; i++)
		if (f->images.own.has_language[i] &&
		    strcmp(json_string_value(name), jkernel_spec_name(&languages[i])) == 0)
			return &languages[i];
	reply_error(x, 404, "no_such_kernelspec", "name", "see GET /api/kernelspecs",
		    "there is no such kernelspec");
	return NULL;
}

/* ---- waiting for the cell -------------------------------------------------------------------------------------------- */

struct jbirth {
	struct entry entry;
	struct sandbox *sandbox;
	struct http_exchange *x; /* NULL: the client is gone */
	void (*made)(struct http_exchange *x, struct sandbox *s, json_t *arg);
	json_t *arg;
	bool ours; /* the sandbox is new */
};

static struct http_exchange *part(struct jbirth *b)
{
	if (b->x) {
		visit_of(b->x)->work = NULL;
		visit_of(b->x)->gone = NULL;
	}
	return b->x;
}

static void drop(struct jbirth *b)
{
	json_decref(b->arg);
	free(b);
}

static void on_in(struct entry *en, struct room *r)
{
	struct jbirth *b = en->arg;
	struct http_exchange *x = part(b);

	(void)r;
	sandbox_leave(en);
	if (x)
		b->made(x, b->sandbox, b->arg);
	drop(b);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	struct jbirth *b = en->arg;
	struct http_exchange *x = part(b);

	if (x)
		reply_refusal(x, why);
	if (b->ours)
		sandbox_end(b->sandbox, "it could not be made");
	drop(b);
}

static void on_gone(struct visit *v)
{
	struct jbirth *b = v->work;

	b->x = NULL;
	v->work = NULL;
}

static void wait_for_cell(struct http_exchange *x, struct sandbox *s, bool ours,
			  void (*made)(struct http_exchange *x, struct sandbox *s, json_t *arg),
			  json_t *arg)
{
	struct jbirth *b = calloc(1, sizeof(*b));

	if (!b) {
		if (ours)
			sandbox_end(s, "out of memory");
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	*b = (struct jbirth){ .entry = { .in = on_in, .refused = on_refused, .arg = b },
			      .sandbox = s,
			      .x = x,
			      .made = made,
			      .arg = json_incref(arg),
			      .ours = ours };
	visit_of(x)->work = b;
	visit_of(x)->gone = on_gone;
	sandbox_enter(s, &b->entry);
}

/* ---- making --------------------------------------------------------------------------------------------------------------- */

static struct sandbox *make(struct front *f, struct http_exchange *x, const json_t *body)
{
	const struct language *l = language_of(f, x, body);
	char name[JUPYTER_ID_MAX];
	struct sandbox_spec spec;
	struct refusal why;

	jupyter_uuid(name);
	json_t *fields = l ? spec_of(x, body, l, name) : NULL;

	if (!fields)
		return NULL;
	int r = sandbox_spec_parse(f, visit_of(x)->owner, fields, &spec, &why);

	json_decref(fields);
	if (r < 0) {
		reply_refusal(x, &why);
		return NULL;
	}
	struct sandbox *s = sandbox_create(f, visit_of(x)->owner, name, &spec, &why);

	if (!s) {
		sandbox_spec_free(&spec);
		reply_refusal(x, &why);
	}
	return s;
}

void jbirth(struct front *f, struct http_exchange *x, const json_t *body,
	    void (*made)(struct http_exchange *x, struct sandbox *s, json_t *arg), json_t *arg)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(body, "env"), "KERNEL_SANDBOX"));
	struct sandbox *s;

	if (f->draining) {
		reply_retry(x, 503, 5, "draining", NULL, "the daemon is shutting down");
		return;
	}
	if (!name) {
		s = make(f, x, body);
		if (s)
			wait_for_cell(x, s, true, made, arg);
		return;
	}
	s = sandbox_find(f, visit_of(x)->owner, name);
	if (s)
		wait_for_cell(x, s, false, made, arg);
	else
		reply_error(x, 404, "no_such_sandbox", "env.KERNEL_SANDBOX",
			    "see GET /v1/sandboxes", "there is no such sandbox");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * birth.c - A kernel is asked for: a sandbox that its `env` may describe, or one that exists
 * already if `env` names it.
 *
 * The names in chosen[] are the fields of a SandboxSpec, judged as those are. KERNEL_SANDBOX is the
 * name of a sandbox of the caller's that is to be the kernel; what is said beside it has to be true
 * of that one already. Other names that begin with KERNEL_ are the environment of a new sandbox;
 * the rest is left out, as Jupyter's own gateway leaves it out: notebook servers send everything
 * that they have, and a PATH of theirs means nothing here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/http/reply.h"
#include "front/http/route.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/support/front.h"
#include "front/support/schema.h"
#include "net/http.h"

/* ---- the request's words ------------------------------------------------------------------- */

/* JupyterLab says text/plain, others say nothing. A page of another site could send that, too; it
 * was refused by its Origin. */
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

enum kind { NUMBER, TEXT, LIST, MAP }; /* a,b and a=1,b=2 */

static const struct chosen {
	const char *variable, *field;
	enum kind kind;
} chosen[] = {
	{ "KERNEL_MEMORY_MIB", "memory_mib", NUMBER },
	{ "KERNEL_CPUS", "cpus", NUMBER },
	{ "KERNEL_PIDS", "pids", NUMBER },
	{ "KERNEL_DISK_MIB", "disk_mib", NUMBER },
	{ "KERNEL_TIMEOUT_SECONDS", "timeout_seconds", NUMBER },
	{ "KERNEL_IDLE_SECONDS", "idle_seconds", NUMBER },
	{ "KERNEL_IMAGE", "image", TEXT },
	{ "KERNEL_WORKSPACE", "workspace", TEXT },
	{ "KERNEL_EGRESS", "egress", LIST },
	{ "KERNEL_SECRETS", "secrets", LIST },
	{ "KERNEL_LABELS", "labels", MAP },
};

/* A whole number as one; what is none stays text, and the field's own check says so. */
static json_t *number_of(const char *text)
{
	char *end = NULL;
	double d = strtod(text, &end);

	if (end == text || *end || !(d > -1e15 && d < 1e15))
		return json_string(text);
	return d == (double)(json_int_t)d ? json_integer((json_int_t)d) : json_real(d);
}

/* Entries are between commas, without the spaces around them. */
static json_t *entries_of(const char *text, bool map)
{
	json_t *all = map ? json_object() : json_array();

	while (*text) {
		size_t n, key;

		text += strspn(text, ", ");
		n = strcspn(text, ",");
		const char *next = text + n;

		while (n > 0 && text[n - 1] == ' ')
			n--;
		const char *equals = memchr(text, '=', n);

		key = equals ? (size_t)(equals - text) : n;
		if (n > 0 && map)
			(void)json_object_setn_new(all, text, key,
						   json_stringn(equals ? equals + 1 : "",
								equals ? n - key - 1 : 0));
		else if (n > 0)
			(void)json_array_append_new(all, json_stringn(text, n));
		text = next;
	}
	return all;
}

static json_t *value_of(const char *text, enum kind kind)
{
	if (kind == NUMBER)
		return number_of(text);
	return kind == TEXT ? json_string(text) : entries_of(text, kind == MAP);
}

static bool is_chosen(const char *variable, const char *value, json_t *spec)
{
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		if (strcmp(variable, chosen[i].variable) == 0) {
			(void)json_object_set_new(spec, chosen[i].field,
						  value_of(value, chosen[i].kind));
			return true;
		}
	return strcmp(variable, "KERNEL_SANDBOX") == 0;
}

static const struct field *spec_fields(void)
{
	const struct route *r;

	for (size_t i = 0; (r = route_at(i)); i++)
		if (r->handler == handle_sandbox_create)
			return r->body;
	abort();
}

static bool check(struct http_exchange *x, json_t *spec)
{
	struct schema_error bad;

	if (json_object_get(json_object_get(spec, "labels"), JUPYTER_LABEL)) {
		reply_error(x, 422, "invalid_value", "labels", "choose it with 'name'",
			    "the label '%s' is this wire's own", JUPYTER_LABEL);
		return false;
	}
	if (schema_check(spec, spec_fields(), &bad))
		return true;
	reply_schema(x, &bad);
	return false;
}

/* The body of a POST /v1/sandboxes that means the same; NULL: answered. */
static json_t *spec_of(struct http_exchange *x, const json_t *body, const char *name)
{
	json_t *spec = json_pack("{s:s, s:{}}", "name", name, "env");
	json_t *env = json_object_get(spec, "env");
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
	if (check(x, spec))
		return spec;
	json_decref(spec);
	return NULL;
}

/* @fields are taken. False: answered. */
static bool parse(struct front *f, struct http_exchange *x, json_t *fields,
		  struct sandbox_spec *ret)
{
	struct refusal why;
	int r = fields ? sandbox_spec_parse(f, context_of(x)->owner, fields, ret, &why) : 0;

	if (r < 0)
		reply_refusal(x, &why);
	json_decref(fields);
	return fields && r == 0;
}

static const struct language *language_of(struct front *f, struct http_exchange *x,
					  const json_t *body)
{
	const json_t *name = json_object_get(body, "name");

	if (!name || json_is_null(name))
		return &languages[LANG_PYTHON];
	for (size_t i = 0; json_is_string(name) && i < LANG_MAX_; i++)
		if (f->images->own.has_language[i] &&
		    strcmp(json_string_value(name), jkernel_spec_name(&languages[i])) == 0)
			return &languages[i];
	reply_error(x, 404, "no_such_kernelspec", "name", "see GET /api/kernelspecs",
		    "there is no such kernelspec");
	return NULL;
}

/* ---- waiting for the cell ------------------------------------------------------------------ */

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
		context_of(b->x)->work = NULL;
		context_of(b->x)->gone = NULL;
	}
	return b->x;
}

static void drop(struct jbirth *b)
{
	json_decref(b->arg);
	free(b);
}

/* Its first code need not wait for it then, and its version is known when it is asked for. */
static void start_early(struct cell *r, const struct language *l)
{
	if (r->kernels[l->id].state == KERNEL_EMPTY && r->image->has_language[l->id])
		cell_start(r, l);
}

static void on_in(struct entry *en, struct cell *r)
{
	struct jbirth *b = en->arg;
	struct http_exchange *x = part(b);

	sandbox_leave(en);
	start_early(r, jkernel_language(b->sandbox));
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

static void on_gone(struct request_context *v)
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
	context_of(x)->work = b;
	context_of(x)->gone = on_gone;
	sandbox_enter(s, &b->entry);
}

/* ---- making -------------------------------------------------------------------------------- */

static struct sandbox *make(struct front *f, struct http_exchange *x, const json_t *body)
{
	const struct language *l = language_of(f, x, body);
	char name[JUPYTER_ID_MAX];
	struct sandbox_spec spec;
	struct refusal why;

	jupyter_uuid(name);
	json_t *fields = l ? spec_of(x, body, name) : NULL;

	if (fields && !json_object_get(fields, "labels"))
		(void)json_object_set_new(fields, "labels", json_object());
	(void)json_object_set_new(json_object_get(fields, "labels"), JUPYTER_LABEL,
				  json_string(l ? jkernel_spec_name(l) : ""));
	if (!parse(f, x, fields, &spec))
		return NULL;
	struct sandbox *s = sandbox_create(f, context_of(x)->owner, name, &spec, &why);

	if (!s) {
		sandbox_spec_free(&spec);
		reply_refusal(x, &why);
	}
	return s;
}

/* ---- one that exists ----------------------------------------------------------------------- */

static json_t *spec_json(const struct front *f, const struct sandbox_spec *spec)
{
	_buf_ struct buf b = BUF_INIT(1u << 20);
	struct json j;

	json_init(&j, &b);
	sandbox_spec_json(f, spec, &j);
	return json_finish(&j) == 0 ? json_loadb(buf_str(&b), b.len, 0, NULL) : NULL;
}

/* What is said of a field is what it is; of labels, that it has these. */
static bool is_so(const json_t *have, const json_t *said, const char *field)
{
	const json_t *is = json_object_get(have, field), *want = json_object_get(said, field);
	const char *key;
	json_t *value;

	if (strcmp(field, "labels") != 0)
		return is == want || (is && want && json_equal((json_t *)is, (json_t *)want));
	json_object_foreach((json_t *)want, key, value)
	{
		if (!json_equal(json_object_get(is, key), value))
			return false;
	}
	return true;
}

/* Whether everything that is said beside its name is true of @s. False: answered. */
static bool agrees(struct front *f, struct http_exchange *x, const struct sandbox *s,
		   const json_t *body)
{
	json_t *fields = spec_of(x, body, s->name), *kept = json_incref(fields);
	struct sandbox_spec spec;
	const struct chosen *wrong = NULL;

	(void)json_object_del(fields, "env"); /* a new one would have it */
	if (!parse(f, x, fields, &spec)) {
		json_decref(kept);
		return false;
	}
	json_t *have = spec_json(f, &s->spec), *said = spec_json(f, &spec);

	for (size_t i = 0; !wrong && i < ARRAY_SIZE(chosen); i++)
		if (json_object_get(kept, chosen[i].field) && !is_so(have, said, chosen[i].field))
			wrong = &chosen[i];
	json_decref(have);
	json_decref(said);
	json_decref(kept);
	sandbox_spec_free(&spec);
	if (wrong)
		reply_error(x, 409, "spec_conflict", wrong->field,
			    "leave it out, or have a new sandbox without KERNEL_SANDBOX",
			    "%s is not what the sandbox of this name has", wrong->variable);
	return !wrong;
}

/* As a kernel of the language that is asked for: another one than it had only while nobody uses
 * that. False: answered. */
static bool take_up(struct front *f, struct http_exchange *x, struct sandbox *s, const json_t *body)
{
	const json_t *name = json_object_get(body, "name");
	const struct language *l = name && !json_is_null(name) ? language_of(f, x, body) :
								 jkernel_language(s);
	struct jkernel *k = l ? jkernel_of(s) : NULL;

	if (!l)
		return false;
	if (!k) {
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
		return false;
	}
	if (k->language != l && (jkernel_is_ours(s) || k->lines || k->first || k->restarting)) {
		reply_error(x, 409, "spec_conflict", "name",
			    "ask for that one, or have another sandbox",
			    "this sandbox is a kernel of %s", jkernel_spec_name(k->language));
		return false;
	}
	k->language = l;
	k->ended = false;
	return true;
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
	s = sandbox_find(f, context_of(x)->owner, name);
	if (!s)
		reply_error(x, 404, "no_such_sandbox", "env.KERNEL_SANDBOX",
			    "see GET /v1/sandboxes", "there is no such sandbox");
	else if (s->state != SANDBOX_RUNNING)
		reply_error(x, 409, "sandbox_stopped", "env.KERNEL_SANDBOX", "remove it first",
			    "this sandbox is %s: %s", sandbox_state_name(s->state), s->reason);
	else if (agrees(f, x, s, body) && take_up(f, x, s, body))
		wait_for_cell(x, s, false, made, arg);
}

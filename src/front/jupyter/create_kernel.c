/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_kernel.c - A client asks for a kernel: a new sandbox that `env` of the request may
 * describe, or an existing one that `env` names.
 *
 * The variables in spec_variables[] are fields of a SandboxSpec, and are checked as these are.
 * KERNEL_SANDBOX names a sandbox of the caller that is to be the kernel; then the other variables
 * have to agree with that sandbox. Other names that begin with KERNEL_ are the environment of a new
 * sandbox. The rest of `env` is ignored, as Jupyter's own gateway ignores it: notebook servers send
 * their whole environment, and their PATH means nothing here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "front/api/await_image.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"
#include "front/operations/operations.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/schema.h"
#include "net/http.h"

/* ---- the request --------------------------------------------------------------------------- */

/* Content-Type is not checked: JupyterLab sends text/plain, other clients send none. A page of
 * another site, which could send the same, was refused by its Origin. */
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

static const struct spec_variable {
	const char *variable, *field;
	enum kind kind;
} spec_variables[] = {
	{ "KERNEL_MEMORY_MIB", "memory_mib", NUMBER },
	{ "KERNEL_CPUS", "cpus", NUMBER },
	{ "KERNEL_PIDS", "pids", NUMBER },
	{ "KERNEL_DISK_MIB", "disk_mib", NUMBER },
	{ "KERNEL_OOM", "oom", TEXT },
	{ "KERNEL_TIMEOUT_SECONDS", "timeout_seconds", NUMBER },
	{ "KERNEL_IDLE_SECONDS", "idle_seconds", NUMBER },
	{ "KERNEL_IMAGE", "image", TEXT },
	{ "KERNEL_WORKSPACE", "workspace", TEXT },
	{ "KERNEL_EGRESS", "egress", LIST },
	{ "KERNEL_SECRETS", "secrets", LIST },
	{ "KERNEL_LABELS", "labels", MAP },
};

/* A whole number is an integer. Text that is not a number stays text, and the field's check refuses
 * it. */
static json_t *number_of(const char *text)
{
	char *end = NULL;
	double d = strtod(text, &end);

	if (end == text || *end || !(d > -1e15 && d < 1e15))
		return json_string(text);
	return d == (double)(json_int_t)d ? json_integer((json_int_t)d) : json_real(d);
}

/* Entries are separated by commas; spaces around them do not count. */
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

/* Put the field that this variable stands for into @spec. False: it stands for none. */
static bool take_variable(const char *variable, const char *value, json_t *spec)
{
	for (size_t i = 0; i < ARRAY_SIZE(spec_variables); i++)
		if (strcmp(variable, spec_variables[i].variable) == 0) {
			(void)json_object_set_new(spec, spec_variables[i].field,
						  value_of(value, spec_variables[i].kind));
			return true;
		}
	return strcmp(variable, "KERNEL_SANDBOX") == 0;
}

static bool check(struct http_exchange *x, json_t *spec)
{
	struct schema_error bad;

	if (json_object_get(json_object_get(spec, "labels"), JUPYTER_LABEL)) {
		reply_error(x, 422, "invalid_value", "labels", "choose it with 'name'",
			    "the label '%s' is reserved", JUPYTER_LABEL);
		return false;
	}
	if (schema_check(spec, operation_create_sandbox.fields, IN_BODY, &bad))
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
		    !take_variable(key, json_string_value(value), spec))
			(void)json_object_set(env, key, value);
	}
	if (check(x, spec))
		return spec;
	json_decref(spec);
	return NULL;
}

/* @fields are taken. False: answered. */
static bool parse(struct sandboxes *sandboxes, struct http_exchange *x, json_t *fields,
		  struct sandbox_spec *ret)
{
	struct refusal why;
	int r = fields ? sandbox_spec_parse(sandboxes->admission, context_of(x)->owner, fields, ret,
					    &why) :
			 0;

	if (r < 0)
		reply_refusal(x, &why);
	json_decref(fields);
	return fields && r == 0;
}

static const struct language *language_of(struct sandboxes *sandboxes, struct http_exchange *x,
					  const json_t *body)
{
	const json_t *name = json_object_get(body, "name");

	if (!name || json_is_null(name))
		return &languages[LANG_PYTHON];
	const struct language *l =
		jinfo_find(&sandboxes->cells->images->own, json_string_value(name));

	if (!l)
		reply_error(x, 404, "no_such_kernelspec", "name", "see GET /api/kernelspecs",
			    "there is no such kernelspec");
	return l;
}

/* The interpreter starts while the client prepares its first code, and reports its version. */
static void start_interpreter(struct sandbox *s)
{
	const struct language *l = jkernel_language(s);

	if (s->cell && s->cell->kernels[l->id].state == KERNEL_EMPTY &&
	    s->cell->image->has_language[l->id])
		cell_start(s->cell, l);
}

/* ---- a new sandbox ------------------------------------------------------------------------- */

static struct sandbox *make(struct sandboxes *sandboxes, struct http_exchange *x,
			    const json_t *body)
{
	const struct language *l = language_of(sandboxes, x, body);
	char name[JUPYTER_ID_MAX];
	struct sandbox_spec spec;
	struct refusal why;

	jupyter_uuid(name);
	json_t *fields = l ? spec_of(x, body, name) : NULL;

	if (fields && !json_object_get(fields, "labels"))
		(void)json_object_set_new(fields, "labels", json_object());
	(void)json_object_set_new(json_object_get(fields, "labels"), JUPYTER_LABEL,
				  json_string(l ? jkernel_spec_name(l) : ""));
	if (!parse(sandboxes, x, fields, &spec))
		return NULL;
	struct sandbox *s = sandbox_create(sandboxes, context_of(x)->owner, name, &spec, &why);

	if (!s) {
		sandbox_spec_free(&spec);
		reply_refusal(x, &why);
	}
	return s;
}

/* The image that the request names, or NULL. */
static const char *image_of(const json_t *body)
{
	return json_string_value(json_object_get(json_object_get(body, "env"), "KERNEL_IMAGE"));
}

struct kernel_await {
	struct image_await await;
	struct sandboxes *sandboxes;
	json_t *body, *arg; /* owned */
	jkernel_made made;
};

static void create_again(struct image_await *a, struct http_exchange *x)
{
	const struct kernel_await *k = (const struct kernel_await *)a;

	jkernel_create(k->sandboxes, x, k->body, k->made, k->arg);
}

static void release(struct image_await *a)
{
	struct kernel_await *k = (struct kernel_await *)a;

	json_decref(k->body);
	json_decref(k->arg);
	free(k);
}

/* False: answered, or it is created later. */
static bool has_image(struct sandboxes *sandboxes, struct http_exchange *x, const json_t *body,
		      jkernel_made made, json_t *arg)
{
	struct kernel_await *k = calloc(1, sizeof(*k));

	if (!k) {
		reply_no_memory(x);
		return false;
	}
	*k = (struct kernel_await){ .await = { .again = create_again, .release = release },
				    .sandboxes = sandboxes,
				    .body = json_incref((json_t *)body),
				    .arg = json_incref(arg),
				    .made = made };
	return await_image(context_of(x)->server->services, x, image_of(body), &k->await);
}

/* ---- an existing sandbox ------------------------------------------------------------------- */

static json_t *spec_json(const struct sandboxes *sandboxes, const struct sandbox_spec *spec)
{
	_buf_ struct buf b = BUF_INIT(1u << 20);
	struct json j;

	json_init(&j, &b);
	sandbox_spec_json(sandboxes->admission, spec, &j);
	return json_finish(&j) == 0 ? json_loadb(buf_str(&b), b.len, 0, NULL) : NULL;
}

/* Whether the sandbox has this value of the field; of labels: whether it has these among its own.
 */
static bool has_value(const json_t *have, const json_t *asked, const char *field)
{
	const json_t *is = json_object_get(have, field), *want = json_object_get(asked, field);
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

/* Whether the fields that the request asks for are those of @s. False: answered. */
static bool agrees(struct sandboxes *sandboxes, struct http_exchange *x, const struct sandbox *s,
		   const json_t *body)
{
	json_t *fields = spec_of(x, body, s->name), *kept = json_incref(fields);
	struct sandbox_spec spec;
	const struct spec_variable *wrong = NULL;

	(void)json_object_del(fields, "env"); /* only a new sandbox gets it */
	if (!parse(sandboxes, x, fields, &spec)) {
		json_decref(kept);
		return false;
	}
	json_t *have = spec_json(sandboxes, &s->spec), *asked = spec_json(sandboxes, &spec);

	for (size_t i = 0; !wrong && i < ARRAY_SIZE(spec_variables); i++)
		if (json_object_get(kept, spec_variables[i].field) &&
		    !has_value(have, asked, spec_variables[i].field))
			wrong = &spec_variables[i];
	json_decref(have);
	json_decref(asked);
	json_decref(kept);
	sandbox_spec_free(&spec);
	if (wrong)
		reply_error(x, 409, "spec_conflict", wrong->field,
			    "leave it out, or leave out KERNEL_SANDBOX for a new sandbox",
			    "%s is not what the sandbox of this name has", wrong->variable);
	return !wrong;
}

/* Make @s a kernel of the language that the request names. The language of a kernel changes only
 * while no client uses it. False: answered. */
static bool set_language(struct sandboxes *sandboxes, struct http_exchange *x, struct sandbox *s,
			 const json_t *body)
{
	const json_t *name = json_object_get(body, "name");
	const struct language *l = name && !json_is_null(name) ? language_of(sandboxes, x, body) :
								 jkernel_language(s);
	struct jkernel *k = l ? jkernel_of(s) : NULL;

	if (!l)
		return false;
	if (!k) {
		reply_no_memory(x);
		return false;
	}
	if (k->language != l &&
	    (jkernel_is_made_here(s) || k->clients || k->first || k->restarting)) {
		reply_error(x, 409, "spec_conflict", "name",
			    "ask for that kernelspec, or for another sandbox",
			    "this sandbox is a kernel of %s", jkernel_spec_name(k->language));
		return false;
	}
	k->language = l;
	k->ended = false;
	return true;
}

void jkernel_create(struct sandboxes *sandboxes, struct http_exchange *x, const json_t *body,
		    jkernel_made made, json_t *arg)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(body, "env"), "KERNEL_SANDBOX"));
	struct sandbox *s;

	if (sandboxes->daemon->draining) {
		reply_retry(x, 503, 5, "draining", NULL, "the daemon is shutting down");
		return;
	}
	if (!name) {
		if (!has_image(sandboxes, x, body, made, arg))
			return;
		s = make(sandboxes, x, body);
		if (s)
			wait_for_cell(x, s, true, start_interpreter, made, arg);
		return;
	}
	s = sandbox_find(sandboxes, context_of(x)->owner, name);
	if (!s)
		reply_error(x, 404, "no_such_sandbox", "env.KERNEL_SANDBOX",
			    "see GET /v1/sandboxes", "there is no such sandbox");
	else if (s->state != SANDBOX_RUNNING)
		reply_error(x, 409, "sandbox_stopped", "env.KERNEL_SANDBOX", "remove it first",
			    "this sandbox is %s: %s", sandbox_state_name(s->state), s->reason);
	else if (agrees(sandboxes, x, s, body) && set_language(sandboxes, x, s, body))
		wait_for_cell(x, s, false, start_interpreter, made, arg);
}

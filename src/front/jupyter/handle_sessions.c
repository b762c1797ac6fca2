/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_sessions.c - /api/sessions: which kernel a notebook has. Only names: a session of the API
 * is no sandbox, and one whose kernel is gone is gone too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"
#include "front/support/front.h"
#include "net/http.h"

#define SESSIONS_MAX 4096u
#define WORDS_MAX 4096u
#define LIST_MAX (16u << 20)

struct jsession {
	struct jsession *next;
	char id[JUPYTER_ID_MAX], kernel[JUPYTER_ID_MAX];
	char owner[OWNER_MAX];
	char *path, *name, *type;
};

static void session_free(struct jsession *s)
{
	free(s->path);
	free(s->name);
	free(s->type);
	free(s);
}

void jsessions_free(struct front *f)
{
	struct jsession *s;

	while ((s = f->jupyter_sessions)) {
		f->jupyter_sessions = s->next;
		session_free(s);
	}
}

/* Those whose kernels are gone. */
static size_t sweep(struct front *f)
{
	size_t n = 0;

	for (struct jsession **at = &f->jupyter_sessions, *s; (s = *at);) {
		if (jkernel_find(f, s->owner, s->kernel)) {
			n++;
			at = &s->next;
			continue;
		}
		*at = s->next;
		session_free(s);
	}
	return n;
}

static struct jsession **find(struct front *f, const char *owner, const char *id)
{
	struct jsession **at = &f->jupyter_sessions;

	(void)sweep(f);
	while (*at && (strcmp((*at)->id, id) != 0 || strcmp((*at)->owner, owner) != 0))
		at = &(*at)->next;
	return at;
}

static void write_session(struct front *f, const struct jsession *s, struct json *j)
{
	const struct sandbox *k = jkernel_find(f, s->owner, s->kernel);

	json_object_begin(j);
	json_member_str(j, "id", s->id);
	json_member_str(j, "path", s->path);
	json_member_str(j, "name", s->name);
	json_member_str(j, "type", s->type);
	json_key(j, "kernel");
	if (k)
		jkernel_json(k, j);
	else
		json_none(j);
	json_key(j, "notebook");
	json_object_begin(j);
	json_member_str(j, "path", s->path);
	json_member_str(j, "name", s->name);
	json_object_end(j);
	json_object_end(j);
}

static void reply_session(struct front *f, struct http_exchange *x, int status,
			  const struct jsession *s)
{
	_buf_ struct buf b = BUF_INIT(6 * WORDS_MAX * 6);
	struct json j;

	json_init(&j, &b);
	write_session(f, s, &j);
	if (json_finish(&j) < 0)
		reply_error(x, 500, "internal", NULL, NULL, "the answer could not be written");
	else
		reply_json(x, status, &b);
}

/* Of the body, or of `notebook` in it, as older clients write it; or NULL. */
static const char *word_of(const json_t *body, const char *key)
{
	const char *text = json_string_value(json_object_get(body, key));

	return text ? text :
		      json_string_value(json_object_get(json_object_get(body, "notebook"), key));
}

/* Else what it was. False: no memory. */
static bool take_word(char **to, const json_t *body, const char *key, const char *fallback)
{
	const char *text = word_of(body, key);

	if (!text && *to)
		return true;
	text = text ? text : fallback;
	char *copy = strdup(text);

	if (!copy)
		return false;
	free(*to);
	*to = copy;
	return true;
}

static bool take_words(struct jsession *s, const json_t *body)
{
	return take_word(&s->path, body, "path", "") && take_word(&s->name, body, "name", "") &&
	       take_word(&s->type, body, "type", "notebook");
}

/* The notebook's own, if the body has a path and there is one; as Jupyter's server has it, whatever
 * kernel is asked for. */
static const struct jsession *of_path(struct front *f, const char *owner, const json_t *body)
{
	const char *path = word_of(body, "path");

	(void)sweep(f);
	for (const struct jsession *s = f->jupyter_sessions; path && *path && s; s = s->next)
		if (strcmp(s->path, path) == 0 && strcmp(s->owner, owner) == 0)
			return s;
	return NULL;
}

static bool by_id(const json_t *body)
{
	return json_is_string(json_object_get(json_object_get(body, "kernel"), "id"));
}

/* Before anything is made for it. False: answered. */
static bool may_keep(struct http_exchange *x, const json_t *body)
{
	static const char *const keys[] = { "path", "name", "type" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *text = word_of(body, keys[i]);

		if (!text || strlen(text) <= WORDS_MAX)
			continue;
		reply_error(x, 422, "out_of_range", keys[i], "use a shorter one",
			    "'%s' is longer than %u bytes", keys[i], WORDS_MAX);
		return false;
	}
	return true;
}

/* The kernel is there: tie it to the words. */
static void on_made(struct http_exchange *x, struct sandbox *sandbox, json_t *body)
{
	struct front *f = sandbox->f;
	const struct jsession *old = of_path(f, context_of(x)->owner, body); /* came meanwhile */
	struct jsession *s = old ? NULL : calloc(1, sizeof(*s));

	if (!s || !take_words(s, body)) {
		if (s)
			session_free(s);
		if (!by_id(body))
			jkernel_end(sandbox, "its session could not be kept");
		if (old)
			reply_session(f, x, 201, old);
		else
			reply_retry(x, 503, 1, "out_of_memory", NULL,
				    "the daemon is out of memory");
		return;
	}
	jupyter_uuid(s->id);
	jkernel_id(sandbox, s->kernel);
	memcpy(s->owner, context_of(x)->owner, sizeof(s->owner));
	s->next = f->jupyter_sessions;
	f->jupyter_sessions = s;
	reply_session(f, x, 201, s);
}

/* By its id if the body has one, else a new one. */
static void with_kernel(struct front *f, struct http_exchange *x, json_t *body,
			void (*made)(struct http_exchange *x, struct sandbox *s, json_t *arg))
{
	const json_t *kernel = json_object_get(body, "kernel");
	const char *id = json_string_value(json_object_get(kernel, "id"));
	struct sandbox *s = id ? jkernel_find(f, context_of(x)->owner, id) : NULL;

	if (s)
		made(x, s, body);
	else if (id)
		reply_error(x, 404, "no_such_kernel", "kernel.id", "see GET /api/kernels",
			    "there is no such kernel");
	else
		jbirth(f, x, kernel, made, body);
}

void handle_jupyter_session_start(struct front *f, struct http_exchange *x,
				  const struct route_params *p)
{
	json_t *body = jupyter_body(x);

	(void)p;
	if (body && may_keep(x, body)) {
		const struct jsession *old = of_path(f, context_of(x)->owner, body);

		if (old)
			reply_session(f, x, 201, old);
		else if (sweep(f) >= SESSIONS_MAX)
			reply_retry(x, 429, 1, "too_many_sessions", "remove some",
				    "there are as many sessions as there may be");
		else
			with_kernel(f, x, body, on_made);
	}
	json_decref(body);
}

void handle_jupyter_sessions(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	_buf_ struct buf b = BUF_INIT(LIST_MAX);
	struct json j;

	(void)p;
	(void)sweep(f);
	json_init(&j, &b);
	json_array_begin(&j);
	for (const struct jsession *s = f->jupyter_sessions; s; s = s->next)
		if (strcmp(s->owner, context_of(x)->owner) == 0)
			write_session(f, s, &j);
	json_array_end(&j);
	if (json_finish(&j) < 0)
		reply_error(x, 500, "internal", NULL, NULL, "the answer could not be written");
	else
		reply_json(x, 200, &b);
}

static struct jsession **own_session(struct front *f, struct http_exchange *x,
				     const struct route_params *p)
{
	struct jsession **at = find(f, context_of(x)->owner, p->value[0]);

	if (*at)
		return at;
	reply_error(x, 404, "no_such_session", "session_id", "see GET /api/sessions",
		    "there is no such session");
	return NULL;
}

void handle_jupyter_session(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	struct jsession **at = own_session(f, x, p);

	if (at)
		reply_session(f, x, 200, *at);
}

/* Its kernel goes with it, as the protocol has it. */
void handle_jupyter_session_end(struct front *f, struct http_exchange *x,
				const struct route_params *p)
{
	struct jsession **at = own_session(f, x, p), *s;

	if (!at)
		return;
	s = *at;
	*at = s->next;
	struct sandbox *k = jkernel_find(f, s->owner, s->kernel);

	session_free(s);
	if (k)
		jkernel_end(k, "removed by its owner");
	reply_empty(x, 204);
}

/* ---- change -------------------------------------------------------------------------------- */

/* The one it had has nobody left, unless another notebook has it, too. */
static void end_unused(struct front *f, const char *owner, const char *kernel)
{
	struct sandbox *k = jkernel_find(f, owner, kernel);

	for (const struct jsession *s = f->jupyter_sessions; s; s = s->next)
		if (strcmp(s->kernel, kernel) == 0 && strcmp(s->owner, owner) == 0)
			return;
	if (k)
		jkernel_end(k, "its notebook has another kernel");
}

/* Another kernel for the same notebook; the body says which session. */
static void on_changed(struct http_exchange *x, struct sandbox *sandbox, json_t *body)
{
	struct front *f = sandbox->f;
	struct jsession **at =
		find(f, context_of(x)->owner, json_string_value(json_object_get(body, "id")));

	if (!*at) {
		reply_error(x, 404, "no_such_session", "session_id", NULL,
			    "the session was removed meanwhile");
		return;
	}
	struct jsession *s = *at;
	char before[JUPYTER_ID_MAX];

	memcpy(before, s->kernel, sizeof(before));
	jkernel_id(sandbox, s->kernel);
	reply_session(f, x, 200, s); /* x is gone with it */
	end_unused(f, s->owner, before);
}

void handle_jupyter_session_change(struct front *f, struct http_exchange *x,
				   const struct route_params *p)
{
	json_t *body = jupyter_body(x);
	struct jsession **at = body ? own_session(f, x, p) : NULL;
	const json_t *kernel = json_object_get(body, "kernel");

	if (!at) {
		json_decref(body);
		return;
	}
	if (!may_keep(x, body)) {
		json_decref(body);
		return;
	}
	(void)json_object_set_new(body, "id", json_string((*at)->id));
	if (!take_words(*at, body))
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
	else if (json_is_string(json_object_get(kernel, "id")) ||
		 json_is_string(json_object_get(kernel, "name")))
		with_kernel(f, x, body, on_changed);
	else
		reply_session(f, x, 200, *at);
	json_decref(body);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_notebooks.c - /api/sessions: which kernel a notebook has.
 *
 * A session is a name and a path for a kernel, and not a sandbox. It is removed when its kernel is
 * gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"

#define SESSIONS_MAX 4096u
#define SESSIONS_OWNER_MAX 512u
#define WORDS_MAX 4096u
#define LIST_MAX (16u << 20)

struct jsession {
	struct jsession *next;
	char id[JUPYTER_ID_MAX], kernel_id[JUPYTER_ID_MAX];
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

void jsessions_free(struct notebooks *notebooks)
{
	struct jsession *s;

	while ((s = notebooks->sessions)) {
		notebooks->sessions = s->next;
		session_free(s);
	}
}

/* Remove sessions whose kernels are gone. Return: the number of the others. */
static size_t sweep(struct notebooks *notebooks)
{
	size_t n = 0;

	for (struct jsession **at = &notebooks->sessions, *s; (s = *at);) {
		if (jkernel_find(notebooks->sandboxes, s->owner, s->kernel_id)) {
			n++;
			at = &s->next;
			continue;
		}
		*at = s->next;
		session_free(s);
	}
	return n;
}

static size_t count_of(const struct notebooks *notebooks, const char *owner)
{
	size_t n = 0;

	for (const struct jsession *s = notebooks->sessions; s; s = s->next)
		n += strcmp(s->owner, owner) == 0;
	return n;
}

/* False: there are too many sessions already, and the request is answered. */
static bool may_add(struct notebooks *notebooks, struct http_exchange *x)
{
	size_t all = sweep(notebooks);

	if (count_of(notebooks, context_of(x)->owner) >= SESSIONS_OWNER_MAX)
		reply_retry(
			x, 429, 1, "too_many_sessions",
			"remove some: DELETE /api/sessions/{session_id}",
			"you have %u sessions already, which is the most that an owner may have",
			SESSIONS_OWNER_MAX);
	else if (all >= SESSIONS_MAX)
		reply_retry(x, 429, 1, "too_many_sessions", "remove some",
			    "there are %u sessions already", SESSIONS_MAX);
	else
		return true;
	return false;
}

static struct jsession **find(struct notebooks *notebooks, const char *owner, const char *id)
{
	struct jsession **at = &notebooks->sessions;

	(void)sweep(notebooks);
	while (*at && (strcmp((*at)->id, id) != 0 || strcmp((*at)->owner, owner) != 0))
		at = &(*at)->next;
	return at;
}

static void write_session(struct notebooks *notebooks, const struct jsession *s, struct json *j)
{
	const struct sandbox *box = jkernel_find(notebooks->sandboxes, s->owner, s->kernel_id);

	json_object_begin(j);
	json_member_str(j, "id", s->id);
	json_member_str(j, "path", s->path);
	json_member_str(j, "name", s->name);
	json_member_str(j, "type", s->type);
	json_key(j, "kernel");
	if (box)
		jkernel_json(box, j);
	else
		json_none(j);
	json_member_object(j, "notebook");
	json_member_str(j, "path", s->path);
	json_member_str(j, "name", s->name);
	json_object_end(j);
	json_object_end(j);
}

static void reply_session(struct notebooks *notebooks, struct http_exchange *x, int status,
			  const struct jsession *s)
{
	struct reply answer;

	write_session(notebooks, s, reply_begin(&answer, 6 * WORDS_MAX * 6));
	reply_end(&answer, x, status);
}

/* A string of the body, or of `notebook` in it, where older clients put it; or NULL. */
static const char *word_of(const json_t *body, const char *key)
{
	const char *text = json_string_value(json_object_get(body, key));

	return text ? text :
		      json_string_value(json_object_get(json_object_get(body, "notebook"), key));
}

/* A body without the key leaves the value as it is. False: no memory. */
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

/* The session of the notebook that the body names. As in Jupyter's own server it is found whatever
 * kernel the client asks for. */
static const struct jsession *of_path(struct notebooks *notebooks, const char *owner,
				      const json_t *body)
{
	const char *path = word_of(body, "path");

	(void)sweep(notebooks);
	for (const struct jsession *s = notebooks->sessions; path && *path && s; s = s->next)
		if (strcmp(s->path, path) == 0 && strcmp(s->owner, owner) == 0)
			return s;
	return NULL;
}

/* Checked before a kernel is made. False: answered. */
static bool check_lengths(struct http_exchange *x, const json_t *body)
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

/* The kernel is there: make the session. */
static void on_made(struct http_exchange *x, struct sandbox *sandbox, bool fresh, json_t *body)
{
	struct notebooks *notebooks = context_of(x)->server->notebooks;
	/* Another request may have made it meanwhile. */
	const struct jsession *old = of_path(notebooks, context_of(x)->owner, body);
	struct jsession *s = old ? NULL : calloc(1, sizeof(*s));

	if (!s || !take_words(s, body)) {
		if (s)
			session_free(s);
		if (fresh)
			jkernel_end(sandbox, "its session could not be kept");
		if (old)
			reply_session(notebooks, x, 201, old);
		else
			reply_no_memory(x);
		return;
	}
	jupyter_uuid(s->id);
	jkernel_id(sandbox, s->kernel_id);
	memcpy(s->owner, context_of(x)->owner, sizeof(s->owner));
	s->next = notebooks->sessions;
	notebooks->sessions = s;
	reply_session(notebooks, x, 201, s);
}

/* The kernel whose id the body has, or a new one. */
static void with_kernel(struct notebooks *notebooks, struct http_exchange *x, json_t *body,
			jkernel_made made)
{
	const json_t *kernel = json_object_get(body, "kernel");
	const char *id = json_string_value(json_object_get(kernel, "id"));
	struct sandbox *s = id ? jkernel_find(notebooks->sandboxes, context_of(x)->owner, id) :
				 NULL;

	if (s)
		made(x, s, false, body);
	else if (id)
		reply_error(x, 404, "no_such_kernel", "kernel.id", "see GET /api/kernels",
			    "there is no such kernel");
	else
		jkernel_create(notebooks->sandboxes, x, kernel, made, body);
}

void handle_jupyter_session_start(struct notebooks *notebooks, struct http_exchange *x)
{
	json_t *body = jupyter_body(x);

	if (body && check_lengths(x, body)) {
		const struct jsession *old = of_path(notebooks, context_of(x)->owner, body);

		if (old)
			reply_session(notebooks, x, 201, old);
		else if (may_add(notebooks, x))
			with_kernel(notebooks, x, body, on_made);
	}
	json_decref(body);
}

void handle_jupyter_sessions(struct notebooks *notebooks, struct http_exchange *x)
{
	struct reply answer;

	(void)sweep(notebooks);
	struct json *j = reply_begin(&answer, LIST_MAX);

	json_array_begin(j);
	for (const struct jsession *s = notebooks->sessions; s; s = s->next)
		if (strcmp(s->owner, context_of(x)->owner) == 0)
			write_session(notebooks, s, j);
	json_array_end(j);
	reply_end(&answer, x, 200);
}

static struct jsession **own_session(struct notebooks *notebooks, struct http_exchange *x)
{
	struct jsession **at = find(notebooks, context_of(x)->owner, context_param(x, 0));

	if (*at)
		return at;
	reply_error(x, 404, "no_such_session", "session_id", "see GET /api/sessions",
		    "there is no such session");
	return NULL;
}

void handle_jupyter_session(struct notebooks *notebooks, struct http_exchange *x)
{
	struct jsession **at = own_session(notebooks, x);

	if (at)
		reply_session(notebooks, x, 200, *at);
}

/* The kernel is removed with its session, as the protocol says. */
void handle_jupyter_session_end(struct notebooks *notebooks, struct http_exchange *x)
{
	struct jsession **at = own_session(notebooks, x), *s;

	if (!at)
		return;
	s = *at;
	*at = s->next;
	struct sandbox *box = jkernel_find(notebooks->sandboxes, s->owner, s->kernel_id);

	session_free(s);
	if (box)
		jkernel_end(box, "removed by its owner");
	reply_empty(x, 204);
}

/* ---- change -------------------------------------------------------------------------------- */

/* End the former kernel of a notebook, unless another notebook has it, too. */
static void end_unused(struct notebooks *notebooks, const char *owner, const char *kernel_id)
{
	struct sandbox *box = jkernel_find(notebooks->sandboxes, owner, kernel_id);

	for (const struct jsession *s = notebooks->sessions; s; s = s->next)
		if (strcmp(s->kernel_id, kernel_id) == 0 && strcmp(s->owner, owner) == 0)
			return;
	if (box)
		jkernel_end(box, "its notebook has another kernel");
}

/* Another kernel for the same notebook; the body has the id of the session. */
static void on_changed(struct http_exchange *x, struct sandbox *sandbox, bool fresh, json_t *body)
{
	struct notebooks *notebooks = context_of(x)->server->notebooks;
	struct jsession **at = find(notebooks, context_of(x)->owner,
				    json_string_value(json_object_get(body, "id")));

	(void)fresh;
	if (!*at) {
		reply_error(x, 404, "no_such_session", "session_id", NULL,
			    "the session was removed meanwhile");
		return;
	}
	struct jsession *s = *at;
	char before[JUPYTER_ID_MAX];

	memcpy(before, s->kernel_id, sizeof(before));
	jkernel_id(sandbox, s->kernel_id);
	reply_session(notebooks, x, 200, s); /* x is not valid after this */
	end_unused(notebooks, s->owner, before);
}

void handle_jupyter_session_change(struct notebooks *notebooks, struct http_exchange *x)
{
	json_t *body = jupyter_body(x);
	struct jsession **at = body ? own_session(notebooks, x) : NULL;
	const json_t *kernel = json_object_get(body, "kernel");

	if (!at || !check_lengths(x, body)) {
		json_decref(body);
		return;
	}
	(void)json_object_set_new(body, "id", json_string((*at)->id));
	if (!take_words(*at, body))
		reply_no_memory(x);
	else if (json_is_string(json_object_get(kernel, "id")) ||
		 json_is_string(json_object_get(kernel, "name")))
		with_kernel(notebooks, x, body, on_changed);
	else
		reply_session(notebooks, x, 200, *at);
	json_decref(body);
}

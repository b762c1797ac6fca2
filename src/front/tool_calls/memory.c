/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory.* and tool.*: from a request to the store, and back.
 *
 * Values and metadata are JSON text that nobody here looks into further than to see that it is JSON
 * within bounds: they go back to code of the same owner as the strings that they came as. The
 * source of a tool is not even that: it is text, and runs nowhere but in the owner's cells.
 */
#include "front/tool_calls/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "front/support/json_alloc.h"
#include "front/support/schema.h"
#include "store/store.h"

#define DEPTH_MAX 64u

struct ask {
	const struct memory_place *p;
	const json_t *m;
	int64_t now;
	struct json *j; /* the result: members of an object */
	struct memory_refusal *why;
};

static int refuse(struct memory_refusal *why, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct memory_refusal *why, const char *code, const char *fmt, ...)
{
	va_list ap;

	why->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(why->message, sizeof(why->message), fmt, ap);
	va_end(ap);
	return -1;
}

static int refuse_store(struct memory_refusal *why, const struct err *e)
{
	switch (e->code) {
	case -ESTALE:
		return refuse(why, "conflict", "%s", e->msg);
	case -EDQUOT:
		return refuse(why, "quota", "%s", e->msg);
	case -EMSGSIZE:
		return refuse(why, "too_large", "%s", e->msg);
	case -EINVAL:
		return refuse(why, "bad_request", "%s", e->msg);
	default:
		return refuse(why, "internal", "%s", e->msg);
	}
}

static struct store_note_place place(const struct ask *a, enum store_note_kind kind)
{
	return (struct store_note_place){ a->p->owner, a->p->project, kind };
}

/* ---- what a request has -------------------------------------------------------------------- */

void memory_key(const char *text, char *ret, size_t size)
{
	const char *end = text + strlen(text);
	size_t n = 0;

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	for (; text < end && n + 1 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c & 0xc0) == 0x80)
			continue; /* the rest of a character that is one _ already */
		ret[n++] = c < 0x80 && (isalnum(c) || c == '_' || c == '-') ? (char)c : '_';
	}
	ret[n] = '\0';
}

/* A string without NUL. */
static const char *string_of(const struct ask *a, const char *name)
{
	const json_t *v = json_object_get(a->m, name);
	const char *text = json_string_value(v);

	if (text && strlen(text) == json_string_length(v))
		return text;
	(void)refuse(a->why, "bad_request", "'%s' must be a string without NUL", name);
	return NULL;
}

static int key_of(const struct ask *a, char ret[STORE_NOTE_KEY_MAX + 1])
{
	const char *text = string_of(a, "key");

	if (!text)
		return -1;
	memory_key(text, ret, STORE_NOTE_KEY_MAX + 1);
	return ret[0] ? 0 : refuse(a->why, "bad_request", "'key' must not be empty");
}

/* The name of a function: an identifier of ASCII or of anything beyond it. */
static const char *name_of(const struct ask *a)
{
	const char *text = string_of(a, "name");

	if (!text)
		return NULL;
	bool good = *text && !isdigit((unsigned char)*text) && strlen(text) <= STORE_NOTE_KEY_MAX;

	for (const char *t = text; good && *t; t++)
		good = (unsigned char)*t >= 0x80 || isalnum((unsigned char)*t) || *t == '_';
	if (good)
		return text;
	(void)refuse(a->why, "bad_request", "'name' must be an identifier of at most %d bytes",
		     STORE_NOTE_KEY_MAX);
	return NULL;
}

/* JSON text on one line. */
static const char *text_of(const struct ask *a, const char *name, bool object, size_t most)
{
	const char *text = string_of(a, name);
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return NULL;
	if (len > most) {
		(void)refuse(a->why, "too_large", "'%s' has %zu bytes, of at most %zu", name, len,
			     most);
		return NULL;
	}
	json_t *v = strchr(text, '\n') || !schema_depth_ok(text, len, DEPTH_MAX) ?
			    NULL :
			    json_alloc_load(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	bool good = v && (!object || json_is_object(v));

	json_decref(v);
	if (good)
		return text;
	(void)refuse(a->why, "bad_request", "'%s' must be JSON text%s, at most %u levels deep",
		     name, object ? " of an object" : "", DEPTH_MAX);
	return NULL;
}

static int revision_of(const struct ask *a, int64_t *ret)
{
	const json_t *v = json_object_get(a->m, "revision");

	*ret = STORE_NOTE_ANY;
	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return refuse(a->why, "bad_request", "'revision' must be a number from 0");
	*ret = json_integer_value(v);
	return 0;
}

/* ---- what it gets -------------------------------------------------------------------------- */

static void write_times(struct json *j, const struct store_note *n)
{
	json_member_int(j, "revision", n->revision);
	json_member_int(j, "created_at", n->created_at);
	json_member_int(j, "updated_at", n->updated_at);
	json_member_int(j, "size", (int64_t)(strlen(n->value) + strlen(n->metadata)));
}

static int write_memory(const struct store_note *n, void *arg)
{
	struct json *j = arg;

	json_member_str(j, "key", n->key);
	json_member_str(j, "value", n->value);
	json_member_str(j, "metadata", n->metadata);
	write_times(j, n);
	return 0;
}

static int write_entry(const struct store_note *n, void *arg)
{
	struct json *j = arg;

	json_object_begin(j);
	json_member_str(j, "key", n->key);
	json_member_str(j, "metadata", n->metadata);
	write_times(j, n);
	json_object_end(j);
	return 0;
}

static int write_tool(const struct store_note *n, void *arg)
{
	struct json *j = arg;

	json_object_begin(j);
	json_member_str(j, "name", n->key);
	json_member_str(j, "source", n->value);
	write_times(j, n);
	json_object_end(j);
	return 0;
}

/* ---- operations ---------------------------------------------------------------------------- */

static int put(struct ask *a, enum store_note_kind kind, struct store_note *n, int64_t expected)
{
	struct store_note_place p = place(a, kind);
	struct err e = { 0 };

	if (store_note_put(a->p->store, &p, n, expected, a->now, &e) < 0)
		return refuse_store(a->why, &e);
	json_member_str(a->j, kind == STORE_NOTE_TOOL ? "name" : "key", n->key);
	write_times(a->j, n);
	return 0;
}

static int delete (struct ask *a, enum store_note_kind kind, const char *key)
{
	struct store_note_place p = place(a, kind);
	struct err e = { 0 };
	int r = store_note_del(a->p->store, &p, key, &e);

	if (r < 0)
		return refuse_store(a->why, &e);
	json_member_bool(a->j, "deleted", r > 0);
	return 0;
}

static int list(struct ask *a, enum store_note_kind kind, const char *name, store_note_fn *fn)
{
	struct store_note_place p = place(a, kind);
	struct err e = { 0 };

	json_member_array(a->j, name);
	if (store_note_each(a->p->store, &p, fn, a->j, &e) < 0)
		return refuse_store(a->why, &e);
	json_array_end(a->j);
	return 0;
}

static int memory_save(struct ask *a)
{
	char key[STORE_NOTE_KEY_MAX + 1];
	struct store_note n = { .key = key };
	int64_t expected;

	if (key_of(a, key) < 0 || revision_of(a, &expected) < 0)
		return -1;
	n.value = text_of(a, "value", false, STORE_NOTE_VALUE_MAX);
	if (!n.value)
		return -1;
	n.metadata = text_of(a, "metadata", true, STORE_NOTE_META_MAX);
	return n.metadata ? put(a, STORE_NOTE_MEMORY, &n, expected) : -1;
}

static int memory_load(struct ask *a)
{
	struct store_note_place p = place(a, STORE_NOTE_MEMORY);
	char key[STORE_NOTE_KEY_MAX + 1];
	struct err e = { 0 };

	if (key_of(a, key) < 0)
		return -1;
	int r = store_note_get(a->p->store, &p, key, write_memory, a->j, &e);

	if (r < 0)
		return refuse_store(a->why, &e);
	json_member_bool(a->j, "found", r > 0);
	return 0;
}

static int memory_list(struct ask *a)
{
	return list(a, STORE_NOTE_MEMORY, "memories", write_entry);
}

static int memory_delete(struct ask *a)
{
	char key[STORE_NOTE_KEY_MAX + 1];

	return key_of(a, key) < 0 ? -1 : delete (a, STORE_NOTE_MEMORY, key);
}

static int tool_save(struct ask *a)
{
	struct store_note n = { .key = name_of(a), .metadata = "" };

	if (!n.key)
		return -1;
	n.value = string_of(a, "source");
	return n.value ? put(a, STORE_NOTE_TOOL, &n, STORE_NOTE_ANY) : -1;
}

static int tool_list(struct ask *a)
{
	return list(a, STORE_NOTE_TOOL, "tools", write_tool);
}

static int tool_delete(struct ask *a)
{
	const char *name = name_of(a);

	return name ? delete (a, STORE_NOTE_TOOL, name) : -1;
}

static const struct {
	const char *name;
	int (*run)(struct ask *a);
} ops[] = {
	{ "memory.save", memory_save }, { "memory.load", memory_load },
	{ "memory.list", memory_list }, { "memory.delete", memory_delete },
	{ "tool.save", tool_save },     { "tool.list", tool_list },
	{ "tool.delete", tool_delete },
};

bool memory_knows(const char *op)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(ops[i].name, op) == 0)
			return true;
	return false;
}

int memory_run(const struct memory_place *p, const char *op, const json_t *m, int64_t now_ms,
	       struct buf *ret, struct memory_refusal *why)
{
	struct json j;
	struct ask a = { .p = p, .m = m, .now = now_ms, .j = &j, .why = why };

	*why = (struct memory_refusal){ 0 };
	if (!p->store)
		return refuse(why, "unavailable",
			      "this daemon keeps nothing: it has no state directory");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strcmp(ops[i].name, op) != 0)
			continue;
		json_init(&j, ret);
		json_object_begin(&j);
		if (ops[i].run(&a) < 0)
			return -1;
		json_object_end(&j);
		return json_finish(&j) == 0 ? 0 :
					      refuse(why, "too_large", "%s: more than %u bytes", op,
						     (unsigned)ret->max);
	}
	return refuse(why, "bad_request", "there is no operation '%.60s'", op);
}

uint32_t memory_tools(const struct memory_place *p)
{
	const struct store_note_place where = { p->owner, p->project, STORE_NOTE_TOOL };
	struct err e = { 0 };
	int64_t n = p->store ? store_note_count(p->store, &where, &e) : 0;

	return n > 0 ? (uint32_t)n : 0;
}

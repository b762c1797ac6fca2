/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_executions.c - Finds begins without an end in the ledger, by their id.
 *
 * A line begins with its number, its time and its event, and a quote within a string is escaped. So
 * the event and the id are found without parsing, and only the lines that remain at the end are
 * parsed.
 */
#include "front/sandbox/open_executions.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/cell/keep.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "ledger/ledger.h"

#define ID_LEN 32u

struct open_execution {
	struct open_execution *next;
	char id[ID_LEN];
	size_t len;
	char line[];
};

/* The text after the first @key of the line, or NULL. */
static const char *after(const char *line, size_t len, const char *key)
{
	const char *at = memmem(line, len, key, strlen(key));

	return at ? at + strlen(key) : NULL;
}

static bool has_event(const char *line, size_t len, const char *event)
{
	const char *at = after(line, len, ",\"event\":\"");

	return at && (size_t)(line + len - at) > strlen(event) &&
	       memcmp(at, event, strlen(event)) == 0 && at[strlen(event)] == '"';
}

static size_t bucket_of(const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		n = n * 16 + (size_t)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
	return n % UNENDED_BUCKETS;
}

static const char *id_of(const char *line, size_t len)
{
	const char *id = after(line, len, ",\"id\":\"");

	if (!id || (size_t)(line + len - id) <= ID_LEN || id[ID_LEN] != '"')
		return NULL;
	for (size_t i = 0; i < ID_LEN; i++)
		if (!memchr("0123456789abcdef", id[i], 16))
			return NULL;
	return id;
}

static void add(struct open_execution **to, const char *id, const char *line, size_t len)
{
	struct open_execution *o = malloc(sizeof(*o) + len);

	if (!o)
		return;
	memcpy(o->id, id, ID_LEN);
	memcpy(o->line, line, len);
	o->len = len;
	o->next = *to;
	*to = o;
}

void open_executions_line(const char *line, size_t len, void *arg)
{
	struct open_executions *u = arg;
	bool begin = has_event(line, len, "execution.begin");
	const char *id = begin || has_event(line, len, "execution.end") ? id_of(line, len) : NULL;

	if (!id)
		return;
	struct open_execution **at = &u->buckets[bucket_of(id)];

	if (begin) {
		add(at, id, line, len);
		return;
	}
	while (*at && memcmp((*at)->id, id, ID_LEN) != 0)
		at = &(*at)->next;
	if (*at) {
		struct open_execution *o = *at;

		*at = o->next;
		free(o);
	}
}

static void close_one(struct sandboxes *sandboxes, const struct open_execution *o)
{
	json_t *m = json_alloc_load(o->line, o->len, 0, NULL);
	struct err e = { 0 };

	if (m &&
	    ledger_record(sandboxes->daemon->ledger, &e, "execution.end",
			  json_string_value(json_object_get(m, "owner")),
			  json_string_value(json_object_get(m, "sandbox")),
			  L_STRN("id", o->id, ID_LEN),
			  L_STR("what", json_string_value(json_object_get(m, "what"))),
			  L_STR("status", "lost"),
			  L_STR("cause", sandboxes->cells->keep->life > 1 ? "front_died" :
									    "daemon_died")) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "execution.end"),
			  F_STR("why", e.msg));
	json_decref(m);
}

void open_executions_close(struct open_executions *u, struct sandboxes *sandboxes)
{
	for (size_t i = 0; i < UNENDED_BUCKETS; i++)
		while (u->buckets[i]) {
			struct open_execution *o = u->buckets[i];

			u->buckets[i] = o->next;
			close_one(sandboxes, o);
			free(o);
		}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_alloc.c - A reserve of memory for when malloc fails; see json_alloc.h.
 *
 * The reserve is a static array, so it costs only addresses until it is used. It is handed out from
 * one end, and starts anew when all of it is free again: values live as long as a request.
 *
 * No JSON text has a NUL byte. jansson skips one behind a number or a word (it takes the byte back,
 * and then takes it for the end of its buffer), so such a text is refused here.
 */
#include "front/support/json_alloc.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define RESERVE_BYTES (4u << 20)
#define SMALL (RESERVE_BYTES / 16)
#define NEED 4 /* bytes for each of a text: the scanner's copy, which doubles, and the value */
#define ALIGN alignof(max_align_t)

static struct {
	alignas(ALIGN) char bytes[RESERVE_BYTES];
	size_t used, count;
} reserve;

static bool is_reserve(const void *p)
{
	return (uintptr_t)p - (uintptr_t)reserve.bytes < sizeof(reserve.bytes);
}

static void *json_alloc_malloc(size_t n)
{
	void *p = malloc(n);
	size_t whole = (n + ALIGN - 1) / ALIGN * ALIGN;

	if (p || whole < n || whole > sizeof(reserve.bytes) - reserve.used)
		return p;
	p = reserve.bytes + reserve.used;
	reserve.used += whole;
	reserve.count++;
	return p;
}

void json_alloc_free(void *p)
{
	if (!is_reserve(p))
		free(p);
	else if (--reserve.count == 0)
		reserve.used = 0;
}

void json_alloc_setup(void)
{
	json_set_alloc_funcs(json_alloc_malloc, json_alloc_free);
}

/* Report the NUL at @at as jansson reports a wrong character. */
static void refuse_nul(const char *text, const char *at, json_error_t *e)
{
	static const char why[] = "NUL byte";

	e->line = 1;
	e->column = 1;
	for (const char *c = text; c < at; c++) {
		e->column = *c == '\n' ? 1 : e->column + 1;
		e->line += *c == '\n';
	}
	e->position = (int)(at - text);
	memcpy(e->text, why, sizeof(why));
	e->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_invalid_syntax;
}

json_t *json_alloc_load(const char *text, size_t len, size_t flags, json_error_t *e)
{
	json_error_t ignored;

	if (!e)
		e = &ignored;
	memset(e, 0, sizeof(*e));

	const char *nul = memchr(text, '\0', len);

	if (nul) {
		refuse_nul(text, nul, e);
		return NULL;
	}
	/* Also while the reserve is in use: malloc may still be failing. */
	if (len > SMALL / NEED || reserve.used) {
		void *probe = malloc(len * NEED);

		if (!probe)
			return NULL;
		free(probe);
	}
	return json_loadb(text, len, flags, e);
}

static int append(const char *text, size_t len, void *out)
{
	return buf_append(out, text, len) < 0 ? -1 : 0;
}

void json_alloc_dump(struct buf *out, const json_t *v)
{
	if (json_dump_callback(v, append, out, JSON_COMPACT | JSON_ENCODE_ANY) < 0 && !out->err)
		out->err = -ENOMEM;
}

void json_member_value(struct json *j, const char *key, const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	json_key(j, key);
	if (text)
		json_raw(j, text, strlen(text));
	else
		json_none(j);
	json_alloc_free(text);
}

void json_member_list(struct json *j, const char *key, const json_t *list)
{
	json_member_array(j, key);
	for (size_t i = 0; i < json_array_size(list); i++)
		json_str(j, json_string_value(json_array_get(list, i)));
	json_array_end(j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - The last code that clients executed in a kernel: bounded, and gone with the kernel.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/wild.h"
#include "front/jupyter/jupyter.h"

#define LINES_MAX 1000u
#define BYTES_MAX (1u << 20)

static void drop_first(struct jhistory *h)
{
	h->bytes -= strlen(h->code[h->at]);
	free(h->code[h->at]);
	h->code[h->at] = NULL;
	h->at = (h->at + 1) % LINES_MAX;
	h->n--;
}

void jhistory_add(struct jhistory *h, unsigned int number, const char *code)
{
	size_t len = strlen(code);

	if (len > BYTES_MAX / 4)
		return;
	if (!h->code) {
		h->code = calloc(LINES_MAX, sizeof(*h->code));
		h->number = calloc(LINES_MAX, sizeof(*h->number));
	}
	char *copy = h->code && h->number ? strdup(code) : NULL;

	if (!copy)
		return;
	while (h->n == LINES_MAX || h->bytes + len > BYTES_MAX)
		drop_first(h);
	size_t at = (h->at + h->n) % LINES_MAX;

	h->code[at] = copy;
	h->number[at] = number;
	h->n++;
	h->bytes += len;
}

void jhistory_free(struct jhistory *h)
{
	while (h->n > 0)
		drop_first(h);
	free(h->code);
	free(h->number);
	*h = (struct jhistory){ 0 };
}

/* Which lines: a range of numbers, or the last n, perhaps of those that match. */
static bool wanted(const json_t *content, unsigned int number, const char *code)
{
	const char *access = json_string_value(json_object_get(content, "hist_access_type"));
	const char *pattern = json_string_value(json_object_get(content, "pattern"));

	if (access && strcmp(access, "range") == 0) {
		json_int_t start = json_integer_value(json_object_get(content, "start"));
		const json_t *stop = json_object_get(content, "stop");

		return (json_int_t)number >= start &&
		       (!json_is_integer(stop) || (json_int_t)number < json_integer_value(stop));
	}
	if (access && strcmp(access, "search") == 0)
		return wild_match(pattern ? pattern : "*", code);
	return true;
}

/* The same code was executed again later. */
static bool repeated(const struct jhistory *h, size_t i)
{
	const char *code = h->code[(h->at + i) % LINES_MAX];

	while (++i < h->n)
		if (strcmp(h->code[(h->at + i) % LINES_MAX], code) == 0)
			return true;
	return false;
}

static bool chosen(const struct jrequest *r, size_t i)
{
	const struct jhistory *h = &r->kernel->history;
	size_t at = (h->at + i) % LINES_MAX;

	return wanted(r->content, h->number[at], h->code[at]) &&
	       (!json_is_true(json_object_get(r->content, "unique")) || !repeated(h, i));
}

static void write_line(struct json *j, const struct jhistory *h, size_t at, bool output)
{
	json_array_begin(j);
	json_uint(j, 1); /* the session: there is only this one */
	json_uint(j, h->number[at]);
	if (output)
		json_array_begin(j);
	(void)json_str(j, h->code[at]);
	if (output) {
		json_none(j);
		json_array_end(j);
	}
	json_array_end(j);
}

void jhistory_reply(struct jrequest *r)
{
	_buf_ struct buf b = BUF_INIT(8u << 20);
	const struct jhistory *h = &r->kernel->history;
	const json_t *most = json_object_get(r->content, "n");
	size_t left = json_is_integer(most) && json_integer_value(most) >= 0 ?
			      (size_t)json_integer_value(most) :
			      LINES_MAX;
	bool output = json_is_true(json_object_get(r->content, "output"));
	size_t found = 0;
	struct json j;

	for (size_t i = 0; i < h->n; i++)
		found += chosen(r, i);
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "status", "ok");
	json_member_array(&j, "history");
	for (size_t i = 0; i < h->n; i++)
		if (chosen(r, i) && found-- <= left)
			write_line(&j, h, (h->at + i) % LINES_MAX, output);
	json_array_end(&j);
	json_object_end(&j);
	(void)json_finish(&j); /* b.err */
	jrequest_reply(r, "history_reply", &b);
}

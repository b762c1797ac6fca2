/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_alloc.c - jansson on an allocator that fails, at every call and from every call on. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "front/support/json_alloc.h"

void *__libc_malloc(size_t n);

static size_t calls, fail_from, fail_n;

#ifndef __SANITIZE_ADDRESS__ /* which has an allocator of its own */
void *malloc(size_t n)
{
	calls++;
	if (fail_n && calls >= fail_from && calls - fail_from < fail_n) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(n);
}
#endif

static const char text[] =
	"{\"type\":\"execution_done\",\"id\":\"bc977cfb61ee844f1a7b5d465aee4167\",\"list\":[1,2.5,\"\\u00e4 long "
	"string with more than sixteen characters\",null,true],\"deep\":{\"a\":{\"b\":[]}}}";

/* Whole, or nothing with an empty error; what it was made of comes back. */
static void try_load(size_t from, size_t n)
{
	json_error_t e;

	calls = 0;
	fail_from = from;
	fail_n = n;
	json_t *v = json_alloc_load(text, strlen(text), JSON_REJECT_DUPLICATES, &e);

	fail_n = 0;
	if (!v) {
		assert_string_equal(e.text, "");
		return;
	}
	assert_string_equal(json_string_value(json_object_get(v, "id")),
			    "bc977cfb61ee844f1a7b5d465aee4167");
	assert_int_equal(json_array_size(json_object_get(v, "list")), 5);
	char *again = json_dumps(v, JSON_COMPACT);

	assert_int_equal(strlen(again), strlen(text) - strlen("\\u00e4") + strlen("\xc3\xa4"));
	json_alloc_free(again);
	json_decref(v);
}

TEST(every_allocation)
{
	try_load(1, 0);
	size_t all = calls;

	assert_true(all > 20);
	for (size_t i = 1; i <= all + 1; i++) {
		try_load(i, 1);
		try_load(i, 3);
		try_load(i, SIZE_MAX);
	}
}

/* For ever without memory: what is kept fills the reserve, and then there is a plain no. */
TEST(reserve_ends)
{
	json_t *kept[4096];
	size_t n = 0;

	calls = 0;
	fail_from = 1;
	fail_n = SIZE_MAX;
	kept[0] = json_alloc_load(text, strlen(text), 0, NULL);
	assert_non_null(kept[0]);
	n = 1;
	assert_null(json_alloc_load(text, strlen(text), 0, NULL)); /* somebody has some of it
								      already */
	json_decref(kept[0]);
	kept[0] = json_alloc_load(text, strlen(text), 0, NULL); /* and gave it back */
	assert_non_null(kept[0]);
	fail_n = 0;
	while (n < 100 && (kept[n] = json_alloc_load(text, strlen(text), 0, NULL)))
		n++;
	assert_int_equal(n, 100);
	while (n > 0)
		json_decref(kept[--n]);
}

TEST(large_texts_look_first)
{
	size_t len = 8u << 20;
	char *large = malloc(len);
	json_error_t e;

	memset(large, 'x', len);
	large[0] = large[len - 1] = '"';
	calls = 0;
	fail_from = 1;
	fail_n = 1;
	assert_null(json_alloc_load(large, len, JSON_DECODE_ANY, &e));
	assert_string_equal(e.text, "");
	assert_int_equal(calls, 1);
	fail_n = 0;
	json_t *v = json_alloc_load(large, len, JSON_DECODE_ANY, &e);

	assert_int_equal(json_string_length(v), len - 2);
	json_decref(v);
	free(large);
}

/* An error of the text is reported as before. */
TEST(bad_text)
{
	json_error_t e;

	assert_null(json_alloc_load("{\"a\":", 5, 0, &e));
	assert_string_not_equal(e.text, "");
	assert_int_equal(json_error_code(&e), json_error_premature_end_of_input);
}

/* A NUL is no JSON, wherever it stands; behind a number or a word jansson would skip it. The escape
 * in a string is. */
TEST(nul_bytes)
{
#define TEXT(s)                                                                                    \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {
		TEXT("5\0"),         TEXT("{\"a\": 5\0}"), TEXT("{\"a\": 5\0, \"b\": 1}"),
		TEXT("[1.5\0]"),     TEXT("[1\0002]"),     TEXT("[true\0]"),
		TEXT("[null\0, 1]"), TEXT("{}\0"),         TEXT("\0{}"),
		TEXT("[\"a\0b\"]"),  TEXT("{\0}"),
	};
	json_error_t e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(json_alloc_load(bad[i].text, bad[i].len,
					    JSON_DECODE_ANY | JSON_ALLOW_NUL, &e));
		assert_string_not_equal(e.text, "");
	}
	assert_null(json_alloc_load("{\n\"a\": 5\0}", 10, 0, &e));
	assert_int_equal(e.line, 2);
	assert_int_equal(e.column, 7);
	assert_int_equal(json_error_code(&e), json_error_invalid_syntax);

	json_t *v = json_alloc_load("\"\\u0000\"", 8, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

	assert_int_equal(json_string_length(v), 1);
	json_decref(v);
#undef TEXT
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	print_message("not run: a sanitized program has an allocator of its own\n");
	return 77;
#endif
	json_alloc_setup();
	return unit_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_open_executions.c - Which executions of a ledger have no end, whatever else its lines hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "front/sandbox/open_executions.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210"

/* As in open_executions.c: the tests only count and free. */
struct open_execution {
	struct open_execution *next;
};

static void say(struct open_executions *u, const char *event, const char *sandbox, const char *id)
{
	char line[512];
	int n = snprintf(
		line, sizeof(line),
		"{\"seq\":7,\"time\":\"2026-11-16T03:25:16.123Z\",\"event\":\"%s\",\"owner\":"
		"\"ann\",\"sandbox\":\"%s\",\"id\":\"%s\",\"what\":\"python\"}",
		event, sandbox, id);
	char *exact = malloc((size_t)n); /* so that a sanitizer sees what reads beyond it */

	memcpy(exact, line, (size_t)n);
	open_executions_line(exact, (size_t)n, u);
	free(exact);
}

static size_t left(struct open_executions *u)
{
	size_t n = 0;

	for (size_t i = 0; i < UNENDED_BUCKETS; i++)
		while (u->buckets[i]) {
			struct open_execution *o = u->buckets[i];

			u->buckets[i] = o->next;
			free(o);
			n++;
		}
	return n;
}

static void test_begins_and_ends(void **state)
{
	static struct open_executions u;

	(void)state;
	say(&u, "execution.begin", "job", A);
	say(&u, "execution.begin", "job", B);
	say(&u, "execution.end", "job", A);
	assert_int_equal(left(&u), 1);
	say(&u, "execution.end", "job", B); /* whose begin is in another file */
	assert_int_equal(left(&u), 0);
	say(&u, "file.begin", "job", A);
	say(&u, "execution.beginning", "job", A);
	assert_int_equal(left(&u), 0);
}

static void test_names_that_look_like_members(void **state)
{
	static struct open_executions u;

	(void)state;
	/* Quotes in a name are escaped. */
	say(&u, "execution.begin", "x\\\",\\\"id\\\":\\\"" B, A);
	say(&u, "execution.end", "x\\\",\\\"id\\\":\\\"" A, B);
	say(&u, "file.end", "\\\",\\\"event\\\":\\\"execution.end", A);
	assert_int_equal(left(&u), 1);
}

static void test_what_is_no_id(void **state)
{
	static struct open_executions u;
	static const char *const odd[] = { "",
					   "0",
					   A "0",
					   "0123456789ABCDEF0123456789ABCDEF",
					   "../../../../../../../../../../..",
					   "\\u0000" };

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		say(&u, "execution.begin", "job", odd[i]);
	static const char *const cut[] = { "", "{\"seq\":1,\"event\":\"execution.begin",
					   ",\"event\":\"execution.begin\",\"id\":\"0123" };

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		open_executions_line(cut[i], strlen(cut[i]), &u);
	assert_int_equal(left(&u), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_and_ends),
		cmocka_unit_test(test_names_that_look_like_members),
		cmocka_unit_test(test_what_is_no_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

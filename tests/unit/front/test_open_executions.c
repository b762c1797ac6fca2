/* SPDX-License-Identifier: Apache-2.0 */
/* test_open_executions.c - Which executions of a ledger have no end, whatever else its lines hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
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

TEST(begins_and_ends)
{
	static struct open_executions u;

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

TEST(names_that_look_like_members)
{
	static struct open_executions u;

	/* Quotes in a name are escaped. */
	say(&u, "execution.begin", "x\\\",\\\"id\\\":\\\"" B, A);
	say(&u, "execution.end", "x\\\",\\\"id\\\":\\\"" A, B);
	say(&u, "file.end", "\\\",\\\"event\\\":\\\"execution.end", A);
	assert_int_equal(left(&u), 1);
}

TEST(invalid_ids)
{
	static struct open_executions u;
	static const char *const odd[] = { "",
					   "0",
					   A "0",
					   "0123456789ABCDEF0123456789ABCDEF",
					   "../../../../../../../../../../..",
					   "\\u0000" };

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		say(&u, "execution.begin", "job", odd[i]);
	static const char *const cut[] = { "", "{\"seq\":1,\"event\":\"execution.begin",
					   ",\"event\":\"execution.begin\",\"id\":\"0123" };

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		open_executions_line(cut[i], strlen(cut[i]), &u);
	assert_int_equal(left(&u), 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_pull_lines.c - The lines of `caisson image pull --json`: progress, results, failures. */
#include "front/images/pull_lines.h"

#include <stdio.h>
#include <string.h>

#include "../unit.h"

#define REF "docker.io/library/python:3.11-slim"

static struct pull_lines lines;
static struct pull_progress last;
static char text[512];
static unsigned int told;

static void moved(void *arg, const struct pull_progress *now)
{
	(void)arg;
	last = *now;
	(void)snprintf(text, sizeof(text), "%s", now->text);
	told++;
}

static void feed(const char *data)
{
	assert_int_equal(pull_lines_feed(&lines, data, strlen(data)), 0);
}

static void begin(void)
{
	told = 0;
	pull_lines_init(&lines, REF, moved, NULL);
}

TEST(progress_adds_up)
{
	begin();
	feed("{\"event\":\"pulling\",\"text\":\"x\"}\n");
	assert_string_equal(text, "pulling python:3.11-slim");
	assert_int_equal(last.total, 0);
	/* All layers are known before the first one is told. */
	feed("{\"event\":\"layer\",\"layer\":1,\"layers\":2,\"state\":\"waiting\",\"bytes\":0,\"total\":1048576}\n");
	assert_int_equal(told, 1);
	feed("{\"event\":\"layer\",\"layer\":2,\"layers\":2,\"state\":\"waiting\",\"bytes\":0,\"total\":3145728}\n");
	assert_int_equal(told, 2);
	feed("{\"event\":\"progress\",\"layer\":2,\"layers\":2,\"state\":\"loading\",\"bytes\":1048576,\"tot");
	feed("al\":3145728}\n");
	assert_int_equal(last.done, 1048576);
	assert_int_equal(last.total, 4194304);
	assert_string_equal(text, "pulling python:3.11-slim: 1 MiB of 4 MiB");
	feed("{\"event\":\"layer\",\"layer\":2,\"layers\":2,\"state\":\"unpacking\",\"bytes\":3145728,\"total\":3145728}\n");
	assert_string_equal(text, "pulling python:3.11-slim: unpacking layer 2 of 2");
	feed("{\"event\":\"done\",\"digest\":\"sha256:abc\"}\n");
	assert_string_equal(lines.digest, "sha256:abc");
	pull_lines_free(&lines);
}

/* Nothing that could come over the pipe leads anywhere. */
TEST(nonsense)
{
	static const char *const all[] = {
		"{\"event\":\"layer\",\"layer\":0,\"total\":1}\n",
		"{\"event\":\"layer\",\"layer\":65,\"total\":1}\n",
		"{\"event\":\"layer\",\"layer\":-1,\"bytes\":-5,\"total\":-1}\n",
		"{\"event\":\"layer\",\"layer\":1,\"total\":9223372036854775807}\n",
		"{\"event\":7}\n",
		"[]\n",
		"{\n",
		"\n",
		"null\n",
	};

	begin();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		feed(all[i]);
	assert_int_equal(told, 0);
	for (size_t i = 0; i < 200000; i++) /* a line that is too long is skipped */
		feed("x");
	feed("\n{\"event\":\"pulling\"}\n");
	assert_int_equal(told, 1);
	feed("{\"event\":\"layer\",\"layer\":1,\"layers\":1,\"state\":\"loading\",\"bytes\":9,\"total\":3}\n");
	assert_int_equal(last.done, 3);
	pull_lines_free(&lines);
}

TEST(failures)
{
	static const struct {
		const char *error, *code;
		enum refusal_kind kind;
	} cases[] = {
		{ "ENOENT", "image_not_found", REFUSAL_NOT_FOUND },
		{ "EACCES", "image_not_found", REFUSAL_NOT_FOUND },
		{ "EHOSTUNREACH", "registry_unavailable", REFUSAL_BAD_ANSWER },
		{ "ENOSPC", "image_pull_failed", REFUSAL_NO_SPACE },
		{ "EBADMSG", "image_pull_failed", REFUSAL_BAD_ANSWER },
		{ "an errno of no system at all", "image_pull_failed", REFUSAL_BAD_ANSWER },
	};
	struct refusal why;
	char line[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		(void)snprintf(line, sizeof(line),
			       "{\"error\":{\"code\":\"%s\",\"message\":\"the reason\"}}\n",
			       cases[i].error);
		feed(line);
		pull_lines_refusal(&lines, REF, &why);
		assert_string_equal(why.code, cases[i].code);
		assert_int_equal(why.kind, cases[i].kind);
		assert_string_equal(why.field, "image");
		assert_non_null(strstr(why.message, REF " cannot be pulled: the reason"));
		pull_lines_free(&lines);
	}
	begin(); /* killed before it could say why */
	pull_lines_refusal(&lines, REF, &why);
	assert_string_equal(why.code, "image_pull_failed");
	pull_lines_free(&lines);
}

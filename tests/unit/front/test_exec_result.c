/* SPDX-License-Identifier: Apache-2.0 */
/* test_exec_result.c - ExecResult has the written output and the true outcome, and nothing else. */
#include "base/buf.h"
#include "base/json.h"
#include "front/output/output_text.h"
#include "front/output/spool.h"
#include "front/sandbox/event.h"
#include "front/sandbox/exec_result.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "../unit.h"

#define CHARS 10

static struct spool_bank bank = { .fd = -1, .memory_max = SPOOL_BANK_MEMORY };
static struct spool out, err;
static struct outcome outcome;
static struct result verdict;

static json_t *result_of(void)
{
	_buf_ struct buf b = BUF_INIT(1 << 16);
	struct exec_result r = { .execution_id = "id",
				 .verdict = &verdict,
				 .outcome = &outcome,
				 .out = &out,
				 .err = &err,
				 .chars = CHARS };
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	exec_result_members(&r, &j);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	json_t *o = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	assert_non_null(o);
	return o;
}

static int begin(void **state)
{
	(void)state;
	memset(&outcome, 0, sizeof(outcome));
	memset(&verdict, 0, sizeof(verdict));
	spool_init(&out, &bank, SPOOL_CAP);
	spool_init(&err, &bank, SPOOL_CAP);
	return 0;
}

static int end(void **state)
{
	(void)state;
	spool_free(&out);
	spool_free(&err);
	return 0;
}

struct unit_fixture unit_fixture = { begin, end };

static const char *text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

TEST(ok)
{
	spool_append(&out, "out", 3);
	spool_append(&err, "err", 3);
	outcome.wall_ns = 1500000000;
	json_t *o = result_of();

	assert_string_equal(text(o, "output"), "outerr");
	assert_string_equal(text(o, "status"), "ok");
	assert_true(json_is_true(json_object_get(o, "ok")));
	assert_true(json_is_false(json_object_get(o, "truncated")));
	assert_true(json_real_value(json_object_get(o, "execution_time")) == 1.5);
	assert_null(json_object_get(o, "cause"));
	assert_null(json_object_get(o, "signal"));
	assert_null(json_object_get(o, "hint"));
	assert_null(json_object_get(o, "stdout_base64"));
	json_decref(o);
}

TEST(limit)
{
	verdict = (struct result){ .status = RESULT_LIMIT,
				   .cause = CAUSE_MEMORY,
				   .exit_code = 137,
				   .signo = SIGKILL,
				   .limit = 100,
				   .peak = 99,
				   .hint = "less" };
	json_t *o = result_of();

	assert_string_equal(text(o, "cause"), "memory");
	assert_string_equal(text(o, "signal"), "KILL");
	assert_string_equal(text(o, "hint"), "less");
	assert_int_equal(json_integer_value(json_object_get(o, "limit")), 100);
	assert_int_equal(json_integer_value(json_object_get(o, "peak")), 99);
	assert_true(json_is_false(json_object_get(o, "ok")));
	json_decref(o);
}

TEST(bytes)
{
	spool_append(&out, "\xff", 1);
	json_t *o = result_of();

	assert_string_equal(text(o, "stdout"), "\xef\xbf\xbd");
	assert_string_equal(text(o, "stdout_base64"), "/w==");
	json_decref(o);
}

TEST(truncated)
{
	spool_append(
		&err,
		"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4",
		22);
	json_t *o = result_of();

	assert_true(json_is_true(json_object_get(o, "truncated")));
	assert_int_equal(json_string_length(json_object_get(o, "stderr")), 2 * CHARS);
	assert_int_equal(json_string_length(json_object_get(o, "output")), 2 * CHARS);
	json_decref(o);
}

/* Events: characters that a chunk cuts wait for their rest; bytes come as they are too. */
static json_t *event(const char *data, size_t len, bool last)
{
	_buf_ struct buf b = BUF_INIT(4096), room = BUF_INIT(64);
	static struct text_joiner joiner;
	struct event ev = { .kind = EVENT_STDOUT };

	ev.text = text_join(&joiner, data, len, last, &room, &ev.len);
	event_json(&ev, &b);
	assert_int_equal(b.err, 0);
	return json_loadb(b.data, b.len, 0, NULL);
}

TEST(events)
{
	json_t *o = event("a\xc3", 2, false);

	assert_string_equal(text(o, "data"), "a");
	assert_null(json_object_get(o, "data_base64"));
	json_decref(o);
	o = event("\xa4", 1, false);
	assert_string_equal(text(o, "data"), "\xc3\xa4");
	json_decref(o);
	o = event("\xff\xc3", 2, false);
	assert_string_equal(text(o, "data_base64"), "/w==");
	json_decref(o);
	o = event("", 0, true);
	assert_string_equal(text(o, "data_base64"), "ww==");
	json_decref(o);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_record.c - A finished execution is found for a while, and then is not. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "front/output/stream_log.h"
#include "front/sandbox/record.h"
#include "net/loop.h"

#define MINUTE (60 * CLOCK_NS_PER_S)

struct kit {
	struct loop loop;
	struct spool_bank spools;
	struct stream_bank streams;
	struct records records;
};

static int setup(void **state)
{
	struct kit *k = calloc(1, sizeof(*k));

	assert_int_equal(loop_init(&k->loop, NULL), 0);
	assert_int_equal(spool_bank_open(&k->spools, -1, 0, 1u << 20, NULL), 0);
	k->streams.max = STREAM_BANK_BYTES;
	records_init(&k->records, &k->loop, &k->spools, &k->streams);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct kit *k = *state;

	records_free(&k->records);
	assert_int_equal(k->spools.memory, 0);
	assert_int_equal(k->streams.bytes, 0);
	spool_bank_close(&k->spools);
	loop_free(&k->loop);
	free(k);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static struct record *make(struct kit *k, unsigned int number)
{
	char id[RECORD_ID_MAX];

	(void)snprintf(id, sizeof(id), "%032u", number);
	return record_new(&k->records, id, "python", 0);
}

static bool has(struct kit *k, unsigned int number)
{
	char id[RECORD_ID_MAX];

	(void)snprintf(id, sizeof(id), "%032u", number);
	return records_find(&k->records, id) != NULL;
}

static void finish(struct record *r)
{
	record_finish(r, "done", "ok", "{\"ok\":true}", "{\"ok\":true}");
}

/* As if so much time had passed: the timer is called when it is due, and only then. */
static void pass_time(struct kit *k, uint64_t ns)
{
	k->loop.now_ns += ns;
	while (k->records.timer.loop && k->records.timer.at_ns <= k->loop.now_ns) {
		timer_cancel(&k->records.timer);
		k->records.timer.fn(&k->records.timer);
	}
}

TEST(the_life_of_one)
{
	struct kit *k = *test_state;
	struct buf b = BUF_INIT(4096);
	struct record *r = make(k, 1);
	struct json j;
	char text[16];

	spool_append(&r->out, "said", 4);
	record_started(r);
	finish(r);
	assert_true(has(k, 1));
	assert_int_equal(spool_read(&r->result, 0, text, sizeof(text)), 11);
	json_init(&j, &b);
	json_object_begin(&j);
	record_json(r, &j);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_non_null(strstr(buf_str(&b), "\"state\":\"done\",\"status\":\"ok\""));
	assert_non_null(strstr(buf_str(&b), "\"stdout_bytes\":4"));
	buf_free(&b);
	pass_time(k, 15 * MINUTE - 1);
	assert_true(has(k, 1));
	pass_time(k, 1);
	assert_false(has(k, 1));
	assert_null(k->records.timer.loop);
}

TEST(events_go_before_the_record)
{
	struct kit *k = *test_state;
	struct record *r = make(k, 1);

	assert_true(record_stream(r, NULL, NULL));
	record_started(r);
	stream_log_append(r->log, "stdout", "{}", 2);
	finish(r);
	assert_int_equal(stream_log_last(r->log), 3);
	assert_true(stream_log_ended(r->log));
	pass_time(k, 5 * MINUTE - 1);
	assert_non_null(r->log);
	pass_time(k, 1);
	assert_null(r->log);
	assert_true(r->streamed);
	pass_time(k, 10 * MINUTE - 1);
	assert_true(has(k, 1));
	pass_time(k, 1);
	assert_false(has(k, 1));
}

/* One that is due later must not make an earlier one wait, in either order. */
TEST(each_in_its_time)
{
	struct kit *k = *test_state;
	struct record *plain = make(k, 1), *streamed = make(k, 2);

	assert_true(record_stream(streamed, NULL, NULL));
	finish(plain);
	pass_time(k, MINUTE);
	finish(streamed);
	pass_time(k, 5 * MINUTE);
	assert_null(streamed->log);
	pass_time(k, 9 * MINUTE);
	assert_false(has(k, 1));
	assert_true(has(k, 2));
	pass_time(k, MINUTE);
	assert_false(has(k, 2));
}

TEST(newer_ones_push_it_out)
{
	struct kit *k = *test_state;
	struct record *running = make(k, 0);

	for (unsigned int i = 1; i <= 2 * RECORDS_MAX; i++)
		finish(make(k, i));
	assert_int_equal(k->records.n, RECORDS_MAX);
	assert_true(has(k, 0)); /* runs: stays */
	assert_false(has(k, RECORDS_MAX + 1));
	assert_true(has(k, RECORDS_MAX + 2));
	pass_time(k, 20 * MINUTE);
	assert_int_equal(k->records.n, 1);
	finish(running);
}

TEST(dropped_as_if_it_had_never_been)
{
	struct kit *k = *test_state;

	(void)make(k, 1);
	struct record *r = make(k, 2);

	record_drop(r);
	assert_false(has(k, 2));
	(void)make(k, 3);
	assert_true(has(k, 1));
	assert_true(has(k, 3));
	assert_int_equal(k->records.n, 2);
}

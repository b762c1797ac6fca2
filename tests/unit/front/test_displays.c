/* SPDX-License-Identifier: Apache-2.0 */
/* test_displays.c - The displays of a result: updates replace, clearing removes, and displays
 * beyond the bounds are counted. */
#include "front/sandbox/displays.h"

#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/json.h"

static size_t put(struct displays *d, const char *text, const char *id, bool update)
{
	json_t *one = json_pack("{s:{s:s}, s:s*, s:b}", "data", "text/plain", text, "display_id",
				id, "update", update);
	size_t size = displays_put(d, one);

	assert_non_null(one);
	json_decref(one);
	return size;
}

/* The texts, each with a `+` if it is an update, and the number of those that were dropped. */
static void check(const struct displays *d, const char *expected)
{
	_buf_ struct buf b = BUF_INIT(1000);
	json_t *all = displays_load(d), *one;
	size_t i;

	json_array_foreach(all, i, one)
	{
		json_t *data = json_object_get(one, "data");

		(void)buf_printf(&b, "%s%s ",
				 json_string_value(json_object_get(data, "text/plain")),
				 json_is_true(json_object_get(one, "update")) ? "+" : "");
	}
	(void)buf_printf(&b, "%zu", d->dropped);
	assert_string_equal(buf_str(&b), expected);
	json_decref(all);
}

TEST(updates_replace)
{
	struct displays d = { 0 };

	assert_true(put(&d, "a", "x", false) > 0);
	assert_true(put(&d, "b", NULL, false) > 0);
	assert_true(put(&d, "c", "x", false) > 0); /* shown twice */
	assert_true(put(&d, "d", "y", true) > 0);  /* of an earlier execution */
	check(&d, "a b c d+ 0");
	assert_true(put(&d, "e", "x", true) > 0);
	assert_true(put(&d, "f", "y", true) > 0);
	check(&d, "e b e f 0");
	displays_clear(&d, false);
	assert_int_equal(d.bytes, 0);
}

TEST(clearing)
{
	struct displays d = { 0 };

	(void)put(&d, "a", NULL, false);
	displays_clear(&d, false);
	check(&d, "0");
	(void)put(&d, "b", NULL, false);
	displays_clear(&d, true);
	check(&d, "b 0"); /* until the next output comes */
	(void)put(&d, "c", NULL, false);
	(void)put(&d, "d", NULL, false);
	check(&d, "c d 0");
	displays_clear(&d, true);
	displays_output(&d);
	check(&d, "0");
}

/* An update finds its place also when there is no other. */
TEST(too_many)
{
	struct displays d = { 0 };

	for (size_t i = 0; i < DISPLAYS_MAX; i++)
		assert_true(put(&d, "a", i == 0 ? "x" : NULL, false) > 0);
	assert_false(displays_cut(&d));
	assert_int_equal(put(&d, "b", NULL, false), 0);
	assert_int_equal(put(&d, "b", "y", true), 0);
	assert_true(put(&d, "new", "x", true) > 0);
	assert_true(displays_cut(&d) && d.dropped == 2 && d.n == DISPLAYS_MAX);
	assert_non_null(strstr(d.list[0].json, "new"));
	displays_clear(&d, false);
	assert_false(displays_cut(&d));
}

TEST(too_large)
{
	static char large[DISPLAYS_BYTES / 2 + 1];
	struct displays d = { 0 };

	memset(large, 'x', sizeof(large) - 1);
	assert_true(put(&d, large, "x", false) > DISPLAYS_BYTES / 2);
	assert_int_equal(put(&d, large, NULL, false), 0);
	assert_true(put(&d, large, "x", true) > DISPLAYS_BYTES / 2); /* in its own place */
	assert_true(put(&d, "small", NULL, false) > 0);
	assert_int_equal(d.dropped, 1);
	displays_clear(&d, false);
	assert_int_equal(d.bytes, 0);
}

TEST(as_json)
{
	_buf_ struct buf b = BUF_INIT(1000);
	struct displays d = { .dropped = 3 };
	json_t *one = json_pack("{s:{}, s:b}", "data", "truncated", 1);
	struct json j;

	(void)displays_put(&d, one);
	json_decref(one);
	json_init(&j, &b);
	json_object_begin(&j);
	displays_json(&d, &j);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(
		buf_str(&b),
		"{\"displays\":[{\"data\":{},\"truncated\":true}],\"displays_dropped\":3}");
	d.dropped = 0;
	assert_true(displays_cut(&d));
	displays_clear(&d, false);
}

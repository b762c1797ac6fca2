/* SPDX-License-Identifier: Apache-2.0 */
/* test_frame.c - Both framings: joined parts can be split again, and wrong numbers are found. */
#include "jupyter/frame.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static const struct frame_message message = {
	.channel = "iopub",
	.type = "status",
	.id = "77",
	.header = { "{\"msg_id\":\"77\"}", 15 },
	.parent = { "{}", 2 },
	.metadata = { "{}", 2 },
	.content = { "{\"execution_state\":\"idle\"}", 26 },
};

static void assert_part(struct frame_part p, const char *want)
{
	assert_int_equal(p.len, strlen(want));
	assert_memory_equal(p.data, want, p.len);
}

TEST(v1)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct frame f;

	assert_int_equal(frame_join(FRAME_V1, &message, &b), 0);
	assert_null(frame_split(FRAME_V1, false, buf_str(&b), b.len, &f));
	assert_part(f.channel, "iopub");
	assert_part(f.header, "{\"msg_id\":\"77\"}");
	assert_part(f.parent, "{}");
	assert_part(f.metadata, "{}");
	assert_part(f.content, "{\"execution_state\":\"idle\"}");
	assert_int_equal(f.n_buffers, 0);
	/* Every shorter one is refused, or has a shorter end. */
	for (size_t n = 0; n < b.len; n++)
		if (!frame_split(FRAME_V1, false, buf_str(&b), n, &f))
			fail_msg("%zu of %zu bytes are a message", n, b.len);
	assert_non_null(frame_split(FRAME_V1, true, buf_str(&b), b.len, &f));
}

TEST(json)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct frame f;

	assert_int_equal(frame_join(FRAME_JSON, &message, &b), 0);
	assert_string_equal(
		buf_str(&b),
		"{\"channel\":\"iopub\",\"msg_id\":\"77\",\"msg_type\":\"status\",\"buffers\":[],"
		"\"header\":{\"msg_id\":\"77\"},\"parent_header\":{},\"metadata\":{},"
		"\"content\":{\"execution_state\":\"idle\"}}");
	assert_null(frame_split(FRAME_JSON, true, buf_str(&b), b.len, &f));
	assert_int_equal(f.whole.len, b.len);
}

TEST(json_with_buffers)
{
	static const char data[] = "\0\0\0\2\0\0\0\14\0\0\0\16{}buffer";
	struct frame f;

	assert_null(frame_split(FRAME_JSON, false, data, sizeof(data) - 1, &f));
	assert_part(f.whole, "{}");
	assert_int_equal(f.n_buffers, 1);
}

/* A table of five or six offsets that are all wrong in one way. */
TEST(numbers_that_lie)
{
	static const uint64_t bad[][7] = {
		{ 4, 40, 40, 40, 40, 40, 40 },          /* too few parts */
		{ 6, 55, 56, 56, 56, 56, 56 },          /* into the table */
		{ 6, 56, 57, 56, 56, 56, 56 },          /* backwards */
		{ 6, 56, 56, 56, 56, 56, 58 },          /* behind the end */
		{ 6, 56, 56, 56, 56, 56, UINT64_MAX },  /* far behind it */
		{ UINT64_MAX, 56, 56, 56, 56, 56, 57 }, /* more than can be counted */
		{ 1ull << 61, 56, 56, 56, 56, 56, 57 },
	};
	struct frame f;
	char data[57] = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(data, bad[i], sizeof(bad[i])); /* little-endian, as the machines we build for
						       */
		assert_non_null(frame_split(FRAME_V1, false, data, sizeof(data), &f));
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_header.c - Header values, plain and coded. */
#include "mcp/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/buf.h"

static const struct row {
	const char *value, *want; /* NULL: refused */
} rows[] = {
	{ "", "" },
	{ "plain value", "plain value" },
	{ "=?base64?w7w=?=", "\xc3\xbc" },
	{ "=?base64?"
	  "?=",
	  "" },
	{ "=?BASE64?w7w=?=", "=?BASE64?w7w=?=" }, /* markers are in lower case */
	{ "=?base64?w7w=", "=?base64?w7w=" },     /* and both are there */
	{ "=?base64?=", "=?base64?=" },           /* and do not share a byte */
	{ "=?base64?w7w?=", NULL },               /* not padded */
	{ "=?base64?w7 w=?=", NULL },
	{ "=?base64?/w==?=", NULL }, /* no UTF-8 */
	{ "=?base64?AA==?=", NULL }, /* NUL */
};

TEST(values)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_buf_ struct buf b = BUF_INIT(64);
		int r = mcp_header_decode(rows[i].value, &b);

		if (r != (rows[i].want ? 0 : -EINVAL))
			fail_msg("%s: %d", rows[i].value, r);
		if (rows[i].want)
			assert_string_equal(buf_str(&b), rows[i].want);
	}
}

TEST(appends_and_is_bounded)
{
	_buf_ struct buf b = BUF_INIT(8);

	(void)buf_puts(&b, "ab");
	assert_int_equal(mcp_header_decode("=?base64?Y2Q=?=", &b), 0);
	assert_string_equal(buf_str(&b), "abcd");
	assert_true(mcp_header_decode("too long for it", &b) < 0);
}

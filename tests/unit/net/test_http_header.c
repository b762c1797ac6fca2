/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_header.c - Questions about headers: tokens in a list, headers for one hop, upgrades. */
#include <stddef.h>

#include "../unit.h"
#include "base/fd.h"
#include "net/http.h"
#include "net/http_header.h"

TEST(tokens)
{
	assert_true(header_has_token("keep-alive, Upgrade", "upgrade"));
	assert_true(header_has_token("a\tb", "b"));
	assert_false(header_has_token("upgrades", "upgrade"));
	assert_false(header_has_token("up, grade", "upgrade"));
	assert_false(header_has_token("", "upgrade"));
	assert_false(header_has_token(NULL, "upgrade"));
}

TEST(hops)
{
	static const char *const hop[] = { "connection", "keep-alive",          "te",
					   "upgrade",    "transfer-encoding",   "trailer",
					   "x-named",    "proxy-authorization", "proxy-x" };
	static const char *const passed[] = { "host", "content-length", "x-other",
					      "authorization" };

	for (size_t i = 0; i < ARRAY_SIZE(hop); i++)
		assert_true(header_is_hop(hop[i], "close, X-Named"));
	/* A client must not take away the headers that frame and address its request. */
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		assert_false(header_is_hop(passed[i], "host, content-length, x-named"));
	assert_false(header_is_hop("x-named", NULL));
}

TEST(upgrades)
{
	struct http_header headers[] = { { "connection", "Upgrade", 7 },
					 { "upgrade", "websocket", 9 },
					 { "content-length", "0", 1 } };
	struct http_request q = { .method = "GET", .headers = headers, .n_headers = 3 };

	assert_true(header_switches(&q));
	headers[2] = (struct http_header){ "transfer-encoding", "chunked", 7 };
	assert_false(header_switches(&q));
	q.n_headers = 2;
	q.http10 = true;
	assert_false(header_switches(&q));
	q.http10 = false;
	headers[1].value = "";
	assert_false(header_switches(&q));
}

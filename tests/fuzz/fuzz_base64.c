/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_base64.c - Base64 from strangers: accepted text is written again as the same characters, so
 * that bytes have one form; and any bytes, written and read, are the same.
 */
#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "fuzz.h"

static void encode(const void *data, size_t len, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_base64(&j, data, len);
	require(json_finish(&j) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf plain = BUF_INIT(size), again = BUF_INIT(2 * size + 16);
	_buf_ struct buf coded = BUF_INIT(2 * size + 16), back = BUF_INIT(size);

	if (base64_decode((const char *)data, size, &plain)) {
		encode(buf_str(&plain), plain.len, &again);
		require(again.len == size + 2);
		require(memcmp(buf_str(&again) + 1, data, size) == 0);
	}
	encode(data, size, &coded);
	require(base64_decode(buf_str(&coded) + 1, coded.len - 2, &back));
	require(back.len == size && memcmp(buf_str(&back), data, size) == 0);
	return 0;
}

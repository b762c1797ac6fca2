/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mcp_header.c - Header values of strangers: text that has no NUL and, when it was coded, is
 * UTF-8. */
#include "base/buf.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "mcp/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf value = BUF_INIT(size + 1), out = BUF_INIT(size + 1);

	(void)buf_append(&value, data, strnlen((const char *)data, size));
	if (mcp_header_decode(buf_str(&value), &out) == 0) {
		require(!memchr(buf_str(&out), '\0', out.len) && out.len <= value.len);
		require(strcmp(buf_str(&out), buf_str(&value)) == 0 ||
			utf8_valid(buf_str(&out), out.len));
	}
	return 0;
}

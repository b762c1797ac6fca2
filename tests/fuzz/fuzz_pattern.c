/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pattern.c - Any bytes as rules and as a path: a path that a deny pattern matches is never
 * visible. */
#include "base/err.h"
#include "fuzz.h"
#include "workspace_store/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pattern_rules r;
	const uint8_t *end = memchr(data, '\0', size);
	size_t n = end ? (size_t)(end - data) : size;
	char path[512] = "";
	struct err e = { 0 };

	if (end && size - n - 1 < sizeof(path))
		memcpy(path, end + 1, size - n - 1);
	path[sizeof(path) - 1] = '\0';
	if (pattern_parse((const char *)data, n, &r, &e) < 0) {
		require(e.msg[0]);
		return 0;
	}
	bool seen = pattern_visible(&r, path);

	for (size_t i = 0; i < r.n; i++)
		require(r.rule[i].allow || !pattern_match(r.rule[i].text, path) || !seen);
	return 0;
}

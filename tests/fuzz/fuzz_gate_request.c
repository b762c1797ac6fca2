/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gate_request.c - Values of headers in which placeholders are swapped, and requests that rules judge.
 *
 * The input is a header's value; a method, a path and a pattern follow, each after a newline. Swapping back what
 * was swapped gives what there was; a path that a rule lets through has no segment that leads elsewhere.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "gate/http_rule.h"
#include "gate/swap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_swap(const char *value)
{
	static const struct swap there = { "caisson-secret-x", "\x01value\x01" };
	static const struct swap back = { "\x01value\x01", "caisson-secret-x" };
	_buf_ struct buf once = BUF_INIT(1u << 20), twice = BUF_INIT(1u << 20);

	if (strchr(value, '\x01') || strncasecmp(value, "basic", 5) == 0) {
		(void)swap_header(value, &there, 1, NULL, &once);
		return;
	}
	int n = swap_header(value, &there, 1, NULL, &once);

	require(n >= 0 && !strstr(buf_str(&once), there.from));
	require(swap_header(buf_str(&once), &back, 1, NULL, &twice) == n);
	require(strcmp(buf_str(&twice), value) == 0);
}

static void check_rule(const char *method, const char *path, const char *pattern)
{
	struct gate_rule r = { .host = "a.test", .port = 443 };
	_buf_ struct buf why = BUF_INIT(1u << 20);

	if (strlen(pattern) >= sizeof(r.path))
		return;
	memcpy(r.path, pattern, strlen(pattern) + 1);
	if (!http_rule_good(&r))
		return;
	if (http_judge(&r, 1, "a.test", 443, method, path, &why) == 0 && r.path[0])
		require(path[0] == '/' && !strstr(path, "/../") && !strstr(path, "//") &&
			!strcasestr(path, "%2f"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size < 65536 ? calloc(1, size + 1) : NULL;
	char *parts[4] = { NULL };
	char *rest = text;

	if (!text)
		return 0;
	memcpy(text, data, size);
	for (size_t i = 0; i < 4; i++)
		parts[i] = rest ? strsep(&rest, "\n") : NULL;
	check_swap(parts[0]);
	if (parts[3])
		check_rule(parts[1], parts[2], parts[3]);
	free(text);
	return 0;
}

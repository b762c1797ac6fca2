/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_receipt.c - Any bytes as evidence, for a cell with any layers given up.
 *
 * Checked: damage is refused before a receipt is written; otherwise the receipt is one JSON value
 * in UTF-8, and it has "enforced" exactly when the result is success. An enforced one has at least
 * the frames that prove it.
 */
#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "cell/spec.h"
#include "client/receipt.h"
#include "fuzz.h"
#include "wire/evidence.h"

#define ENFORCED "{\"enforced\":true,\"missing\":[],"
#define NOT_ENFORCED "{\"enforced\":false,\"missing\":[\""

/* Brackets match outside strings, strings end, and nothing follows: enough, as the writer's own
 * fuzz target checks the rest. */
static void check_json(const char *s, size_t len)
{
	char open[64];
	size_t depth = 0;
	bool in_string = false;

	require(utf8_valid(s, len));
	for (size_t i = 0; i < len; i++) {
		require((unsigned char)s[i] >= 0x20);
		if (in_string) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == '"')
				in_string = false;
			continue;
		}
		require(depth > 0 || i == 0);
		if (s[i] == '"') {
			in_string = true;
		} else if (s[i] == '{' || s[i] == '[') {
			require(depth < sizeof(open));
			open[depth++] = s[i];
		} else if (s[i] == '}' || s[i] == ']') {
			require(depth > 0 && open[--depth] == (s[i] == '}' ? '{' : '['));
		}
	}
	require(depth == 0 && !in_string);
}

/* Frames of one kind, counted without the code under test. */
static unsigned int frames(const uint8_t *data, size_t size, uint32_t kind, bool of_init)
{
	unsigned int n = 0;

	while (size >= sizeof(struct evidence_item)) {
		struct evidence_item item;

		memcpy(&item, data, sizeof(item));
		size_t step = sizeof(item) + ((size_t)item.len + 7) / 8 * 8;

		n += item.kind == kind && (item.is_init != 0) == of_init;
		require(step <= size);
		data += step;
		size -= step;
	}
	return n;
}

static void check_enforced(const uint8_t *data, size_t size, uint32_t without)
{
	require(frames(data, size, EVIDENCE_HOST_NS, false) +
		frames(data, size, EVIDENCE_HOST_NS, true));
	require(frames(data, size, EVIDENCE_NS, true) && frames(data, size, EVIDENCE_STATUS, true));
	if (!(without & CELL_WITHOUT_CGROUP))
		require(frames(data, size, EVIDENCE_CGROUP, false) +
			frames(data, size, EVIDENCE_CGROUP, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cell_spec spec;
	struct err e = { 0 };

	/* Two bytes choose the cell, the rest is the evidence. */
	if (size < 2)
		return 0;
	spec_default(&spec);
	spec.without = data[0] & CELL_WITHOUT_ALL_;
	struct init_ready ready = {
		.landlock_abi = data[1] & 7,
		.landlock_on = data[1] >> 3 & 1,
		.seccomp_on = data[1] >> 4 & 1,
		.nested_userns_max = data[1] >> 5,
	};
	/* Small enough that some receipts do not fit. */
	_buf_ struct buf out = BUF_INIT(data[0] & 0x80 ? 2000 : 16u << 20);
	int r = receipt_from(data + 2, size - 2, &spec, &ready, !(data[0] & 0x40), &out, &e);

	require(e.code == r && (e.msg[0] != '\0') == (r < 0));
	if (r == -EBADMSG) {
		require(out.len == 0);
		return 0;
	}
	if (r == -EMSGSIZE) {
		require(out.err == -EMSGSIZE && out.max == 2000);
		return 0;
	}
	require(r == 0 || r == -EPERM);
	check_json(buf_str(&out), out.len);
	const char *start = r == 0 ? ENFORCED : NOT_ENFORCED;

	require(strncmp(buf_str(&out), start, strlen(start)) == 0);
	if (r == 0)
		check_enforced(data + 2, size - 2, spec.without);
	return 0;
}

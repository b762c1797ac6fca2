/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_keep.c - A slot of the keeper's table, written by a front that may have been taken over:
 * slots that keep_check() accepts are within the bounds that their users rely on.
 *
 * The input is laid over a valid slot, from an offset in its first two bytes, so that one field can
 * be wrong at a time.
 */
#include "front/cell/keep.h"
#include "front/cell/language.h"
#include "fuzz.h"

static void check_kernels(const struct keeper_slot *s)
{
	for (size_t i = 0; i < KEEPER_KERNELS; i++) {
		const struct keeper_kernel *c = &s->kernels[i];

		if (c->state == KEPT_EMPTY)
			continue;
		require(c->state < KEPT_STATE_MAX_ && i < LANG_MAX_ && s->cell);
		require(c->pid == 0 || (c->pid > 1 && c->pid <= 1 << 22)); /* kill(-pid) */
		require(c->command <= s->names);
		require(c->command || i == LANG_PYTHON);
		for (size_t j = 0; j < i; j++)
			require(!c->command || !s->kernels[j].state ||
				s->kernels[j].command != c->command);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct keeper_slot s = { .used = 1, .cell = 4097, .names = 9 };
	size_t off = size >= 2 ? (size_t)(data[0] | data[1] << 8) % sizeof(s) : 0;
	size_t n = size >= 2 ? size - 2 : 0;

	memcpy(s.id, "0123456789abcdef0123456789abcdef", 33);
	s.kernels[LANG_PYTHON].state = KEPT_IDLE;
	s.kernels[LANG_BASH] = (struct keeper_kernel){ .state = KEPT_BUSY, .command = 3, .pid = 7 };
	require(keep_check(&s) == NULL);
	if (n > 0)
		memcpy((char *)&s + off, data + 2, n < sizeof(s) - off ? n : sizeof(s) - off);
	if (keep_check(&s))
		return 0;
	require(s.used == 1 && strnlen(s.id, sizeof(s.id)) == 32);
	require(strspn(s.id, "0123456789abcdef") == 32);
	require(s.gauges < 1u << GAUGE_MAX_ && s.executions <= INT64_MAX);
	check_kernels(&s);
	return 0;
}

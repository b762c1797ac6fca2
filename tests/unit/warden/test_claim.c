/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_claim.c - A second client on the same socket: cells that it claims live, the others end, and
 * only the journal records that end.
 */
#include "warden_kit.h"

#include "../unit.h"

static bool all_quiet(void)
{
	for (size_t i = 0; i < WARDEN_CELLS_MAX; i++)
		if (w.cells[i] && !w.cells[i]->handle)
			return false;
	return true;
}

static void wait_quiet(void)
{
	uint64_t until = clock_now_ns() + KIT_WAIT_MS * CLOCK_NS_PER_MS;

	while (!all_quiet() && clock_now_ns() < until)
		(void)kit_turn(20);
	CHILD_CHECK(all_quiet());
}

CHILD_TEST(claimed_lives)
{
	int peer;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *mine = kit_cell(1, z), *other = kit_cell(2, z), *plain = kit_cell(3, NULL);
	uint32_t keep = mine->handle, gone = other->handle, also = plain->handle;
	uint64_t kernel = ask(WARDEN_KERNEL, gone, z->handle);

	CHILD_CHECK(code_of(ask(WARDEN_CLAIM, keep, 0)) == 0);
	CHILD_CHECK(code_of(ask(WARDEN_REST, 0, 0)) == 0);
	/* The client that waits for a kernel gets an answer. */
	CHILD_CHECK(code_of(kernel) < 0);
	wait_quiet();
	CHILD_CHECK(cell_of(&w, keep) == mine && kit_alive(mine->l.pid));
	CHILD_CHECK(!cell_of(&w, gone) && !cell_of(&w, also) && !w.zygotes[0]);
	CHILD_CHECK(kit_records() == 1);
	CHILD_CHECK(code_of(ask(WARDEN_USAGE, keep, 0)) == 0);
	CHILD_CHECK(code_of(ask(WARDEN_CLAIM, gone, 0)) == -ENOENT);
	/* A claim is for one round: the next client has to ask again. */
	CHILD_CHECK(code_of(ask(WARDEN_REST, 0, 0)) == 0);
	wait_quiet();
	CHILD_CHECK(!cell_of(&w, keep) && kit_records() == 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_keep.c - Stores the descriptors and numbers of the cell of a named sandbox with the keeper.
 *
 * Descriptors are sent to the keeper when the cell gets them, and dropped there when they are
 * closed; numbers are stored in the keeper's table whenever they change. A kernel that has ended is
 * marked as ending until its sandbox has counted that (sandbox_note()): if the front is killed in
 * between, the next front counts it.
 */
#include "front/cell/cell.h"
#include "front/cell/cells.h"
#include "front/cell/keep.h"
#include "front/cell/kernel.h"

static struct keeper_slot *slot_of(const struct cell *r)
{
	return keep_slot(r->cells->keep, r->slot);
}

static struct keeper_kernel *kept(const struct kernel *s)
{
	struct keeper_slot *slot = slot_of(s->cell);

	return slot ? &slot->kernels[s->language->id] : NULL;
}

uint32_t cell_name(struct cell *r)
{
	struct keeper_slot *slot = slot_of(r);

	r->names++;
	if (slot)
		__atomic_store_n(&slot->names, r->names, __ATOMIC_RELEASE);
	return r->names;
}

/* ---- kernels ------------------------------------------------------------------------------- */

void kernel_keep(struct kernel *s)
{
	const struct kernel_pipes *k = &s->pipes;
	const int fds[] = { k->in.fd, k->out.fd, k->streams[0].fd, k->streams[1].fd, s->pidfd.fd };
	size_t n = s->pidfd.fd >= 0 ? 5 : 4;
	struct keeper_kernel *to = kept(s);

	if (!to || s->kept || !s->attached)
		return;
	for (size_t i = 0; i < n; i++)
		if (fds[i] < 0)
			return;
	keep_put(s->cell->cells->keep, keep_key(s->cell->slot, KEEPER_KERNEL + s->language->id),
		 fds, n);
	s->kept = true;
	kernel_pipes_tell(&s->pipes, &to->writing);
}

void kernel_unkeep(struct kernel *s)
{
	struct keeper_kernel *to = kept(s);

	if (!to || !s->kept)
		return;
	__atomic_store_n(&to->state, KEPT_ENDING, __ATOMIC_RELEASE);
	keep_drop(s->cell->cells->keep, keep_key(s->cell->slot, KEEPER_KERNEL + s->language->id));
	s->kept = false;
}

static void note_kernel(const struct kernel *s)
{
	static const uint32_t states[] = {
		[KERNEL_EMPTY] = KEPT_EMPTY,   [KERNEL_STARTING] = KEPT_EMPTY,
		[KERNEL_IDLE] = KEPT_IDLE,     [KERNEL_BUSY] = KEPT_BUSY,
		[KERNEL_ENDING] = KEPT_ENDING,
	};
	struct keeper_kernel *to = kept(s);

	to->command = s->command;
	to->pid = s->pid;
	to->env_sent = s->env_sent;
	__atomic_store_n(&to->state, s->kept ? states[s->state] : KEPT_EMPTY, __ATOMIC_RELEASE);
}

/* ---- cells --------------------------------------------------------------------------------- */

void cell_note(struct cell *r)
{
	if (!slot_of(r))
		return;
	for (size_t i = 0; i < LANG_MAX_; i++)
		note_kernel(&r->kernels[i]);
}

void cell_keep(struct cell *r, int slot)
{
	int fds[1 + GAUGE_MAX_] = { r->channel.fd };
	struct keeper_slot *to = keep_slot(r->cells->keep, slot);
	uint32_t gauges = 0;
	size_t n = 1;

	if (!to || r->slot >= 0 || !r->sealed || r->channel.fd < 0)
		return;
	r->slot = slot;
	for (size_t i = 0; i < GAUGE_MAX_; i++)
		if (r->gauges.fd[i] >= 0) {
			gauges |= 1u << i;
			fds[n++] = r->gauges.fd[i];
		}
	keep_put(r->cells->keep, keep_key(slot, KEEPER_CELL), fds, n);
	to->gauges = gauges;
	to->names = r->names;
	to->layers = r->layers;
	__atomic_store_n(&to->cell, r->handle, __ATOMIC_RELEASE);
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].state == KERNEL_IDLE)
			kernel_keep(&r->kernels[i]);
	cell_note(r);
}

/* The numbers in the slot stay: they may be those of the next cell of the sandbox. */
void cell_unkeep(struct cell *r)
{
	if (r->slot < 0)
		return;
	for (size_t i = 0; i < LANG_MAX_; i++) {
		struct kernel *s = &r->kernels[i];

		if (!s->kept)
			continue;
		kernel_pipes_tell(&s->pipes, NULL);
		keep_drop(r->cells->keep, keep_key(r->slot, KEEPER_KERNEL + s->language->id));
		s->kept = false;
	}
	keep_drop(r->cells->keep, keep_key(r->slot, KEEPER_CELL));
	r->slot = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room_keep.c - What is left with the keeper of a room that belongs to a named sandbox.
 *
 * Descriptors when they come and go; numbers by plain stores, whenever they change. A kernel that is
 * over stands as ending until its sandbox has counted that (sandbox_note()): killed in between, the
 * next front counts it.
 */
#include "front/front.h"
#include "front/room/room.h"
#include "front/room/seat.h"
#include "front/sandbox/keep.h"

static struct keeper_slot *slot_of(const struct room *r)
{
	return keep_slot(&r->f->keep, r->slot);
}

static struct keeper_seat *kept(const struct seat *s)
{
	struct keeper_slot *slot = slot_of(s->room);

	return slot ? &slot->seats[s->language->id] : NULL;
}

uint32_t room_name(struct room *r)
{
	struct keeper_slot *slot = slot_of(r);

	r->names++;
	if (slot)
		__atomic_store_n(&slot->names, r->names, __ATOMIC_RELEASE);
	return r->names;
}

/* ---- kernels --------------------------------------------------------------------------------------- */

void seat_keep(struct seat *s)
{
	const struct kernel *k = &s->kernel;
	const int fds[] = { k->in.fd, k->out.fd, k->streams[0].fd, k->streams[1].fd, s->pidfd.fd };
	size_t n = s->pidfd.fd >= 0 ? 5 : 4;
	struct keeper_seat *to = kept(s);

	if (!to || s->kept || !s->attached)
		return;
	for (size_t i = 0; i < n; i++)
		if (fds[i] < 0)
			return;
	keep_put(&s->room->f->keep, keep_key(s->room->slot, KEEPER_SEAT + s->language->id), fds, n);
	s->kept = true;
	kernel_tell(&s->kernel, &to->writing);
}

void seat_unkeep(struct seat *s)
{
	struct keeper_seat *to = kept(s);

	if (!to || !s->kept)
		return;
	__atomic_store_n(&to->state, KEPT_ENDING, __ATOMIC_RELEASE);
	keep_drop(&s->room->f->keep, keep_key(s->room->slot, KEEPER_SEAT + s->language->id));
	s->kept = false;
}

static void note_seat(const struct seat *s)
{
	static const uint32_t states[] = {
		[SEAT_EMPTY] = KEPT_EMPTY, [SEAT_STARTING] = KEPT_EMPTY, [SEAT_IDLE] = KEPT_IDLE,
		[SEAT_BUSY] = KEPT_BUSY,   [SEAT_ENDING] = KEPT_ENDING,
	};
	struct keeper_seat *to = kept(s);

	to->command = s->command;
	to->pid = s->pid;
	to->env_sent = s->env_sent;
	__atomic_store_n(&to->state, s->kept ? states[s->state] : KEPT_EMPTY, __ATOMIC_RELEASE);
}

/* ---- rooms ------------------------------------------------------------------------------------------ */

void room_note(struct room *r)
{
	if (!slot_of(r))
		return;
	for (size_t i = 0; i < LANG_MAX_; i++)
		note_seat(&r->seats[i]);
}

void room_keep(struct room *r, int slot)
{
	int fds[1 + GAUGE_MAX_] = { r->channel.fd };
	struct keeper_slot *to = keep_slot(&r->f->keep, slot);
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
	keep_put(&r->f->keep, keep_key(slot, KEEPER_ROOM), fds, n);
	to->gauges = gauges;
	to->names = r->names;
	to->layers = r->layers;
	__atomic_store_n(&to->cell, r->cell, __ATOMIC_RELEASE);
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->seats[i].state == SEAT_IDLE)
			seat_keep(&r->seats[i]);
	room_note(r);
}

/* The numbers are left alone: they may say what the sandbox has next. */
void room_unkeep(struct room *r)
{
	if (r->slot < 0)
		return;
	for (size_t i = 0; i < LANG_MAX_; i++) {
		struct seat *s = &r->seats[i];

		if (!s->kept)
			continue;
		kernel_tell(&s->kernel, NULL);
		keep_drop(&r->f->keep, keep_key(r->slot, KEEPER_SEAT + s->language->id));
		s->kept = false;
	}
	keep_drop(&r->f->keep, keep_key(r->slot, KEEPER_ROOM));
	r->slot = -1;
}

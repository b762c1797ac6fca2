/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt.h - Goes on with the sandboxes of a front that was killed.
 *
 * The calls: adopt_open() before the store is read, adopt_sandbox() for each sandbox that
 * sandbox_restore() made of a record, adopt_close() after the last record. All of it happens in the
 * jail: an attacker may have taken over the process that wrote the data.
 */
#ifndef CAISSON_FRONT_ADOPT_H
#define CAISSON_FRONT_ADOPT_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"
#include "wire/keeper.h"

struct sandbox;
struct sandboxes;

/* A slot that passed the checks. */
struct adoptee {
	int slot;
	bool taken;
	struct keeper_slot was; /* a copy, which no other process can change */
};

struct adopt {
	struct adoptee *found;
	const char **ids; /* of found */
	size_t n;
	size_t adopted, kernels;
	struct timer settled;
};

/*
 * adopt_open() - Copy and check the slots. @warden: whether this front has the warden of the former
 * one; otherwise nothing can be adopted.
 */
void adopt_open(struct sandboxes *sandboxes, bool warden);

/*
 * adopt_sandbox() - Take over @s, which runs according to its record. False: it does not run any
 * more; if it had a slot, s->reason has the cause.
 */
bool adopt_sandbox(struct sandboxes *sandboxes, struct sandbox *s);

/* adopt_close() - End everything that was not adopted, here, at the keeper and at the warden. */
void adopt_close(struct sandboxes *sandboxes);

#endif

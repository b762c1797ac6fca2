/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt.h - A front that was killed is followed by one that goes on with its sandboxes.
 *
 * adopt_open() before the store is read, sandbox_restore() with what it found, adopt_close() when
 * all records have been looked at. All of it in the jail: what is looked at was written by a
 * process that may have been taken over.
 */
#ifndef CAISSON_FRONT_ADOPT_H
#define CAISSON_FRONT_ADOPT_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"
#include "wire/keeper.h"

struct sandbox;
struct sandboxes;

/* A slot that makes sense. */
struct adoptee {
	int slot;
	bool taken;
	struct keeper_slot was; /* a copy: nobody else can change it */
};

struct adopt {
	struct adoptee *found;
	const char **ids; /* of found */
	size_t n;
	size_t adopted, kernels;
	struct timer settled;
};

/* adopt_open() - @warden: whether it is the former front's warden that we have: otherwise nothing
 * can be adopted. */
void adopt_open(struct sandboxes *sandboxes, bool warden);

/* adopt_sandbox() - @s is of a record that says running. True: it does. Otherwise s->reason says
 * why not. */
bool adopt_sandbox(struct sandboxes *sandboxes, struct sandbox *s);

/* adopt_close() - Whatever was not adopted is ended, here, at the keeper and at the warden. */
void adopt_close(struct sandboxes *sandboxes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.h - The front's socket to its keeper: what the next front needs if this one is killed.
 *
 * Descriptors go to the keeper (src/keeper), numbers into a table that both fronts map
 * (wire/keeper.h). Without a keeper nothing is kept and every function does nothing.
 *
 * Data of a former front is not trusted: keep_check() checks whether an honest front can have
 * written a slot. Users take a copy of a slot first, because an attacker who took the former front
 * over may still have the memory mapped.
 */
#ifndef CAISSON_FRONT_KEEP_H
#define CAISSON_FRONT_KEEP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/loop.h"
#include "wire/keeper.h"

struct err;

/* Descriptors under one key. */
struct keep_box {
	unsigned int n;
	int fds[KEEPER_FDS_MAX];
};

struct keep {
	struct watch watch; /* the keeper's socket; fd -1: none */
	struct keeper_table *table;
	struct keep_box *boxes; /* KEEPER_KEYS of them, until keep_done(); NULL: none */
	uint32_t life;          /* 1: there was no former front */
	int signo;              /* the signal that ended the former front */
	uint32_t next;          /* where to look for a free slot */
	pid_t pid;              /* the keeper's; 0: none */
};

/* keep_open() - At the very start: find the keeper and take what it hands over. 0, also without a
 * keeper. */
int keep_open(struct keep *k, struct err *e);

/* keep_take() - Take the descriptors of the former front under @key, at most @max. Return: their
 * number. */
size_t keep_take(struct keep *k, uint32_t key, int *fds, size_t max);
int keep_take_one(struct keep *k, uint32_t key); /* -1: nothing */
/* keep_done() - Nothing more will be taken: close the rest, here and in the keeper. */
void keep_done(struct keep *k);

void keep_put(struct keep *k, uint32_t key, const int *fds, size_t n);
void keep_drop(struct keep *k, uint32_t key);
void keep_settled(struct keep *k);
void keep_say(struct keep *k, enum keeper_word word); /* to the service manager */
/*
 * keep_hear() - When its socket is readable: which file to read again (enum keeper_file). *ret_fd,
 * the caller's, is that file, or -1 with *ret_errno. -EPIPE: the keeper is gone, or its message is
 * invalid.
 */
int keep_hear(struct keep *k, int *ret_fd, int *ret_errno);

/* ---- slots --------------------------------------------------------------------------------- */

/* keep_key() - Of a part of slot @i. */
uint32_t keep_key(int i, unsigned int part);
/* keep_slot_new() - An empty one for the sandbox @id; -1: none is left, or there is no keeper. */
int keep_slot_new(struct keep *k, const char *id);
void keep_slot_free(struct keep *k, int i);           /* idempotent with -1 */
struct keeper_slot *keep_slot(struct keep *k, int i); /* NULL for -1 */

/* keep_check() - Check a copy of a slot. Pure. NULL, or the part that is wrong. */
const char *keep_check(const struct keeper_slot *s);

#endif

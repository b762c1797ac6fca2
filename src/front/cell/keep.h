/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.h - The front's socket to its keeper, which stores what the next front needs if this one is
 * killed.
 *
 * Descriptors go to the keeper (src/keeper), numbers into a table that both fronts map
 * (wire/keeper.h). Without a keeper nothing is stored, and every function does nothing.
 *
 * Data of a former front is not trusted: keep_check() checks whether an honest front can have
 * written a slot. Callers copy a slot first, because an attacker who took over the former front may
 * still have the memory mapped.
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
	struct watch watch; /* the keeper's socket; fd -1: there is no keeper */
	struct keeper_table *table;
	/* KEEPER_KEYS of them, until keep_done(); NULL: the keeper handed over nothing */
	struct keep_box *boxes;
	uint32_t life; /* number of this front; 1: there was no former front */
	int signo;     /* the signal that ended the former front */
	uint32_t next; /* where to look for a free slot */
	pid_t pid;     /* of the keeper; 0: there is no keeper */
};

/*
 * keep_open() - Find the keeper, and receive the table and the descriptors of the former front.
 * Called first of all. Return: 0, also without a keeper, or -errno with @e. Exits if the keeper was
 * killed.
 */
int keep_open(struct keep *k, struct err *e);

/* keep_take() - Take the descriptors of the former front under @key, at most @max. Return: their
 * number. */
size_t keep_take(struct keep *k, uint32_t key, int *fds, size_t max);
int keep_take_one(struct keep *k, uint32_t key); /* -1: nothing */
/* keep_done() - Nothing more will be taken: close the other descriptors, here and in the keeper. */
void keep_done(struct keep *k);

/*
 * keep_put(), keep_drop() - Store descriptors, borrowed, under @key, or remove those under @key.
 * These and the next three functions end the process if messages to a living keeper fail (keep.c).
 */
void keep_put(struct keep *k, uint32_t key, const int *fds, size_t n);
void keep_drop(struct keep *k, uint32_t key);
/* keep_settled() - Report that this front runs well with what it took over. */
void keep_settled(struct keep *k);
void keep_say(struct keep *k, enum keeper_word word); /* send it to the service manager */
/*
 * keep_hear() - Receive a message, when the socket is readable. Return: the file to read again
 * (enum keeper_file), with *@ret_fd, which is the caller's, or -1 and *@ret_errno; -EPIPE if the
 * keeper is gone, or its message is invalid.
 */
int keep_hear(struct keep *k, int *ret_fd, int *ret_errno);

/* ---- slots --------------------------------------------------------------------------------- */

/* keep_key() - The key of @part of slot @i. */
uint32_t keep_key(int i, unsigned int part);
/*
 * keep_slot_new() - Take an empty slot for the sandbox @id. Return: its number; -1 if all slots are
 * in use, or there is no keeper.
 */
int keep_slot_new(struct keep *k, const char *id);
void keep_slot_free(struct keep *k, int i);           /* does nothing for -1 */
struct keeper_slot *keep_slot(struct keep *k, int i); /* NULL for -1 */

/* keep_check() - Check a copy of a slot. Pure. Return: NULL, or the part that is wrong. */
const char *keep_check(const struct keeper_slot *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - Notes and functions that code keeps on the host: memory.* and tool.* of the kernel
 * protocol.
 *
 * The caller gives owner and project of a note, which it knows from the descriptor that the request
 * came over; a request cannot choose them.
 */
#ifndef CAISSON_FRONT_CODE_MEMORY_H
#define CAISSON_FRONT_CODE_MEMORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct store;

#define MEMORY_PROJECT "default"      /* of a sandbox that names none */
#define MEMORY_ANSWER_MAX (16u << 20) /* what the largest list may come to */

struct memory_place {
	struct store *store; /* NULL: nothing is kept here, and every request is refused */
	const char *owner, *project;
};

/* Why not, in the words of the protocol. */
struct memory_refusal {
	const char *code; /* static */
	char message[300];
};

/* memory_knows() - Whether an operation is one of these. */
bool memory_knows(const char *op);

/*
 * memory_run() - Do what the request @m asks for. Synchronous: a transaction or a read of the
 * store.
 * @ret: empty; its maximum should be MEMORY_ANSWER_MAX. Gets the result, JSON on one line.
 *
 * Return: 0, or -1 with @why. A refused request has changed nothing.
 */
int memory_run(const struct memory_place *p, const char *op, const json_t *m, int64_t now_ms,
	       struct buf *ret, struct memory_refusal *why);

/* memory_tools() - How many functions are saved there; 0 when that cannot be known. */
uint32_t memory_tools(const struct memory_place *p);

/* memory_key() - The form in which a key is kept: letters, digits, _ and -, everything else becomes
 * _. Empty: it is no key. Pure. */
void memory_key(const char *text, char *ret, size_t size);

#endif

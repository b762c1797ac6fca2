/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_note.h - The lines of a file call in the ledger: owner, file, outcome, number of bytes.
 *
 * Calls that change something in a sandbox, and calls that carry content out of it, are recorded:
 * `file.begin` before anything happens, `file.end` after. Calls that only ask about names (stat,
 * list, watch) are not. Content that comes in is hashed on its way, because code can come into a
 * sandbox as a file.
 */
#ifndef CAISSON_FRONT_FILE_NOTE_H
#define CAISSON_FRONT_FILE_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/support/name.h"
#include "hash/hash.h"

struct file_call;
struct ledger;
struct refusal;

struct file_note {
	struct ledger *ledger; /* NULL: the call is not recorded, or its end is */
	const char *op;        /* static */
	char owner[OWNER_MAX], sandbox[SANDBOX_NAME_MAX + 1], id[RECORD_ID_MAX];
	uint64_t bytes;
	bool hashed; /* content comes in */
	struct hash hash;
};

/* file_note_begin() - @c has its operation and paths. 0, or -1 with @ret: then @c must not run. */
int file_note_begin(struct file_note *n, const struct sandbox *s, const struct file_call *c,
		    struct refusal *ret);

/* file_note_data() - Content of the call, in the one direction that it has. */
void file_note_data(struct file_note *n, const void *data, size_t len);

/* file_note_end() - @error: a code, or NULL for success. Idempotent. */
void file_note_end(struct file_note *n, const char *error);

#endif

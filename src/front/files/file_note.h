/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_note.h - What the ledger keeps of a file call: who, which file, how it ended, how much went
 * by.
 *
 * Calls that change something in a sandbox, and those that carry content out of it: `file.begin`
 * before anything happens, `file.end` after. What is only asked about names (stat, list, watch) is
 * not recorded. Content that comes in is hashed on its way: a file is how code gets into a sandbox.
 */
#ifndef CAISSON_FRONT_FILE_NOTE_H
#define CAISSON_FRONT_FILE_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/support/owner.h"
#include "hash/hash.h"

struct file_call;
struct refusal;

struct file_note {
	struct front *f; /* NULL: nothing was recorded, and nothing is to be */
	const char *op;  /* static */
	char owner[OWNER_MAX], sandbox[SANDBOX_NAME_MAX + 1], id[RECORD_ID_MAX];
	uint64_t bytes;
	bool hashed; /* content comes in */
	struct hash hash;
};

/* file_note_begin() - @c has its operation and paths. 0, or -1 with @ret: then it is not to be run.
 */
int file_note_begin(struct file_note *n, const struct sandbox *s, const struct file_call *c,
		    struct refusal *ret);

/* file_note_data() - Content that went by, in the one direction that the call has. */
void file_note_data(struct file_note *n, const void *data, size_t len);

/* file_note_end() - @error: a code, or NULL: it was done. Idempotent. */
void file_note_end(struct file_note *n, const char *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refs.h - Which reference names which manifest: the file "refs" of a store, as a whole.
 *
 * An invalid line is an error and is not skipped: images must not be removed because a line was not
 * understood.
 */
#ifndef CAISSON_IMAGE_REFS_H
#define CAISSON_IMAGE_REFS_H

#include <stddef.h>
#include <stdint.h>

#include "image/ref.h"

struct err;
struct store;

#define REFS_MAX 4096

struct refs_row {
	char ref[IMAGE_REF_MAX]; /* canonical */
	char digest[IMAGE_DIGEST_MAX];
	uint64_t time_s; /* when it was pulled or imported */
};

struct refs {
	struct refs_row *rows;
	size_t n;
};

void refs_free(struct refs *r);
#define _refs_ __attribute__((cleanup(refs_free)))

/* refs_parse() - 0 or -EBADMSG, -E2BIG. Pure. */
int refs_parse(const char *text, size_t len, struct refs *ret, struct err *e);

int refs_load(const struct store *s, struct refs *ret, struct err *e);
int refs_save(const struct store *s, const struct refs *r, struct err *e);

/*
 * refs_find() - The image of this reference. With a digest: of any row with that digest and name (a
 * pull by tag can be opened by digest), or whose index had it. NULL: none.
 */
const struct refs_row *refs_find(const struct refs *r, const struct ref *want);

/* refs_set() - Add a reference, or change the manifest that it names. 0, -ENOMEM, -E2BIG. */
int refs_set(struct refs *r, const char *ref, const char *digest, uint64_t time_s, struct err *e);
void refs_drop(struct refs *r, const struct refs_row *row);

#endif

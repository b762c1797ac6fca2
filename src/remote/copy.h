/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - Copies between this machine and a sandbox. */
#ifndef CAISSON_REMOTE_COPY_H
#define CAISSON_REMOTE_COPY_H

#include <stdint.h>

struct sandbox_path;
struct session;

/* The outcome of a copy, for --json. */
struct copied {
	uint64_t bytes;   /* of a file, or of the archive of a directory */
	uint64_t skipped; /* entries that are neither file, directory nor harmless link */
};

/* cp_put(), cp_get() - Copy into or out of a sandbox. 0, or -1 with s->problem. */
int cp_put(struct session *s, const char *from, const struct sandbox_path *to, struct copied *ret);
int cp_get(struct session *s, const struct sandbox_path *from, const char *to, struct copied *ret);

/*
 * copy_sides() - Parse both arguments, of which one has to be NAME:PATH.
 * @both, @neither: the problem where both are, or neither is. 0, or -1 with s->problem.
 */
int copy_sides(struct session *s, struct sandbox_path *from, struct sandbox_path *to,
	       const char *both, const char *neither);
/* copy_json() - The outcome on standard output. */
void copy_json(const struct copied *done);

#endif

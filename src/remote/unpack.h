/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - A tar archive from a sandbox, into a directory of ours.
 *
 * What is in it was made by code that nobody has read. Nothing is written outside the directory:
 * each name is opened below it without following any link. Links that lead out of it, hard links
 * and everything that is neither file, directory nor link are left out and counted; so are the bits
 * that give others' rights.
 */
#ifndef CAISSON_REMOTE_UNPACK_H
#define CAISSON_REMOTE_UNPACK_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct unpack;

/* unpack_open() - @dirfd is borrowed. */
struct unpack *unpack_open(int dirfd, struct err *e);
void unpack_close(struct unpack *u); /* NULL is fine */

/* unpack_feed() - More of the archive. 0, or -errno: what was written so far stays. */
int unpack_feed(struct unpack *u, const char *data, size_t len, struct err *e);

/* unpack_end() - Nothing follows. -EBADMSG when something should. */
int unpack_end(struct unpack *u, struct err *e);

uint64_t unpack_skipped(const struct unpack *u);

#endif

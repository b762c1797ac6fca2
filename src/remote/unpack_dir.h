/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_dir.h - A tar archive from a sandbox, into a directory of this machine.
 *
 * Code that nobody has read made the archive. Nothing is written outside the directory: each name
 * is opened below it without following any link. Links that lead out of it, hard links and
 * everything that is neither file, directory nor link are left out and counted. Setuid, setgid and
 * sticky bits are left out.
 */
#ifndef CAISSON_REMOTE_UNPACK_DIR_H
#define CAISSON_REMOTE_UNPACK_DIR_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct unpack;

/* unpack_open() - @dirfd is borrowed. */
struct unpack *unpack_open(int dirfd, struct err *e);
void unpack_close(struct unpack *u); /* NULL is fine */

/* unpack_feed() - More of the archive. 0, or -errno: files that were written stay. */
int unpack_feed(struct unpack *u, const char *data, size_t len, struct err *e);

/* unpack_end() - The archive has to be complete. 0 or -EBADMSG. */
int unpack_end(struct unpack *u, struct err *e);

uint64_t unpack_skipped(const struct unpack *u);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_dir.h - A directory of this machine as a tar archive, made while it is read.
 *
 * Files, directories and links, by names below the directory; nothing follows a link. Pipes,
 * sockets and devices are left out and counted. A file has the size that it had when it was opened.
 */
#ifndef CAISSON_REMOTE_PACK_DIR_H
#define CAISSON_REMOTE_PACK_DIR_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct pack;

struct pack *pack_open(const char *dir, struct err *e);
void pack_close(struct pack *p); /* NULL is fine */

/* pack_read() - The next bytes; 0 at the end; -1 with pack_error(). */
int64_t pack_read(struct pack *p, char *data, size_t size);
const struct err *pack_error(const struct pack *p);

/* pack_skipped() - Entries that were left out. */
uint64_t pack_skipped(const struct pack *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir_archive.h - A directory of this machine as a tar archive, made while it is read; and an
 * archive from a sandbox, into a directory of this machine.
 *
 * Packing takes files, directories and links, by names below the directory; nothing follows a link.
 * Pipes, sockets and devices are left out and counted. A file has the size that it had when it was
 * opened.
 *
 * Code that nobody has read made an archive that is unpacked. Nothing is written outside the
 * directory: each name is opened below it without following any link. Links that lead out of it,
 * hard links and everything that is neither file, directory nor link are left out and counted.
 * Setuid, setgid and sticky bits are left out.
 */
#ifndef CAISSON_REMOTE_DIR_ARCHIVE_H
#define CAISSON_REMOTE_DIR_ARCHIVE_H

#include <fts.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/tar_reader.h"
#include "archive/tar_writer.h"
#include "base/buf.h"

struct err;

struct pack {
	FTS *fts;
	size_t root_len; /* of the path that was opened, with a slash */
	struct buf head;
	struct tar_writer out; /* into head */
	int fd;                /* -1: none */
	uint64_t left, size;
	uint64_t skipped; /* entries that were left out */
	bool ended;
};

/* pack_open() - 0 or -errno. pack_close() in every case. It must not be moved. */
int pack_open(struct pack *p, const char *dir, struct err *e);
void pack_close(struct pack *p);

/* pack_read() - The next bytes; 0 at the end; -1 with @e. */
int64_t pack_read(struct pack *p, char *data, size_t size, struct err *e);

struct unpack {
	int root; /* borrowed */
	struct tar_reader reader;
	int fd; /* the file that is written; -1: none */
	int64_t mtime;
};

void unpack_open(struct unpack *u, int dirfd);
void unpack_close(struct unpack *u);

/* unpack_feed() - More of the archive. 0, or -errno: files that were written stay. */
int unpack_feed(struct unpack *u, const char *data, size_t len, struct err *e);

/* unpack_end() - The archive has to be complete. 0 or -EBADMSG. */
int unpack_end(struct unpack *u, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_writer.h - Entries to bytes: ustar headers, pax records for what does not fit in them,
 * padding, the end.
 *
 * Allocates nothing and keeps nothing: the content between a header and its padding goes from the
 * caller to its own put().
 */
#ifndef CAISSON_ARCHIVE_TAR_WRITER_H
#define CAISSON_ARCHIVE_TAR_WRITER_H

#include <sys/stat.h>

#include "archive/tar.h"

/* All bytes go through put(); anything but 0 ends the call at hand and is its result. */
struct tar_writer {
	int (*put)(void *arg, const void *data, size_t len);
	void *arg;
};

/* tar_put_fd() - A put() that writes to the blocking descriptor *@arg, an int. 0 or -errno. */
int tar_put_fd(void *arg, const void *data, size_t len);

/*
 * tar_put_head() - Everything before the content of @en: its pax records, those that it needs, its
 * header.
 */
int tar_put_head(const struct tar_writer *w, const struct tar_entry *en);

/* tar_put_padding() - Everything after the content of a file. */
int tar_put_padding(const struct tar_writer *w, uint64_t size);

/*
 * tar_put_end() - The end of the archive. A reader takes nothing of an archive without it for
 * complete.
 */
int tar_put_end(const struct tar_writer *w);

/* ---- entries on the disk ------------------------------------------------------------------- */

/*
 * tar_put_stat() - tar_put_head() of a file, directory, link or pipe.
 * @fd: its attributes of the user (user.*) go with it, as pax records; -1: none
 * @ret_cut: may be NULL; set to true when there are more attributes than fit in an archive
 */
int tar_put_stat(const struct tar_writer *w, char type, const char *path, const char *link,
		 const struct stat *st, int fd, bool *ret_cut);

/*
 * tar_first_name() - The first name of a file that has several; @path itself when it is the first.
 * @names: the files so far, by device and inode; begins as NULL. They are allocated and never
 *         freed: for processes that end with the archive (a file call in a cell, a job of the
 *         workspace store).
 * Return: NULL without memory.
 */
const char *tar_first_name(void **names, const struct stat *st, const char *path);

#endif

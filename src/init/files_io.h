/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_io.h - The worker's side of its two pipes.
 *
 * Small frames are gathered and go out together; io_flush() where the host must not wait. Once the
 * host has closed its end everything written is dropped, and io->broken says so: a call that only
 * writes ends at its next look.
 */
#ifndef CAISSON_INIT_FILES_IO_H
#define CAISSON_INIT_FILES_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "wire/files.h"

struct files_io {
	bool broken; /* nobody listens */
	struct files_end end;
	char where[FILES_PATH_MAX]; /* the path in trouble, cut */
	size_t len;
	uint8_t out[FILES_FRAME_MAX + sizeof(struct files_frame)];
	uint32_t in_left; /* of the data frame that is being read */
	bool in_ended;
};

/* io_stat() - @target: of a link, or NULL. */
void io_stat(struct files_io *io, const struct stat *st, const char *name, const char *target);
void io_event(struct files_io *io, enum files_event_kind kind, bool is_dir, const char *name,
	      const char *from);
/* io_data() - Counted in end.bytes. */
void io_data(struct files_io *io, const void *data, size_t len);
void io_flush(struct files_io *io);

/*
 * io_take() - Content from the host, some of it.
 * Return: bytes; 0 at its end; -ECANCELED when the host went away before, -EPROTO for nonsense.
 */
ssize_t io_take(struct files_io *io, void *data, size_t size);

/* io_trouble() - Remember @path, then the error to return. */
int io_trouble(struct files_io *io, const char *path, int error);

/* io_end() - The last frame, and everything before it. */
void io_end(struct files_io *io, int error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - A file call: the request, and the worker that is its program.
 *
 * Init only unpacks the request; everything else happens in the worker, which command.c has made a
 * command like any other before it calls files_main(). The worker looks up paths as any program of
 * the cell would: a link leads it to nothing that the sandbox's code could not open itself.
 */
#ifndef CAISSON_INIT_FILES_H
#define CAISSON_INIT_FILES_H

#include <stddef.h>

#include "init/blob.h"
#include "wire/files.h"
#include "wire/init.h"

#define FILES_CWD "/workspace"
#define FILES_IN 0 /* from the host */
#define FILES_OUT 1
#define FILES_DRAFT ".caisson-" /* begins the name of a file that is being written */

struct files_call {
	struct init_files q;
	const char *path, *to; /* in the blob */
	struct blob blob;
};

/*
 * files_unpack() - Check a request and find its strings. @fds: closed in any case.
 * Return: 0 or a positive errno for INIT_STAGE_REQUEST. files_free() in either case.
 */
int files_unpack(const struct init_files *q, const int *fds, size_t n_fds, struct files_call *ret);
void files_free(struct files_call *c);

/* files_main() - The worker. */
_Noreturn void files_main(const struct files_call *c);

struct files_io;

/* The calls, one function each. 0 or a positive errno; their output goes through files_io.c. */
int files_read(const struct files_call *c, struct files_io *io);
int files_hash(const struct files_call *c, struct files_io *io);
int files_stat(const struct files_call *c, struct files_io *io);
int files_write(const struct files_call *c, struct files_io *io);
int files_mkdir(const struct files_call *c, struct files_io *io);
int files_move(const struct files_call *c, struct files_io *io);
int files_delete(const struct files_call *c, struct files_io *io);
int files_list(const struct files_call *c, struct files_io *io);
int files_tar_out(const struct files_call *c, struct files_io *io);
int files_tar_in(const struct files_call *c, struct files_io *io);
int files_watch(const struct files_call *c, struct files_io *io);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - A file call: the request, and the worker that is its program.
 *
 * Init only unpacks the request; everything else happens in the worker, which init_command.c has
 * made a command like any other before it calls files_main(). The worker looks up paths as any
 * program of the cell would: a link leads it to nothing that the sandbox's code could not open
 * itself.
 */
#ifndef CAISSON_INIT_FILES_H
#define CAISSON_INIT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

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
 * Return: 0 or a positive errno for INIT_STAGE_REQUEST. blob_unmap() of its blob in either case.
 */
int files_unpack(const struct init_files *q, const int *fds, size_t n_fds, struct files_call *ret);

/* files_main() - The worker. */
_Noreturn void files_main(const struct files_call *c);

struct files_io;

/* The calls, one function each. 0 or a positive errno; their output goes through files_call.c. */
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

/* ---- what all calls of the worker share ----------------------------------------------------- */

/*
 * The two pipes (files_call.c). Small frames are gathered and written together; io_flush() where
 * the host must not wait. Once the host has closed its end all output is dropped and io->broken is
 * set: a call that only writes ends when it checks that.
 */
struct files_io {
	bool broken; /* the host has closed its end */
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
 * Return: bytes; 0 at its end; -ECANCELED when the host went away before; -EPROTO.
 */
ssize_t io_take(struct files_io *io, void *data, size_t size);

/*
 * io_room() - Before content is taken for the file system of @dir: whether it can hold that.
 * @whole: files that are there may be replaced, so only the size of the file system counts
 * Return: 0, ENOSPC, or ENOMEM when the cell's memory (q.limit) has no room for it. A file system
 * that is not in memory is not asked: it refuses by itself, and nobody is killed for it.
 */
int io_room(struct files_io *io, const struct init_files *q, int dir, bool whole);

/* io_trouble() - Remember @path, then the error to return. */
int io_trouble(struct files_io *io, const char *path, int error);

/* ---- paths of a request (files_path.c): the directory and the name in it --------------------- */

struct place {
	char dir[FILES_PATH_MAX]; /* "." when the path is only a name */
	char name[256];
	bool slash; /* the path ended with one: only a directory will do */
};

/* place_find() - Split @path. 0; EINVAL for a path without a name ("/", "..", ""); ENAMETOOLONG. */
int place_find(struct place *p, const char *path);

/* place_open() - The directory, made if missing and @parents. Descriptor (O_PATH) or -errno. */
int place_open(const struct place *p, bool parents);

/* place_enter() - place_find() and place_open(). Descriptor or -errno. */
int place_enter(struct place *p, const char *path, bool parents);

/* dirs_make() - Make a directory and those above it, where missing. 0 or a positive errno. */
int dirs_make(const char *path);

/* link_read() - Where a link leads, or NULL. @buf: FILES_PATH_MAX bytes. */
const char *link_read(int dirfd, const char *name, char *buf);

/* ---- everything below a directory (files_walk.c), parents first, no link followed -------- */

#define WALK_STOP (-1) /* what visit() returns when it has seen enough */

struct walk {
	/* 0, WALK_STOP, or a positive errno. @path: from the first directory on. */
	int (*visit)(struct walk *w, int dirfd, const char *name, const char *path,
		     const struct stat *st);
	void *arg;
	unsigned int depth; /* levels below the first; at most FILES_DEPTH_MAX */
	bool strict;        /* a directory that cannot be entered is an error, not a cut */
	bool cut;           /* out: some directory was not entered */
	char path[(FILES_DEPTH_MAX + 1) * 256]; /* where we are; at an error: where it was */
};

/* walk_dir() - @fd: the first directory; closed. 0 (also for WALK_STOP) or a positive errno. */
int walk_dir(struct walk *w, int fd);

#endif

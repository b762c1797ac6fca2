/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_store.h - Shared by the programs that keep trees of files: their start, the loss of their
 * power, the succession of their workers, and how they receive requests.
 *
 * The front starts such a program with its socket as descriptor TREE_STORE_FD and its directory as
 * TREE_STORE_DIR_FD, and with two arguments: the user and the group to become (0 0: stay). The
 * program ends with its socket.
 */
#ifndef CAISSON_TREE_STORE_TREE_STORE_H
#define CAISSON_TREE_STORE_TREE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "archive/tar_reader.h"
#include "client/files_client.h"

struct err;
struct sock_filter;

#define TREE_STORE_FD 3
#define TREE_STORE_DIR_FD 4

struct tree_store {
	const char *name; /* of the program, for messages */
	/* Before privileges are given up; may fork, and return in the child. NULL: nothing. 0 or
	 * -errno. */
	int (*prepare)(struct err *e);
	bool needs_proc; /* keep the host's root where changing a mode takes /proc (tree.h) */
	mode_t umask;
	bool bury_all;   /* the worker forks jobs: the next worker waits for their end */
	uint64_t rights; /* LANDLOCK_*, below the directory */
	const struct sock_filter *filter;
	size_t filter_len;
	/* In the worker, in its jail, until the front is gone. @life: how many workers there were
	 * before. The exit status. */
	int (*work)(uint32_t life);
};

/* tree_store_main() - The whole of main(). */
int tree_store_main(const struct tree_store *t, int argc, char **argv);

/*
 * tree_store_receive() - One request of @size bytes, which begins with its version.
 * @ret_fd: the descriptor that came with it, or -1
 * Return: 1, 0 when no request is waiting, -1 when the front is gone or sent something else.
 */
int tree_store_receive(void *request, size_t size, uint32_t version, int *ret_fd);

/* ---- archives of cells ---------------------------------------------------------------------- */

/*
 * The output of a file call that packs a tree (wire/files.h, FILES_TAR_OUT), in pieces of any size:
 * frames, the archive in them, its entries.
 *
 * Life: zeroed, with sink, arg, e and reader.rules set -> cell_archive_feed() until it fails or
 * `ended` is set -> cell_archive_free().
 */
struct cell_archive {
	const struct tar_sink *sink;
	void *arg;     /* of the sink */
	struct err *e; /* has the reason when a call fails */
	struct tar_reader reader;
	struct files_parser parser;
	bool ended;   /* the call is over, and the archive is whole */
	bool changed; /* a file shrank while the cell packed it, so it ends with zeros */
};

/* cell_archive_feed() - 0; -EPROTO for malformed frames; or the code of the cell, the reader or the
 * sink. */
int cell_archive_feed(struct cell_archive *a, const void *data, size_t len);
void cell_archive_free(struct cell_archive *a);

#endif

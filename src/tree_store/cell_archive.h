/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_archive.h - The output of a file call that packs a tree (wire/files.h, FILES_TAR_OUT), in
 * pieces of any size: frames, the archive in them, its entries.
 *
 * Life: zeroed, with sink, arg, e and reader.rules set -> cell_archive_feed() until it fails or
 * `ended` is set -> cell_archive_free().
 */
#ifndef CAISSON_TREE_STORE_CELL_ARCHIVE_H
#define CAISSON_TREE_STORE_CELL_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "archive/reader.h"
#include "client/files_client.h"

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

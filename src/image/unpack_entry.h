/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_entry.h - One entry of an archive becomes a file: for unpack.c alone, which reads the
 * archive. */
#ifndef CAISSON_IMAGE_UNPACK_ENTRY_H
#define CAISSON_IMAGE_UNPACK_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "image/unpack_dirs.h"

struct archive;
struct archive_entry;

struct unpack {
	const struct unpack_limits *limits;
	struct unpack_report *ret;
	int from; /* the tar archive */
	struct archive *archive;
	uint64_t stream; /* bytes of it */
	bool over;       /* more of them than allowed */
	bool eof;        /* there are no more */
	bool cut;        /* the last entry is whole, but not filled up as it should be */
	struct layer_dirs dirs;
};

/* unpack_entry() - @en with its content, which u->archive has next. 0, or a negative errno with a
 * message. */
int unpack_entry(struct unpack *u, struct archive_entry *en, struct err *e);

/* unpack_too_large() - The error of a layer beyond its limit. */
int unpack_too_large(const struct unpack *u, struct err *e);

#endif

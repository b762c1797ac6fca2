/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - The archive of a layer, as files below one directory.
 *
 * Runs in caisson-unpack (unpack_main.c), which can do nothing but that. What the archive says of
 * names is taken below the directory only; what it says of devices, set-id bits, file capabilities
 * and attributes that are not "user." is dropped and counted.
 */
#ifndef CAISSON_IMAGE_UNPACK_H
#define CAISSON_IMAGE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/open.h"

struct err;

#define UNPACK_PATH_MAX 4096u
#define UNPACK_DEPTH_MAX 256u
#define UNPACK_BYTES_MAX (32ull << 30) /* of one layer */
#define UNPACK_ENTRIES_MAX 2000000ull
#define UNPACK_RATIO_MAX 250ull          /* what unpacks to more of its size is a bomb... */
#define UNPACK_RATIO_FROM (256ull << 20) /* ...once it is as large as that */

#define OPAQUE_XATTR "user.overlay.opaque"

/*
 * What one caisson-unpack does. A layer takes three, one after the other: what reads a stranger's
 * compression, and what reads a stranger's archive, have nobody's word but their own, so the one
 * between them, which reads neither, hashes what goes from the first to the last.
 */
#define UNPACK_INFLATE "inflate" /* from standard input to standard output */
#define UNPACK_HASH "hash"       /* the same, as it is; the report has its digest */
#define UNPACK_FILES "files"     /* from standard input to the directory */
#define UNPACK_SEAL "seal"       /* what the directory holds */

/* Descriptors beside the standard ones. */
#define UNPACK_REPORT_FD 3
#define UNPACK_DIR_FD 4

struct unpack_report {
	int32_t code; /* 0 or a negative errno, then with a message */
	char msg[300];
	char diff_id[IMAGE_DIGEST_MAX]; /* UNPACK_HASH: of the uncompressed archive */
	char seal[IMAGE_DIGEST_MAX];    /* of what lies in the directory (seal.h) */
	uint64_t entries, bytes;
	uint64_t devices, set_ids, xattrs, ids; /* dropped; ids: users that have no room in the
						   range */
};

struct unpack_limits {
	uint64_t bytes, entries;
	bool ranged; /* there is a range of users, so that owners can be set */
};

/* unpack_inflate() - All of @archive (gzip, zstd or neither), uncompressed, to @to. 0, or -errno
 * with a message. */
int unpack_inflate(int archive, int to, struct err *e);

/*
 * unpack() - All of @tar, to its end, below @root.
 * Return: 0, with counts; or -errno, with a message. What was made until then stays.
 */
int unpack(int tar, int root, const struct unpack_limits *limits, struct unpack_report *ret,
	   struct err *e);

enum unpack_name {
	NAME_PLAIN,
	NAME_ROOT,     /* the directory itself */
	NAME_WHITEOUT, /* path: what is hidden */
	NAME_OPAQUE,   /* path: the directory that begins anew */
	NAME_IGNORED,  /* a mark of the tool that made it */
};

/*
 * unpack_name() - What the name of an entry means, and its path below the root, normalised. Pure.
 * Return: enum unpack_name; -EPERM for ".." or what is too long or too deep.
 */
int unpack_name(const char *name, char path[UNPACK_PATH_MAX]);

#endif

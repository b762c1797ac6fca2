/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - The archive of a layer, as files below one directory.
 *
 * Runs in caisson-unpack (unpack_main.c), which can do nothing else. Names of the archive lead to
 * places below the directory only; devices, set-id bits, file capabilities and attributes that are
 * not "user." are dropped and counted.
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
#define UNPACK_RATIO_MAX 250ull          /* a layer that grows more than this is refused... */
#define UNPACK_RATIO_FROM (256ull << 20) /* ...once it is larger than this */

#define OPAQUE_XATTR "user.overlay.opaque"

/*
 * The steps, each a caisson-unpack. A layer takes the first three, one after the other: layer.c
 * argues why the process that hashes is one of its own.
 */
#define UNPACK_INFLATE "inflate" /* decompress standard input to standard output */
#define UNPACK_HASH "hash"       /* copy it unchanged; the report has its digest */
#define UNPACK_FILES "files"     /* from standard input to the directory */
#define UNPACK_SEAL "seal"       /* hash the tree in the directory */

/* Descriptors beside the standard ones. */
#define UNPACK_REPORT_FD 3
#define UNPACK_DIR_FD 4

struct unpack_report {
	int32_t code; /* 0 or a negative errno, then with a message */
	char msg[300];
	char diff_id[IMAGE_DIGEST_MAX]; /* UNPACK_HASH: of the uncompressed archive */
	char seal[IMAGE_DIGEST_MAX];    /* of the tree in the directory (seal.c) */
	uint64_t entries, bytes;
	uint64_t devices, set_ids, xattrs, ids; /* dropped; ids: owners beyond the range */
};

struct unpack_limits {
	uint64_t bytes, entries;
	bool ranged; /* there is a range of users, so owners can be set */
};

/* unpack_inflate() - Decompress @archive (gzip, zstd or neither) to @to. 0 or -errno. */
int unpack_inflate(int archive, int to, struct err *e);

/*
 * unpack() - All of @tar, to its end, below @root.
 * Return: 0, with counts; or -errno, with a message. Files that were made until then stay.
 */
int unpack(int tar, int root, const struct unpack_limits *limits, struct unpack_report *ret,
	   struct err *e);

enum unpack_name {
	NAME_PLAIN,
	NAME_ROOT,     /* the directory itself */
	NAME_WHITEOUT, /* path: the name that is hidden */
	NAME_OPAQUE,   /* path: a directory that hides those of lower layers */
	NAME_IGNORED,  /* a mark of the tool that made the archive */
};

/*
 * unpack_name() - The kind of an entry's name, and its path below the root, normalised. Pure.
 * Return: enum unpack_name; -EPERM for "..", a name that is too long, or a path too deep.
 */
int unpack_name(const char *name, char path[UNPACK_PATH_MAX]);

/* seal_tree() - seal.c: a digest of a whole tree, for a later check. 0 or -errno. */
int seal_tree(int root, char ret[IMAGE_DIGEST_MAX], struct err *e);

#endif

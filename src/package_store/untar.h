/* SPDX-License-Identifier: Apache-2.0 */
/*
 * untar.h - A tar archive, in whatever pieces it comes, as entries that are fit to be kept.
 *
 * What comes from a cell in which a package was built may be anything. Only plain files, directories and
 * links that stay inside are entries; paths are relative, without "..", and bounded; so is everything else.
 * With `whole` it is the tree of a workspace: links may lead anywhere, because nobody outside a cell follows
 * them, and hard links, pipes, modes, times and attributes are kept. Nothing here touches a file: whoever
 * takes the entries does.
 */
#ifndef CAISSON_PACKAGE_STORE_UNTAR_H
#define CAISSON_PACKAGE_STORE_UNTAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "init/tar.h"

struct err;

#define UNTAR_PATH_MAX 1024u
#define UNTAR_DEPTH_MAX 48u
#define UNTAR_META_MAX (64u << 10)
#define UNTAR_XATTR_KEY "SCHILY.xattr." /* what GNU tar and others call it */

struct untar_entry {
	char type; /* '0' file, '2' link, '5' directory; with `whole` '1' hard link, '6' pipe */
	bool executable;
	uint32_t mode; /* 0777 */
	int64_t mtime;
	uint64_t size;
	char path[UNTAR_PATH_MAX]; /* normalised: no leading, double or trailing slash, no "." */
	char link[UNTAR_PATH_MAX]; /* of '2'; of '1' normalised as a path */
	/* `whole`: pax records, of which those with UNTAR_XATTR_KEY are attributes. For the time of the call. */
	const char *records;
	size_t records_len;
};

/* A negative result ends it, and untar_feed() returns it. */
struct untar_sink {
	int (*entry)(void *arg, const struct untar_entry *en, struct err *e);
	int (*data)(void *arg, const char *data, size_t len, struct err *e); /* of the last file */
	int (*close)(void *arg, struct err *e); /* the file is complete */
};

enum untar_state { UNTAR_HEAD, UNTAR_META, UNTAR_BODY, UNTAR_PAD, UNTAR_END };

struct untar {
	enum untar_state state;
	uint64_t max_bytes, max_files; /* set by the caller; the rest is zero */
	bool whole;                    /* likewise */
	uint64_t bytes, files;
	uint8_t block[TAR_BLOCK];
	size_t have; /* of the block, or of meta */
	char *meta;  /* room for one extended header */
	char meta_type;
	size_t meta_len;
	uint64_t left; /* of the body or the padding */
	size_t pad;    /* after the body */
	bool has_path, has_link, has_size, has_records;
	uint64_t size;
	struct untar_entry entry;
};

/* untar_feed() - 0; -EBADMSG for what is no archive; -EPERM for an entry that is refused; -EFBIG for too much of it. */
int untar_feed(struct untar *u, const struct untar_sink *sink, void *arg, const char *data,
	       size_t len, struct err *e);

/* untar_ended() - Whether the archive had its end. */
bool untar_ended(const struct untar *u);
void untar_free(struct untar *u);

/* untar_link_ok() - Whether a link at @path may point to @target. Pure. */
bool untar_link_ok(const char *path, const char *target);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_reader.h - A tar archive, in pieces of any size, as entries that the caller's rules permit.
 *
 * The archive may come from code that nobody has read. The reader parses it, checks every entry
 * against the rules and hands out nothing else; it touches no file. It takes ustar, pax records
 * (path, linkpath, size, mtime, attributes) and the long names of GNU tar. path.c argues why the
 * entries stay in their tree.
 *
 * Memory: one allocation at the first byte, of 2 * path_max + meta_max + TAR_BLOCK bytes.
 */
#ifndef CAISSON_ARCHIVE_TAR_READER_H
#define CAISSON_ARCHIVE_TAR_READER_H

#include "archive/tar.h"

struct err;

struct tar_rules {
	size_t path_max; /* of a path or a target, with its NUL; at least 257, as a header has */
	size_t meta_max; /* bytes of one extended header */
	size_t depth_max;
	uint64_t max_bytes, max_files;
	const char *kinds; /* the types that are entries; '0' is one of them */
	bool links_inside; /* a symbolic link must stay in the tree (tar_link_inside()) */
	bool skips; /* leave out other kinds and other links, and count them, instead of refusing */
};

/*
 * Why the reader refused an archive. From TAR_ABSOLUTE on it is the entry with the path
 * tar_reader.path.
 */
enum tar_fault {
	TAR_NO_FAULT,   /* or the sink refused it, or there is no memory */
	TAR_NO_HEADER,  /* EBADMSG */
	TAR_BAD_RECORD, /* EBADMSG: a pax header is damaged */
	TAR_BAD_NAME,   /* EBADMSG: a name that is empty or contains a NUL */
	TAR_LONG_META,  /* EBADMSG: an extended header over meta_max */
	TAR_LONG_NAME,  /* EPERM: a path or a target over path_max */
	TAR_SPARSE,     /* EPERM: a sparse file, whose content is not what follows */
	TAR_ABSOLUTE,   /* EPERM */
	TAR_UP,         /* EPERM: a ".." */
	TAR_DEEP,       /* EPERM: over depth_max */
	TAR_NO_NAME,    /* EPERM: the root as something else than a directory */
	TAR_KIND,       /* EPERM: not of `kinds` */
	TAR_LINK_OUT,   /* EPERM: a symbolic link out of the tree */
	TAR_LINK_EMPTY, /* EBADMSG: a symbolic link to "" */
	TAR_HARD_LINK,  /* EPERM: a hard link to something that cannot be in the tree */
	TAR_MANY,       /* EFBIG: over max_files */
	TAR_LARGE,      /* EFBIG: over max_bytes */
};

/*
 * The taker of the entries. Each returns 0, or a negative errno that ends the archive and that
 * tar_feed() returns. The strings of an entry stay valid until close() for a file, and until
 * entry() returns for anything else. Its path is tidy and not empty, and so is the target of a hard
 * link. A directory that is the root itself is not handed out. data() and close() may be NULL.
 */
struct tar_sink {
	int (*entry)(void *arg, const struct tar_entry *en, struct err *e);
	int (*data)(void *arg, const char *data, size_t len, struct err *e); /* of the last file */
	int (*close)(void *arg, struct err *e); /* the file is complete, and its padding */
};

enum tar_state { TAR_AT_HEAD, TAR_AT_META, TAR_AT_BODY, TAR_AT_PADDING, TAR_AT_END };

struct tar_reader {
	const struct tar_rules *rules; /* set by the caller; the rest is zero */

	/* For the caller to read. */
	uint64_t bytes, files, skipped;
	enum tar_fault fault;
	char *path; /* of the entry at hand */

	/* The reader's own. */
	int failed;
	enum tar_state state;
	uint8_t block[TAR_BLOCK];
	size_t have;   /* of the block, or of meta */
	uint64_t left; /* of meta, the content or the padding */
	char *link, *meta;
	char meta_type;
	size_t meta_len;
	bool has_path, has_link, has_size, has_mtime, has_records;
	int64_t size, mtime;
	struct tar_entry entry;
};

/*
 * tar_feed() - 0; the code of a fault, as above; or the sink's result. After a failure: the same
 * again.
 */
int tar_feed(struct tar_reader *r, const struct tar_sink *sink, void *arg, const void *data,
	     size_t len, struct err *e);

/*
 * tar_wants() - How many bytes may be fed before the reader moves on: for callers that read no
 * further.
 */
size_t tar_wants(const struct tar_reader *r);

/* tar_ended() - Whether the archive had its end. Bytes after the end are dropped. */
bool tar_ended(const struct tar_reader *r);
void tar_reader_free(struct tar_reader *r);

#endif

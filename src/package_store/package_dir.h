/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_dir.h - The directory of package trees: how trees come from cells, stay and go.
 *
 * A tree is a directory with a random key as its name; while it is unpacked, ".new" follows the
 * key. It gets its name when it is whole and on the disk. Code in a cell can enter the directory
 * and cannot list it, so it finds the trees whose keys it was told.
 */
#ifndef CAISSON_PACKAGE_STORE_PACKAGE_DIR_H
#define CAISSON_PACKAGE_STORE_PACKAGE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "tree_store/tree_store.h"
#include "wire/package_store.h"

struct err;

/* Bounds of the paths in a tree. */
#define PACKAGE_PATH_MAX 1024u
#define PACKAGE_DEPTH_MAX 48u

/* package_dir_drop() - Remove a tree, finished or not. 0, -ENOENT or -errno. */
int package_dir_drop(int store_dir, const char *key, bool unfinished, struct err *e);

/* package_dir_sweep() - Remove every tree that @keep does not name (NULL: it names all), and
 * everything unfinished. Return: how many were removed, or -errno. */
int package_dir_sweep(int store_dir, bool (*keep)(const char *key), struct err *e);

/* ---- the hash and the seal of a tree: digest.c ---------------------------------------------- */

struct digest {
	struct sha256 one;  /* of the entry at hand */
	uint8_t (*all)[32]; /* of those before it */
	size_t n, cap;
};

/* digest_begin() - An entry: '0' a file (its content is added next), '2' a link to @link, '5' a
 * directory. 0 or -ENOMEM. */
int digest_begin(struct digest *d, char type, bool executable, const char *path, const char *link,
		 struct err *e);
void digest_add(struct digest *d, const void *data, size_t len);
void digest_end(struct digest *d);

/* digest_hex() - Of all entries. */
void digest_hex(struct digest *d, char hex[65]);
void digest_free(struct digest *d);

/* digest_tree() - The hash (@contents) or the seal of the tree at @root on the disk. */
int digest_tree(int root, bool contents, char ret_hex[65], struct err *e);

/* ---- one tree on its way from a cell -------------------------------------------------------- */

/*
 * Life: intake_begin() -> intake_read() when there is something to read, until it is over ->
 * intake_end(). A failure leaves nothing: intake_end() removes the incomplete tree.
 */
struct intake {
	uint64_t seq; /* 0: not in use */
	struct cell_archive archive;
	struct tar_rules rules;
	struct digest digest;
	struct err err;
	int fd;              /* the pipe from the cell */
	uint64_t stalled_ns; /* base/foreign.h */
	int store_dir;       /* borrowed */
	int root, file;
	char key[PACKAGE_STORE_KEY_LEN + 1];
};

/* intake_begin() - The intake owns @fd, on failure too. 0 or -errno with in->err. */
int intake_begin(struct intake *in, int store_dir, const struct package_store_req *q, int fd);
/* intake_read() - One read. True: it is over, complete or failed. */
bool intake_read(struct intake *in);
/* intake_end() - Fill the reply: the tree has its name, or nothing is left of it. */
void intake_end(struct intake *in, struct package_store_reply *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - The directory in which images are kept: what is in it, and how it changes.
 *
 *   refs                 a line per reference: DIGEST TIME REFERENCE. Replaced as a whole, by
 * rename blobs/sha256/HEX     manifests and configurations, named by what they hold layers/HEX/
 * unpacked layers, by the digest of their uncompressed archive (diff_id) layers/HEX.seal      a
 * digest of what that directory holds, for `verify` leases/HEX           a file per manifest,
 * locked (shared) by whoever uses the image tmp/                 what is being made: archives that
 * were begun, trees that are not whole reserve              room for new refs on a full disk, so
 * that images can be removed there lock, lock.change
 *
 * A layer, a blob or a reference is there when it has its name, and it gets that when it is whole
 * and on the disk: so a crash at any moment leaves what was there before, and things in tmp/ that
 * the next change sweeps away. Archives that were begun stay there to be resumed; `prune` takes
 * them too.
 *
 * Locks. One process at a time changes a store: it holds lock.change (exclusive). Who takes
 * something away holds "lock" too, exclusive; who opens an image holds it shared, from reading the
 * reference to having the lease. So nothing goes between the two. The compressed archives of layers
 * are not kept.
 *
 * Directories are of mode 0700, except what is inside a layer, which is the image's (see open.h for
 * whose).
 */
#ifndef CAISSON_IMAGE_STORE_H
#define CAISSON_IMAGE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/open.h"

struct buf;
struct err;

struct store {
	int dir, blobs, layers, leases, tmp;
	int change; /* lock.change, while we hold it */
};

#define STORE_NONE                                                                                 \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1                                                             \
	}
void store_close(struct store *s);
#define _store_ __attribute__((cleanup(store_close)))

/*
 * store_open() - The store at @path (NULL: the default); see image_store_open().
 * @make: make it if it is not there
 */
int store_open(struct store *s, const char *path, bool make, struct err *e);
/* store_open_at() - The same from its descriptor, which stays the caller's. */
int store_open_at(struct store *s, int dir, struct err *e);

/* store_default() - Where the store of this user is. 0 or -errno. */
int store_default(char *path, size_t size, struct err *e);

/*
 * store_change() - Be the one that changes it, until store_close(); sweeps what was left
 * unfinished.
 * @waits: called once when somebody else is, before waiting for that one; may be NULL
 */
int store_change(struct store *s, void (*waits)(void), struct err *e);

/* store_use_reserve() - Give the reserve away, for a change that frees more; the next change makes
 * it again. */
void store_use_reserve(const struct store *s);

/* store_lock() - "lock", shared or exclusive. Waits. Descriptor, closed to release it; or -errno.
 */
int store_lock(const struct store *s, bool exclusive, struct err *e);

/* store_blob_read() - A manifest or configuration; -ENOENT, -EBADMSG when it is not what its name
 * says. */
int store_blob_read(const struct store *s, const char *digest, struct buf *ret, struct err *e);
int store_blob_write(const struct store *s, const char *digest, const void *data, size_t len,
		     struct err *e);

bool store_has_layer(const struct store *s, const char *diff_id);
/* store_open_layer() - O_PATH; -ENOENT, -errno. */
int store_open_layer(const struct store *s, const char *diff_id, struct err *e);

#define STORE_NAME_MAX 96

/* store_tree_new() - An empty directory in tmp for a tree, and its name. Descriptor or -errno. */
int store_tree_new(const struct store *s, char ret_name[STORE_NAME_MAX], struct err *e);
/* store_tree_drop() - It was for nothing. */
void store_tree_drop(const struct store *s, const char *name);
/* store_tree_keep() - It is this layer now. Call store_sync() before, and fsync the directory after
 * the last. */
int store_tree_keep(const struct store *s, const char *name, const char *diff_id, struct err *e);
/*
 * store_seal_write() - What the tree of a layer is (seal.h); to be synced before the layer has its
 * name. store_seal_read() - 0; -ENOENT, -EBADMSG.
 */
int store_seal_write(const struct store *s, const char *diff_id, const char *seal, struct err *e);
int store_seal_read(const struct store *s, const char *diff_id, char ret[IMAGE_DIGEST_MAX],
		    struct err *e);
/* store_sync() - Everything that was written is on the disk. */
int store_sync(const struct store *s, struct err *e);

/*
 * store_part_open() - The file in tmp that the archive with this digest is brought into: for
 * reading and writing, with what an earlier pull left in it.
 */
int store_part_open(const struct store *s, const char *digest, struct err *e);
void store_part_drop(const struct store *s, const char *digest);

/* store_replace() - A small file of the store, as a whole: written beside, synced, renamed. */
int store_replace(const struct store *s, int dir, const char *name, const void *data, size_t len,
		  struct err *e);

#endif

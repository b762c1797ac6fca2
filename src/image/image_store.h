/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_store.h - The directory in which images are kept: its content, and how it changes.
 *
 *   refs              one line per reference: DIGEST TIME REFERENCE; replaced as a whole, by rename
 *   blobs/sha256/HEX  manifests and configurations, named by the hash of their content
 *   layers/HEX/       unpacked layers, named by the hash of their uncompressed archive (diff_id)
 *   layers/HEX.seal   a digest of the content of that directory, for `verify`
 *   leases/HEX        one file per manifest; a process that uses the image has a shared lock on it
 *   tmp/              unfinished: archives that are being loaded, trees that are being unpacked
 *   reserve           room for new refs on a full disk, so that images can be removed there
 *   lock, lock.change
 *
 * A layer, a blob or a reference exists when it has its name, and it gets the name when it is
 * complete and on the disk. So a crash at any moment leaves the store as it was before, and files
 * in tmp/ that the next change removes. Archives that are being loaded stay there to be continued;
 * `prune` removes them too. The compressed archives of layers are not kept.
 *
 * Locks. One process at a time changes a store, and holds lock.change (exclusive). A process that
 * removes something also holds "lock", exclusive; a process that opens an image holds "lock",
 * shared, from reading the reference until it has the lease. So nothing is removed between the two.
 *
 * Directories have mode 0700, except inside a layer, where modes are the image's (open.h describes
 * the owners).
 */
#ifndef CAISSON_IMAGE_IMAGE_STORE_H
#define CAISSON_IMAGE_IMAGE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "hash/hash.h"
#include "image/ref.h"

struct buf;
struct config;
struct err;
struct manifest;

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
 * @make: make it if it does not exist
 */
int store_open(struct store *s, const char *path, bool make, struct err *e);
/* store_open_at() - The same from its descriptor, which stays the caller's. */
int store_open_at(struct store *s, int dir, struct err *e);

/*
 * store_change() - Take lock.change until store_close(), and remove what was left unfinished.
 * @waits: called once, before waiting for another process that has the lock; may be NULL
 */
int store_change(struct store *s, void (*waits)(void), struct err *e);

/* store_use_reserve() - Remove the reserve until the next change, which makes it again. */
void store_use_reserve(const struct store *s);

/* store_lock() - "lock", shared or exclusive. Waits. Descriptor, to be closed; or -errno. */
int store_lock(const struct store *s, bool exclusive, struct err *e);

/* store_blob_read() - A manifest or configuration. 0; -ENOENT; -EBADMSG: it has another hash. */
int store_blob_read(const struct store *s, const char *digest, struct buf *ret, struct err *e);

/* store_documents() - Manifest and configuration of an image, by the digest of its manifest, both
 * checked. 0 (then config_free() is due) or -errno. */
int store_documents(const struct store *s, const char *digest, struct manifest *m, struct config *c,
		    struct err *e);

bool store_has_layer(const struct store *s, const char *diff_id);
/* store_open_layer() - O_PATH; -ENOENT, -errno. */
int store_open_layer(const struct store *s, const char *diff_id, struct err *e);

#define STORE_NAME_MAX 96

/* store_tree_new() - An empty directory in tmp for a tree, and its name. Descriptor or -errno. */
int store_tree_new(const struct store *s, char ret_name[STORE_NAME_MAX], struct err *e);
void store_tree_drop(const struct store *s, const char *name);
/* store_tree_keep() - Make the tree this layer. Call syncfs(2) before the first, and fsync(2)
 * the directory after the last. */
int store_tree_keep(const struct store *s, const char *name, const char *diff_id, struct err *e);
/* store_seal_write() - The digest of a layer's tree (seal.c); to be synced before the layer has its
 * name. store_seal_read() - 0; -ENOENT, -EBADMSG. */
int store_seal_write(const struct store *s, const char *diff_id, const char *seal, struct err *e);
int store_seal_read(const struct store *s, const char *diff_id, char ret[IMAGE_DIGEST_MAX],
		    struct err *e);

/* store_part_open() - The file in tmp that the archive with this digest is loaded into, for reading
 * and writing. It has what an earlier pull loaded. */
int store_part_open(const struct store *s, const char *digest, struct err *e);
void store_part_drop(const struct store *s, const char *digest);

/* store_replace() - A small file of the store, as a whole: written beside, synced, renamed. */
int store_replace(const struct store *s, int dir, const char *name, const void *data, size_t len,
		  struct err *e);

/* store_each() - Call @fn for each name in a directory of the store, except those that begin with a
 * dot, until it returns a negative errno. */
int store_each(int dir, int (*fn)(void *arg, const char *name, struct err *e), void *arg,
	       struct err *e);

/* ---- remove_tree.c: trees with the content of a stranger ------------------------------------ */

#define TREE_DEPTH_MAX 300 /* more than a layer may have */

/*
 * tree_remove() - @name below @dir with everything in it. Follows no link, crosses no mount.
 * @bytes: NULL, or the space that it had on the disk is added
 * Return: 0 or -errno.
 */
int tree_remove(int dir, const char *name, uint64_t *bytes);

/* tree_bytes() - Add the space that it has on the disk; entries that cannot be read count as 0. */
void tree_bytes(int dir, const char *name, uint64_t *bytes);

/*
 * ---- gc.c: images that no reference names and no process uses ---------------------------------
 *
 * An image is kept when a reference names it or a process holds its lease; blobs and layers are
 * kept when an image that is kept has them.
 */

struct gc_result {
	uint64_t images, layers, bytes; /* that were removed */
};

/* gc_in_use() - Whether a process holds the lease of this manifest. */
bool gc_in_use(const struct store *s, const char *digest);

/*
 * gc_run() - Under store_change(); takes the store's lock by itself.
 * @parts: also archives that are only partly loaded
 */
int gc_run(const struct store *s, bool parts, struct gc_result *ret, struct err *e);

/*
 * ---- refs.c: which reference names which manifest, the file "refs" as a whole -------------------
 *
 * An invalid line is an error and is not skipped: images must not be removed because a line was not
 * understood.
 */

#define REFS_MAX 4096

struct refs_row {
	char ref[IMAGE_REF_MAX]; /* canonical */
	char digest[IMAGE_DIGEST_MAX];
	uint64_t time_s; /* when it was pulled or imported */
};

struct refs {
	struct refs_row *rows;
	size_t n, cap;
};

void refs_free(struct refs *r);
#define _refs_ __attribute__((cleanup(refs_free)))

/* refs_parse() - 0 or -EBADMSG, -E2BIG. Pure. */
int refs_parse(const char *text, size_t len, struct refs *ret, struct err *e);

int refs_load(const struct store *s, struct refs *ret, struct err *e);
int refs_save(const struct store *s, const struct refs *r, struct err *e);

/*
 * refs_find() - The image of this reference. With a digest: of any row with that digest and name (a
 * pull by tag can be opened by digest), or whose index had it. NULL: none.
 */
const struct refs_row *refs_find(const struct refs *r, const struct ref *want);

/* refs_set() - Add a reference, or change the manifest that it names. 0, -ENOMEM, -E2BIG. */
int refs_set(struct refs *r, const char *ref, const char *digest, uint64_t time_s, struct err *e);
void refs_drop(struct refs *r, const struct refs_row *row);

/* ---- SHA-256 in the form that manifests have: "sha256:" and 64 digits ------------------------ */

/* A hash of content that comes in pieces, closed at the end of its scope. */
#define _hash_ __attribute__((cleanup(hash_close)))

/* digest_end() - The digest of everything that was added to @h. 0 or -EIO. */
int digest_end(struct hash *h, char ret[IMAGE_DIGEST_MAX]);

int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX]); /* 0 or -EIO */

/*
 * digest_fd() - The digest of everything up to the end of @fd. Not reentrant.
 * @copy: what was read is also written there; -1: nowhere
 * Return: 0 or -errno.
 */
int digest_fd(int fd, int copy, char ret[IMAGE_DIGEST_MAX]);

/* digest_is() - Whether @data has this digest. */
bool digest_is(const char *want, const void *data, size_t len);

/* digest_hex() - The digits of a digest that is known to be well-formed. */
static inline const char *digest_hex(const char *digest)
{
	return digest + 7;
}

#endif

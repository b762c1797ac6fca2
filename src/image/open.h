/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.h - An image of the store, for a process that makes cells of it.
 *
 * The store (image/image_store.h) is a directory of mode 0700 that belongs to the user who pulls.
 * To open an image takes the rights of that user, once; the result is descriptors, which can be
 * passed on to a process without those rights.
 *
 * Layers are directories that never change once they have their name. A layer hides names of the
 * layers below it in the form that an overlay mounted with "userxattr" understands: a character
 * device 0/0 hides one name, the attribute user.overlay.opaque=y on a directory hides all names in
 * it. Nothing else in a layer is a device; there are no set-id bits, no file capabilities and no
 * other user.overlay.* attributes.
 *
 * Owners of the files: in a store of root, user N of the image is the host's user IMAGE_ID_BASE +
 * N, for N below IMAGE_ID_COUNT; an id-mapped mount from there to a cell's range makes it N again.
 * In a store of an ordinary user that user owns everything.
 *
 * An image that is open is in use: its lease is a shared lock (flock) on a file of the store, and
 * `rm` and `prune` leave it and its layers alone. The lock ends with the last copy of the
 * descriptor, in any process, so it can be passed on and kept like any other.
 */
#ifndef CAISSON_IMAGE_OPEN_H
#define CAISSON_IMAGE_OPEN_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define IMAGE_ID_BASE 0x6ffe0000u /* below the ids of cells and of our own processes */
#define IMAGE_ID_COUNT 65536u

#define IMAGE_REF_MAX 512   /* a canonical reference with its NUL */
#define IMAGE_DIGEST_MAX 72 /* "sha256:" and 64 digits, with its NUL */
#define IMAGE_LAYERS_MAX 64
#define IMAGE_WORDS_MAX 1024 /* in each of the lists below */

/* How programs of the image are started. Strings are bounded, and have no control characters but
 * tab and newline. */
struct image_config {
	char **env; /* "NAME=value"; this and the next two end with NULL and are never NULL */
	char **entrypoint;
	char **cmd;
	char *workdir; /* "" or absolute; never NULL */
	char *user;    /* "", "name", "1000", "name:group", "0:0"; never NULL */
};

struct image {
	char ref[IMAGE_REF_MAX];       /* canonical: docker.io/library/python:3.11-slim */
	char digest[IMAGE_DIGEST_MAX]; /* of its manifest */
	size_t n_layers;
	int layers[IMAGE_LAYERS_MAX]; /* directories, O_PATH; the top one first */
	int lease;                    /* for as long as it is open the image is in use */
	struct image_config config;
};

/*
 * image_open() - Open the image that the store has under this name.
 * @store: directory descriptor, see image_store_open()
 * @ref:   "python:3.11-slim", or any other form of ref.h
 *
 * Return: 0; -ENOENT when it is not there (the message has the command to pull it); -EINVAL for an
 * invalid reference; -EBADMSG when manifest or configuration were changed; or another -errno. On
 * failure there is nothing to close.
 */
int image_open(int store, const char *ref, struct image *ret, struct err *e);

/* image_close() - Close everything, including the lease. Only for an image that was opened. */
void image_close(struct image *im);

/*
 * image_store_open() - The directory of the store, which must exist.
 * @path: NULL: the default, /var/lib/caisson/images for root, $XDG_DATA_HOME/caisson/images
 *        (~/.local/share/...) for others
 * Return: descriptor, or -errno with a message.
 */
int image_store_open(const char *path, struct err *e);

#endif

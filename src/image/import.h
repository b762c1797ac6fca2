/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - An image from a file or a directory: an OCI layout, or what `docker save` writes.
 *
 * An archive is unpacked like a layer, by a process that can do nothing else, and then read as a
 * directory. Names in it are resolved below it.
 */
#ifndef CAISSON_IMAGE_IMPORT_H
#define CAISSON_IMAGE_IMPORT_H

#include "base/buf.h"
#include "image/manifest.h"
#include "image/pull.h"

struct err;

/* One image of such a directory. */
struct archive_image {
	char ref[IMAGE_REF_MAX]; /* what the archive calls it; "": nothing */
	struct buf manifest, config;
	char digest[IMAGE_DIGEST_MAX];
	struct manifest m;
	int layers[IMAGE_LAYERS_MAX]; /* files, the lowest first */
};

void archive_image_free(struct archive_image *a);

/*
 * archive_read() - What a directory holds. Digests of manifest and configuration are checked, those
 * of layers not.
 * @tag: which one, when it has several; NULL or ""
 * archive_image_free() is due in any case.
 */
int archive_read(int dir, const char *tag, struct archive_image *ret, struct err *e);

/* archive_check_layer() - Whether a file is what the manifest says. 0 or -EBADMSG. */
int archive_check_layer(int fd, const struct blob *want, struct err *e);

/*
 * import() - Under store_change().
 * @ref: what it shall be called; NULL: as the archive says
 */
int import(const struct store *s, const char *path, const struct ref *ref,
	   int (*allowed)(void *arg, const struct ref *ref, struct err *e), void *arg,
	   struct show *show, struct pull_result *ret, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.h - The three documents that describe an image: index, manifest, configuration.
 *
 * They come from a registry or an archive and may be anything. A document that is accepted has
 * well-formed digests, bounded sizes and counts, and a known type; otherwise the message names the
 * member. OCI's types and those of Docker's schema 2 are treated alike; Docker's schema 1 is
 * refused by name. Pure.
 */
#ifndef CAISSON_IMAGE_DOCUMENTS_H
#define CAISSON_IMAGE_DOCUMENTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "image/open.h"

struct buf;
struct err;

#define MANIFEST_BYTES_MAX (4u << 20) /* of each of the three */
#define LAYER_BYTES_MAX (16ull << 30) /* compressed */

#define MEDIA_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define MEDIA_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define MEDIA_OCI_LAYER "application/vnd.oci.image.layer.v1.tar"
#define MEDIA_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define MEDIA_DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"

/* A file that a document names. */
struct blob {
	char digest[IMAGE_DIGEST_MAX];
	uint64_t size;
};

enum manifest_kind { MANIFEST_INDEX, MANIFEST_IMAGE };

struct manifest {
	struct blob config;
	size_t n_layers;
	struct blob layers[IMAGE_LAYERS_MAX]; /* the lowest first, as the document has them */
};

/* The platform of a machine: "linux", "amd64", "". */
struct platform {
	const char *os, *arch, *variant;
};

struct config {
	char arch[32], os[32], created[40];
	size_t n_layers;
	char diff_ids[IMAGE_LAYERS_MAX][IMAGE_DIGEST_MAX]; /* the lowest first */
	struct image_config run;
};

/* platform_here() - Of this machine. */
struct platform platform_here(void);

/*
 * manifest_kind() - Whether a document is an index or a manifest.
 * @type: the Content-Type that the registry sent, or NULL
 * Return: enum manifest_kind, or -EBADMSG.
 */
int manifest_kind(const char *text, size_t len, const char *type, struct err *e);

/* index_choose() - The manifest for this platform. 0, -EBADMSG, or -ENOENT with a message that
 * lists the platforms that there are. */
int index_choose(const char *text, size_t len, const struct platform *want, struct blob *ret,
		 struct err *e);

/* manifest_parse() - 0 or -EBADMSG. */
int manifest_parse(const char *text, size_t len, struct manifest *ret, struct err *e);

/* manifest_write() - Append @m as an OCI manifest with uncompressed layers. 0 or -errno. */
int manifest_write(const struct manifest *m, struct buf *out);

/* config_parse() - 0 or -EBADMSG. On success config_free() is due. */
int config_parse(const char *text, size_t len, struct config *ret, struct err *e);
void config_free(struct config *c);

/* documents_fit() - Whether manifest and configuration are of one image, and that is made for this
 * machine. 0, -EBADMSG or -ENOENT. */
int documents_fit(const struct manifest *m, const struct config *c, struct err *e);
void image_config_free(struct image_config *c);

/* ---- JSON objects of other kinds that a registry or an archive sends ------------------------ */

/* document_load() - An object of bounded length; or NULL with a message that names @what. */
json_t *document_load(const char *what, const char *text, size_t len, struct err *e);

/* document_text() - A member that is a string; "" when it is missing or no string. Borrowed. */
const char *document_text(const json_t *of, const char *member);

#endif

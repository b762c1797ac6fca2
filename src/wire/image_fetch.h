/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_fetch.h - Requests to the process that talks to one registry for one image.
 *
 * One SEQPACKET socket. The first request names the image; the reply to it describes the image, and
 * the documents are then in two files. Each further request brings a file for one layer. Replies to
 * those come when something happened, for any layer that was requested. A reply that failed is the
 * last one.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_IMAGE_FETCH_H
#define CAISSON_WIRE_IMAGE_FETCH_H

#include <stdint.h>

#define IMAGE_FETCH_VERSION 1u
#define IMAGE_FETCH_FD 3          /* it finds its socket here, */
#define IMAGE_FETCH_MANIFEST_FD 4 /* and empty files for the documents */
#define IMAGE_FETCH_CONFIG_FD 5
#define IMAGE_FETCH_REF_MAX 512
#define IMAGE_FETCH_DIGEST_MAX 72
#define IMAGE_FETCH_LAYERS_MAX 64

enum image_fetch_op {
	IMAGE_FETCH_BEGIN = 1, /* ref, user, password */
	IMAGE_FETCH_LOAD,      /* layer; with the file, which may have the beginning already */
};

struct image_fetch_req {
	uint32_t version;
	uint32_t op;
	uint32_t layer;
	char ref[IMAGE_FETCH_REF_MAX];  /* canonical */
	char user[256], password[4096]; /* for this registry; both "": it has none */
};

enum image_fetch_say {
	IMAGE_FETCH_FOUND = 1, /* the documents are in their files; digest, config, layers */
	IMAGE_FETCH_MOVED,     /* layer, have */
	IMAGE_FETCH_LOADED,    /* layer, have, had: the file is complete */
	IMAGE_FETCH_FAILED,    /* code, msg; layer, if it is about one */
};

struct image_fetch_layer {
	char digest[IMAGE_FETCH_DIGEST_MAX];  /* of its archive */
	char diff_id[IMAGE_FETCH_DIGEST_MAX]; /* of its uncompressed archive */
	uint64_t size;                        /* of its archive */
};

struct image_fetch_reply {
	uint32_t version;
	uint32_t say;
	int32_t code;       /* a negative errno */
	uint32_t layer;     /* UINT32_MAX: it is about none */
	uint64_t have, had; /* bytes in the file now, and when it came */
	uint32_t n_layers;
	uint64_t config_size;
	char digest[IMAGE_FETCH_DIGEST_MAX]; /* of the manifest */
	char config[IMAGE_FETCH_DIGEST_MAX];
	char msg[512];
	struct image_fetch_layer layers[IMAGE_FETCH_LAYERS_MAX]; /* the lowest first */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_opener.h - Requests to the image opener, the process that opens images of the store.
 *
 * One SEQPACKET socket, one fixed-size request per message, one reply per request, in order. A good
 * reply carries descriptors: the lease (the shared lock "in use"), then the image's layers, the
 * uppermost first, as CELL_IMAGE_LAYERS takes them. The image's configuration comes as bounded
 * text: the client parses no JSON for it, and reads no file.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_IMAGE_OPENER_H
#define CAISSON_WIRE_IMAGE_OPENER_H

#include <stdint.h>

#define IMAGE_OPENER_VERSION 1u
#define IMAGE_OPENER_FD 3 /* the image opener finds its socket here */
#define IMAGE_OPENER_REF_MAX 512
#define IMAGE_OPENER_PROGRAMS_MAX 8
#define IMAGE_OPENER_TEXT_MAX 32768

struct image_opener_req {
	uint32_t version;
	uint32_t n_programs;
	char ref[IMAGE_OPENER_REF_MAX]; /* NUL-terminated */
	/* Programs, by name or by path; the reply shows which of them the image has. */
	char programs[IMAGE_OPENER_PROGRAMS_MAX][32];
};

struct image_opener_reply {
	uint32_t version;
	int32_t code; /* 0 or negative errno; then msg has the reason and the remedy */
	uint32_t n_layers;
	uint32_t found;                 /* bit n: programs[n] is there */
	uint32_t uid, gid;              /* the image's user; 0: root, or not given */
	char ref[IMAGE_OPENER_REF_MAX]; /* canonical */
	char digest[72];                /* of its manifest: "sha256:..." */
	char msg[512];
	/* Strings, each with its NUL, one after the other: the working directory (may be empty),
	 * n_env of "NAME=value", n_entrypoint, n_cmd. */
	uint32_t n_env, n_entrypoint, n_cmd;
	uint32_t text_len;
	char text[IMAGE_OPENER_TEXT_MAX];
};

#endif

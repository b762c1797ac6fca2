/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_puller.h - Requests to the image puller, which starts `caisson image pull` for a daemon.
 *
 * One SEQPACKET socket, messages of fixed size, one pull at a time. A pull that runs has a pipe, on
 * which caisson-image writes its progress as lines of JSON (docs/images.md): the puller passes its
 * reading end on and reads nothing of it. The end of the pull is a message of its own.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_IMAGE_PULLER_H
#define CAISSON_WIRE_IMAGE_PULLER_H

#include <stdint.h>

#define IMAGE_PULLER_VERSION 1u
#define IMAGE_PULLER_FD 3 /* the puller finds its socket here */
#define IMAGE_PULLER_REF_MAX 512

enum image_puller_op {
	IMAGE_PULLER_PULL = 1, /* ref */
	IMAGE_PULLER_STOP,     /* end the pull that runs, if one does */
};

struct image_puller_req {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	char ref[IMAGE_PULLER_REF_MAX]; /* canonical, NUL-terminated */
};

enum image_puller_say {
	IMAGE_PULLER_BEGUN = 1, /* with the pipe */
	IMAGE_PULLER_ENDED,     /* status */
};

struct image_puller_reply {
	uint32_t version;
	uint32_t say;
	uint64_t seq;   /* of the request */
	int32_t status; /* 0: done; 1 to 255: caisson-image's; -1: it was killed; -2: not begun */
	uint32_t unused;
	char msg[256]; /* not begun: why */
};

#endif

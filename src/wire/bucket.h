/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket.h - The channel between the front and caisson-bucket, which alone can reach the operator's
 * buckets.
 *
 * A SEQPACKET socket made by the front. A request is one fixed-size struct with descriptors: first
 * the write end of a pipe on which this job answers, then those of its op. The job sends
 * BUCKET_MOVED now and then and BUCKET_DONE last; a pipe that ends without it is a job that died.
 * Closing the reading end cancels the job. The front names places, which the operator configured,
 * and never a bucket.
 */
#ifndef CAISSON_WIRE_BUCKET_H
#define CAISSON_WIRE_BUCKET_H

#include <stdint.h>

#define BUCKET_FD 3     /* the program finds its end here */
#define BUCKET_DIR_FD 4 /* and its directory, for manifests */
#define BUCKET_VERSION 1u
#define BUCKET_JOBS_MAX 8u
#define BUCKET_PLACE_MAX 64u
#define BUCKET_KEY_MAX 1024u
#define BUCKET_WORK_LEN 32u /* of a workspace's key: hexadecimal digits */

enum bucket_op {
	/* The content, of exactly size bytes, becomes the object key; the answer has a link to it
	 * that is valid for expires seconds. Descriptor: read end of a pipe. */
	BUCKET_PUT = 1,
	/* Whether place changed since it and work were the same: changed. -ENOENT: never. */
	BUCKET_LOOK,
	/* All of place as tar. Descriptor: write end of a pipe. Its state is remembered, and counts
	 * when BUCKET_KEEP follows. */
	BUCKET_PULL,
	BUCKET_KEEP, /* work has the pulled content now */
	/* Place gets the content of work. Descriptors: read ends of two pipes, with a tar of all of
	 * work in each: it is read twice. -ESTALE: another client changed the same objects, and
	 * nothing was put. */
	BUCKET_PUSH,
	/* Forget the state that is remembered of work. */
	BUCKET_FORGET,
	BUCKET_OP_MAX_,
};

struct bucket_req {
	uint32_t version, op; /* enum bucket_op */
	uint32_t expires;
	uint32_t unused;
	uint64_t size;
	uint64_t max_bytes, max_files; /* of BUCKET_PULL */
	char place[BUCKET_PLACE_MAX + 1];
	char work[BUCKET_WORK_LEN + 1];
	char key[BUCKET_KEY_MAX + 1]; /* below the place's prefix */
	char type[128];
};

enum bucket_say {
	BUCKET_READY = 1, /* on the socket, once, first: in its jail */
	BUCKET_MOVED,     /* progress */
	BUCKET_DONE,      /* the end, with code */
};

/* Written to pipes in one piece: no more than PIPE_BUF. */
struct bucket_reply {
	uint32_t version, say; /* enum bucket_say */
	int32_t code;          /* 0 or a negative errno */
	uint32_t changed;
	uint64_t bytes, total_bytes;
	uint64_t files, total_files;
	char link[3000];
	char msg[480]; /* of a failure; of a success: the objects that could not be put, or empty */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - One file of a sandbox to the operator's bucket, and a link to it.
 *
 * A worker in the cell reads the file, and a pipe passes it on to caisson-bucket: as much of it is
 * in memory as the pipe and one buffer hold. The object has the size that the file had when it was
 * opened; a file that gets shorter meanwhile is not put.
 */
#ifndef CAISSON_FRONT_BUCKETS_PUBLISH_H
#define CAISSON_FRONT_BUCKETS_PUBLISH_H

#include <stdbool.h>

#include "base/buf.h"
#include "front/buckets/buckets.h"
#include "front/files/files.h"

struct buckets;
struct sandbox;

struct publish {
	void (*done)(struct publish *p);
	void *arg;
	struct buckets *buckets;
	struct file_call call;
	struct bucket_job job;
	struct bucket_req q;
	struct watch out;   /* the pipe */
	struct buf pending; /* read, and not yet written to it */
	uint64_t left;      /* of the size that was promised */
	bool read, over;
	struct deferred end;

	/* Its result, valid in done. */
	int code; /* 0 or a negative errno */
	char link[sizeof(((struct bucket_reply *)0)->link)];
	char why[sizeof(((struct bucket_reply *)0)->msg)]; /* when it went wrong */
};

/*
 * publish_new() - @path: of a regular file, relative to /workspace. @done is called once, last, and
 * never from in here. NULL without memory.
 */
struct publish *publish_new(struct buckets *buckets, struct sandbox *s, const char *path,
			    void (*done)(struct publish *p), void *arg);

/* publish_free() - Also from inside done; before done, that is not called any more. NULL is
 * allowed. */
void publish_free(struct publish *p);

#endif

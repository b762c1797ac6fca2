/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets.h - The front's side of caisson-bucket (wire/bucket.h): starting it, and jobs.
 *
 * Each job answers on a pipe. The caller keeps the struct until done was called, or bucket_stop().
 */
#ifndef CAISSON_FRONT_BUCKETS_BUCKETS_H
#define CAISSON_FRONT_BUCKETS_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"
#include "wire/bucket.h"

struct bucket_job;
struct daemon;
struct err;
struct workspaces;

struct buckets {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct workspaces *workspaces;
	int fd;                     /* -1: nothing is configured, or it is gone */
	bool artifacts;             /* there is a place for artifacts of executions */
	size_t live;                /* jobs that were begun */
	struct bucket_job *waiting; /* those that were not, the oldest first */
};

#define BUCKETS_ARTIFACTS                                                                          \
	"artifacts" /* the name of that place: no workspace's, which have a '/' in front */

struct bucket_job {
	/* The caller's; moved may be NULL. Both may stop the job and begin others; done is called
	 * once, last. */
	void (*moved)(struct bucket_job *j, const struct bucket_reply *r);
	void (*done)(struct bucket_job *j, const struct bucket_reply *r);
	void *arg;

	struct buckets *all; /* NULL: not under way */
	struct bucket_job *next;
	struct bucket_req q;
	int fds[2]; /* until it is begun */
	size_t n_fds;
	struct watch watch;
	bool begun;
};

/* buckets_start() - Before the jail. An error in the configuration stops the start. */
int buckets_start(struct buckets *b, struct err *e);
void buckets_free(struct buckets *b);

/*
 * bucket_ask() - @q without its version, copied. @fds become the job's, whatever happens; done is
 * not called when this fails. Return: 0 or a negative errno.
 */
int bucket_ask(struct buckets *b, struct bucket_job *j, const struct bucket_req *q, int *fds,
	       size_t n);

/* bucket_stop() - End the job; done is not called any more. Idempotent, also on a zeroed struct. */
void bucket_stop(struct bucket_job *j);

#endif

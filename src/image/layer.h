/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.h - One archive on its way to be a layer: the processes that unpack it, and its tree.
 *
 * Life: layer_begin() -> job->files.report is readable -> layer_end(). Then the tree is whole, has
 * the name job->tree in tmp and is to be kept or dropped; or it failed, and nothing is left of it.
 */
#ifndef CAISSON_IMAGE_LAYER_H
#define CAISSON_IMAGE_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/store.h"
#include "image/unpack.h"

struct layer_step {
	pid_t pid; /* 0: none */
	int report;
};

struct layer_job {
	struct layer_step inflate, hash, files;
	char tree[STORE_NAME_MAX];
};

#define LAYER_JOB_NONE                                                                             \
	((struct layer_job){ .inflate.report = -1, .hash.report = -1, .files.report = -1 })

/* layer_ranged() - Whether this process can give files of layers to users of their own. */
bool layer_ranged(void);

/*
 * layer_begin() - Start to unpack.
 * @archive: for reading, at its beginning; stays the caller's
 * @size:    its length, against which what comes out of it is held
 */
int layer_begin(struct layer_job *job, const struct store *s, int archive, uint64_t size,
		struct err *e);

/*
 * layer_end() - Wait for it and take its report.
 * @diff_id: what the uncompressed archive must be, or NULL
 */
int layer_end(struct layer_job *job, const struct store *s, const char *diff_id,
	      struct unpack_report *ret, struct err *e);

/* layer_verify() - Whether a layer of the store still is what was unpacked. 0 or -EBADMSG. */
int layer_verify(const struct store *s, const char *diff_id, struct err *e);

/* layer_abort() - End it. For a job that has begun and not ended. */
void layer_abort(struct layer_job *job, const struct store *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.h - One archive that becomes a layer: the processes that unpack it, and its tree.
 *
 * Life: layer_begin() -> job->files.report is readable -> layer_end(). Then the tree is complete,
 * has the name job->tree in tmp, and the caller keeps or drops it; or it failed, and nothing is
 * left.
 */
#ifndef CAISSON_IMAGE_LAYER_H
#define CAISSON_IMAGE_LAYER_H

#include <stdint.h>
#include <sys/types.h>

#include "image/image_store.h"
#include "image/unpack.h"

struct layer_step {
	pid_t pid; /* 0: does not run */
	int report;
};

struct layer_job {
	struct layer_step inflate, hash, files;
	char tree[STORE_NAME_MAX];
};

#define LAYER_JOB_NONE                                                                             \
	((struct layer_job){ .inflate.report = -1, .hash.report = -1, .files.report = -1 })

struct idmap;

/* layer_ids() - The ids of the user namespace in which strangers' programs and archives are
 * handled: the range of the image store where this process may map it, otherwise the caller as
 * root. */
struct idmap layer_ids(void);

/*
 * layer_begin() - Start to unpack.
 * @archive: for reading; stays the caller's
 * @size:    its length, which bounds the size of the unpacked layer
 */
int layer_begin(struct layer_job *job, const struct store *s, int archive, uint64_t size,
		struct err *e);

/*
 * layer_end() - Wait for it and take its report.
 * @diff_id: the digest that the uncompressed archive must have, or NULL
 */
int layer_end(struct layer_job *job, const struct store *s, const char *diff_id,
	      struct unpack_report *ret, struct err *e);

/* layer_verify() - Whether a layer of the store is as it was unpacked. 0 or -EBADMSG. */
int layer_verify(const struct store *s, const char *diff_id, struct err *e);

/* layer_abort() - End a job that has begun and not ended; does nothing for others. */
void layer_abort(struct layer_job *job, const struct store *s);

#endif

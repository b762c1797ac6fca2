/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.h - Workspaces whose content is in a bucket: brought before they are used, put back when
 * they changed.
 *
 * Which are, the operator says (--workspace-bucket); a caller names a workspace and never a bucket.
 */
#ifndef CAISSON_FRONT_BUCKETS_BACKING_H
#define CAISSON_FRONT_BUCKETS_BACKING_H

struct front;

/* backing_start() - When the workspaces are known: what was not put by a daemon before us is put
 * now. */
void backing_start(struct front *f);
/* backing_end() - Nothing is under way any more; what was not put stays noted. */
void backing_end(struct front *f);

#endif

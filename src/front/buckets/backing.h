/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.h - Workspaces whose content is in a bucket: pulled before use, pushed after changes.
 *
 * The operator names them (--workspace-bucket); a client names a workspace and never a bucket.
 */
#ifndef CAISSON_FRONT_BUCKETS_BACKING_H
#define CAISSON_FRONT_BUCKETS_BACKING_H

struct buckets;

/* backing_start() - When the workspaces are known: push what a former daemon did not. */
void backing_start(struct buckets *buckets);

#endif

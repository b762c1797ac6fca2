/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - One request to the workspace store, in a process of its own.
 */
#ifndef CAISSON_WORKSPACE_JOB_H
#define CAISSON_WORKSPACE_JOB_H

#include "wire/workspace_store.h"

struct promise;

/*
 * job_run() - Do it, however long that takes.
 * @store_dir: the directory of workspaces
 * @fd: what came with it, or -1
 * @p: where it says what it will answer before a tree gets its name (handover.h)
 * @ret: zero but for op and seq
 * Return: a descriptor for the answer, or -1.
 */
int job_run(int store_dir, const struct workspace_store_req *q, int fd, struct promise *p,
	    struct workspace_store_reply *ret);

#endif

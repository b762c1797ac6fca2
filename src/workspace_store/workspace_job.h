/* SPDX-License-Identifier: Apache-2.0 */
/* workspace_job.h - One request to the workspace store, in a process of its own. */
#ifndef CAISSON_WORKSPACE_STORE_WORKSPACE_JOB_H
#define CAISSON_WORKSPACE_STORE_WORKSPACE_JOB_H

#include <stddef.h>

#include "wire/workspace_store.h"

struct err;
struct promise;

/*
 * job_run() - Serve the request, however long that takes.
 * @store_dir: the directory of workspaces
 * @fd: the descriptor that came with it, or -1
 * @p: where the job notes its answer before a tree gets its name (workspace_dir.h)
 * @ret: zero except op and seq
 * Return: a descriptor for the answer, or -1.
 */
int job_run(int store_dir, const struct workspace_store_req *q, int fd, struct promise *p,
	    struct workspace_store_reply *ret);

/* job_text() - The text in a request's descriptor, of at most @max bytes, for free(). NULL with
 * @e. */
char *job_text(int fd, size_t max, struct err *e);

#endif

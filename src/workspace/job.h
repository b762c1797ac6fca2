/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - One request to the shelf, in a process of its own.
 */
#ifndef CAISSON_WORKSPACE_JOB_H
#define CAISSON_WORKSPACE_JOB_H

#include "wire/shelf.h"

struct promise;

/*
 * job_run() - Do it, however long that takes.
 * @shelf: the directory of workspaces
 * @fd: what came with it, or -1
 * @p: where it says what it will answer before a tree gets its name (legacy.h)
 * @ret: zero but for op and seq
 * Return: a descriptor for the answer, or -1.
 */
int job_run(int shelf, const struct shelf_req *q, int fd, struct promise *p,
	    struct shelf_reply *ret);

#endif

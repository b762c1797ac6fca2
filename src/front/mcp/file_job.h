/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_job.h - A file call in a sandbox for a call of the protocol: what it says is kept, up to a
 * bound.
 *
 * Life: file_job_new() -> fill call.q and call.path -> file_job_run() -> done, once, unless the
 * protocol's call was cancelled before. done answers; the job is freed after it. The call's work
 * and cancel are the job's.
 */
#ifndef CAISSON_FRONT_MCP_FILE_JOB_H
#define CAISSON_FRONT_MCP_FILE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/files/file_note.h"
#include "front/files/files.h"
#include "front/mcp/call.h"

struct file_job {
	struct file_call call;
	struct mcp_call *c;
	struct file_note note;            /* in the ledger */
	void (*done)(struct file_job *j); /* call.refusal.kind: it went wrong */
	/* Of a list, each entry; NULL otherwise. */
	void (*entry)(struct file_job *j, const struct files_stat *st, struct files_text name);
	void *arg;
	void (*free_arg)(void *arg); /* with the job; may be NULL */
	bool has_stat;
	struct files_stat stat;
	struct buf data; /* what was read, or is to be written */
	struct deferred reaper;
};

/* file_job_new() - @max: bytes that are kept. NULL with @why. */
struct file_job *file_job_new(struct mcp_call *c, const char *path, size_t max,
			      struct refusal *why);
void file_job_run(struct file_job *j, enum files_op op, struct sandbox *s);

#endif

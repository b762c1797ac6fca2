/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - One file call in a sandbox's cell (wire/files.h), from its request to its end.
 *
 * Life: file_call_run() -> waiting for a cell -> starting -> running -> done. done is called
 * exactly once, last, and perhaps from inside file_call_run(); refusal.kind says whether it went
 * wrong. The struct is the asker's, who lets go of everything with file_call_release(), at any
 * time, and frees it at the end of the round of the loop at the earliest: the call may be on the
 * stack.
 *
 * A worker that neither takes nor sends anything for a while is killed. That time does not count
 * while the asker is congested, or has no content to give.
 */
#ifndef CAISSON_FRONT_FILES_H
#define CAISSON_FRONT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "client/files_client.h"
#include "front/cell/cell.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "net/loop.h"

struct file_call;

struct file_call_ops {
	/* Frames of the worker; functions that a call does not need may be NULL. */
	void (*stat)(struct file_call *c, const struct files_stat *st, struct files_text name,
		     struct files_text target);
	void (*data)(struct file_call *c, const char *data, size_t len);
	void (*event)(struct file_call *c, const struct files_event *ev, struct files_text name,
		      struct files_text from);
	/* Whether to stop reading until file_call_resume(); may be NULL. */
	bool (*congested)(struct file_call *c);
	/* It takes content: give some, or finish. NULL: a call without content. */
	void (*feed)(struct file_call *c);
	void (*done)(struct file_call *c);
};

struct file_call {
	/* The asker's, before file_call_run(); the rest is zero. */
	const struct file_call_ops *ops;
	void *owner;
	struct files_request q; /* without id, user and paths */
	char path[FILES_PATH_MAX], to[FILES_PATH_MAX];
	bool patient; /* has no time limit: a watch */

	struct sandboxes *sandboxes;
	struct entry entry;
	const struct sandbox *sandbox; /* where it runs; invalid after done */
	struct cell *cell;             /* NULL: not inside */
	struct cell_command job;
	struct watch in, out;
	struct files_parser parser;
	struct buf input;       /* frames not yet written */
	uint64_t oom_kills;     /* in the cell, before it began */
	uint64_t given, looked; /* bytes of content so far, and when memory was last looked at */
	bool started, input_end, paused, feeding, over;
	bool exited;
	int status; /* of wait, when exited */
	struct timer timer;
	uint64_t moved_ns; /* when something happened last */

	/* Its result, valid in done. */
	bool ended; /* with a last frame; otherwise it could not run, or died */
	struct files_end end;
	struct refusal refusal; /* kind REFUSAL_NONE: it was done */
};

/* file_call_run() - In @s, when it has a cell. */
void file_call_run(struct file_call *c, struct sandbox *s);

/* file_call_give() - Content, of any length; feed is called again when it is all taken. */
void file_call_give(struct file_call *c, const void *data, size_t len);
void file_call_finish(struct file_call *c); /* that was all of it */
bool file_call_wants(const struct file_call *c);

void file_call_resume(struct file_call *c);

/* file_call_release() - No function is called any more, and the worker ends. Idempotent. */
void file_call_release(struct file_call *c);

/* file_error() - An errno of a file call as a refusal; @where may be empty. */
void file_error(int error, struct files_text where, struct refusal *ret);
/*
 * file_no_room() - The refusal of content that does not fit, with the numbers.
 * @error: ENOSPC: @end has the numbers; ENOMEM: the cell's memory has @room bytes left
 */
void file_no_room(int error, const struct files_end *end, uint64_t needed, uint64_t room,
		  const struct cell_limits *limits, struct refusal *ret);

#endif

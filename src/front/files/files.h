/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - One file call in a sandbox's cell (wire/files.h), from its request to its end.
 *
 * Life: file_call_run() -> waiting for a cell -> starting -> running -> done. done is called
 * exactly once, last, and perhaps from inside file_call_run(); refusal.status says whether it went
 * wrong. The struct is the asker's, who lets go of everything with file_call_release(), at any
 * time, and frees it not before the end of the round of the loop: it may be what calls back.
 *
 * A worker has to get on: one that neither takes nor says anything for a while, although we wait
 * for it, is ended. While the listener is congested, or has nothing to give, nobody waits.
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
	/* What the worker says; those that a call does not need may be NULL. */
	void (*stat)(struct file_call *c, const struct files_stat *st, struct files_text name,
		     struct files_text target);
	void (*data)(struct file_call *c, const char *data, size_t len);
	void (*event)(struct file_call *c, const struct files_event *ev, struct files_text name,
		      struct files_text from);
	/* Whether to stop listening until file_call_resume(); may be NULL. */
	bool (*congested)(struct file_call *c);
	/* It takes content: give some, or finish. NULL: a call without any. */
	void (*feed)(struct file_call *c);
	void (*done)(struct file_call *c);
};

struct file_call {
	/* The asker's, before file_call_run(); the rest is zero. */
	const struct file_call_ops *ops;
	void *owner;
	struct files_request q; /* without id, user and paths */
	char path[FILES_PATH_MAX], to[FILES_PATH_MAX];
	bool patient; /* may be silent for as long as it likes: a watch */

	struct front *f;
	struct entry entry;
	struct cell *cell; /* NULL: not inside */
	struct cell_command job;
	struct watch in, out;
	struct files_parser parser;
	struct buf input; /* frames not yet written */
	bool started, input_end, paused, feeding, over;
	bool exited;
	int status; /* of wait, when exited */
	struct timer timer;
	uint64_t moved_ns; /* when something happened last */

	/* Its result, valid in done. */
	bool ended; /* it said so; otherwise it could not be run, or died */
	struct files_end end;
	struct refusal refusal; /* status 0: it was done */
};

/* file_call_run() - In @s, when it has a cell. */
void file_call_run(struct file_call *c, struct sandbox *s);

/* file_call_give() - Content, of any length; feed is called again when it is all taken. */
void file_call_give(struct file_call *c, const void *data, size_t len);
void file_call_finish(struct file_call *c); /* that was all of it */
bool file_call_wants(const struct file_call *c);

void file_call_resume(struct file_call *c);

/* file_call_release() - Nothing is called any more. What runs is ended. Idempotent. */
void file_call_release(struct file_call *c);

/* file_error() - What an errno of a file call means to a client; @where may be empty. */
void file_error(int error, struct files_text where, struct refusal *ret);

#endif

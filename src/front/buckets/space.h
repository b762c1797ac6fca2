/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - A workspace that is in a bucket: its state, the sandboxes that wait for it, the last
 * result.
 *
 * backing.c pulls and pushes it. A space lives until space_drop(), which follows the removal of its
 * workspace.
 */
#ifndef CAISSON_FRONT_BUCKETS_SPACE_H
#define CAISSON_FRONT_BUCKETS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/buckets/buckets.h"
#include "front/workspaces/workspaces.h"
#include "net/loop.h"

struct buckets;
struct config;
struct refusal;
struct waiter;

enum space_phase { SPACE_IDLE, SPACE_LOOKING, SPACE_PULLING, SPACE_KEEPING, SPACE_PUSHING };

/* A workspace that is in a bucket. */
struct space {
	struct space *next;
	struct buckets *buckets;
	char key[WORKSPACE_STORE_KEY_LEN + 1];
	char place[BUCKET_PLACE_MAX + 1];
	enum space_phase phase;
	bool dirty, again; /* not pushed yet; changed during the push */
	bool here;         /* the workspace was pulled before */
	struct waiter *waiters;
	struct bucket_job job;
	struct workspace_store_call import;
	bool pulled, imported; /* the two halves of SPACE_PULLING */
	uint64_t generation;
	int code;
	char why[480];
	struct timer retry;
	unsigned int fails;
	uint64_t files, total_files, bytes, total_bytes;
};

/* space_place() - The place in a bucket that the configuration names for @w, into
 * @out[BUCKET_PLACE_MAX + 1]; false: none. */
bool space_place(const struct config *c, const struct workspace *w, char *out);

/* space_of() - That of a workspace which has a place; made when it is asked for first. NULL: no
 * memory. */
struct space *space_of(struct buckets *buckets, const struct workspace *w);
/* space_workspace() - NULL: it was removed. */
struct workspace *space_workspace(const struct space *p);
/* space_save() - Record whether it is ahead, for the next front. */
void space_save(struct space *p);

/* space_wait() - @done will be called with @sandbox if that is still there then. 0 or -ENOMEM. */
int space_wait(struct space *p, workspace_done_fn *done, void *sandbox);
/* space_answer() - Answer all waiters: the workspace may be used (@why is NULL), or not. */
void space_answer(struct space *p, const struct refusal *why);
/* space_refuse() - The same, with the reason that space_failed() noted. */
void space_refuse(struct space *p);

/* space_failed(), space_succeeded() - Note and log how @what ended. */
void space_failed(struct space *p, const char *what, int code, const char *why);
void space_succeeded(struct space *p, const char *what);

/* space_drop() - Free it and stop its job; waiters get no answer. */
void space_drop(struct space *p);
/* spaces_drop_all() - Stop everything; workspaces that were not pushed stay recorded. */
void spaces_drop_all(void);

#endif

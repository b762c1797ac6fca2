/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspaces.h - Directories that outlive sandboxes (docs/workspaces.md): their owners and users.
 *
 * The workspace store (wire/workspace_store.h) has the trees. Names belong to an owner: a client
 * cannot see the workspaces of another owner. The users of a workspace are not counted: the spec of
 * each sandbox names the workspace that it uses.
 */
#ifndef CAISSON_FRONT_WORKSPACES_WORKSPACES_H
#define CAISSON_FRONT_WORKSPACES_WORKSPACES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/spec/workspace_use.h"
#include "front/support/name.h"
#include "front/workspaces/workspace_store.h"

struct buckets;
struct err;
struct json;
struct refusal;
struct sandbox;
struct workspace;
struct workspaces;

#define WORKSPACES_MAX 1000u /* per owner */
#define WORKSPACE_BYTES (1ull << 30)
#define WORKSPACE_FILES 100000ull

struct workspace {
	struct workspace *next;
	char key[WORKSPACE_STORE_KEY_LEN + 1];
	char owner[OWNER_MAX];
	char name[WORKSPACE_NAME_MAX + 1];
	json_t *labels; /* NULL: none */
	char *backing;  /* state of its bucket: JSON, or NULL */
	uint64_t quota_bytes, quota_files;
	uint64_t generation, bytes, files;
	uint64_t created_ms, changed_ms;
	bool volume;   /* a file system of its own: the Linux kernel enforces the quota */
	bool removing; /* nobody finds it any more */
};

typedef void workspace_done_fn(struct workspace *w, void *arg, const struct refusal *why);

/* Workspaces whose content comes from elsewhere. */
struct workspace_backing {
	bool (*backs)(const struct buckets *buckets, const struct workspace *w);
	/* Before a sandbox of it starts, each time; @done is called once, perhaps at once. @why
	 * NULL: it is there. */
	void (*fill)(struct buckets *buckets, struct workspace *w, workspace_done_fn *done,
		     void *arg);
	/* A new generation is there, or the last that wrote into the newest has ended. */
	void (*written)(struct buckets *buckets, struct workspace *w, uint64_t old_generation);
	/* A member of the object that describes it. */
	void (*tell)(struct buckets *buckets, const struct workspace *w, struct json *j);
	/* It has changes that are not there yet: removing it would lose them. */
	bool (*is_ahead)(struct buckets *buckets, const struct workspace *w);
	void (*forgotten)(struct buckets *buckets, const struct workspace *w); /* it is removed */
};

struct workspaces {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct sandboxes *sandboxes;
	struct workspace_store store;
	struct workspace *all;
	const struct workspace_backing *backing; /* NULL: none */
	struct buckets *buckets;                 /* for backing */
};

/* workspaces_open() - Before the jail. workspaces_start() - In it, when the sandboxes of former
 * fronts are known. */
int workspaces_open(struct workspaces *workspaces, struct err *e);
int workspaces_start(struct workspaces *workspaces, struct err *e);

struct workspace *workspaces_find(struct workspaces *workspaces, const char *owner,
				  const char *name);
/* workspaces_user() - A running sandbox of @w, after @at; NULL begins, and ends. */
struct sandbox *workspaces_user(const struct workspaces *workspaces, const struct workspace *w,
				struct sandbox *at);

/* workspace_save() - To the store. 0, or -1 with @ret. */
int workspace_save(struct workspaces *workspaces, struct workspace *w, struct refusal *ret);
/* workspace_json() - @r: the counts of the workspace store, or NULL. */
void workspace_json(struct workspaces *workspaces, const struct workspace *w,
		    const struct workspace_store_reply *r, struct json *j);

/* workspaces_add() - One that the workspace store has made. NULL with @ret: it could not be
 * recorded. */
struct workspace *workspaces_add(struct workspaces *workspaces, const struct workspace *from,
				 struct refusal *ret);
void workspaces_forget(struct workspaces *workspaces, struct workspace *w);

/* workspaces_admit() - Whether a sandbox with this use may begin. 0, or -1 with @ret. */
int workspaces_admit(struct workspaces *workspaces, const char *owner,
		     const struct workspace_use *use, const struct sandbox *self,
		     struct refusal *ret);

/*
 * workspaces_ready() - Before a cell is made: whether its tree is open. Otherwise it is being
 * opened, and sandbox_step() follows; or that failed, and every waiting request was answered.
 */
bool workspaces_ready(struct sandbox *s);
/* workspaces_left() - The sandbox, or its cell, has ended: release its trees. */
void workspaces_left(struct sandbox *s);
/* workspaces_drop() - A sandbox does not use this tree any more; remove it if none does. */
void workspaces_drop(struct workspaces *workspaces, const struct workspace *w, const char *tree);
/* workspaces_written() - @w has another content than before. */
void workspaces_written(struct workspaces *workspaces, struct workspace *w,
			uint64_t old_generation);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - The daemon's memory over its own end: sandboxes, idempotency keys, package trees,
 * workspaces and notes of code, in SQLite.
 *
 * Opening has two halves, because a process that reads strangers' bytes wrote the file last. The
 * process with rights opens the files (store_files_open) and reads none of them; SQLite sees them
 * first in the jail, as two descriptors and without any path (vfs.c). store_check(), which may run
 * in a process of its own, finds a damaged store; store_files_aside() moves it away, never deletes
 * it, again without reading it.
 *
 * Every write is one transaction. When one fails (disk full, read-only, a damaged page) nothing of
 * it has happened, the message names the remedy, and the store stays usable: for reads now, for
 * writes when the reason is gone. One thread. Texts are UTF-8 without NUL, at most as long as said
 * here; a longer one is -EMSGSIZE. Times are milliseconds of the Unix epoch.
 *
 * Codes beside those of memory and the disk: -EUCLEAN damaged, -EBUSY another program has it open.
 */
#ifndef CAISSON_STORE_STORE_H
#define CAISSON_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct store;

#define STORE_FILE "state.db"

#define STORE_ID_MAX 64
#define STORE_OWNER_MAX 64
#define STORE_NAME_MAX 64
#define STORE_JSON_MAX (64u << 10) /* spec, labels: each */
#define STORE_REASON_MAX 512
#define STORE_CELL_MAX 512
#define STORE_KEY_MAX 255
#define STORE_ROUTE_MAX 255
#define STORE_BODY_MAX (1u << 20)
#define STORE_HASH_LEN 32
#define STORE_TREE_KEY_LEN 32
#define STORE_HOLDER_MAX 128
#define STORE_IMAGE_MAX 512 /* IMAGE_OPENER_REF_MAX */

#define STORE_SANDBOXES_MAX 10000u /* per owner */
#define STORE_KEYS_MAX 1000u       /* per owner; the oldest goes */
#define STORE_KEY_LIFE_MS INT64_C(86400000)

#define STORE_PROJECT_MAX 64
#define STORE_NOTE_KEY_MAX 100
#define STORE_NOTE_VALUE_MAX (1u << 20)
#define STORE_NOTE_TOOL_MAX (64u << 10) /* the source of one */
#define STORE_NOTE_META_MAX 4096u
#define STORE_MEMORIES_MAX 1000u      /* per owner, in all projects */
#define STORE_TOOLS_MAX 100u          /* likewise */
#define STORE_NOTES_BYTES (64u << 20) /* per owner: memory */

/* ---- files and lock: with rights, before the jail ------------------------------------------ */

/* The files of SQLite: open for reading and writing, close-on-exec. */
struct store_files {
	int db, wal;
};

/* Where damaged files went. */
struct store_report {
	char aside[64]; /* "state.db.corrupt-1700000000", or empty */
};

/*
 * store_lock() - Be the only daemon on the state directory @dirfd, for as long as this process
 * lives.
 * @where: its path, for the message.
 * @kept: the descriptor that a front before us had, ours from now on; -1: none
 * @pid: whom to stop
 *
 * The file `lock` in it holds @pid, for people. Return: a descriptor that must stay open; -EBUSY
 * with a message that names the other one's pid and the directory; or -errno.
 */
int store_lock(int dirfd, const char *where, int kept, pid_t pid, struct err *e);

/*
 * store_files_open() - Open or make the files in @dirfd, which must be ours alone.
 * @ret: give it to store_open(), or to store_files_close().
 *
 * Locks the database against other programs (the sqlite3 command). Return: 0; -EUCLEAN when what
 * lies there cannot be ours (no regular file, or empty): move it aside; or -errno.
 */
int store_files_open(int dirfd, struct store_files *ret, struct err *e);
void store_files_close(struct store_files *f);

/* store_files_aside() - Rename the files in @dirfd to NAME.corrupt-<seconds>; says so in @ret. */
int store_files_aside(int dirfd, struct store_report *ret, struct err *e);

/*
 * store_check() - Read the whole store, bring its schema up to date, and close it again. @f stays
 * open. Return: 0; -EUCLEAN when it is damaged, of a newer version or another program's; or -errno,
 * which says nothing about the store.
 */
int store_check(const struct store_files *f, struct err *e);

/* ---- life: in the jail --------------------------------------------------------------------- */

/* store_open() - Takes the descriptors of @f, on failure too. Everything but store_check()'s
 * reading. */
int store_open(struct store_files *f, struct store **ret, struct err *e);
void store_close(struct store *s);

/* ---- sandboxes ----------------------------------------------------------------------------- */

enum store_state { STORE_RUNNING, STORE_STOPPED, STORE_LOST, STORE_REMOVING, STORE_STATE_MAX_ };

/* Pointers are borrowed: from the caller, or for the time of a callback. NULL counts as "". */
struct store_sandbox {
	const char *id;    /* not empty, ours to choose */
	const char *owner; /* not empty */
	const char *name;  /* empty: none; otherwise unique per owner */
	const char *spec, *labels;
	const char *reason; /* why it is not running */
	const char *cell;   /* what the warden called it; for the journal */
	enum store_state state;
	uint32_t epoch;
	uint64_t executions;
	int64_t created_at, used_at;
	int64_t expires_at; /* 0: never */
};

/*
 * store_sandbox_put() - Insert, or replace the one with this id.
 * Return: 0; -EEXIST when another one of the owner has the name; -EDQUOT when the owner has
 * STORE_SANDBOXES_MAX already; or -errno.
 */
int store_sandbox_put(struct store *s, const struct store_sandbox *b, struct err *e);

/* store_sandbox_del() - Return: 1 when it was there, 0 when not, or -errno. */
int store_sandbox_del(struct store *s, const char *id, struct err *e);

/* The callbacks must not call the store; non-zero ends an enumeration and is returned by it. */
typedef int store_sandbox_fn(const struct store_sandbox *b, void *arg);

/* store_sandbox_each() - In the order of owner and name. */
int store_sandbox_each(struct store *s, store_sandbox_fn *fn, void *arg, struct err *e);

/*
 * store_mark_lost() - At the start: whatever ran is `lost` now, with @reason, but for the @n ids in
 * @kept; what was being removed is removed, because its cell is gone. Return: how many were lost,
 * or -errno.
 */
int64_t store_mark_lost(struct store *s, const char *reason, const char *const *kept, size_t n,
			struct err *e);

/* ---- idempotency keys ---------------------------------------------------------------------- */

struct store_key {
	const char *owner, *key, *route;    /* together they are unique; none is empty */
	unsigned char hash[STORE_HASH_LEN]; /* of the request */
	int status;                         /* of the answer; 0: not answered yet */
	const void *body;
	size_t body_len; /* more than STORE_BODY_MAX: -EMSGSIZE, and nothing is stored */
	int64_t created_at;
};

typedef void store_key_fn(const struct store_key *k, void *arg);

/*
 * store_key_get() - Return: 0 when it is missing, or older than STORE_KEY_LIFE_MS at @now;
 * 1, after @fn; or -errno. @fn must not call the store.
 */
int store_key_get(struct store *s, const char *owner, const char *key, const char *route,
		  int64_t now, store_key_fn *fn, void *arg, struct err *e);

/* store_key_put() - Insert or replace. Beyond STORE_KEYS_MAX the owner's oldest are forgotten. */
int store_key_put(struct store *s, const struct store_key *k, struct err *e);

/* store_key_del() - Return: 1 when it was there, 0 when not, or -errno. */
int store_key_del(struct store *s, const char *owner, const char *key, const char *route,
		  struct err *e);

/* store_forget_old() - Remove keys that are too old at @now. Return: how many, or -errno. */
int64_t store_forget_old(struct store *s, int64_t now, struct err *e);

/* ---- packages (front/packages/trees.h) ----------------------------------------------------- */

struct store_tree {
	const char *key; /* STORE_TREE_KEY_LEN digits */
	const char *sha256, *language, *request;
	const char *packages;  /* JSON */
	const char *installer; /* what made it; empty: not known */
	const char *seal;      /* 64 digits (src/package_store/digest.c); empty: none */
	const char *image;     /* what it was made with; empty: not known */
	const char *context;   /* 64 digits (struct tree); empty: beside no other package */
	bool exact;
	uint64_t bytes, files;
	int64_t created_at, used_at;
};

typedef int store_tree_fn(const struct store_tree *t, void *arg);
typedef int store_use_fn(const char *holder, const char *key, void *arg);

/* store_tree_put() - Insert, or set times, seal and image of the one with this key. 0 or -errno. */
int store_tree_put(struct store *s, const struct store_tree *t, struct err *e);
/* store_tree_del() - It, and that it is used. */
int store_tree_del(struct store *s, const char *key, struct err *e);
int store_tree_each(struct store *s, store_tree_fn *fn, void *arg, struct err *e);

/* store_use_put() - @holder uses it; store_use_del(): uses none any more; store_use_each(): the
 * oldest first. */
int store_use_put(struct store *s, const char *holder, const char *key, int64_t at, struct err *e);
int store_use_del(struct store *s, const char *holder, struct err *e);
int store_use_each(struct store *s, store_use_fn *fn, void *arg, struct err *e);

/* ---- workspaces (front/workspaces/workspaces.h) -------------------------------------------- */

struct store_workspace {
	const char *key; /* STORE_TREE_KEY_LEN digits */
	const char *owner, *name;
	const char *labels, *backing; /* JSON */
	uint64_t quota_bytes, quota_files;
	int64_t created_at, changed_at;
};

typedef int store_workspace_fn(const struct store_workspace *w, void *arg);

/* store_workspace_put() - Insert, or change the one with this key. 0; -EEXIST: the owner has one of
 * the name. */
int store_workspace_put(struct store *s, const struct store_workspace *w, struct err *e);
int store_workspace_del(struct store *s, const char *key, struct err *e);
int store_workspace_each(struct store *s, store_workspace_fn *fn, void *arg, struct err *e);

/* ---- notes: what an owner's code keeps from sandbox to sandbox ----------------------------- */

enum store_note_kind { STORE_NOTE_MEMORY, STORE_NOTE_TOOL, STORE_NOTE_KIND_MAX_ };

/* Where a note is. Borrowed; none is empty. */
struct store_note_place {
	const char *owner, *project;
	enum store_note_kind kind;
};

struct store_note {
	const char *key;              /* unique in its place, not empty */
	const char *value, *metadata; /* borrowed, as in the others */
	int64_t revision;             /* 1, and one more with each change */
	int64_t created_at, updated_at;
};

#define STORE_NOTE_ANY (-1)

/*
 * store_note_put() - Insert or replace; created_at stays that of the first.
 * @n: key, value and metadata are taken; the rest is set, as it is stored
 * @expected: the revision that it must have now (0: none), or STORE_NOTE_ANY
 *
 * Return: 0; -ESTALE when it has another revision; -EDQUOT, with a message that says of what there
 * is too much; -EMSGSIZE; or -errno.
 */
int store_note_put(struct store *s, const struct store_note_place *p, struct store_note *n,
		   int64_t expected, int64_t now, struct err *e);

/* @fn must not call the store; non-zero ends an enumeration and is returned by it. */
typedef int store_note_fn(const struct store_note *n, void *arg);

/* store_note_get() - Return: 0 when it is missing; 1, after @fn; or -errno. */
int store_note_get(struct store *s, const struct store_note_place *p, const char *key,
		   store_note_fn *fn, void *arg, struct err *e);
/* store_note_each() - In the order in which they were first put. */
int store_note_each(struct store *s, const struct store_note_place *p, store_note_fn *fn, void *arg,
		    struct err *e);
/* store_note_del() - Return: 1 when it was there, 0 when not, or -errno. */
int store_note_del(struct store *s, const struct store_note_place *p, const char *key,
		   struct err *e);
/* store_note_count() - How many are in a place, or -errno. */
int64_t store_note_count(struct store *s, const struct store_note_place *p, struct err *e);

#endif

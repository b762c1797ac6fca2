/* SPDX-License-Identifier: Apache-2.0 */
/* store_int.h - What the files of the store share. */
#ifndef CAISSON_STORE_STORE_INT_H
#define CAISSON_STORE_STORE_INT_H

#include <sqlite3.h>
#include <stdbool.h>

#include "store/store.h"
#include "store/vfs.h"

/* Prepared once, in store.c; the texts stand beside the code that binds them. */
enum store_stmt {
	STMT_BEGIN,
	STMT_COMMIT,
	STMT_ROLLBACK,
	STMT_PUT,
	STMT_COUNT,
	STMT_DEL,
	STMT_FIND,
	STMT_EACH,
	STMT_EACH_OWNER,
	STMT_LOST,
	STMT_FOUND,
	STMT_REMOVED,
	STMT_KEY_GET,
	STMT_KEY_PUT,
	STMT_KEY_DEL,
	STMT_KEY_TRIM,
	STMT_KEY_OLD,
	STMT_TREE_PUT,
	STMT_TREE_DEL,
	STMT_TREE_EACH,
	STMT_USE_PUT,
	STMT_USE_DEL,
	STMT_USE_GONE,
	STMT_USE_EACH,
	STMT_WORKSPACE_PUT,
	STMT_WORKSPACE_DEL,
	STMT_WORKSPACE_EACH,
	STMT_NOTE_GET,
	STMT_NOTE_PUT,
	STMT_NOTE_DEL,
	STMT_NOTE_EACH,
	STMT_NOTE_COUNT,
	STMT_NOTE_USE,
	STMT_MAX_,
};

struct store {
	sqlite3 *db;
	struct store_files files;
	struct store_vfs vfs;
	sqlite3_stmt *stmt[STMT_MAX_];
};

/* store_fail() - SQLite's code as errno and message. Never returns 0. */
int store_fail(struct store *s, int rc, const char *what, struct err *e);

/*
 * store_bind() - Bind in the order of @types: s a text (NULL is ""), i an int64_t, b a pointer and
 * a size_t. Borrowed until store_done(). Return: the statement.
 */
sqlite3_stmt *store_bind(struct store *s, enum store_stmt which, const char *types, ...);

/* store_done() - Give the statement back. */
void store_done(sqlite3_stmt *stmt);

/* store_run() - Step a statement that returns no row. Return: rows changed, or -errno. */
int64_t store_run(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e);

int store_begin(struct store *s, const char *what, struct err *e);

/* store_end() - Commit when @r is not negative, otherwise roll back. Return: @r or the failure. */
int64_t store_end(struct store *s, int64_t r, const char *what, struct err *e);

/* store_fits() - Whether a text may be stored. 0 or -EMSGSIZE, -EINVAL. */
int store_fits(const char *text, size_t min, size_t max, const char *name, struct err *e);

extern const char *const store_sandbox_sql[STMT_MAX_];
extern const char *const store_key_sql[STMT_MAX_];
extern const char *const store_tree_sql[STMT_MAX_];
extern const char *const store_workspace_sql[STMT_MAX_];
extern const char *const store_note_sql[STMT_MAX_];

#endif

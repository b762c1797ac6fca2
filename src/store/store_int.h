/* SPDX-License-Identifier: Apache-2.0 */
/* store_int.h - Shared by the files of the store: statements, rows, transactions. */
#ifndef CAISSON_STORE_STORE_INT_H
#define CAISSON_STORE_STORE_INT_H

#include <sqlite3.h>

#include "store/store.h"

/* Prepared once, in store.c; the texts stand beside the code that binds them. */
enum store_stmt {
	STMT_BEGIN,
	STMT_COMMIT,
	STMT_ROLLBACK,
	STMT_PUT,
	STMT_COUNT,
	STMT_DEL,
	STMT_EACH,
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

/* The two files for SQLite; vfs.c has the theory. */
struct store_vfs {
	sqlite3_vfs vfs;
	char name[32];
	struct store_files files; /* borrowed */
	int last_errno;           /* of the last operation that failed */
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
/* store_do() - The same. 0 or -errno. */
int store_do(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e);

/* store_next() - The next row of a statement: 1. Otherwise the statement is given back: 0 at the
 * end, or -errno. */
int store_next(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e);
/* store_count() - The number in the first column of the one row of a statement, or -errno. */
int64_t store_count(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e);
/* store_text() - A column of the row; never NULL. */
const char *store_text(sqlite3_stmt *stmt, int column);

int store_begin(struct store *s, const char *what, struct err *e);

/* store_end() - Commit when @r is not negative, otherwise roll back. Return: 0 or the failure. */
int store_end(struct store *s, int64_t r, const char *what, struct err *e);

/* A text to be stored, and the bounds of its length in bytes. */
struct store_bound {
	const char *name, *text;
	size_t min, max;
};

/* store_fits() - Whether all texts, up to one without a name, may be stored. 0, -EMSGSIZE or
 * -EINVAL. */
int store_fits(const struct store_bound *list, struct err *e);

/* ---- tables.c: the tables, and the way to them from every earlier version */

#define SCHEMA_APPLICATION_ID 0x43616973 /* "Cais" */

/*
 * schema_look() - Whose database it is, without a change to it.
 * Return: SQLITE_OK, for a new one too; SQLITE_NOTADB, with the reason in @e, when it is of a newer
 * version or another program's; or SQLite's code without a message.
 */
int schema_look(sqlite3 *db, int *ret_version, struct err *e);

/*
 * schema_apply() - Bring @db from @version to the newest, each step in a transaction.
 * Return: as schema_look(); also for other tables than this version has.
 */
int schema_apply(sqlite3 *db, int version, struct err *e);

/* ---- vfs.c */

/* store_vfs_add() - Register under a name of its own, v->name. 0 or -ENOMEM. */
int store_vfs_add(struct store_vfs *v, const struct store_files *f);
void store_vfs_remove(struct store_vfs *v);

/* ---- statements of each file */

extern const char *const store_key_sql[STMT_MAX_];
extern const char *const store_record_sql[STMT_MAX_];
extern const char *const store_note_sql[STMT_MAX_];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - The tables of the store.
 *
 * user_version counts the steps that were made; a step is never changed once released, only another
 * one added. The bounds of store.h stand here a second time, as CHECKs: the integrity check of a
 * store that somebody else wrote to compares every row with them. For that to mean anything the
 * tables must be ours to the letter: the schema is compared with one made in memory, so that no
 * trigger, view or weaker table gets in.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "store/store_int.h"

/* Lengths are in bytes, hence the casts. */
static const char *const steps[] = {
	/* 1 */
	"CREATE TABLE sandbox ("
	" id TEXT NOT NULL PRIMARY KEY CHECK(length(CAST(id AS BLOB)) BETWEEN 1 AND 64),"
	" owner TEXT NOT NULL CHECK(length(CAST(owner AS BLOB)) BETWEEN 1 AND 64),"
	" name TEXT NOT NULL CHECK(length(CAST(name AS BLOB)) <= 64),"
	" spec TEXT NOT NULL CHECK(length(CAST(spec AS BLOB)) <= 65536),"
	" labels TEXT NOT NULL CHECK(length(CAST(labels AS BLOB)) <= 65536),"
	" state TEXT NOT NULL CHECK(state IN ('running', 'stopped', 'lost', 'removing')),"
	" reason TEXT NOT NULL CHECK(length(CAST(reason AS BLOB)) <= 512),"
	" cell TEXT NOT NULL CHECK(length(CAST(cell AS BLOB)) <= 512),"
	" epoch INTEGER NOT NULL CHECK(epoch BETWEEN 0 AND 4294967295),"
	" executions INTEGER NOT NULL CHECK(executions >= 0),"
	" created_at INTEGER NOT NULL, used_at INTEGER NOT NULL, expires_at INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX sandbox_name ON sandbox(owner, name) WHERE name <> '';"
	"CREATE INDEX sandbox_owner ON sandbox(owner);"
	"CREATE INDEX sandbox_state ON sandbox(state);"
	"CREATE TABLE idempotency ("
	" owner TEXT NOT NULL CHECK(length(CAST(owner AS BLOB)) BETWEEN 1 AND 64),"
	" key TEXT NOT NULL CHECK(length(CAST(key AS BLOB)) BETWEEN 1 AND 255),"
	" route TEXT NOT NULL CHECK(length(CAST(route AS BLOB)) BETWEEN 1 AND 255),"
	" hash BLOB NOT NULL CHECK(length(hash) = 32),"
	" status INTEGER NOT NULL CHECK(status BETWEEN 0 AND 999),"
	" created_at INTEGER NOT NULL,"
	" body BLOB NOT NULL CHECK(length(body) <= 1048576),"
	" UNIQUE (owner, key, route)"
	") STRICT;"
	"CREATE INDEX idempotency_age ON idempotency(owner, created_at);"
	"CREATE INDEX idempotency_created ON idempotency(created_at);",
	/* 2 */
	"CREATE TABLE note ("
	" owner TEXT NOT NULL CHECK(length(CAST(owner AS BLOB)) BETWEEN 1 AND 64),"
	" project TEXT NOT NULL CHECK(length(CAST(project AS BLOB)) BETWEEN 1 AND 64),"
	" kind TEXT NOT NULL CHECK(kind IN ('memory', 'tool')),"
	" key TEXT NOT NULL CHECK(length(CAST(key AS BLOB)) BETWEEN 1 AND 100),"
	" value TEXT NOT NULL CHECK(length(CAST(value AS BLOB)) <= 1048576),"
	" metadata TEXT NOT NULL CHECK(length(CAST(metadata AS BLOB)) <= 4096),"
	" size INTEGER NOT NULL"
	" CHECK(size = length(CAST(value AS BLOB)) + length(CAST(metadata AS BLOB))),"
	" revision INTEGER NOT NULL CHECK(revision >= 1),"
	" created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,"
	" UNIQUE (owner, project, kind, key)"
	") STRICT;"
	"CREATE INDEX note_size ON note(owner, kind, size);",
	/* 3 */
	"CREATE TABLE tree ("
	" key TEXT NOT NULL PRIMARY KEY CHECK(length(CAST(key AS BLOB)) = 32),"
	" sha256 TEXT NOT NULL CHECK(length(CAST(sha256 AS BLOB)) = 64),"
	" language TEXT NOT NULL CHECK(language IN ('python', 'javascript')),"
	" request TEXT NOT NULL CHECK(length(CAST(request AS BLOB)) BETWEEN 1 AND 65536),"
	" packages TEXT NOT NULL CHECK(length(CAST(packages AS BLOB)) <= 1048576),"
	" exact INTEGER NOT NULL CHECK(exact IN (0, 1)),"
	" bytes INTEGER NOT NULL CHECK(bytes >= 0), files INTEGER NOT NULL CHECK(files >= 0),"
	" created_at INTEGER NOT NULL, used_at INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE tree_use ("
	" holder TEXT NOT NULL CHECK(length(CAST(holder AS BLOB)) BETWEEN 1 AND 128),"
	" key TEXT NOT NULL CHECK(length(CAST(key AS BLOB)) = 32),"
	" at INTEGER NOT NULL,"
	" UNIQUE (holder, key)"
	") STRICT;",
	/* 4 */
	"ALTER TABLE tree ADD COLUMN installer TEXT NOT NULL DEFAULT ''"
	" CHECK(length(CAST(installer AS BLOB)) <= 64);"
	"ALTER TABLE tree ADD COLUMN seal TEXT NOT NULL DEFAULT ''"
	" CHECK(length(CAST(seal AS BLOB)) IN (0, 64));",
	/* 5 */
	"CREATE TABLE workspace ("
	" key TEXT NOT NULL PRIMARY KEY CHECK(length(CAST(key AS BLOB)) = 32),"
	" owner TEXT NOT NULL CHECK(length(CAST(owner AS BLOB)) BETWEEN 1 AND 64),"
	" name TEXT NOT NULL CHECK(length(CAST(name AS BLOB)) BETWEEN 1 AND 64),"
	" labels TEXT NOT NULL CHECK(length(CAST(labels AS BLOB)) <= 65536),"
	" backing TEXT NOT NULL CHECK(length(CAST(backing AS BLOB)) <= 65536),"
	" quota_bytes INTEGER NOT NULL CHECK(quota_bytes >= 0),"
	" quota_files INTEGER NOT NULL CHECK(quota_files >= 0),"
	" created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL,"
	" UNIQUE (owner, name)"
	") STRICT, WITHOUT ROWID;",
	/* 6 */
	("ALTER TABLE tree ADD COLUMN image TEXT NOT NULL DEFAULT ''"
	 " CHECK(length(CAST(image AS BLOB)) <= 512);"), /* one string; clang asks whether it is two
							  */
	/* 7: trees of before may have been made beside packages that are not known any more. So
	 * no new request finds them. */
	("ALTER TABLE tree ADD COLUMN context TEXT NOT NULL DEFAULT ''"
	 " CHECK(length(CAST(context AS BLOB)) IN (0, 64));"
	 "UPDATE tree SET context = lower(hex(randomblob(32)));"),
};

/* One number of a pragma. */
static int ask_number(sqlite3 *db, const char *sql, int *ret)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		*ret = sqlite3_column_int(stmt, 0);
		rc = SQLITE_OK;
	}
	(void)sqlite3_finalize(stmt);
	return rc;
}

static int make_step(sqlite3 *db, size_t i)
{
	char mark[96];
	const char *const texts[] = { "BEGIN IMMEDIATE", steps[i], mark, "COMMIT" };
	int rc = SQLITE_OK;

	(void)snprintf(mark, sizeof(mark), "PRAGMA application_id=%d; PRAGMA user_version=%zu",
		       SCHEMA_APPLICATION_ID, i + 1);
	for (size_t k = 0; rc == SQLITE_OK && k < ARRAY_SIZE(texts); k++)
		rc = sqlite3_exec(db, texts[k], NULL, NULL, NULL);
	if (rc != SQLITE_OK && !sqlite3_get_autocommit(db))
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

/* ---- ours to the letter -------------------------------------------------------------------- */

static int prepare_list(sqlite3 *db, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(db,
				  "SELECT type, name, tbl_name, coalesce(sql, '') "
				  "FROM sqlite_schema ORDER BY type, name",
				  -1, ret, NULL);
}

static bool same_column(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
	const char *x = (const char *)sqlite3_column_text(a, column);
	const char *y = (const char *)sqlite3_column_text(b, column);

	return x && y && strcmp(x, y) == 0;
}

static int compare_lists(sqlite3_stmt *a, sqlite3_stmt *b, bool *same)
{
	for (;;) {
		int x = sqlite3_step(a), y = sqlite3_step(b);

		if (x != SQLITE_ROW && x != SQLITE_DONE)
			return x;
		if (y != SQLITE_ROW && y != SQLITE_DONE)
			return y;
		if (x == SQLITE_DONE && y == SQLITE_DONE)
			return SQLITE_OK;
		*same = x == y;
		for (int i = 0; *same && i < 4; i++)
			*same = same_column(a, b, i);
		if (!*same)
			return SQLITE_OK;
	}
}

static int is_ours(sqlite3 *db, bool *same)
{
	sqlite3 *model = NULL;
	sqlite3_stmt *a = NULL, *b = NULL;
	int rc = sqlite3_open(":memory:", &model);

	*same = true;
	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(steps); i++)
		rc = make_step(model, i);
	if (rc == SQLITE_OK)
		rc = prepare_list(model, &b);
	if (rc == SQLITE_OK)
		rc = prepare_list(db, &a);
	if (rc == SQLITE_OK)
		rc = compare_lists(a, b, same);
	(void)sqlite3_finalize(a);
	(void)sqlite3_finalize(b);
	(void)sqlite3_close(model);
	return rc;
}

static int unusable(struct err *e, const char *why)
{
	(void)err_say(e, -EUCLEAN, "%s", why);
	return SQLITE_NOTADB;
}

int schema_look(sqlite3 *db, int *ret_version, struct err *e)
{
	int version = 0, id = 0, tables = 0;
	int rc = ask_number(db, "PRAGMA user_version", &version);

	if (rc == SQLITE_OK)
		rc = ask_number(db, "PRAGMA application_id", &id);
	if (rc == SQLITE_OK)
		rc = ask_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (rc != SQLITE_OK)
		return rc;
	if (id != (version == 0 ? 0 : SCHEMA_APPLICATION_ID) || (version == 0 && tables > 0))
		return unusable(e, "it is another program's database");
	if (version < 0 || version > (int)ARRAY_SIZE(steps))
		return unusable(e, "it is of a newer version of caisson");
	*ret_version = version;
	return SQLITE_OK;
}

int schema_apply(sqlite3 *db, int version, struct err *e)
{
	bool same = false;
	int rc = SQLITE_OK;

	for (size_t i = (size_t)version; rc == SQLITE_OK && i < ARRAY_SIZE(steps); i++)
		rc = make_step(db, i);
	if (rc == SQLITE_OK)
		rc = is_ours(db, &same);
	if (rc == SQLITE_OK && !same)
		return unusable(e, "its tables are not those of this version");
	return rc;
}

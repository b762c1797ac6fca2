/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - Opening the store, and how a statement is run.
 *
 * Theory of operation. One connection, one thread, all statements prepared when it opens. WAL with
 * synchronous NORMAL: a commit is one or two writes to the log and no sync; what is lost with the
 * machine's power is the end of the log, whole transactions, and never the order of them. A crash
 * of the daemon alone loses nothing. Checkpoints sync.
 *
 * Failure model. A statement that fails is reset before the message is made, and a transaction is
 * rolled back, in memory; then SQLite holds no page and no lock, and has forgotten its own error
 * state. So the next call starts afresh, which is what lets a daemon outlive a full disk.
 */
#include "store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "store/store_int.h"

#define HEAP_MAX (64 << 20) /* so a crafted database cannot use up the machine */

static const char *const own_sql[STMT_MAX_] = {
	[STMT_BEGIN] = "BEGIN IMMEDIATE",
	[STMT_COMMIT] = "COMMIT",
	[STMT_ROLLBACK] = "ROLLBACK",
};

/* ---- errors -------------------------------------------------------------------------------- */

static int io_error(const struct store *s, const char *what, struct err *e)
{
	switch (s->vfs.last_errno) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return err_set(e, -s->vfs.last_errno,
			       "%s: the disk of the state directory is full; free some space",
			       what);
	case EROFS:
		return err_set(e, -EROFS,
			       "%s: the state directory became read-only; mount it writable", what);
	default:
		return err_set(e, s->vfs.last_errno ? -s->vfs.last_errno : -EIO,
			       "%s: the disk of the state directory fails", what);
	}
}

int store_fail(struct store *s, int rc, const char *what, struct err *e)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		if (!s->vfs.last_errno)
			s->vfs.last_errno = ENOSPC;
		return io_error(s, what, e);
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return rc == SQLITE_IOERR_NOMEM ? err_set(e, -ENOMEM, "%s", what) :
						  io_error(s, what, e);
	case SQLITE_READONLY:
		return err_set(e, -EROFS, "%s: the state directory is read-only", what);
	case SQLITE_NOMEM:
		return err_set(e, -ENOMEM, "%s", what);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_say(e, -EUCLEAN,
			       "%s: the store is damaged; the next start puts it aside and makes a "
			       "new one",
			       what);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_say(e, -EBUSY, "%s: the store is in use", what);
	case SQLITE_TOOBIG:
		return err_set(e, -EMSGSIZE, "%s", what);
	case SQLITE_CONSTRAINT:
		return err_set(e, rc == SQLITE_CONSTRAINT_UNIQUE ? -EEXIST : -EINVAL, "%s", what);
	default:
		return err_say(e, -EIO, "%s: SQLite reports %s (%d)", what, sqlite3_errstr(rc), rc);
	}
}

int store_fits(const struct store_bound *b, struct err *e)
{
	for (; b->name; b++) {
		size_t len = b->text ? strlen(b->text) : 0;

		if (len < b->min)
			return err_say(e, -EINVAL, "store: %s is empty", b->name);
		if (len > b->max)
			return err_say(e, -EMSGSIZE, "store: %s has %zu bytes, more than %zu",
				       b->name, len, b->max);
	}
	return 0;
}

/* ---- statements ---------------------------------------------------------------------------- */

sqlite3_stmt *store_bind(struct store *s, enum store_stmt which, const char *types, ...)
{
	sqlite3_stmt *stmt = s->stmt[which];
	va_list ap;

	/* Binding can fail for memory alone, which the step then finds as a NOT NULL. */
	va_start(ap, types);
	for (int i = 1; types[i - 1]; i++) {
		if (types[i - 1] == 's') {
			const char *text = va_arg(ap, const char *);

			(void)sqlite3_bind_text(stmt, i, text ? text : "", -1, SQLITE_STATIC);
		} else if (types[i - 1] == 'i') {
			(void)sqlite3_bind_int64(stmt, i, va_arg(ap, int64_t));
		} else {
			const void *data = va_arg(ap, const void *);
			size_t len = va_arg(ap, size_t);

			(void)sqlite3_bind_blob64(stmt, i, len ? data : "", len, SQLITE_STATIC);
		}
	}
	va_end(ap);
	s->vfs.last_errno = 0;
	return stmt;
}

void store_done(sqlite3_stmt *stmt)
{
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt);
}

int64_t store_run(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e)
{
	int rc = sqlite3_step(stmt);
	int64_t n = sqlite3_changes64(s->db);

	store_done(stmt);
	return rc == SQLITE_DONE ? n : store_fail(s, rc, what, e);
}

int store_do(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e)
{
	int64_t r = store_run(s, stmt, what, e);

	return r < 0 ? (int)r : 0;
}

int store_next(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e)
{
	int rc = sqlite3_step(stmt);

	if (rc == SQLITE_ROW)
		return 1;
	store_done(stmt);
	return rc == SQLITE_DONE ? 0 : store_fail(s, rc, what, e);
}

int64_t store_count(struct store *s, sqlite3_stmt *stmt, const char *what, struct err *e)
{
	int64_t n = store_next(s, stmt, what, e);

	n = n > 0 ? sqlite3_column_int64(stmt, 0) : n;
	store_done(stmt);
	return n;
}

const char *store_text(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text ? text : "";
}

int store_begin(struct store *s, const char *what, struct err *e)
{
	return store_do(s, store_bind(s, STMT_BEGIN, ""), what, e);
}

int store_end(struct store *s, int64_t r, const char *what, struct err *e)
{
	if (r >= 0)
		r = store_do(s, store_bind(s, STMT_COMMIT, ""), what, e);
	/* Some failures have rolled back already. */
	if (r < 0 && !sqlite3_get_autocommit(s->db))
		(void)store_run(s, store_bind(s, STMT_ROLLBACK, ""), what, NULL);
	return (int)r;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void harden(sqlite3 *db)
{
	static const int on[] = { SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_ENABLE_FKEY };
	static const int off[] = { SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
				   SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_DQS_DDL,
				   SQLITE_DBCONFIG_DQS_DML };
	static const struct {
		int which, max;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, 4 << 20 }, { SQLITE_LIMIT_SQL_LENGTH, 64 << 10 },
		{ SQLITE_LIMIT_ATTACHED, 0 },     { SQLITE_LIMIT_WORKER_THREADS, 0 },
		{ SQLITE_LIMIT_COLUMN, 64 },      { SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(on); i++)
		(void)sqlite3_db_config(db, on[i], 1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(off); i++)
		(void)sqlite3_db_config(db, off[i], 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		(void)sqlite3_limit(db, limits[i].which, limits[i].max);
	(void)sqlite3_busy_timeout(db, 0);
	(void)sqlite3_extended_result_codes(db, 1);
}

static int first_text(void *arg, int n, char **values, char **names)
{
	(void)names;
	if (n > 0 && values[0])
		(void)snprintf(arg, 256, "%s", values[0]);
	return 0;
}

static int run(struct store *s, const char *sql, char *ret_text, struct err *e)
{
	int rc = sqlite3_exec(s->db, sql, ret_text ? first_text : NULL, ret_text, NULL);

	return rc == SQLITE_OK ? 0 : store_fail(s, rc, "open the store", e);
}

/* From whatever it is in to WAL; see vfs.c. */
static int use_log(struct store *s, struct err *e)
{
	char mode[256] = "";

	if (run(s, "PRAGMA journal_mode", mode, e) < 0)
		return e->code;
	if (strcmp(mode, "wal") != 0 && run(s, "PRAGMA journal_mode=MEMORY", NULL, e) < 0)
		return e->code;
	if (run(s, "PRAGMA journal_mode=WAL", mode, e) < 0)
		return e->code;
	if (strcmp(mode, "wal") != 0)
		return err_say(e, -EIO, "open the store: SQLite has no write-ahead log here");
	return run(s,
		   "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=256;"
		   "PRAGMA journal_size_limit=1048576;",
		   NULL, e);
}

static int use_schema(struct store *s, int rc, const struct err *why, struct err *e)
{
	if (rc == SQLITE_OK)
		return 0;
	return why->code ? err_say(e, why->code, "%s", why->msg) :
			   store_fail(s, rc, "open the store", e);
}

static int prepare(struct store *s, struct err *e)
{
	for (size_t i = 0; i < STMT_MAX_; i++) {
		const char *sql = own_sql[i]          ? own_sql[i] :
				  store_key_sql[i]    ? store_key_sql[i] :
				  store_record_sql[i] ? store_record_sql[i] :
							store_note_sql[i];
		int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[i],
					    NULL);

		if (rc != SQLITE_OK)
			return store_fail(s, rc, "open the store", e);
	}
	return 0;
}

/* All but the statements. Nothing is changed before it is known to be ours. */
static int connect(struct store *s, struct err *e)
{
	struct err why = { 0 };
	int rc, version = 0;

	/* Both are the process's, and we are the only user of SQLite in it. */
	(void)sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, -1);
	(void)sqlite3_hard_heap_limit64(HEAP_MAX);
	if (store_vfs_add(&s->vfs, &s->files) < 0)
		return err_set(e, -ENOMEM, "open the store");
	rc = sqlite3_open_v2(STORE_FILE, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			     s->vfs.name);
	if (rc != SQLITE_OK)
		return store_fail(s, rc, "open the store", e);
	harden(s->db);
	/* Exclusive before anything is read: the log's index is in memory then. */
	if (run(s,
		"PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY;"
		"PRAGMA cell_size_check=ON; PRAGMA cache_size=-2048;",
		NULL, e) < 0)
		return e->code;
	rc = schema_look(s->db, &version, &why);
	if (use_schema(s, rc, &why, e) < 0 || use_log(s, e) < 0)
		return e->code;
	rc = schema_apply(s->db, version, &why);
	return use_schema(s, rc, &why, e);
}

/* Leaves the files open. */
static void disconnect(struct store *s)
{
	for (size_t i = 0; i < STMT_MAX_; i++)
		(void)sqlite3_finalize(s->stmt[i]);
	(void)sqlite3_close(s->db);
	if (s->vfs.name[0])
		store_vfs_remove(&s->vfs);
}

int store_open(struct store_files *f, struct store **ret, struct err *e)
{
	struct err local = { 0 };
	struct store *s = calloc(1, sizeof(*s));

	if (!e)
		e = &local;
	if (!s) {
		store_files_close(f);
		return err_set(e, -ENOMEM, "open the store");
	}
	s->files = *f;
	*f = (struct store_files){ -1, -1 };
	if (connect(s, e) < 0 || prepare(s, e) < 0) {
		store_close(s);
		return e->code;
	}
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	disconnect(s);
	store_files_close(&s->files);
	free(s);
}

int store_check(const struct store_files *f, struct err *e)
{
	struct err local = { 0 };
	struct store s = { .files = *f };
	char verdict[256] = "";

	if (!e)
		e = &local;
	e->code = 0;
	if (connect(&s, e) == 0 && prepare(&s, e) == 0) {
		int rc = sqlite3_exec(s.db, "PRAGMA integrity_check(1)", first_text, verdict, NULL);

		if (rc != SQLITE_OK)
			(void)store_fail(&s, rc, "check the store", e);
		else if (strcmp(verdict, "ok") != 0)
			(void)err_say(e, -EUCLEAN, "it is damaged: %s", verdict);
	}
	/* A damaged store stays as it was found. */
	if (s.db)
		(void)sqlite3_db_config(s.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	disconnect(&s);
	return e->code;
}

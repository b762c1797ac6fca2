/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c - Trees of packages, and who uses them. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_int.h"

const char *const store_tree_sql[STMT_MAX_] = {
	[STMT_TREE_PUT] = "INSERT INTO tree (key, sha256, language, request, packages, exact, "
			  "bytes, files, created_at, used_at, installer, seal, image) "
			  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
			  "ON CONFLICT (key) DO UPDATE SET created_at=?9, used_at=?10, seal=?12, "
			  "image=?13",
	[STMT_TREE_DEL] = "DELETE FROM tree WHERE key=?1",
	[STMT_TREE_EACH] =
		"SELECT key, sha256, language, request, packages, exact, bytes, files, "
		"created_at, used_at, installer, seal, image FROM tree ORDER BY created_at, key",
	[STMT_USE_PUT] = "INSERT INTO tree_use (holder, key, at) VALUES (?1, ?2, ?3) "
			 "ON CONFLICT (holder, key) DO UPDATE SET at=?3",
	[STMT_USE_DEL] = "DELETE FROM tree_use WHERE holder=?1",
	[STMT_USE_GONE] = "DELETE FROM tree_use WHERE key=?1",
	[STMT_USE_EACH] = "SELECT holder, key FROM tree_use ORDER BY at, rowid",
};

static int check(const struct store_tree *t, struct err *e)
{
	if (store_fits(t->key, STORE_TREE_KEY_LEN, STORE_TREE_KEY_LEN, "key", e) < 0 ||
	    store_fits(t->sha256, 64, 64, "sha256", e) < 0 ||
	    store_fits(t->language, 1, STORE_NAME_MAX, "language", e) < 0 ||
	    store_fits(t->request, 1, STORE_JSON_MAX, "request", e) < 0 ||
	    store_fits(t->packages, 2, STORE_BODY_MAX, "packages", e) < 0 ||
	    store_fits(t->installer, 0, STORE_NAME_MAX, "installer", e) < 0 ||
	    store_fits(t->seal, 0, 64, "seal", e) < 0 ||
	    store_fits(t->image, 0, STORE_IMAGE_MAX, "image", e) < 0)
		return e->code;
	return 0;
}

int store_tree_put(struct store *s, const struct store_tree *t, struct err *e)
{
	struct err local = { 0 };

	if (!e)
		e = &local;
	if (check(t, e) < 0)
		return e->code;
	int64_t r = store_run(s,
			      store_bind(s, STMT_TREE_PUT, "sssssiiiiisss", t->key, t->sha256,
					 t->language, t->request, t->packages, (int64_t)t->exact,
					 (int64_t)t->bytes, (int64_t)t->files, t->created_at,
					 t->used_at, t->installer, t->seal, t->image),
			      "remember packages", e);

	return r < 0 ? (int)r : 0;
}

int store_tree_del(struct store *s, const char *key, struct err *e)
{
	static const char what[] = "forget packages";
	struct err local = { 0 };

	if (!e)
		e = &local;
	if (store_begin(s, what, e) < 0)
		return e->code;
	int64_t r = store_run(s, store_bind(s, STMT_USE_GONE, "s", key), what, e);

	if (r >= 0)
		r = store_run(s, store_bind(s, STMT_TREE_DEL, "s", key), what, e);
	r = store_end(s, r, what, e);
	return r < 0 ? (int)r : 0;
}

static const char *text(sqlite3_stmt *stmt, int column)
{
	const char *s = (const char *)sqlite3_column_text(stmt, column);

	return s ? s : "";
}

int store_tree_each(struct store *s, store_tree_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_TREE_EACH, "");
	int rc, r = 0;

	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct store_tree t = {
			.key = text(stmt, 0),
			.sha256 = text(stmt, 1),
			.language = text(stmt, 2),
			.request = text(stmt, 3),
			.packages = text(stmt, 4),
			.exact = sqlite3_column_int(stmt, 5) != 0,
			.bytes = (uint64_t)sqlite3_column_int64(stmt, 6),
			.files = (uint64_t)sqlite3_column_int64(stmt, 7),
			.created_at = sqlite3_column_int64(stmt, 8),
			.used_at = sqlite3_column_int64(stmt, 9),
			.installer = text(stmt, 10),
			.seal = text(stmt, 11),
			.image = text(stmt, 12),
		};

		r = fn(&t, arg);
	}
	store_done(stmt);
	return r == 0 && rc != SQLITE_DONE ? store_fail(s, rc, "read packages", e) : r;
}

int store_use_put(struct store *s, const char *holder, const char *key, int64_t at, struct err *e)
{
	int64_t r;

	if (store_fits(holder, 1, STORE_HOLDER_MAX, "holder", e) < 0)
		return -EMSGSIZE;
	r = store_run(s, store_bind(s, STMT_USE_PUT, "ssi", holder, key, at), "remember packages",
		      e);
	return r < 0 ? (int)r : 0;
}

int store_use_del(struct store *s, const char *holder, struct err *e)
{
	int64_t r = store_run(s, store_bind(s, STMT_USE_DEL, "s", holder), "forget packages", e);

	return r < 0 ? (int)r : 0;
}

int store_use_each(struct store *s, store_use_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_USE_EACH, "");
	int rc, r = 0;

	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		r = fn(text(stmt, 0), text(stmt, 1), arg);
	store_done(stmt);
	return r == 0 && rc != SQLITE_DONE ? store_fail(s, rc, "read packages", e) : r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c - Records of trees: those of packages, with their users, and workspaces. */
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
	[STMT_WORKSPACE_PUT] = "INSERT INTO workspace (key, owner, name, labels, backing, "
			       "quota_bytes, quota_files, created_at, changed_at) "
			       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
			       "ON CONFLICT (key) DO UPDATE SET labels=?4, backing=?5, "
			       "quota_bytes=?6, quota_files=?7, changed_at=?9",
	[STMT_WORKSPACE_DEL] = "DELETE FROM workspace WHERE key=?1",
	[STMT_WORKSPACE_EACH] = "SELECT key, owner, name, labels, backing, quota_bytes, "
				"quota_files, created_at, changed_at "
				"FROM workspace ORDER BY owner, name",
};

static int check(const struct store_tree *t, struct err *e)
{
	return store_fits(
		(const struct store_bound[]){
			{ "key", t->key, STORE_TREE_KEY_LEN, STORE_TREE_KEY_LEN },
			{ "sha256", t->sha256, 64, 64 },
			{ "language", t->language, 1, STORE_NAME_MAX },
			{ "request", t->request, 1, STORE_JSON_MAX },
			{ "packages", t->packages, 2, STORE_BODY_MAX },
			{ "installer", t->installer, 0, STORE_NAME_MAX },
			{ "seal", t->seal, 0, 64 },
			{ "image", t->image, 0, STORE_IMAGE_MAX },
			{ 0 } },
		e);
}

int store_tree_put(struct store *s, const struct store_tree *t, struct err *e)
{
	int r = check(t, e);

	return r < 0 ? r :
		       store_do(s,
				store_bind(s, STMT_TREE_PUT, "sssssiiiiisss", t->key, t->sha256,
					   t->language, t->request, t->packages, (int64_t)t->exact,
					   (int64_t)t->bytes, (int64_t)t->files, t->created_at,
					   t->used_at, t->installer, t->seal, t->image),
				"remember packages", e);
}

int store_tree_del(struct store *s, const char *key, struct err *e)
{
	static const char what[] = "forget packages";
	int64_t r = store_begin(s, what, e);

	if (r < 0)
		return (int)r;
	r = store_run(s, store_bind(s, STMT_USE_GONE, "s", key), what, e);
	if (r >= 0)
		r = store_run(s, store_bind(s, STMT_TREE_DEL, "s", key), what, e);
	r = store_end(s, r, what, e);
	return r < 0 ? (int)r : 0;
}

int store_tree_each(struct store *s, store_tree_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_TREE_EACH, "");
	int r = 0;

	while (r == 0 && (r = store_next(s, stmt, "read packages", e)) > 0) {
		const struct store_tree t = {
			.key = store_text(stmt, 0),
			.sha256 = store_text(stmt, 1),
			.language = store_text(stmt, 2),
			.request = store_text(stmt, 3),
			.packages = store_text(stmt, 4),
			.exact = sqlite3_column_int(stmt, 5) != 0,
			.bytes = (uint64_t)sqlite3_column_int64(stmt, 6),
			.files = (uint64_t)sqlite3_column_int64(stmt, 7),
			.created_at = sqlite3_column_int64(stmt, 8),
			.used_at = sqlite3_column_int64(stmt, 9),
			.installer = store_text(stmt, 10),
			.seal = store_text(stmt, 11),
			.image = store_text(stmt, 12),
		};

		r = fn(&t, arg);
	}
	store_done(stmt);
	return r;
}

int store_use_put(struct store *s, const char *holder, const char *key, int64_t at, struct err *e)
{
	const struct store_bound bounds[] = { { "holder", holder, 1, STORE_HOLDER_MAX }, { 0 } };
	int r = store_fits(bounds, e);

	return r < 0 ? r :
		       store_do(s, store_bind(s, STMT_USE_PUT, "ssi", holder, key, at),
				"remember packages", e);
}

int store_use_del(struct store *s, const char *holder, struct err *e)
{
	return store_do(s, store_bind(s, STMT_USE_DEL, "s", holder), "forget packages", e);
}

int store_use_each(struct store *s, store_use_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_USE_EACH, "");
	int r = 0;

	while (r == 0 && (r = store_next(s, stmt, "read packages", e)) > 0)
		r = fn(store_text(stmt, 0), store_text(stmt, 1), arg);
	store_done(stmt);
	return r;
}

/* ---- workspaces ---------------------------------------------------------------------------- */

int store_workspace_put(struct store *s, const struct store_workspace *w, struct err *e)
{
	const struct store_bound bounds[] = {
		{ "key", w->key, STORE_TREE_KEY_LEN, STORE_TREE_KEY_LEN },
		{ "owner", w->owner, 1, STORE_OWNER_MAX },
		{ "name", w->name, 1, STORE_NAME_MAX },
		{ "labels", w->labels, 0, STORE_JSON_MAX },
		{ "backing", w->backing, 0, STORE_JSON_MAX },
		{ 0 },
	};
	int r = store_fits(bounds, e);

	return r < 0 ? r :
		       store_do(s,
				store_bind(s, STMT_WORKSPACE_PUT, "sssssiiii", w->key, w->owner,
					   w->name, w->labels, w->backing, (int64_t)w->quota_bytes,
					   (int64_t)w->quota_files, w->created_at, w->changed_at),
				"remember a workspace", e);
}

int store_workspace_del(struct store *s, const char *key, struct err *e)
{
	return store_do(s, store_bind(s, STMT_WORKSPACE_DEL, "s", key), "forget a workspace", e);
}

int store_workspace_each(struct store *s, store_workspace_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_WORKSPACE_EACH, "");
	int r = 0;

	while (r == 0 && (r = store_next(s, stmt, "read workspaces", e)) > 0) {
		const struct store_workspace w = {
			.key = store_text(stmt, 0),
			.owner = store_text(stmt, 1),
			.name = store_text(stmt, 2),
			.labels = store_text(stmt, 3),
			.backing = store_text(stmt, 4),
			.quota_bytes = (uint64_t)sqlite3_column_int64(stmt, 5),
			.quota_files = (uint64_t)sqlite3_column_int64(stmt, 6),
			.created_at = sqlite3_column_int64(stmt, 7),
			.changed_at = sqlite3_column_int64(stmt, 8),
		};

		r = fn(&w, arg);
	}
	store_done(stmt);
	return r;
}

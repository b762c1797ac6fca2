/* SPDX-License-Identifier: Apache-2.0 */
/* workspaces.c - Records of workspaces: whose they are, and what they may hold. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_int.h"

const char *const store_workspace_sql[STMT_MAX_] = {
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

int store_workspace_put(struct store *s, const struct store_workspace *w, struct err *e)
{
	struct err local = { 0 };

	if (!e)
		e = &local;
	if (store_fits(w->key, STORE_TREE_KEY_LEN, STORE_TREE_KEY_LEN, "key", e) < 0 ||
	    store_fits(w->owner, 1, STORE_OWNER_MAX, "owner", e) < 0 ||
	    store_fits(w->name, 1, STORE_NAME_MAX, "name", e) < 0 ||
	    store_fits(w->labels, 0, STORE_JSON_MAX, "labels", e) < 0 ||
	    store_fits(w->backing, 0, STORE_JSON_MAX, "backing", e) < 0)
		return e->code;
	int64_t r = store_run(s,
			      store_bind(s, STMT_WORKSPACE_PUT, "sssssiiii", w->key, w->owner,
					 w->name, w->labels, w->backing, (int64_t)w->quota_bytes,
					 (int64_t)w->quota_files, w->created_at, w->changed_at),
			      "remember a workspace", e);

	return r < 0 ? (int)r : 0;
}

int store_workspace_del(struct store *s, const char *key, struct err *e)
{
	int64_t r =
		store_run(s, store_bind(s, STMT_WORKSPACE_DEL, "s", key), "forget a workspace", e);

	return r < 0 ? (int)r : 0;
}

static const char *text(sqlite3_stmt *stmt, int column)
{
	const char *s = (const char *)sqlite3_column_text(stmt, column);

	return s ? s : "";
}

int store_workspace_each(struct store *s, store_workspace_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_WORKSPACE_EACH, "");
	int rc, r = 0;

	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct store_workspace w = {
			.key = text(stmt, 0),
			.owner = text(stmt, 1),
			.name = text(stmt, 2),
			.labels = text(stmt, 3),
			.backing = text(stmt, 4),
			.quota_bytes = (uint64_t)sqlite3_column_int64(stmt, 5),
			.quota_files = (uint64_t)sqlite3_column_int64(stmt, 6),
			.created_at = sqlite3_column_int64(stmt, 7),
			.changed_at = sqlite3_column_int64(stmt, 8),
		};

		r = fn(&w, arg);
	}
	store_done(stmt);
	return r == 0 && rc != SQLITE_DONE ? store_fail(s, rc, "read workspaces", e) : r;
}

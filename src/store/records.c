/* SPDX-License-Identifier: Apache-2.0 */
/* records.c - Records of sandboxes, of trees of packages with their users, and of workspaces. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_int.h"

#define COLUMNS                                                                                    \
	"id, owner, name, spec, labels, state, reason, cell, epoch, executions, created_at, "      \
	"used_at, expires_at"

const char *const store_record_sql[STMT_MAX_] = {
	[STMT_PUT] = "INSERT INTO sandbox (" COLUMNS ") "
		     "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
		     "ON CONFLICT (id) DO UPDATE SET owner=?2, name=?3, spec=?4, labels=?5, "
		     "state=?6, reason=?7, cell=?8, epoch=?9, executions=?10, created_at=?11, "
		     "used_at=?12, expires_at=?13",
	[STMT_COUNT] = "SELECT count(*) FROM sandbox WHERE owner=?1 AND id<>?2",
	[STMT_DEL] = "DELETE FROM sandbox WHERE id=?1",
	[STMT_EACH] = "SELECT " COLUMNS " FROM sandbox ORDER BY owner, name, id",
	[STMT_LOST] = "UPDATE sandbox SET state='lost', reason=?1 WHERE state='running'",
	[STMT_FOUND] = "UPDATE sandbox SET state='running', reason='' "
		       "WHERE id=?1 AND state='lost' AND reason=?2",
	[STMT_REMOVED] = "DELETE FROM sandbox WHERE state='removing'",
	[STMT_TREE_PUT] = "INSERT INTO tree (key, sha256, language, request, packages, exact, "
			  "bytes, files, created_at, used_at, installer, seal, image, context) "
			  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) "
			  "ON CONFLICT (key) DO UPDATE SET created_at=?9, used_at=?10, seal=?12, "
			  "image=?13",
	[STMT_TREE_DEL] = "DELETE FROM tree WHERE key=?1",
	[STMT_TREE_EACH] = "SELECT key, sha256, language, request, packages, exact, bytes, files, "
			   "created_at, used_at, installer, seal, image, context FROM tree "
			   "ORDER BY created_at, key",
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

static int check_tree(const struct store_tree *t, struct err *e)
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
			{ "context", t->context, 0, 64 },
			{ 0 } },
		e);
}

int store_tree_put(struct store *s, const struct store_tree *t, struct err *e)
{
	int r = check_tree(t, e);

	return r < 0 ? r :
		       store_do(s,
				store_bind(s, STMT_TREE_PUT, "sssssiiiiissss", t->key, t->sha256,
					   t->language, t->request, t->packages, (int64_t)t->exact,
					   (int64_t)t->bytes, (int64_t)t->files, t->created_at,
					   t->used_at, t->installer, t->seal, t->image, t->context),
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
	return store_end(s, r, what, e);
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
			.context = store_text(stmt, 13),
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

/* ---- sandboxes ------------------------------------------------------------------------------ */

static const char *const state_names[STORE_STATE_MAX_] = {
	[STORE_RUNNING] = "running",
	[STORE_STOPPED] = "stopped",
	[STORE_LOST] = "lost",
	[STORE_REMOVING] = "removing",
};

static int check_sandbox(const struct store_sandbox *b, struct err *e)
{
	if ((unsigned)b->state >= STORE_STATE_MAX_ || b->executions > INT64_MAX)
		return err_say(e, -EINVAL, "store: an invalid state of a sandbox");
	return store_fits(
		(const struct store_bound[]){ { "id", b->id, 1, STORE_ID_MAX },
					      { "owner", b->owner, 1, STORE_OWNER_MAX },
					      { "name", b->name, 0, STORE_NAME_MAX },
					      { "spec", b->spec, 0, STORE_JSON_MAX },
					      { "labels", b->labels, 0, STORE_JSON_MAX },
					      { "reason", b->reason, 0, STORE_REASON_MAX },
					      { "cell", b->cell, 0, STORE_CELL_MAX },
					      { 0 } },
		e);
}

/* Whether the owner may have one more. */
static int admit(struct store *s, const struct store_sandbox *b, struct err *e)
{
	int64_t n = store_count(s, store_bind(s, STMT_COUNT, "ss", b->owner, b->id),
				"remember a sandbox", e);

	if (n >= STORE_SANDBOXES_MAX)
		return err_say(e, -EDQUOT, "%s has %u sandboxes already; remove some", b->owner,
			       STORE_SANDBOXES_MAX);
	return n < 0 ? (int)n : 0;
}

int store_sandbox_put(struct store *s, const struct store_sandbox *b, struct err *e)
{
	static const char what[] = "remember a sandbox";
	int64_t r = check_sandbox(b, e);

	if (r < 0 || (r = store_begin(s, what, e)) < 0)
		return (int)r;
	r = admit(s, b, e);
	if (r == 0)
		r = store_run(s,
			      store_bind(s, STMT_PUT, "ssssssssiiiii", b->id, b->owner, b->name,
					 b->spec, b->labels, state_names[b->state], b->reason,
					 b->cell, (int64_t)b->epoch, (int64_t)b->executions,
					 b->created_at, b->used_at, b->expires_at),
			      what, e);
	r = store_end(s, r, what, e);
	if (r == -EEXIST)
		return err_say(e, -EEXIST, "%s has another sandbox named %s", b->owner, b->name);
	return (int)r;
}

int store_sandbox_del(struct store *s, const char *id, struct err *e)
{
	return (int)store_run(s, store_bind(s, STMT_DEL, "s", id), "forget a sandbox", e);
}

/* False when memory ran out, or the page changed under us. */
static bool read_row(sqlite3_stmt *stmt, struct store_sandbox *ret)
{
	const char *state = store_text(stmt, 5);
	int i = 0;

	while (i < STORE_STATE_MAX_ && strcmp(state_names[i], state) != 0)
		i++;
	*ret = (struct store_sandbox){
		.id = store_text(stmt, 0),
		.owner = store_text(stmt, 1),
		.name = store_text(stmt, 2),
		.spec = store_text(stmt, 3),
		.labels = store_text(stmt, 4),
		.state = (enum store_state)i,
		.reason = store_text(stmt, 6),
		.cell = store_text(stmt, 7),
		.epoch = (uint32_t)sqlite3_column_int64(stmt, 8),
		.executions = (uint64_t)sqlite3_column_int64(stmt, 9),
		.created_at = sqlite3_column_int64(stmt, 10),
		.used_at = sqlite3_column_int64(stmt, 11),
		.expires_at = sqlite3_column_int64(stmt, 12),
	};
	return i < STORE_STATE_MAX_ && ret->id[0] && ret->owner[0];
}

int store_sandbox_each(struct store *s, store_sandbox_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_EACH, "");
	struct store_sandbox b;
	int r = 0;

	while (r == 0 && (r = store_next(s, stmt, "read sandboxes", e)) > 0)
		r = read_row(stmt, &b) ? fn(&b, arg) :
					 err_say(e, -EUCLEAN, "read sandboxes: an invalid record");
	store_done(stmt);
	return r;
}

int64_t store_mark_lost(struct store *s, const char *reason, const char *const *kept, size_t n,
			struct err *e)
{
	static const char what[] = "mark lost sandboxes";
	const struct store_bound bounds[] = { { "reason", reason, 0, STORE_REASON_MAX }, { 0 } };
	int64_t r = store_fits(bounds, e);

	if (r < 0 || (r = store_begin(s, what, e)) < 0)
		return r;
	r = store_run(s, store_bind(s, STMT_REMOVED, ""), what, e);
	if (r >= 0)
		r = store_run(s, store_bind(s, STMT_LOST, "s", reason), what, e);
	for (size_t i = 0; i < n && r >= 0; i++) {
		int64_t found =
			store_run(s, store_bind(s, STMT_FOUND, "ss", kept[i], reason), what, e);

		r = found < 0 ? found : r - found;
	}
	int done = store_end(s, r, what, e);

	return done < 0 ? done : r;
}

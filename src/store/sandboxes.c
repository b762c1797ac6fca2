/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes.c - Records of sandboxes. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_int.h"

#define COLUMNS                                                                                    \
	"id, owner, name, spec, labels, state, reason, cell, epoch, executions, created_at, "      \
	"used_at, expires_at"

const char *const store_sandbox_sql[STMT_MAX_] = {
	[STMT_PUT] = "INSERT INTO sandbox (" COLUMNS ") "
		     "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
		     "ON CONFLICT (id) DO UPDATE SET owner=?2, name=?3, spec=?4, labels=?5, "
		     "state=?6, reason=?7, cell=?8, epoch=?9, executions=?10, created_at=?11, "
		     "used_at=?12, expires_at=?13",
	[STMT_COUNT] = "SELECT count(*) FROM sandbox WHERE owner=?1 AND id<>?2",
	[STMT_DEL] = "DELETE FROM sandbox WHERE id=?1",
	[STMT_FIND] = "SELECT " COLUMNS " FROM sandbox WHERE owner=?1 AND name=?2 AND name<>''",
	[STMT_EACH] = "SELECT " COLUMNS " FROM sandbox ORDER BY owner, name, id",
	[STMT_EACH_OWNER] = "SELECT " COLUMNS " FROM sandbox WHERE owner=?1 ORDER BY name, id",
	[STMT_LOST] = "UPDATE sandbox SET state='lost', reason=?1 WHERE state='running'",
	[STMT_FOUND] = "UPDATE sandbox SET state='running', reason='' "
		       "WHERE id=?1 AND state='lost' AND reason=?2",
	[STMT_REMOVED] = "DELETE FROM sandbox WHERE state='removing'",
};

static const char *const state_names[STORE_STATE_MAX_] = {
	[STORE_RUNNING] = "running",
	[STORE_STOPPED] = "stopped",
	[STORE_LOST] = "lost",
	[STORE_REMOVING] = "removing",
};

const char *store_state_name(enum store_state state)
{
	return state_names[state];
}

static int check(const struct store_sandbox *b, struct err *e)
{
	if ((unsigned)b->state >= STORE_STATE_MAX_ || b->executions > INT64_MAX)
		return err_say(e, -EINVAL, "store: a sandbox without a state");
	if (store_fits(b->id, 1, STORE_ID_MAX, "id", e) < 0 ||
	    store_fits(b->owner, 1, STORE_OWNER_MAX, "owner", e) < 0 ||
	    store_fits(b->name, 0, STORE_NAME_MAX, "name", e) < 0 ||
	    store_fits(b->spec, 0, STORE_JSON_MAX, "spec", e) < 0 ||
	    store_fits(b->labels, 0, STORE_JSON_MAX, "labels", e) < 0 ||
	    store_fits(b->reason, 0, STORE_REASON_MAX, "reason", e) < 0 ||
	    store_fits(b->cell, 0, STORE_CELL_MAX, "cell", e) < 0)
		return e->code;
	return 0;
}

/* Whether the owner may have one more. */
static int admit(struct store *s, const struct store_sandbox *b, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_COUNT, "ss", b->owner, b->id);
	int rc = sqlite3_step(stmt);
	int64_t n = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;

	store_done(stmt);
	if (rc != SQLITE_ROW)
		return store_fail(s, rc, "remember a sandbox", e);
	if (n >= STORE_SANDBOXES_MAX)
		return err_say(e, -EDQUOT, "%s has %u sandboxes already; remove some", b->owner,
			       STORE_SANDBOXES_MAX);
	return 0;
}

int store_sandbox_put(struct store *s, const struct store_sandbox *b, struct err *e)
{
	static const char what[] = "remember a sandbox";
	struct err local = { 0 };

	if (!e)
		e = &local;
	if (check(b, e) < 0 || store_begin(s, what, e) < 0)
		return e->code;
	int64_t r = admit(s, b, e);

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
	return r < 0 ? (int)r : 0;
}

int store_sandbox_del(struct store *s, const char *id, struct err *e)
{
	return (int)store_run(s, store_bind(s, STMT_DEL, "s", id), "forget a sandbox", e);
}

static const char *text(sqlite3_stmt *stmt, int column)
{
	const char *t = (const char *)sqlite3_column_text(stmt, column);

	return t ? t : "";
}

/* False when memory ran out, or the page changed under us. */
static bool read_row(sqlite3_stmt *stmt, struct store_sandbox *ret)
{
	const char *state = text(stmt, 5);
	int i = 0;

	while (i < STORE_STATE_MAX_ && strcmp(state_names[i], state) != 0)
		i++;
	*ret = (struct store_sandbox){
		.id = text(stmt, 0),
		.owner = text(stmt, 1),
		.name = text(stmt, 2),
		.spec = text(stmt, 3),
		.labels = text(stmt, 4),
		.state = (enum store_state)i,
		.reason = text(stmt, 6),
		.cell = text(stmt, 7),
		.epoch = (uint32_t)sqlite3_column_int64(stmt, 8),
		.executions = (uint64_t)sqlite3_column_int64(stmt, 9),
		.created_at = sqlite3_column_int64(stmt, 10),
		.used_at = sqlite3_column_int64(stmt, 11),
		.expires_at = sqlite3_column_int64(stmt, 12),
	};
	return i < STORE_STATE_MAX_ && ret->id[0] && ret->owner[0];
}

/* Give each row to @fn, until it says otherwise. */
static int give_rows(struct store *s, sqlite3_stmt *stmt, store_sandbox_fn *fn, void *arg,
		     struct err *e)
{
	struct store_sandbox b;
	int rc = SQLITE_DONE, r = 0;

	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		r = read_row(stmt, &b) ?
			    fn(&b, arg) :
			    err_say(e, -EUCLEAN, "read sandboxes: a record makes no sense");
	store_done(stmt);
	return r || rc == SQLITE_DONE ? r : store_fail(s, rc, "read sandboxes", e);
}

struct once {
	store_sandbox_fn *fn;
	void *arg;
};

static int give_once(const struct store_sandbox *b, void *arg)
{
	const struct once *o = arg;

	(void)o->fn(b, o->arg);
	return 1;
}

int store_sandbox_find(struct store *s, const char *owner, const char *name, store_sandbox_fn *fn,
		       void *arg, struct err *e)
{
	struct once o = { fn, arg };

	return give_rows(s, store_bind(s, STMT_FIND, "ss", owner, name), give_once, &o, e);
}

int store_sandbox_each(struct store *s, const char *owner, store_sandbox_fn *fn, void *arg,
		       struct err *e)
{
	return give_rows(s,
			 owner ? store_bind(s, STMT_EACH_OWNER, "s", owner) :
				 store_bind(s, STMT_EACH, ""),
			 fn, arg, e);
}

int64_t store_mark_lost(struct store *s, const char *reason, const char *const *kept, size_t n,
			struct err *e)
{
	static const char what[] = "mark lost sandboxes";
	struct err local = { 0 };

	if (!e)
		e = &local;
	if (store_fits(reason, 0, STORE_REASON_MAX, "reason", e) < 0 || store_begin(s, what, e) < 0)
		return e->code;
	int64_t r = store_run(s, store_bind(s, STMT_REMOVED, ""), what, e);

	if (r >= 0)
		r = store_run(s, store_bind(s, STMT_LOST, "s", reason), what, e);
	for (size_t i = 0; i < n && r >= 0; i++) {
		int64_t found =
			store_run(s, store_bind(s, STMT_FOUND, "ss", kept[i], reason), what, e);

		r = found < 0 ? found : r - found;
	}
	return store_end(s, r, what, e);
}

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
	[STMT_EACH] = "SELECT " COLUMNS " FROM sandbox ORDER BY owner, name, id",
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

static int check(const struct store_sandbox *b, struct err *e)
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
	sqlite3_stmt *stmt = store_bind(s, STMT_COUNT, "ss", b->owner, b->id);
	int r = store_next(s, stmt, "remember a sandbox", e);
	int64_t n = r > 0 ? sqlite3_column_int64(stmt, 0) : 0;

	store_done(stmt);
	if (r < 0)
		return r;
	if (n >= STORE_SANDBOXES_MAX)
		return err_say(e, -EDQUOT, "%s has %u sandboxes already; remove some", b->owner,
			       STORE_SANDBOXES_MAX);
	return 0;
}

int store_sandbox_put(struct store *s, const struct store_sandbox *b, struct err *e)
{
	static const char what[] = "remember a sandbox";
	int64_t r = check(b, e);

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
	return r < 0 ? (int)r : 0;
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
	return store_end(s, r, what, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.c - Values by key and functions that code keeps from sandbox to sandbox.
 *
 * Owner and project are part of every statement, so no call can return another owner's note. The
 * quota of an owner is counted over all projects, in the transaction that adds a note.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_int.h"

#define PLACE "owner=?1 AND project=?2 AND kind=?3"
#define COLUMNS "key, value, metadata, revision, created_at, updated_at"

const char *const store_note_sql[STMT_MAX_] = {
	[STMT_NOTE_GET] = "SELECT " COLUMNS " FROM note WHERE " PLACE " AND key=?4",
	[STMT_NOTE_PUT] = "INSERT INTO note (owner, project, kind, " COLUMNS ", size) "
			  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
			  "ON CONFLICT (owner, project, kind, key) DO UPDATE SET value=?5, "
			  "metadata=?6, revision=?7, updated_at=?9, size=?10",
	[STMT_NOTE_DEL] = "DELETE FROM note WHERE " PLACE " AND key=?4",
	[STMT_NOTE_EACH] = "SELECT " COLUMNS " FROM note WHERE " PLACE " ORDER BY rowid",
	[STMT_NOTE_COUNT] = "SELECT count(*) FROM note WHERE " PLACE,
	[STMT_NOTE_USE] = "SELECT count(*), coalesce(sum(size), 0) FROM note "
			  "WHERE owner=?1 AND kind=?2",
};

static const char *const kinds[STORE_NOTE_KIND_MAX_] = {
	[STORE_NOTE_MEMORY] = "memory",
	[STORE_NOTE_TOOL] = "tool",
};

static const uint32_t most[STORE_NOTE_KIND_MAX_] = {
	[STORE_NOTE_MEMORY] = STORE_MEMORIES_MAX,
	[STORE_NOTE_TOOL] = STORE_TOOLS_MAX,
};

static int check(const struct store_note_place *p, const struct store_note *n, struct err *e)
{
	size_t largest = p->kind == STORE_NOTE_TOOL ? STORE_NOTE_TOOL_MAX : STORE_NOTE_VALUE_MAX;

	return store_fits(
		(const struct store_bound[]){ { "owner", p->owner, 1, STORE_OWNER_MAX },
					      { "project", p->project, 1, STORE_PROJECT_MAX },
					      { "key", n->key, 1, STORE_NOTE_KEY_MAX },
					      { "value", n->value, 0, largest },
					      { "metadata", n->metadata, 0, STORE_NOTE_META_MAX },
					      { 0 } },
		e);
}

/* False when memory ran out. */
static bool read_row(sqlite3_stmt *stmt, struct store_note *ret)
{
	*ret = (struct store_note){
		.key = (const char *)sqlite3_column_text(stmt, 0),
		.value = (const char *)sqlite3_column_text(stmt, 1),
		.metadata = (const char *)sqlite3_column_text(stmt, 2),
		.revision = sqlite3_column_int64(stmt, 3),
		.created_at = sqlite3_column_int64(stmt, 4),
		.updated_at = sqlite3_column_int64(stmt, 5),
	};
	return ret->key && ret->value && ret->metadata;
}

int store_note_get(struct store *s, const struct store_note_place *p, const char *key,
		   store_note_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt =
		store_bind(s, STMT_NOTE_GET, "ssss", p->owner, p->project, kinds[p->kind], key);
	struct store_note n;
	int r = store_next(s, stmt, "read notes", e);

	if (r > 0 && !read_row(stmt, &n))
		r = err_set(e, -ENOMEM, "read a note");
	if (r > 0)
		(void)fn(&n, arg);
	store_done(stmt);
	return r;
}

int store_note_each(struct store *s, const struct store_note_place *p, store_note_fn *fn, void *arg,
		    struct err *e)
{
	sqlite3_stmt *stmt =
		store_bind(s, STMT_NOTE_EACH, "sss", p->owner, p->project, kinds[p->kind]);
	struct store_note n;
	int r = 0;

	while (r == 0 && (r = store_next(s, stmt, "read notes", e)) > 0)
		r = read_row(stmt, &n) ? fn(&n, arg) : err_set(e, -ENOMEM, "read a note");
	store_done(stmt);
	return r;
}

/* The note as it is stored now. */
struct before {
	int64_t revision, created_at, size;
};

static int note_before(const struct store_note *n, void *arg)
{
	struct before *b = arg;

	b->revision = n->revision;
	b->created_at = n->created_at;
	b->size = (int64_t)(strlen(n->value) + strlen(n->metadata));
	return 0;
}

/* Whether the owner may have it: @more bytes than before, and one more note when there was none. */
static int admit(struct store *s, const struct store_note_place *p, const struct before *was,
		 int64_t size, struct err *e)
{
	sqlite3_stmt *stmt = store_bind(s, STMT_NOTE_USE, "ss", p->owner, kinds[p->kind]);
	int r = store_next(s, stmt, "keep a note", e);
	int64_t n = r > 0 ? sqlite3_column_int64(stmt, 0) : 0;
	int64_t bytes = r > 0 ? sqlite3_column_int64(stmt, 1) : 0;

	store_done(stmt);
	if (r < 0)
		return r;
	if (was->revision == 0 && n >= most[p->kind])
		return err_say(e, -EDQUOT, "there are %u %s already; delete some", most[p->kind],
			       p->kind == STORE_NOTE_TOOL ? "saved tools" : "memories");
	if (size > was->size && bytes - was->size + size > STORE_NOTES_BYTES)
		return err_say(e, -EDQUOT,
			       "memories have %lld bytes already, of at most %u; "
			       "delete some",
			       (long long)bytes, STORE_NOTES_BYTES);
	return 0;
}

static int64_t put(struct store *s, const struct store_note_place *p, struct store_note *n,
		   int64_t expected, int64_t now, struct err *e)
{
	struct before was = { 0 };
	int64_t size = (int64_t)(strlen(n->value) + strlen(n->metadata));
	int64_t r = store_note_get(s, p, n->key, note_before, &was, e);

	if (r < 0)
		return r;
	if (expected != STORE_NOTE_ANY && expected != was.revision)
		return err_say(e, -ESTALE, "it has changed meanwhile");
	r = admit(s, p, &was, size, e);
	if (r < 0)
		return r;
	n->revision = was.revision + 1;
	n->created_at = was.revision ? was.created_at : now;
	n->updated_at = now;
	return store_run(s,
			 store_bind(s, STMT_NOTE_PUT, "ssssssiiii", p->owner, p->project,
				    kinds[p->kind], n->key, n->value, n->metadata, n->revision,
				    n->created_at, n->updated_at, size),
			 "keep a note", e);
}

int store_note_put(struct store *s, const struct store_note_place *p, struct store_note *n,
		   int64_t expected, int64_t now, struct err *e)
{
	static const char what[] = "keep a note";
	int64_t r = check(p, n, e);

	if (!n->value)
		n->value = "";
	if (!n->metadata)
		n->metadata = "";
	if (r < 0 || (r = store_begin(s, what, e)) < 0)
		return (int)r;
	return store_end(s, put(s, p, n, expected, now, e), what, e);
}

int store_note_del(struct store *s, const struct store_note_place *p, const char *key,
		   struct err *e)
{
	return (int)store_run(
		s, store_bind(s, STMT_NOTE_DEL, "ssss", p->owner, p->project, kinds[p->kind], key),
		"forget a note", e);
}

int64_t store_note_count(struct store *s, const struct store_note_place *p, struct err *e)
{
	return store_count(
		s, store_bind(s, STMT_NOTE_COUNT, "sss", p->owner, p->project, kinds[p->kind]),
		"count notes", e);
}

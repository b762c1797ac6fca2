/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - Idempotency keys: which request was answered, and how. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_int.h"

const char *const store_key_sql[STMT_MAX_] = {
	[STMT_KEY_GET] = ("SELECT hash, status, created_at, body FROM idempotency "
			  "WHERE owner=?1 AND key=?2 AND route=?3 AND created_at>?4"),
	[STMT_KEY_PUT] = ("INSERT INTO idempotency "
			  "(owner, key, route, hash, status, created_at, body) "
			  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
			  "ON CONFLICT (owner, key, route) DO UPDATE SET hash=?4, status=?5, "
			  "created_at=?6, body=?7"),
	[STMT_KEY_DEL] = ("DELETE FROM idempotency WHERE owner=?1 AND key=?2 AND route=?3"),
	[STMT_KEY_TRIM] =
		("DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency "
		 "WHERE owner=?1 ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET ?2)"),
	[STMT_KEY_OLD] = ("DELETE FROM idempotency WHERE created_at<=?1"),
};

static int check(const struct store_key *k, struct err *e)
{
	if (k->status < 0 || k->status > 999)
		return err_say(e, -EINVAL, "store: %d is not a status", k->status);
	if (k->body_len > STORE_BODY_MAX)
		return err_say(e, -EMSGSIZE, "store: an answer of %zu bytes, more than %u",
			       k->body_len, STORE_BODY_MAX);
	return store_fits((const struct store_bound[]){ { "owner", k->owner, 1, STORE_OWNER_MAX },
							{ "key", k->key, 1, STORE_KEY_MAX },
							{ "route", k->route, 1, STORE_ROUTE_MAX },
							{ 0 } },
			  e);
}

int store_key_put(struct store *s, const struct store_key *k, struct err *e)
{
	static const char what[] = "remember an idempotency key";
	int64_t r = check(k, e);

	if (r < 0 || (r = store_begin(s, what, e)) < 0)
		return (int)r;
	r = store_run(s,
		      store_bind(s, STMT_KEY_PUT, "sssbiib", k->owner, k->key, k->route, k->hash,
				 sizeof(k->hash), (int64_t)k->status, k->created_at, k->body,
				 k->body_len),
		      what, e);

	if (r >= 0)
		r = store_run(s,
			      store_bind(s, STMT_KEY_TRIM, "si", k->owner, (int64_t)STORE_KEYS_MAX),
			      what, e);
	return store_end(s, r, what, e);
}

int store_key_get(struct store *s, const char *owner, const char *key, const char *route,
		  int64_t now, store_key_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *stmt =
		store_bind(s, STMT_KEY_GET, "sssi", owner, key, route, now - STORE_KEY_LIFE_MS);
	int rc = sqlite3_step(stmt);

	if (rc == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == STORE_HASH_LEN) {
		struct store_key k = { .owner = owner, .key = key, .route = route };

		memcpy(k.hash, sqlite3_column_blob(stmt, 0), STORE_HASH_LEN);
		k.status = sqlite3_column_int(stmt, 1);
		k.created_at = sqlite3_column_int64(stmt, 2);
		k.body = sqlite3_column_blob(stmt, 3); /* may read further pages, and fail */
		k.body_len = (size_t)sqlite3_column_bytes(stmt, 3);
		if (k.body || k.body_len == 0)
			fn(&k, arg);
		else
			rc = SQLITE_NOMEM;
	} else if (rc == SQLITE_ROW) {
		rc = SQLITE_CORRUPT;
	}
	store_done(stmt);
	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : store_fail(s, rc, "read an idempotency key", e);
}

int store_key_del(struct store *s, const char *owner, const char *key, const char *route,
		  struct err *e)
{
	return (int)store_run(s, store_bind(s, STMT_KEY_DEL, "sss", owner, key, route),
			      "forget an idempotency key", e);
}

int64_t store_forget_old(struct store *s, int64_t now, struct err *e)
{
	return store_run(s, store_bind(s, STMT_KEY_OLD, "i", now - STORE_KEY_LIFE_MS),
			 "forget old idempotency keys", e);
}

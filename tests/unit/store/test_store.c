/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store.c - Rows come back as they were put in, now and after the next start, within bounds.
 */
#include "store_kit.h"

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

#define HOUR INT64_C(3600000)
#define NOW INT64_C(1700000000000)

/* ---- sandboxes ----------------------------------------------------------------------------- */

struct copy {
	int n;
	char id[80], owner[80], name[80], spec[256], reason[600], cell[80];
	struct store_sandbox b;
};

static int take(const struct store_sandbox *b, void *arg)
{
	struct copy *c = arg;

	c->n++;
	c->b = *b;
	(void)snprintf(c->id, sizeof(c->id), "%s", b->id);
	(void)snprintf(c->owner, sizeof(c->owner), "%s", b->owner);
	(void)snprintf(c->name, sizeof(c->name), "%s", b->name);
	(void)snprintf(c->spec, sizeof(c->spec), "%s|%s", b->spec, b->labels);
	(void)snprintf(c->reason, sizeof(c->reason), "%s", b->reason);
	(void)snprintf(c->cell, sizeof(c->cell), "%s", b->cell);
	return 0;
}

struct wanted {
	const char *owner, *name;
	struct copy *c;
};

static int take_wanted(const struct store_sandbox *b, void *arg)
{
	const struct wanted *w = arg;

	if (!b->name[0] || strcmp(b->name, w->name) != 0 || strcmp(b->owner, w->owner) != 0)
		return 0;
	(void)take(b, w->c);
	return 1;
}

/* 1: the owner has a sandbox of this name, and it is in @c. */
static int find(struct store *s, const char *owner, const char *name, struct copy *c)
{
	struct wanted w = { owner, name, c };

	return store_sandbox_each(s, take_wanted, &w, &err);
}

TEST(sandbox_survives)
{
	struct store *s = kit_open();
	struct store_sandbox b = kit_sandbox("id-1", "alice", "box");
	struct copy c = { 0 };

	b.expires_at = 1800000000000;
	assert_int_equal(find(s, "alice", "box", &c), 0);
	assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	store_close(s);
	s = kit_open();
	assert_int_equal(find(s, "alice", "box", &c), 1);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.id, "id-1");
	assert_string_equal(c.owner, "alice");
	assert_string_equal(c.name, "box");
	assert_string_equal(c.spec, "{\"memory_mib\":64}|{\"a\":\"b\"}");
	assert_string_equal(c.cell, "cell-7");
	assert_int_equal(c.b.state, STORE_RUNNING);
	assert_int_equal(c.b.epoch, 3);
	assert_int_equal(c.b.executions, 12);
	assert_int_equal(c.b.created_at, 1700000000000);
	assert_int_equal(c.b.used_at, 1700000001000);
	assert_int_equal(c.b.expires_at, 1800000000000);
	store_close(s);
}

TEST(put_again_replaces)
{
	struct store *s = kit_open();
	struct store_sandbox b = kit_sandbox("id-1", "alice", "box");
	struct copy c = { 0 };

	assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	b.state = STORE_STOPPED;
	b.reason = "as asked";
	b.epoch = UINT32_MAX;
	b.executions = INT64_MAX;
	assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	assert_int_equal(kit_count(s), 1);
	assert_int_equal(find(s, "alice", "box", &c), 1);
	assert_int_equal(c.b.state, STORE_STOPPED);
	assert_string_equal(c.reason, "as asked");
	assert_true(c.b.epoch == UINT32_MAX && c.b.executions == INT64_MAX);
	assert_int_equal(c.b.state, STORE_STOPPED);
	store_close(s);
}

TEST(names_are_an_owners)
{
	struct store *s = kit_open();
	struct store_sandbox a = kit_sandbox("1", "alice", "box"),
			     b = kit_sandbox("2", "bob", "box"),
			     c = kit_sandbox("3", "alice", "box");
	struct copy got = { 0 };

	assert_int_equal(store_sandbox_put(s, &a, &err), 0);
	assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	assert_int_equal(store_sandbox_put(s, &c, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "alice has another sandbox named box"));
	assert_int_equal(find(s, "bob", "box", &got), 1);
	assert_string_equal(got.id, "2");
	assert_int_equal(find(s, "carol", "box", &got), 0);
	/* Without a name there may be many, and they are not found by it. */
	c.name = "";
	assert_int_equal(store_sandbox_put(s, &c, &err), 0);
	c.id = "4";
	c.name = NULL;
	assert_int_equal(store_sandbox_put(s, &c, &err), 0);
	assert_int_equal(find(s, "alice", "", &got), 0);
	assert_int_equal(kit_count(s), 4);
	store_close(s);
}

static int stop_at_second(const struct store_sandbox *b, void *arg)
{
	(void)b;
	return ++*(int *)arg == 2 ? 77 : 0;
}

TEST(enumeration)
{
	struct store *s = kit_open();
	static const char *const names[] = { "c", "a", "b" };
	char id[8];
	struct copy c = { 0 };
	int n = 0;

	for (size_t i = 0; i < 6; i++) {
		(void)snprintf(id, sizeof(id), "%zu", i);
		struct store_sandbox b = kit_sandbox(id, i < 3 ? "zoe" : "adam", names[i % 3]);

		assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	}
	assert_int_equal(store_sandbox_each(s, take, &c, &err), 0);
	assert_int_equal(c.n, 6);
	assert_string_equal(c.owner, "zoe");
	assert_string_equal(c.name, "c");
	assert_int_equal(store_sandbox_each(s, stop_at_second, &n, &err), 77);
	assert_int_equal(n, 2);
	assert_int_equal(store_sandbox_del(s, "4", &err), 1);
	assert_int_equal(store_sandbox_del(s, "4", &err), 0);
	assert_int_equal(kit_count(s), 5);
	store_close(s);
}

TEST(lost)
{
	struct store *s = kit_open();
	struct copy c = { 0 };
	char id[8];

	for (int i = 0; i < STORE_STATE_MAX_; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		struct store_sandbox b = kit_sandbox(id, "o", id);

		b.state = (enum store_state)i;
		b.reason = "before";
		assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	}
	assert_int_equal(store_mark_lost(s, "the daemon was restarted", NULL, 0, &err), 1);
	store_close(s);
	s = kit_open();
	assert_int_equal(find(s, "o", "0", &c), 1);
	assert_int_equal(c.b.state, STORE_LOST);
	assert_string_equal(c.reason, "the daemon was restarted");
	assert_int_equal(find(s, "o", "1", &c), 1);
	assert_int_equal(c.b.state, STORE_STOPPED);
	assert_string_equal(c.reason, "before");
	assert_int_equal(kit_count(s), 3); /* what was being removed is gone */
	assert_int_equal(store_mark_lost(s, "again", NULL, 0, &err), 0);
	store_close(s);
}

static char *repeat(size_t n)
{
	char *s = malloc(n + 1);

	memset(s, 'x', n);
	s[n] = '\0';
	return s;
}

TEST(sandbox_bounds)
{
	struct store *s = kit_open();
	static const struct {
		size_t at, max;
	} fields[] = {
		{ offsetof(struct store_sandbox, id), STORE_ID_MAX },
		{ offsetof(struct store_sandbox, owner), STORE_OWNER_MAX },
		{ offsetof(struct store_sandbox, name), STORE_NAME_MAX },
		{ offsetof(struct store_sandbox, spec), STORE_JSON_MAX },
		{ offsetof(struct store_sandbox, labels), STORE_JSON_MAX },
		{ offsetof(struct store_sandbox, reason), STORE_REASON_MAX },
		{ offsetof(struct store_sandbox, cell), STORE_CELL_MAX },
	};

	/* The tables have the same bounds as the code: the longest fits, one more does not. */
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct store_sandbox b = kit_sandbox("1", "o", "n");
		_mem_ char *fits = repeat(fields[i].max), *over = repeat(fields[i].max + 1);

		*(const char **)((char *)&b + fields[i].at) = over;
		assert_int_equal(store_sandbox_put(s, &b, &err), -EMSGSIZE);
		*(const char **)((char *)&b + fields[i].at) = fits;
		assert_int_equal(store_sandbox_put(s, &b, &err), 0);
		assert_int_equal(store_sandbox_del(s, b.id, &err), 1);
	}
	struct store_sandbox b = kit_sandbox("", "o", "n");

	assert_int_equal(store_sandbox_put(s, &b, &err), -EINVAL);
	b = kit_sandbox("1", NULL, "n");
	assert_int_equal(store_sandbox_put(s, &b, &err), -EINVAL);
	b = kit_sandbox("1", "o", "n");
	b.state = STORE_STATE_MAX_;
	assert_int_equal(store_sandbox_put(s, &b, &err), -EINVAL);
	assert_int_equal(kit_count(s), 0);
	store_close(s);
	store_close(kit_open());
}

TEST(sandboxes_of_one_owner_are_bounded)
{
	struct store *s = kit_open();
	char id[16];
	struct store_sandbox b = kit_sandbox(id, "greedy", id);

	b.spec = b.labels = "{}";
	for (unsigned i = 0; i < STORE_SANDBOXES_MAX; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	}
	assert_int_equal(store_sandbox_put(s, &b, &err), 0); /* it is there already */
	(void)snprintf(id, sizeof(id), "more");
	assert_int_equal(store_sandbox_put(s, &b, &err), -EDQUOT);
	b.owner = "modest";
	assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	store_close(s);
}

/* ---- keys ---------------------------------------------------------------------------------- */

struct answer {
	int n, status;
	size_t len;
	char body[16];
	unsigned char hash[STORE_HASH_LEN];
};

static void take_answer(const struct store_key *k, void *arg)
{
	struct answer *a = arg;

	a->n++;
	a->status = k->status;
	a->len = k->body_len;
	memcpy(a->body, k->body_len ? k->body : "", k->body_len < 16 ? k->body_len : 16);
	memcpy(a->hash, k->hash, sizeof(a->hash));
}

static struct store_key make_key(const char *key)
{
	struct store_key k = { .owner = "alice",
			       .key = key,
			       .route = "POST /v1/sandboxes",
			       .status = 201,
			       .body = "{\"a\0b\"}",
			       .body_len = 7,
			       .created_at = NOW };

	memset(k.hash, 0xab, sizeof(k.hash));
	return k;
}

TEST(key_survives)
{
	struct store *s = kit_open();
	struct store_key k = make_key("k1");
	struct answer a = { 0 };

	assert_int_equal(store_key_get(s, "alice", "k1", k.route, NOW, take_answer, &a, &err), 0);
	assert_int_equal(store_key_put(s, &k, &err), 0);
	store_close(s);
	s = kit_open();
	assert_int_equal(
		store_key_get(s, "alice", "k1", k.route, NOW + HOUR, take_answer, &a, &err), 1);
	assert_int_equal(a.status, 201);
	assert_int_equal(a.len, 7);
	assert_memory_equal(a.body, "{\"a\0b\"}", 7);
	assert_memory_equal(a.hash, k.hash, sizeof(k.hash));
	assert_int_equal(store_key_get(s, "bob", "k1", k.route, NOW, take_answer, &a, &err), 0);
	assert_int_equal(store_key_get(s, "alice", "k1", "POST /x", NOW, take_answer, &a, &err), 0);
	/* Begun, then answered. */
	k.status = 0;
	k.body_len = 0;
	k.body = NULL;
	assert_int_equal(store_key_put(s, &k, &err), 0);
	assert_int_equal(store_key_get(s, "alice", "k1", k.route, NOW, take_answer, &a, &err), 1);
	assert_true(a.status == 0 && a.len == 0);
	assert_int_equal(store_key_del(s, "alice", "k1", k.route, &err), 1);
	assert_int_equal(store_key_del(s, "alice", "k1", k.route, &err), 0);
	store_close(s);
}

TEST(key_ages)
{
	struct store *s = kit_open();
	struct store_key k = make_key("old");
	struct answer a = { 0 };

	assert_int_equal(store_key_put(s, &k, &err), 0);
	k = make_key("new");
	k.created_at = NOW + HOUR;
	assert_int_equal(store_key_put(s, &k, &err), 0);
	assert_int_equal(store_key_get(s, "alice", "old", k.route, NOW + STORE_KEY_LIFE_MS - 1,
				       take_answer, &a, &err),
			 1);
	assert_int_equal(store_key_get(s, "alice", "old", k.route, NOW + STORE_KEY_LIFE_MS,
				       take_answer, &a, &err),
			 0);
	assert_int_equal(store_forget_old(s, NOW + STORE_KEY_LIFE_MS, &err), 1);
	assert_int_equal(store_forget_old(s, NOW + STORE_KEY_LIFE_MS, &err), 0);
	assert_int_equal(store_key_get(s, "alice", "new", k.route, NOW + STORE_KEY_LIFE_MS,
				       take_answer, &a, &err),
			 1);
	store_close(s);
}

TEST(keys_are_bounded)
{
	struct store *s = kit_open();
	struct answer a = { 0 };
	char name[16];

	struct store_key other = make_key("k0");

	other.owner = "bob";
	assert_int_equal(store_key_put(s, &other, &err), 0);
	for (unsigned i = 0; i < STORE_KEYS_MAX + 10; i++) {
		(void)snprintf(name, sizeof(name), "k%u", i);
		struct store_key k = make_key(name);

		k.created_at = NOW + i;
		assert_int_equal(store_key_put(s, &k, &err), 0);
	}
	/* The oldest ten were removed, and none of another owner. */
	assert_int_equal(store_key_get(s, "alice", "k9", other.route, NOW, take_answer, &a, &err),
			 0);
	assert_int_equal(store_key_get(s, "alice", "k10", other.route, NOW, take_answer, &a, &err),
			 1);
	assert_int_equal(store_key_get(s, "bob", "k0", other.route, NOW, take_answer, &a, &err), 1);
	assert_int_equal(store_forget_old(s, NOW + 2 * STORE_KEY_LIFE_MS, &err),
			 STORE_KEYS_MAX + 1);
	store_close(s);
}

TEST(key_bounds)
{
	struct store *s = kit_open();
	struct store_key k = make_key("big");
	struct answer a = { 0 };
	_mem_ char *body = repeat(STORE_BODY_MAX + 1), *name = repeat(STORE_KEY_MAX + 1);

	k.body = body;
	k.body_len = STORE_BODY_MAX + 1;
	assert_int_equal(store_key_put(s, &k, &err), -EMSGSIZE);
	k.body_len = STORE_BODY_MAX;
	assert_int_equal(store_key_put(s, &k, &err), 0);
	assert_int_equal(store_key_get(s, "alice", "big", k.route, NOW, take_answer, &a, &err), 1);
	assert_int_equal(a.len, STORE_BODY_MAX);
	k.body_len = 1;
	k.key = name;
	assert_int_equal(store_key_put(s, &k, &err), -EMSGSIZE);
	name[STORE_KEY_MAX] = '\0';
	k.route = name;
	assert_int_equal(store_key_put(s, &k, &err), 0);
	k.key = "";
	assert_int_equal(store_key_put(s, &k, &err), -EINVAL);
	k = make_key("s");
	k.status = 1000;
	assert_int_equal(store_key_put(s, &k, &err), -EINVAL);
	store_close(s);
	store_close(kit_open());
}

/* ---- texts that are not SQL ---------------------------------------------------------------- */

TEST(texts_are_data)
{
	struct store *s = kit_open();
	const char *evil = "'); DROP TABLE sandbox; --\n\"%s\xc3\xa9";
	struct store_sandbox b = kit_sandbox(evil, evil, evil);
	struct copy c = { 0 };

	assert_int_equal(store_sandbox_put(s, &b, NULL), 0);
	assert_int_equal(find(s, evil, evil, &c), 1);
	assert_string_equal(c.id, evil);
	assert_int_equal(store_sandbox_del(s, evil, &err), 1);
	store_close(s);
}

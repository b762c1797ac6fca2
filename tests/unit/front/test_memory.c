/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory.c - Values that code keeps come back, to their owner alone, within bounds. */
#include "front/tool_calls/memory.h"

#include "../store/store_kit.h"
#include <jansson.h>

#include "base/buf.h"

static struct store *store;
static struct memory_refusal why;
static int64_t now = 1700000000000;

static int setup(void **state)
{
	int r = kit_setup(state);

	store = r == 0 ? kit_open() : NULL;
	return r;
}

static int teardown(void **state)
{
	store_close(store);
	return kit_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* The answer, to be given back; NULL: refused. */
static json_t *ask(const char *owner, const char *project, const char *op, const char *request)
{
	const struct memory_place p = { store, owner, project };
	_buf_ struct buf b = BUF_INIT(MEMORY_ANSWER_MAX);
	json_t *m = json_loads(request, JSON_ALLOW_NUL, NULL);
	int r;

	assert_non_null(m);
	r = memory_run(&p, op, m, now++, &b, &why);
	json_decref(m);
	if (r < 0)
		return NULL;
	assert_null(memchr(buf_str(&b), '\n', b.len));
	m = json_loads(buf_str(&b), 0, NULL);
	assert_non_null(m);
	return m;
}

static void expect(const char *owner, const char *project, const char *op, const char *request,
		   const char *key, const char *want)
{
	json_t *m = ask(owner, project, op, request);

	if (!m)
		fail_msg("%s %s: %s %s", op, request, why.code, why.message);
	char *text = json_dumps(json_object_get(m, key), JSON_ENCODE_ANY | JSON_COMPACT);

	assert_string_equal(text ? text : "none", want);
	free(text);
	json_decref(m);
}

static void refused(const char *op, const char *request, const char *code)
{
	json_t *m = ask("a", "p", op, request);

	assert_null(m);
	assert_string_equal(why.code, code);
	assert_true(why.message[0]);
}

#define SAVE(key_, value_) "{\"key\":\"" key_ "\",\"value\":\"" value_ "\",\"metadata\":\"{}\"}"

TEST(kept)
{
	json_t *m;

	expect("a", "p", "memory.load", "{\"key\":\"k\"}", "found", "false");
	expect("a", "p", "memory.save", SAVE("k", "[1]"), "revision", "1");
	expect("a", "p", "memory.save", SAVE("k", "[2]"), "revision", "2");
	m = ask("a", "p", "memory.load", "{\"key\":\"k\"}");
	assert_string_equal(json_string_value(json_object_get(m, "value")), "[2]");
	assert_true(json_integer_value(json_object_get(m, "created_at")) <
		    json_integer_value(json_object_get(m, "updated_at")));
	json_decref(m);
	store_close(store);
	store = kit_open();
	expect("a", "p", "memory.load", "{\"key\":\"k\"}", "value", "\"[2]\"");
	expect("a", "p", "memory.delete", "{\"key\":\"k\"}", "deleted", "true");
	expect("a", "p", "memory.delete", "{\"key\":\"k\"}", "deleted", "false");
	expect("a", "p", "memory.list", "{}", "memories", "[]");
}

TEST(owners_and_projects_are_apart)
{
	const struct memory_place a = { store, "a", "p" }, b = { store, "b", "p" };

	expect("a", "p", "memory.save", SAVE("k", "1"), "key", "\"k\"");
	expect("a", "p", "tool.save", "{\"name\":\"f\",\"source\":\"def f(): pass\"}", "name",
	       "\"f\"");
	expect("b", "p", "memory.load", "{\"key\":\"k\"}", "found", "false");
	expect("a", "q", "memory.load", "{\"key\":\"k\"}", "found", "false");
	expect("b", "p", "memory.list", "{}", "memories", "[]");
	expect("b", "p", "memory.delete", "{\"key\":\"k\"}", "deleted", "false");
	expect("b", "p", "tool.list", "{}", "tools", "[]");
	expect("b", "p", "memory.save", SAVE("k", "2"), "revision", "1");
	expect("a", "p", "memory.load", "{\"key\":\"k\"}", "value", "\"1\"");
	assert_int_equal(memory_tools(&a), 1);
	assert_int_equal(memory_tools(&b), 0);
	/* No request reaches entries of another owner. */
	expect("b", "p", "memory.load", "{\"key\":\"k\",\"owner\":\"a\",\"project\":\"p\"}",
	       "value", "\"2\"");
}

TEST(keys)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "plan", "plan" },   { " my plan! ", "my_plan_" },   { "a/../b", "a____b" },
		{ "A-1_z", "A-1_z" }, { "\xc3\xa9t\xc3\xa9", "_t_" }, { "  ", "" },
		{ "", "" },           { "../../etc", "______etc" },
	};
	char long_key[300], key[STORE_NOTE_KEY_MAX + 1];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memory_key(rows[i].text, key, sizeof(key));
		assert_string_equal(key, rows[i].want);
	}
	memset(long_key, 'x', sizeof(long_key));
	long_key[sizeof(long_key) - 1] = '\0';
	memory_key(long_key, key, sizeof(key));
	assert_int_equal(strlen(key), 100);
	expect("a", "p", "memory.save", SAVE("my plan", "1"), "key", "\"my_plan\"");
	expect("a", "p", "memory.load", "{\"key\":\"my_plan\"}", "value", "\"1\"");
}

TEST(refused)
{
	refused("memory.save", "{}", "bad_request");
	refused("memory.save", SAVE(" ", "1"), "bad_request");
	refused("memory.save", SAVE("k", "{"), "bad_request");
	refused("memory.save", SAVE("k", "1\\n2"), "bad_request");
	refused("memory.save", SAVE("k\\u0000", "1"), "bad_request");
	refused("memory.save", "{\"key\":\"k\",\"value\":1,\"metadata\":\"{}\"}", "bad_request");
	refused("memory.save", "{\"key\":\"k\",\"value\":\"1\",\"metadata\":\"[]\"}",
		"bad_request");
	refused("memory.save",
		"{\"key\":\"k\",\"value\":\"1\",\"metadata\":\"{}\",\"revision\":\"1\"}",
		"bad_request");
	refused("tool.save", "{\"name\":\"1f\",\"source\":\"\"}", "bad_request");
	refused("tool.save", "{\"name\":\"f()\",\"source\":\"\"}", "bad_request");
	refused("tool.save", "{\"name\":\"f\"}", "bad_request");
	refused("memory.drop", "{}", "bad_request");
	expect("a", "p", "memory.list", "{}", "memories", "[]");
	assert_true(memory_knows("tool.list"));
	assert_false(memory_knows("mcp.call"));
	struct store *kept = store;

	store = NULL;
	refused("memory.list", "{}", "unavailable");
	store = kept;
}

TEST(a_change_that_another_one_overtook)
{
#define AT(revision_)                                                                              \
	"{\"key\":\"k\",\"value\":\"1\",\"metadata\":\"{}\",\"revision\":" revision_ "}"
	refused("memory.save", AT("1"), "conflict");
	expect("a", "p", "memory.save", AT("0"), "revision", "1");
	refused("memory.save", AT("0"), "conflict");
	expect("a", "p", "memory.save", AT("1"), "revision", "2");
}

static json_t *save_sized(const char *op, const char *name, size_t size)
{
	_buf_ struct buf b = BUF_INIT(4u << 20);

	(void)buf_printf(&b,
			 strcmp(op, "tool.save") == 0 ?
				 "{\"name\":\"%s\",\"source\":\"" :
				 "{\"key\":\"%s\",\"metadata\":\"{}\",\"value\":\"\\\"",
			 name);
	for (size_t i = 0; i < size; i++)
		(void)buf_append(&b, "x", 1);
	(void)buf_puts(&b, strcmp(op, "tool.save") == 0 ? "\"}" : "\\\"\"}");
	return ask("a", "p", op, buf_str(&b));
}

TEST(limits)
{
	char name[16];
	json_t *m = save_sized("memory.save", "big", STORE_NOTE_VALUE_MAX - 2);

	assert_non_null(m);
	json_decref(m);
	assert_null(save_sized("memory.save", "big", STORE_NOTE_VALUE_MAX - 1));
	assert_string_equal(why.code, "too_large");
	assert_null(save_sized("tool.save", "f", STORE_NOTE_TOOL_MAX + 1));
	assert_string_equal(why.code, "too_large");
	for (unsigned int i = 0; i < STORE_TOOLS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		json_decref(save_sized("tool.save", name, 10));
	}
	assert_null(save_sized("tool.save", "one_more", 10));
	assert_string_equal(why.code, "quota");
	json_decref(save_sized("tool.save", "f7", 20)); /* one that is there may change */
	assert_string_equal(why.message, "");
	/* 64 MiB in all; a MiB each, one is there. */
	for (unsigned int i = 1; i < 63; i++) {
		(void)snprintf(name, sizeof(name), "k%u", i);
		m = save_sized("memory.save", name, STORE_NOTE_VALUE_MAX - 2);
		if (!m)
			fail_msg("%u: %s", i, why.message);
		json_decref(m);
	}
	assert_null(save_sized("memory.save", "k63", STORE_NOTE_VALUE_MAX - 2));
	assert_string_equal(why.code, "quota");
	expect("b", "p", "memory.save", SAVE("k", "1"), "revision", "1");
	expect("a", "p", "memory.delete", "{\"key\":\"k1\"}", "deleted", "true");
	m = save_sized("memory.save", "k63", STORE_NOTE_VALUE_MAX - 1000);
	assert_non_null(m);
	json_decref(m);
}

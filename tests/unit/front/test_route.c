/* SPDX-License-Identifier: Apache-2.0 */
/* test_route.c - The table of routes is sound, and the search in it finds what it should. */
#include "base/buf.h"
#include "base/fd.h"
#include "front/http/request.h"
#include "front/http/route.h"
#include "front/operations/operations.h"
#include "front/support/name.h"

#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "handlers_kit.h"

static struct route_params params;
static struct buf allow = BUF_INIT(256);
static int status;

static const struct route *find(const char *method, const char *path)
{
	memset(&params, 0xa5, sizeof(params));
	buf_clear(&allow);
	status = -1;
	return route_find(method, path, &params, &status, &allow);
}

TEST(table)
{
	const struct route *r;

	assert_non_null(route_at(11));
	assert_null(route_at(200));
	for (size_t i = 0; (r = route_at(i)); i++) {
		assert_true(r->path[0] == '/');
		assert_non_null(r->op->name);
		assert_non_null(r->op->summary);
		assert_non_null(r->op->description);
		assert_non_null(r->tag);
		assert_int_equal((r->handler.services != NULL) + (r->handler.sandbox != NULL) +
					 (r->handler.mcp != NULL) + (r->handler.jupyter != NULL),
				 1);
		assert_non_null(r->responses);
		/* Each is found by its own path: no row hides another. */
		assert_ptr_equal(find(r->method, r->path), r);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(route_at(k)->op->name, r->op->name);
		/* As many parameters as the path has, by name. */
		const struct field *p = field_from(r->op->fields, IN_PATH);
		size_t n = 0;

		for (const char *s = strchr(r->path, '{'); s; s = strchr(s + 1, '{'), n++) {
			assert_non_null(p);
			assert_memory_equal(p->name, s + 1, strcspn(s + 1, "}"));
			assert_true(p->required);
			p = field_from(p + 1, IN_PATH);
		}
		assert_true(n <= ROUTE_PARAMS_MAX);
		assert_null(p);
		/* One field of a name in each place. */
		for (unsigned int in = IN_PATH; in <= IN_TOOL; in <<= 1)
			for (p = field_from(r->op->fields, in); p; p = field_from(p + 1, in))
				assert_ptr_equal(field_named(r->op->fields, in, p->name), p);
		for (const struct field *f = field_from(r->op->fields, IN_BODY); f;
		     f = field_from(f + 1, IN_BODY)) {
			assert_true(!f->check == !f->pattern);
			assert_true(f->required ? !f->fallback : true);
		}
	}
}

TEST(contract)
{
	static const struct {
		const char *method, *path;
		bool open;
	} rows[] = {
		{ "POST", "/execute", false },
		{ "GET", "/execute/ws", false },
		{ "POST", "/pip_install", false },
		{ "GET", "/health", true },
		{ "GET", "/metrics", false },
		{ "GET", "/docs", true },
		{ "GET", "/docs/docs.js", true },
		{ "GET", "/openapi.json", true },
		{ "GET", "/", true },
		{ "GET", "/sessions", false },
		{ "DELETE", "/sessions/a.b-c_1", false },
		{ "POST", "/sessions/x/interrupt", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct route *r = find(rows[i].method, rows[i].path);

		if (!r)
			fail_msg("%s %s: %d", rows[i].method, rows[i].path, status);
		assert_int_equal(r->open, rows[i].open);
		assert_int_equal(allow.len, 0);
	}
}

TEST(params)
{
	char path[400] = "/sessions/";

	assert_string_equal(find("POST", "/sessions/s\xc3\xa4 1/interrupt")->op->name,
			    "interrupt_session");
	assert_int_equal(params.n, 1);
	assert_string_equal(params.value[0], "s\xc3\xa4 1");
	assert_string_equal(find("DELETE", "/sessions/interrupt")->op->name, "end_session");
	assert_string_equal(params.value[0], "interrupt");
	assert_string_equal(find("POST", "/execute")->op->name, "execute");
	assert_int_equal(params.n, 0);
	/* Longer than any name can be: not found, and nothing is cut. */
	memset(path + strlen(path), 'x', 255);
	assert_non_null(find("DELETE", path));
	assert_int_equal(strlen(params.value[0]), 255);
	path[strlen(path)] = 'x';
	assert_null(find("DELETE", path));
	assert_int_equal(status, 404);
}

TEST(not_found)
{
	static const char *const paths[] = { "",
					     "/x",
					     "/execute/",
					     "/Execute",
					     "//execute",
					     "/sessions/",
					     "/sessions//interrupt",
					     "/sessions/a/b",
					     "/sessions/a/interrupt/",
					     "/docs/",
					     "/docs/a/b",
					     "/{asset}",
					     "/health?",
					     "execute" };
	static const char *const methods[] = { "GET", "POST", "DELETE", "OPTIONS", "BREW", "get" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		for (size_t k = 0; k < ARRAY_SIZE(methods); k++) {
			assert_null(find(methods[k], paths[i]));
			assert_int_equal(status, 404);
			assert_int_equal(allow.len, 0);
		}
}

TEST(methods)
{
	assert_null(find("GET", "/execute"));
	assert_int_equal(status, 405);
	assert_string_equal(buf_str(&allow), "POST, OPTIONS");
	assert_null(find("post", "/execute"));
	assert_int_equal(status, 405);
	assert_null(find("HEAD", "/execute"));
	assert_int_equal(status, 405);
	assert_null(find("POST", "/health"));
	assert_int_equal(status, 405);
	assert_string_equal(buf_str(&allow), "GET, HEAD, OPTIONS");
	assert_string_equal(find("HEAD", "/health")->op->name, "health");
	/* OPTIONS is not a method of a route: the caller answers it with Allow. */
	assert_null(find("OPTIONS", "/sessions/x"));
	assert_int_equal(status, 405);
	assert_string_equal(buf_str(&allow), "DELETE, OPTIONS");
	assert_null(find("OPTIONS", "*"));
	assert_int_equal(status, 405);
	assert_string_equal(buf_str(&allow), "POST, GET, HEAD, DELETE, PUT, PATCH, OPTIONS");
}

TEST(session_names)
{
	static const char *const good[] = {
		"a",
		"A",
		"0",
		"a.b",
		"a-b_c",
		"a..",
		"0123456789012345678901234567890123456789012345678901234567890123"
	};
	static const char *const bad[] = {
		"",
		".a",
		"-a",
		"_a",
		"a b",
		"a/b",
		"\xc3\xa4",
		"a\n",
		"01234567890123456789012345678901234567890123456789012345678901234"
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(name_ok(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(name_ok(bad[i], strlen(bad[i])));
	assert_false(name_ok("a\0b", 3));
}

static const struct field *timeout_field(void)
{
	return field_named(find("POST", "/execute")->op->fields, IN_BODY, "timeout");
}

TEST(setup)
{
	assert_true(field_max(timeout_field()) == 120);
	assert_string_equal(field_fallback(timeout_field()), "30");
	field_set_timeouts(1500, 1999);
	assert_true(field_max(timeout_field()) == 1.999);
	assert_string_equal(field_fallback(timeout_field()), "1.5");
	field_set_timeouts(0, 1999);
	assert_null(field_fallback(timeout_field()));
	field_set_timeouts(30000, 120000);
}

TEST(requests)
{
	static const struct field query[] = { { .name = "after" }, { .name = "limit" }, { 0 } };
	static const struct operation list = { .fields = query }, none = { 0 };
	const struct route with = { .op = &list }, without = { .op = &none };
	char name[64];

	assert_false(request_query_unknown(&with, "after=1&limit=2&after", name, sizeof(name)));
	assert_true(request_query_unknown(&with, "after=1&limits=2", name, sizeof(name)));
	assert_string_equal(name, "limits");
	assert_false(request_query_unknown(&without, "", name, sizeof(name)));
	assert_true(request_query_unknown(&without, "x", name, sizeof(name)));

	assert_true(request_type_ok(NULL, true));
	assert_true(request_type_ok("application/json", true));
	assert_true(request_type_ok("Application/JSON; charset=utf-8", true));
	assert_true(request_type_ok("application/x-www-form-urlencoded", false));
	assert_false(request_type_ok("application/x-www-form-urlencoded", true));
	assert_false(request_type_ok("text/plain", false));
	assert_false(request_type_ok("text/plain; application/json", false));
	assert_false(request_type_ok("application/jsonp", false));
	assert_false(request_type_ok("multipart/form-data", false));
	assert_false(request_type_ok("", false));
}

int main(void)
{
	int r = unit_run();

	buf_free(&allow);
	return r;
}

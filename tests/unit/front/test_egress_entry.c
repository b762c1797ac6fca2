/* SPDX-License-Identifier: Apache-2.0 */
/* test_egress_entry.c - Entries of egress: one form for each, and ambiguous ones are refused. */
#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/policy/egress_entry.h"
#include "front/policy/egress_rules.h"

TEST(canonical)
{
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{ "api.example.com", "api.example.com" },
		{ "API.Example.COM.", "api.example.com" },
		{ "*.Example.org", "*.example.org" },
		{ "*.example.org:8443", "*.example.org:8443" },
		{ "git.example.net:22", "git.example.net:22" },
		{ "b\xc3\xbc"
		  "cher.test",
		  "xn--bcher-kva.test" },
		{ "B\xc3\x9c"
		  "CHER.test:1",
		  "xn--bcher-kva.test:1" },
		{ "a_b.example.com", "a_b.example.com" },
		{ "intranet", "intranet" },
		{ "123.example.com", "123.example.com" },
		{ "get,Post API.example.com/v1/*", "GET,POST api.example.com/v1/*" },
		{ "DELETE *.Example.org:8443", "DELETE *.example.org:8443" },
		{ "example.com/path", "example.com/path" },
		{ "example.com:444/", "example.com:444/" },
	};
	struct egress_entry n, again;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(egress_entry_parse(rows[i].text, strlen(rows[i].text), &n, NULL),
				 0);
		assert_string_equal(n.text, rows[i].canonical);
		/* Once more is the same. */
		assert_int_equal(egress_entry_parse(n.text, strlen(n.text), &again, NULL), 0);
		assert_string_equal(again.text, rows[i].canonical);
	}
}

TEST(refused)
{
	static const char *const bad[] = {
		"*",
		"*.com",
		"*.",
		"",
		".",
		"..",
		"a..b",
		"10.0.0.1",
		"127.1",
		"2130706433",
		"0x7f.1",
		"0x7f000001",
		"[::1]",
		"::1",
		"fe80::1%eth0",
		"http://example.com",
		"example.com/a?b",
		"example.com/a/../b",
		"example.com/a//b",
		"example.com/.",
		"example.com/%2e",
		"example.com/a b",
		"GET  example.com",
		" example.com",
		"GET,,POST example.com",
		"GET, example.com",
		"FETCH example.com",
		"GET /v1",
		"/v1",
		"10.0.0.0/8",
		"user@example.com",
		"exa mple.com",
		"example.com\n",
		"ex\ramp.le",
		"a.*.example.com",
		"*example.com",
		"**.example.com",
		"*.*.com",
		"example.com:0",
		"example.com:65536",
		"example.com:http",
		"example.com:443:80",
		"example.com:",
		"example.com:53",
		"example.com:61052",
		"example.com:0443",
		"127.0.0.1.",
		"localhost",
		"LocalHost.",
		"localhost:8080",
		"*.localhost",
		"*.a.localhost",
		"a.localhost",
		"GET localhost/v1",
		"\u24dbocalhost",
		"1.2.3",
		"a.b:-1",
		":443",
		"\xff.com",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com",
	};
	struct egress_entry n;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e = (struct err){ 0 };
		if (egress_entry_parse(bad[i], strlen(bad[i]), &n, &e) != -EINVAL || !e.msg[0])
			fail_msg("'%s'", bad[i]);
	}
	assert_int_equal(egress_entry_parse("a.com\0.evil", 11, &n, NULL), -EINVAL);
	assert_int_equal(egress_entry_parse("xlocalhost", 10, &n, NULL), 0);
	assert_int_equal(egress_entry_parse("localhost.example.com", 21, &n, NULL), 0);
}

TEST(lists)
{
	static struct egress_rules rules;
	json_t *list = json_pack("[sss]", "b.org", "A.org:22", "b.org."), *out;
	struct err e = { 0 };

	out = egress_list(list, &e);
	assert_int_equal(json_array_size(out), 2);
	assert_string_equal(json_string_value(json_array_get(out, 0)), "a.org:22");
	assert_int_equal(egress_rules(out, &rules, &e), 0);
	assert_int_equal(rules.n_rules, 3);
	assert_int_equal(rules.n_ports, 3);
	json_decref(out);
	json_decref(list);
	assert_null(egress_list(NULL, &e));
	assert_int_equal(e.code, 0);
	list = json_array();
	for (int i = 1; i <= 17; i++)
		json_array_append_new(list, json_sprintf("a.org:%d", 1000 + i));
	assert_int_equal(egress_rules(list, &rules, &e), -EINVAL);
	json_decref(list);
}

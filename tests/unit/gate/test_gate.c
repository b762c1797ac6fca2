/* SPDX-License-Identifier: Apache-2.0 */
/* test_gate.c - The pure parts of the gate: names, addresses, DNS messages, first bytes, proxies.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/fd.h"
#include "gate/address.h"
#include "gate/dns.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"
#include "gate/lookup.h"
#include "gate/sniff.h"

/* ---- names --------------------------------------------------------------------------------- */

static const struct gate_rule rules[] = {
	{ .host = "api.example.com", .port = 443 },
	{ .host = "example.org", .port = 80, .flags = GATE_WILD },
};

TEST(names)
{
	struct host_map n = { 0 };
	struct in6_addr a;
	struct in_addr a4;

	assert_int_equal(host_map_set(&n, rules, ARRAY_SIZE(rules)), 0);
	assert_true(host_map_allows(&n, "api.example.com", 443));
	assert_true(host_map_allows(&n, "api.example.com", 0));
	assert_false(host_map_allows(&n, "api.example.com", 80));
	assert_false(host_map_allows(&n, "xapi.example.com", 443));
	assert_true(host_map_allows(&n, "a.b.example.org", 80));
	assert_false(host_map_allows(&n, "example.org", 80));
	assert_false(host_map_allows(&n, ".example.org", 80));
	assert_false(host_map_allows(&n, "evilexample.org", 80));
	assert_int_equal(host_map_index(&n, "evil.com"), -ENOENT);
	assert_int_equal(host_map_index(&n, "api.example.com"), 0);
	assert_int_equal(host_map_index(&n, "a.example.org"), 1);
	assert_int_equal(host_map_index(&n, "api.example.com"), 0);
	host_map_address4(1, &a4);
	assert_int_equal(ntohl(a4.s_addr), GATE_NET4 + GATE_FIRST + 1);
	host_map_address6(1, &a);
	assert_string_equal(host_map_host(&n, &a), "a.example.org");
	prefix_map4(&a4, &a);
	assert_string_equal(host_map_host(&n, &a), "a.example.org");
	a.s6_addr[15] = 99;
	assert_null(host_map_host(&n, &a));
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &a), 1);
	assert_null(host_map_host(&n, &a));
	/* The name keeps its address, and is not allowed any more. */
	assert_int_equal(host_map_set(&n, rules + 1, 1), 0);
	assert_int_equal(host_map_index(&n, "api.example.com"), -ENOENT);
	host_map_free(&n);
}

TEST(names_are_bounded)
{
	struct host_map n = { 0 };
	char host[64];

	assert_int_equal(host_map_set(&n, rules, ARRAY_SIZE(rules)), 0);
	for (unsigned int i = 0; i < GATE_NAMES_MAX; i++) {
		(void)snprintf(host, sizeof(host), "n%u.example.org", i);
		assert_int_equal(host_map_index(&n, host), i);
	}
	assert_int_equal(host_map_index(&n, "api.example.com"), -ENOSPC);
	assert_int_equal(host_map_index(&n, "n7.example.org"), 7);
	host_map_free(&n);
}

TEST(requested_names)
{
	struct gate_sandbox sb = { 0 };
	char host[64];

	resolver_note(&sb, "a.example.com", true);
	resolver_note(&sb, "evil.com", false);
	resolver_note(&sb, "a.example.com", false);
	assert_int_equal(sb.n_recent, 2);
	assert_string_equal(sb.recent[0].host, "a.example.com");
	assert_int_equal(sb.recent[0].count, 2);
	assert_false(sb.recent[0].allowed);
	assert_string_equal(sb.recent[1].host, "evil.com");
	/* The name that was not requested for the longest time is forgotten, with its numbers. */
	for (unsigned int i = 0; i < GATE_NAMES_SHOWN; i++) {
		(void)snprintf(host, sizeof(host), "n%u.example.org", i);
		resolver_note(&sb, i == 0 ? "evil.com" : host, true);
	}
	assert_int_equal(sb.n_recent, GATE_NAMES_SHOWN);
	assert_string_equal(sb.recent[0].host, host);
	assert_int_equal(sb.recent[0].count, 1);
	assert_string_equal(sb.recent[GATE_NAMES_SHOWN - 1].host, "evil.com");
	assert_int_equal(sb.recent[GATE_NAMES_SHOWN - 1].count, 2);
	free(sb.recent);
}

TEST(invalid_rules)
{
	static const char *const bad[] = { "",         "A.com", "a..b",  "a.b.",     ".a",
					   "10.0.0.1", "a b",   "127.1", "a\x01.com" };
	struct host_map n = { 0 };
	struct gate_rule r = { .port = 1 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)snprintf(r.host, sizeof(r.host), "%s", bad[i]);
		assert_int_equal(host_map_set(&n, &r, 1), -EINVAL);
	}
	memset(r.host, 'a', sizeof(r.host)); /* without an end */
	assert_int_equal(host_map_set(&n, &r, 1), -EINVAL);
}

/* ---- addresses ----------------------------------------------------------------------------- */

TEST(addresses)
{
	static const struct {
		const char *address;
		int refused; /* 0: never; 1: unless the operator allows it; 2: always */
	} rows[] = {
		{ "1.1.1.1", 0 },
		{ "2606:4700::1111", 0 },
		{ "172.32.0.1", 0 },
		{ "100.128.0.1", 0 },
		{ "10.0.0.1", 1 },
		{ "172.31.255.255", 1 },
		{ "192.168.1.1", 1 },
		{ "127.0.0.1", 1 },
		{ "127.255.255.254", 1 },
		{ "::1", 1 },
		{ "100.64.0.1", 1 },
		{ "fd12::1", 1 },
		{ "fec0::1", 1 },
		{ "198.18.1.1", 1 },
		{ "240.0.0.1", 1 },
		{ "2001:db8::1", 1 },
		{ "2001:0:1::1", 1 },
		{ "::ffff:10.0.0.1", 1 },
		{ "64:ff9b::10.0.0.1", 1 },
		{ "2002:a00:1::", 1 },
		{ "64:ff9b::1.1.1.1", 0 },
		{ "2002:101:101::", 0 },
		{ "64:ff9b:1::1", 1 },
		{ "::10.0.0.1", 1 },
		{ "4000::1", 1 },
		{ "169.254.169.254", 2 },
		{ "169.254.0.1", 2 },
		{ "fe80::1", 2 },
		{ "fd00:ec2::254", 2 },
		{ "100.100.100.200", 2 },
		{ "168.63.129.16", 2 },
		{ "224.0.0.1", 2 },
		{ "ff02::1", 2 },
		{ "0.0.0.0", 2 },
		{ "::", 2 },
		{ "255.255.255.255", 2 },
		{ "64:ff9b::169.254.169.254", 2 },
		{ "2002:a9fe:a9fe::", 2 },
		{ "::ffff:169.254.169.254", 2 },
	};
	struct prefix all[2];
	struct in6_addr a;

	assert_true(prefix_parse("::/0", &all[0]));
	assert_true(prefix_parse("0.0.0.0/0", &all[1]));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct prefix p;

		assert_true(prefix_parse(rows[i].address, &p));
		a = p.net;
		if (!!address_refusal(&a, NULL, 0) != (rows[i].refused > 0) ||
		    !!address_refusal(&a, all, 2) != (rows[i].refused > 1))
			fail_msg("%s", rows[i].address);
	}
	assert_true(prefix_parse("127.0.0.1", &all[0]));
	assert_true(address_is_ours(&all[0].net));
	for (const char *const *bad =
		     (const char *const[]){ "", "/8", "10.0.0.1/8", "10.0.0.0/33", "x", "10.0.0.0/",
					    "10.0.0.0/8x", "::/129", NULL };
	     *bad; bad++)
		assert_false(prefix_parse(*bad, &all[0]));
}

TEST(hosts)
{
	char text[] = "127.0.0.1 localhost me # not.me\n\n::1\tlocalhost\nbad line\n"
		      "10.0.0.9 Intra.Net\r\n";
	struct hosts_file h = { 0 };
	struct in6_addr a[4];

	hosts_file_parse(&h, text);
	assert_int_equal(hosts_file_find(&h, "localhost", a, 4), 2);
	assert_int_equal(hosts_file_find(&h, "intra.net", a, 4), 1);
	assert_int_equal(hosts_file_find(&h, "not.me", a, 4), 0);
	hosts_file_free(&h);
}

/* ---- DNS ----------------------------------------------------------------------------------- */

TEST(dns)
{
	static const uint8_t ask[] = "ab\1\0\0\1\0\0\0\0\0\0\3WEB\4test\0\0\1\0\1";
	static const uint8_t address[4] = { 198, 18, 1, 0 };
	uint8_t out[DNS_MESSAGE_MAX];
	struct dns_question q;
	size_t len = sizeof(ask) - 1, n;

	assert_int_equal(dns_parse(ask, len, &q), 0);
	assert_string_equal(q.name, "web.test");
	assert_true(q.is_host);
	assert_int_equal(q.type, DNS_A);
	n = dns_answer(ask, &q, DNS_OK, address, 4, out, sizeof(out));
	assert_int_equal(n, len + 16);
	assert_memory_equal(out + n - 4, address, 4);
	assert_memory_equal(out + 12, ask + 12, len - 12);
	assert_int_equal(dns_answer(ask, &q, DNS_OK, address, 4, out, len + 15), 0);
	n = dns_answer(ask, &q, DNS_NXDOMAIN, NULL, 0, out, sizeof(out));
	assert_int_equal(n, len);
	assert_int_equal(out[3] & 15, DNS_NXDOMAIN);
	for (size_t cut = 0; cut < len; cut++)
		assert_true(dns_parse(ask, cut, &q) < 0);
	assert_true(dns_is_reverse("1.0.18.198.in-addr.arpa"));
	assert_false(dns_is_reverse("in-addr.arpa.evil"));
}

/* ---- first bytes --------------------------------------------------------------------------- */

static struct sniff look(const char *text, size_t len)
{
	struct sniff h;

	sniff_bytes((const uint8_t *)text, len, &h);
	return h;
}

#define LOOK(text) look(text, sizeof(text) - 1)

TEST(http)
{
	struct sniff h = LOOK("GET / HTTP/1.1\r\nA: b\r\nhOST:  Web.Test:8080 \r\n\r\nrest");

	assert_int_equal(h.kind, SNIFF_HTTP);
	assert_string_equal(h.host, "web.test");
	assert_int_equal(h.port, 8080);
	assert_int_equal(LOOK("GET / HTTP/1.1\r\nA: b\r\n").kind, SNIFF_MORE);
	assert_int_equal(LOOK("GE").kind, SNIFF_MORE);
	assert_string_equal(LOOK("\r\nPROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n").host, "a");
	assert_string_equal(LOOK("x!~ / HTTP/1.1\r\nHost: a\r\n\r\n").host, "a");
	assert_int_equal(LOOK("GET / HTTP/1.0\r\n\r\n").kind, SNIFF_HTTP);
	assert_string_equal(LOOK("GET http://a.b/c HTTP/1.0\r\n\r\n").host, "a.b");
	assert_string_equal(LOOK("GET / HTTP/1.1\r\nHost: [::1]:8\r\n\r\n").host, "[::1]");
	assert_int_equal(LOOK("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n").port, 0);
	for (const char *const *bad =
		     (const char *const[]){
			     "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
			     "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
			     "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
			     "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
			     "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
			     "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "GET / HTTP/2\r\n\r\n",
			     "GET /\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n",
			     "GET / HTTP/1.1\r\nno colon\r\n\r\n",
			     "GET http://u@a/ HTTP/1.0\r\n\r\n",
			     "CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n",
			     "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
			     "GET / HTTP/1.1\r\nA: b\r\n\r\n",
			     /* what one server or another takes for HTTP all the same */
			     "\nGET / HTTP/1.1\r\n\r\n", " GET / HTTP/1.1\r\n\r\n",
			     "\t\r\nFOO / HTTP/1.1\r\n\r\n", "FOO\t/\tHTTP/1.1\r\n\r\n",
			     "foo\xa0/\xa0HTTP/1.1\r\n", "FOO\r/ HTTP/1.1\r\n\r\n",
			     "get / http/1.1\r\n\r\n", "FOO / HTTP/1.1 \r\n\r\n", "GET\t/\r\n\r\n",
			     "FOO  HTTP/1.1\r\n\r\n", "G\x80T / HTTP/1.1\r\n\r\n",
			     "PROPFIND /\r\n\r\n", "OPTIONS / RTSP/1.0\r\n\r\n", NULL };
	     *bad; bad++) {
		h = look(*bad, strlen(*bad));
		if (h.kind != SNIFF_BAD || h.like != SNIFF_HTTP)
			fail_msg("%s", *bad);
	}
}

/* Other protocols, from their first bytes on, and what it may still be. */
TEST(other_protocols)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum sniff_kind kind, like;
	} t[] = {
#define T(text, kind, like) { text, sizeof(text) - 1, kind, like }
		T("SSH-2.0-OpenSSH_9.2 Debian\r\n", SNIFF_OTHER, 0),
		T("\x00\x00\x00\x08\x04\xd2\x16\x2f", SNIFF_MORE, SNIFF_OTHER), /* PostgreSQL */
		T("EHLO me\r\n", SNIFF_OTHER, 0),
		T("*1\r\n$4\r\nPING\r\n", SNIFF_OTHER, 0),            /* Redis */
		T("CONNECT {\"verbose\":false}\r\n", SNIFF_OTHER, 0), /* NATS */
		T("<13>x: \"GET / HTTP/1.1\" 200\n", SNIFF_OTHER, 0), /* a log */
		T("AMQP\x00\x00\x09\x01", SNIFF_MORE, SNIFF_OTHER),
		T("{\"a\": \"GET / HTTP/1.1\"}\n", SNIFF_OTHER, 0),
		T("0032git-upload-pack /p\0host=a\0", SNIFF_MORE, SNIFF_OTHER),
		T("hi", SNIFF_MORE, SNIFF_OTHER),
		T("hi / HTTP", SNIFF_MORE, SNIFF_OTHER),
		T("hi / HTTP/1.1", SNIFF_MORE, SNIFF_OTHER),
		T("hi / HTTP/1.1\r", SNIFF_MORE, SNIFF_HTTP),
		T("\r\n", SNIFF_MORE, SNIFF_OTHER),
		T("P", SNIFF_MORE, SNIFF_HTTP),
		T("POST /", SNIFF_MORE, SNIFF_HTTP),
		T("GEX", SNIFF_MORE, SNIFF_OTHER),
		T("\x16", SNIFF_MORE, SNIFF_TLS),
#undef T
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct sniff h = look(t[i].bytes, t[i].len);

		if (h.kind != t[i].kind || (h.kind == SNIFF_MORE && h.like != t[i].like))
			fail_msg("%s: %d, like %d", t[i].bytes, h.kind, h.like);
	}
}

/* So much without the end of a line: a request, as far as any server may read it as one. */
TEST(a_first_line_without_an_end)
{
	static char text[SNIFF_MAX] = "receive it";

	assert_int_equal(look(text, sizeof(text) - 1).kind, SNIFF_MORE);
	assert_int_equal(look(text, sizeof(text)).kind, SNIFF_BAD);
	text[0] = '\0'; /* no method has this byte */
	assert_int_equal(look(text, sizeof(text)).kind, SNIFF_OTHER);
}

TEST(tls)
{
	/* A record with a ClientHello: version, random, no session, one cipher, no compression, one
	 * name. */
	uint8_t m[128] = { 22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3 };
	static const uint8_t end[] = { 0, 0,  2, 0x13, 1, 1,   0,   0,   17,  0,   0,   0,   13,
				       0, 11, 0, 0,    8, 'W', 'e', 'b', '.', 't', 'e', 's', 't' };
	size_t len = 11 + 32 + sizeof(end);
	struct sniff h;

	memcpy(m + 11 + 32, end, sizeof(end));
	m[4] = (uint8_t)(len - 5);
	m[8] = (uint8_t)(len - 9);
	sniff_bytes(m, len, &h);
	assert_int_equal(h.kind, SNIFF_TLS);
	assert_string_equal(h.host, "web.test");
	for (size_t cut = 1; cut < len; cut++) {
		sniff_bytes(m, cut, &h);
		assert_int_equal(h.kind, SNIFF_MORE);
	}
	/* In two records it is the same. */
	uint8_t two[160];
	size_t first = 20;

	memcpy(two, m, 5 + first);
	two[4] = (uint8_t)first;
	memcpy(two + 5 + first, (const uint8_t[]){ 22, 3, 1, 0, (uint8_t)(len - 5 - first) }, 5);
	memcpy(two + 10 + first, m + 5 + first, len - 5 - first);
	sniff_bytes(two, len + 5, &h);
	assert_int_equal(h.kind, SNIFF_TLS);
	assert_string_equal(h.host, "web.test");
	m[len - 1] = 0; /* a NUL in the name */
	sniff_bytes(m, len, &h);
	assert_int_equal(h.kind, SNIFF_BAD);
	m[len - 1] = 't';
	m[len - 9] = 200; /* longer than the list it is in */
	sniff_bytes(m, len, &h);
	assert_int_equal(h.kind, SNIFF_BAD);
}

/* ---- the proxy ----------------------------------------------------------------------------- */

TEST(proxy)
{
	struct proxy p;
	char text[512];

	assert_int_equal(proxy_parse(NULL, NULL, &p, NULL), 0);
	assert_false(proxy_wanted(&p, "a.b"));
	assert_int_equal(proxy_parse("http://u:p@127.0.0.1:3128/", "x.org, .y.org", &p, NULL), 0);
	assert_int_equal(p.port, 3128);
	assert_true(proxy_wanted(&p, "a.b"));
	assert_false(proxy_wanted(&p, "x.org"));
	assert_false(proxy_wanted(&p, "a.y.org"));
	assert_true(proxy_wanted(&p, "ax.org"));
	assert_true(proxy_request(&p, "a.b", 443, text, sizeof(text)) > 0);
	assert_string_equal(text, "CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n"
				  "Proxy-Authorization: Basic dTpw\r\n\r\n");
	assert_true(p.is_address);
	/* A name is taken as it is: whether it exists is asked with each connection. */
	assert_int_equal(proxy_parse("proxy.invalid", NULL, &p, NULL), 0);
	assert_string_equal(p.host, "proxy.invalid");
	assert_true(p.on && !p.is_address && p.port == 80);
	assert_int_equal(proxy_parse("http://[::1]:8080", NULL, &p, NULL), 0);
	assert_true(p.is_address && p.port == 8080 && p.address.s6_addr[15] == 1);
	static const char *const wrong[] = {
		"socks5://127.0.0.1", "http://",        "http://a:0",
		"http://a:65536",     "http://a:3128x", "http://[::1",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(proxy_parse(wrong[i], NULL, &p, NULL) < 0);
	assert_int_equal(proxy_answer("HTTP/1.1 200 OK\r\n\r\nx", 20), 19);
	assert_int_equal(proxy_answer("HTTP/1.1 200 OK\r\n", 17), 0);
	assert_int_equal(proxy_answer("HTTP/1.1 403 No\r\n\r\n", 19), -ECONNREFUSED);
	assert_int_equal(proxy_answer("SSH-2.0-xxxxxxx", 15), -EPROTO);
}

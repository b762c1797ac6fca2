/* SPDX-License-Identifier: Apache-2.0 */
/* test_port_head.c - Heads between a client and a service in a sandbox: passed on, or held back. */
#include <string.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/fd.h"
#include "front/ports/port_head.h"
#include "net/http.h"
#include "net/http_header.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHOWN "/v1/sandboxes/box/ports/8000"
#define PREFIX SHOWN "~" TOKEN

static struct port_way way(void)
{
	struct port_way w = { .peer = "10.0.0.9", .proto = "https" };

	port_way_set(&w, "box", 8000, TOKEN);
	assert_string_equal(w.prefix, PREFIX);
	assert_string_equal(w.shown, SHOWN);
	return w;
}

TEST(name)
{
	static const char *const wrong[] = { "",
					     "0",
					     "65536",
					     "08",
					     "8000~",
					     "8000~x",
					     "x",
					     "-1",
					     "8000 ",
					     "8000~" TOKEN "0",
					     "~" TOKEN,
					     "8000000000",
					     "8000~0123456789ABCDEF" };
	char token[PORT_TOKEN_LEN + 1];
	unsigned int n;

	assert_true(port_name_parse("65535", &n, token));
	assert_int_equal(n, 65535);
	assert_string_equal(token, "");
	assert_true(port_name_parse("1~" TOKEN, &n, token));
	assert_string_equal(token, TOKEN);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(port_name_parse(wrong[i], &n, token));
}

TEST(hide)
{
	static const char *const rows[][2] = {
		{ PREFIX "/a~b", SHOWN "/a~b" },
		{ PREFIX, SHOWN },
		{ SHOWN "/a~b", SHOWN "/a~b" },
		{ "/v1/sandboxes/x/files", "/v1/sandboxes/x/files" },
		{ "/ports/1~secret", "/ports/1" },
		{ "", "" },
		/* Names that look like a part of the route, and paths that are no route. */
		{ "/v1/sandboxes/ports/ports/8000~" TOKEN "/x",
		  "/v1/sandboxes/ports/ports/8000/x" },
		{ "/v1/sandboxes/ports/ports/8000~" TOKEN, "/v1/sandboxes/ports/ports/8000" },
		{ "/v1//sandboxes/box/ports/8000~" TOKEN "/x", "/v1//sandboxes/box/ports/8000/x" },
		{ "//v1/sandboxes/box/ports/8000~" TOKEN, "//v1/sandboxes/box/ports/8000" },
		{ "/V1/sandboxes/box/ports/8000~" TOKEN, "/V1/sandboxes/box/ports/8000" },
		{ "/v1/sandboxes/box/ports//8000~" TOKEN, "/v1/sandboxes/box/ports//8000" },
		{ "/v1/sandboxes/a~b/ports/8000~" TOKEN "/", "/v1/sandboxes/a~b/ports/8000/" },
		{ "8000~" TOKEN, "8000" },
		{ "~" TOKEN, "" },
		{ "/x~" TOKEN "~" TOKEN "y", "/xy" },
		{ SHOWN "/see" PREFIX "/y", SHOWN "/see" SHOWN "/y" },
		/* Tokens that are cut off, mistyped, in capital letters, or encoded twice. */
		{ "/x~0123456789abcdef", "/x" },
		{ SHOWN "~0123456789abcdeX0123/y", SHOWN "/y" },
		{ SHOWN "~" TOKEN "0/y", SHOWN "/y" },
		{ "/x~0123456789ABCDEF/y", "/x/y" },
		{ SHOWN "%7E" TOKEN "/y", SHOWN "/y" },
		{ SHOWN "%25257e" TOKEN "/y", SHOWN "/y" },
		/* Other paths stay as they are. */
		{ "/~user/a~0123456/%7/%25/%7f/" TOKEN, "/~user/a~0123456/%7/%25/%7f/" TOKEN },
	};
	char out[300];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		port_hide(rows[i][0], out, sizeof(out));
		assert_string_equal(out, rows[i][1]);
	}
	/* A path that does not fit is cut after its token was removed. */
	port_hide(PREFIX "/abc", out, sizeof(SHOWN) + 2);
	assert_string_equal(out, SHOWN "/a");
	port_hide(PREFIX, out, 1);
	assert_string_equal(out, "");
}

static void expect_target(const char *target, const char *expected)
{
	assert_string_equal(port_inner_target(target), expected);
}

TEST(target)
{
	expect_target(PREFIX "/", "/");
	expect_target(PREFIX "/?a=/b", "/?a=/b");
	expect_target(PREFIX "//x/../%2e", "//x/../%2e");
	expect_target("/v1/sandboxes/b%6Fx/ports/8000/x/y?z", "/x/y?z");
	expect_target("/v1/sandboxes/box/ports", "/");
}

static bool is_secret(const void *secrets, const char *text, size_t len)
{
	return memmem(text, len, secrets, strlen(secrets));
}

TEST(request)
{
	static const struct http_header headers[] = {
		{ "host", "caisson:8001", 12 },
		{ "cookie",
		  "a=1; caisson-port-b=2;caisson-port-c=;caisson-port-d=daemon; caisson-port-", 0 },
		{ "x-caisson-port-token", TOKEN, 64 },
		{ "authorization", "Bearer daemon", 0 },
		{ "connection", "keep-alive, X-Mine, Content-Length", 0 },
		{ "x-mine", "1", 1 },
		{ "x-other", "2", 1 },
		{ "origin", "https://caisson:8001", 0 },
		{ "content-length", "5", 1 },
		{ "x-forwarded-for", "6.6.6.6", 0 },
		{ "x_forwarded_for", "6.6.6.6", 0 },
		{ "x_caisson_port-token", TOKEN, 64 },
		{ "x_api_key", "a-daemon-b", 0 },
		{ "x_other", "3", 1 },
	};
	const struct http_request q = { .method = "POST",
					.target = PREFIX "/p?q",
					.host = "caisson:8001",
					.headers = headers,
					.n_headers = ARRAY_SIZE(headers) };
	_buf_ struct buf out = BUF_INIT(4096);
	struct port_way w = way();

	w.is_secret = is_secret;
	w.secrets = "daemon";
	assert_int_equal(port_request_head(&q, &w, &out), 0);
	assert_string_equal(buf_str(&out), "POST /p?q HTTP/1.1\r\n"
					   "host: localhost:8000\r\n"
					   "x-other: 2\r\n"
					   "content-length: 5\r\n"
					   "x_other: 3\r\n"
					   "cookie: b=2; c=\r\n"
					   "origin: http://localhost:8000\r\n"
					   "x-forwarded-for: 10.0.0.9\r\n"
					   "x-forwarded-proto: https\r\n"
					   "x-forwarded-host: caisson:8001\r\n"
					   "x-forwarded-prefix: " SHOWN "\r\n"
					   "connection: close\r\n\r\n");
}

/* Lines that are not copied from a header of the same name are judged as well. */
TEST(secrets)
{
	static const struct http_header headers[] = {
		{ "connection", "upgrade", 0 },
		{ "upgrade", "daemon", 0 },
		{ "origin", "http://daemon", 0 },
		{ "sec-websocket-protocol", "chat, daemon", 0 },
	};
	const struct http_request q = { .method = "GET",
					.target = PREFIX "/",
					.host = "daemon",
					.headers = headers,
					.n_headers = ARRAY_SIZE(headers) };
	_buf_ struct buf out = BUF_INIT(4096), all = BUF_INIT(4096);
	struct port_way w = way();

	w.switches = true;
	assert_int_equal(port_request_head(&q, &w, &all), 0);
	assert_non_null(strstr(buf_str(&all), "sec-websocket-protocol: chat, daemon\r\n"));
	w.is_secret = is_secret;
	w.secrets = "daemon";
	assert_int_equal(port_request_head(&q, &w, &out), 0);
	assert_null(strstr(buf_str(&out), "daemon"));
	assert_non_null(strstr(buf_str(&out), "\r\nconnection: upgrade\r\n\r\n"));
}

TEST(switches)
{
	struct http_header headers[] = { { "connection", "keep-alive, Upgrade", 0 },
					 { "upgrade", "websocket", 0 },
					 { "content-length", "0", 1 } };
	struct http_request q = { .method = "GET",
				  .target = PREFIX "/",
				  .host = "d",
				  .headers = headers,
				  .n_headers = 3 };
	_buf_ struct buf out = BUF_INIT(4096);
	struct port_way w = way();

	assert_true(header_switches(&q));
	w.switches = true;
	assert_int_equal(port_request_head(&q, &w, &out), 0);
	assert_non_null(
		strstr(buf_str(&out), "\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"));
	headers[2].value = "1";
	assert_false(header_switches(&q));
	headers[2].value = "0";
	headers[1].value = "h2c, websocket";
	assert_false(header_switches(&q));
	headers[1].value = "websocket";
	q.method = "POST";
	assert_false(header_switches(&q));
	q.method = "GET";
	q.n_headers = 1;
	assert_false(header_switches(&q));
}

TEST(answer)
{
	static const struct {
		const char *name, *value, *expected; /* NULL: dropped */
	} rows[] = {
		{ "content-type", "text/html", "text/html" },
		{ "content-length", "5", NULL },
		{ "transfer-encoding", "chunked", NULL },
		{ "x-hop", "1", NULL },
		{ "clear-site-data", "\"*\"", NULL },
		{ "referrer-policy", "unsafe-url", NULL },
		{ "strict-transport-security", "max-age=1", NULL },
		{ "location", "/x?y#z", PREFIX "/x?y#z" },
		{ "location", "x", "x" },
		{ "location", "", "" },
		{ "location", "http://LOCALHOST:8000?a", PREFIX "/?a" },
		{ "location", "http://localhost:80001/", "http://localhost:80001/" },
		{ "location", "http://localhost:8000.evil/", "http://localhost:8000.evil/" },
		{ "location", "http://localhost/", "http://localhost/" },
		{ "location", "//evil/x", "//evil/x" },
		{ "location", "/\\evil", PREFIX "/\\evil" },
		{ "location", SHOWN "/x", PREFIX "/x" },
		{ "location", SHOWN "0/x", PREFIX SHOWN "0/x" },
		{ "set-cookie", "a=b", "caisson-port-a=b; Path=" PREFIX "/" },
		{ "set-cookie", " a=b; PATH=/x ; Secure;Domain=.evil",
		  "caisson-port-a=b; Secure; Path=" PREFIX "/x " },
		{ "set-cookie", "a=b; Path=relative; Path=", "caisson-port-a=b; Path=" PREFIX "/" },
		{ "set-cookie", "__Host-a=b; Path=/", "caisson-port-__Host-a=b; Path=" PREFIX "/" },
		{ "set-cookie", "=b", NULL },
		{ "set-cookie", "novalue; x=y", NULL },
		{ "set-cookie", "", NULL },
	};
	_buf_ struct buf out = BUF_INIT(4096);
	struct port_way w = way();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool kept =
			port_answer_header(&w, "close, X-Hop", rows[i].name, rows[i].value, &out);

		if (kept != (rows[i].expected != NULL))
			fail_msg("%s: %s", rows[i].name, rows[i].value);
		if (kept)
			assert_string_equal(buf_str(&out), rows[i].expected);
	}
	assert_true(port_answer_header(&w, NULL, "access-control-allow-origin", "x", &out));
	w.own_page = true;
	assert_false(port_answer_header(&w, NULL, "access-control-allow-origin", "x", &out));
}

TEST(own_path)
{
	static const struct {
		const char *path;
		size_t own; /* 0: all of it */
	} rows[] = {
		{ "/v1/sandboxes/a/ports/8000/x%2Fy", 27 },
		{ "/v1/sandboxes/a/ports/8000/", 27 },
		{ "/v1/sandboxes/a/ports/8000", 0 },
		{ "/v1/sandboxes/a%2F/ports/8000/x", 0 },
		{ "/v1/sandboxes/a/files/8000/x", 0 },
		{ "/v1/sandboxes//ports/8000/x", 0 },
		{ "/v1/sandboxes/a/ports/8%2F/x", 0 },
		{ "/", 0 },
		{ "/v1/sandboxes/a/ports/8000~tok/", 31 },
		{ "//v1/sandboxes/a/ports/1/x", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].path);

		assert_int_equal(port_own_path(rows[i].path, len), rows[i].own ? rows[i].own : len);
	}
}

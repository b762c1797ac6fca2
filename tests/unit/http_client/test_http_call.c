/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_call.c - Requests as a server gets them, and answers as their functions get them. The
 * server is a child on a unix socket that gives one answer and shows the request.
 */
#include "base/buf.h"
#include "http_client/http_call.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"

static char path[64];
static int asked[2]; /* what the server was sent */
static pid_t server;

static struct {
	char heads[512];
	struct buf body;
	int give_up, ended;
	CURLcode code;
} seen;

static int setup(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	buf_init(&seen.body, 4096);
	(void)snprintf(path, sizeof(path), "/tmp/caisson-test-call-%d", (int)getpid());
	return pipe(asked);
}

static int teardown(void **state)
{
	(void)state;
	buf_free(&seen.body);
	(void)close(asked[0]);
	(void)close(asked[1]);
	return unlink(path);
}

static void serve(const char *answer)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	(void)unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	server = fork();
	if (server == 0) {
		char in[8192];
		int c = accept(fd, NULL, NULL);
		ssize_t n, all = 0;

		while ((n = read(c, in + all, sizeof(in) - 1 - (size_t)all)) > 0) {
			all += n;
			in[all] = '\0';
			if (strstr(in, "\r\n\r\n"))
				break;
		}
		_exit(write(asked[1], in, (size_t)all) == all &&
				      write(c, answer, strlen(answer)) > 0 ?
			      0 :
			      1);
	}
	(void)close(fd);
}

/* The request that the server got. */
static const char *request(void)
{
	static char text[8192];
	int status;

	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	ssize_t n = read(asked[0], text, sizeof(text) - 1);

	assert_true(n > 0);
	text[n] = '\0';
	return text;
}

static void on_header(void *arg, const char *name, const char *value)
{
	size_t n = strlen(seen.heads);

	(void)arg;
	(void)snprintf(seen.heads + n, sizeof(seen.heads) - n, "%s=%s|", name ? name : "-", value);
}

static int on_body(void *arg, const char *data, size_t len)
{
	(void)arg;
	return seen.give_up ? seen.give_up : buf_append(&seen.body, data, len);
}

static void on_end(void *arg, CURLcode code)
{
	(void)arg;
	seen.ended++;
	seen.code = code;
}

static const struct http_call_options options = { .socket = path, .direct = true, .http1 = true };

static struct http_call make(void)
{
	return (struct http_call){ .on_header = on_header, .on_body = on_body, .on_end = on_end };
}

static void run(struct http_call *q)
{
	CURLM *multi = http_call_multi();

	assert_non_null(multi);
	assert_int_equal(http_call_start(q, multi), 0);
	while (!seen.ended) {
		assert_true(http_call_step(multi));
		(void)curl_multi_poll(multi, NULL, 0, 100, NULL);
	}
	assert_null(q->multi);
	(void)curl_multi_cleanup(multi);
}

TEST(answer, setup, teardown)
{
	struct http_call q = make();

	serve("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nX-One:  a b \t\r\nX-None:\r\n"
	      "Content-Length: 4\r\n\r\nbody");
	http_call_begin(&q, &options, "GET", "http://host/where?x");
	run(&q);
	assert_int_equal(seen.code, CURLE_OK);
	assert_int_equal(http_call_status(&q), 404);
	assert_string_equal(seen.heads, "-=HTTP/1.1 100 Continue|=|-=HTTP/1.1 404 No|X-One=a b|"
					"X-None=|Content-Length=4|=|");
	assert_string_equal(buf_str(&seen.body), "body");
	assert_memory_equal(request(), "GET /where?x HTTP/1.1\r\nHost: host\r\n", 35);
	http_call_free(&q);
}

TEST(request, setup, teardown)
{
	struct http_call q = make();

	serve("HTTP/1.1 204 Done\r\n\r\n");
	http_call_begin(&q, &options, "PUT", "http://host/");
	http_call_header(&q, "X-Number: %d", 7);
	http_call_header(&q, "X-Empty: ");
	http_call_body(&q, "", 0);
	run(&q);
	const char *text = request();

	assert_memory_equal(text, "PUT / HTTP/1.1\r\n", 16);
	assert_non_null(strstr(text, "\r\nX-Number: 7\r\n"));
	assert_non_null(strstr(text, "\r\nX-Empty:\r\n"));
	assert_non_null(strstr(text, "\r\nContent-Length: 0\r\n"));
	assert_non_null(strstr(text, "\r\nUser-Agent: caisson/"));
	assert_null(strstr(text, "Expect"));
	assert_null(q.headers);
	http_call_free(&q);
}

TEST(redirects_are_not_followed, setup, teardown)
{
	struct http_call q = make();

	serve("HTTP/1.1 302 There\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n");
	http_call_begin(&q, &options, "GET", "http://host/");
	assert_int_equal(http_call_perform(&q), CURLE_OK);
	assert_int_equal(http_call_status(&q), 302);
	assert_int_equal(seen.ended, 0);
	(void)request();
	http_call_free(&q);
}

TEST(body_that_is_not_taken, setup, teardown)
{
	struct http_call q = make();

	seen.give_up = -ECANCELED;
	serve("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
	http_call_begin(&q, &options, "GET", "http://host/");
	run(&q);
	assert_int_equal(seen.code, CURLE_WRITE_ERROR);
	assert_true(http_call_why(&q, seen.code)[0]);
	(void)request();
	http_call_free(&q);
}

/* The second request is on the same handle: nothing of the first may be in it. */
TEST(again, setup, teardown)
{
	struct http_call q = make();

	serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	http_call_begin(&q, &options, "POST", "http://host/");
	http_call_header(&q, "Authorization: secret");
	http_call_body(&q, "x", 1);
	http_call_begin(&q, &options, "GET", "http://host/");
	assert_int_equal(http_call_perform(&q), CURLE_OK);
	const char *text = request();

	assert_memory_equal(text, "GET / ", 6);
	assert_null(strstr(text, "secret"));
	http_call_free(&q);
}

TEST(other_protocols, setup, teardown)
{
	struct http_call q = make();

	serve("");
	(void)kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
	http_call_begin(&q, &options, "GET", "file:///etc/passwd");
	assert_int_equal(http_call_perform(&q), CURLE_UNSUPPORTED_PROTOCOL);
	http_call_free(&q);
}

TEST(origin)
{
	char a[1200], b[1200];

	assert_true(http_origin_is("https://a/x", "https://A:443/y"));
	assert_false(http_origin_is("https://a/x", "http://a/x"));
	assert_false(http_origin_is("https://a/x", "https://a:444/x"));
	assert_false(http_origin_is("https://a/x", "https://a.b/x"));
	assert_false(http_origin_is("https://a/x", "https://a@b/x"));
	assert_false(http_origin_is("", ""));
	/* Names that are equal as far as they are looked at. */
	(void)snprintf(a, sizeof(a), "https://%0700d.a/", 0);
	(void)snprintf(b, sizeof(b), "https://%0700d.b/", 0);
	assert_false(http_origin_is(a, b));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_bridge_link.c - The front's line to the bridge, with the test as the bridge. */
#include "front/tool_calls/bridge_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "wire/bridge.h"

static struct loop loop;
static struct bridge_link l;
static struct packet_queue out;
static int theirs;

/* The last report to a call. */
static struct heard {
	unsigned int n;
	bool ok, is_error;
	size_t len;
	char text[100], code[40], message[200];
} heard[4];

static void on_done(struct bridge_call *c, const struct bridge_answer *a)
{
	struct heard *h = c->arg;

	h->n++;
	h->ok = a->ok;
	h->is_error = a->is_error;
	h->len = a->ok ? a->text->len : 0;
	(void)snprintf(h->text, sizeof(h->text), "%.90s", a->ok ? buf_str(a->text) : "");
	(void)snprintf(h->code, sizeof(h->code), "%s", a->ok ? "" : a->code);
	(void)snprintf(h->message, sizeof(h->message), "%s", a->ok ? "" : a->message);
}

static void bridge_says(const char *head, const char *body, size_t len)
{
	assert_int_equal(packet_put(&out, theirs, head, strlen(head), body, len), 0);
}

static void on_stop(struct timer *t)
{
	loop_stop(t->arg);
}

/* Everything that has arrived. */
static void settle(void)
{
	struct timer t = { .fn = on_stop, .arg = &loop };

	timer_set(&loop, &t, loop.now_ns + 20000000);
	assert_int_equal(loop_run(&loop, NULL), 0);
}

static json_t *bridge_hears(struct buf *body)
{
	_buf_ struct buf head = BUF_INIT(BRIDGE_HEAD_MAX);

	assert_int_equal(packet_recv(theirs, &head, body), 1);
	json_t *h = json_loadb(buf_str(&head), head.len, 0, NULL);

	assert_non_null(h);
	return h;
}

static const char hello[] = "{\"event\":\"hello\",\"life\":1}";
static const char servers[] =
	"{\"servers\":[{\"name\":\"git-hub\",\"alias\":\"git_hub\",\"transport\":\"stdio\","
	"\"state\":\"idle\",\"rules\":{\"allow\":[\"x\"]}},{\"name\":\"w\",\"alias\":\"w2\","
	"\"transport\":\"http\",\"state\":\"idle\",\"description\":\"d\"}]}";

static int set_up(void **state)
{
	int pair[2];
	struct err e = { 0 };

	(void)state;
	memset(heard, 0, sizeof(heard));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	theirs = pair[1];
	packet_queue_init(&out);
	assert_int_equal(loop_init(&loop, &e), 0);
	bridge_says(hello, servers, strlen(servers));
	if (bridge_link_init(&l, &loop, pair[0], &e) < 0)
		fail_msg("%s", e.msg);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	bridge_link_free(&l);
	packet_queue_free(&out);
	fd_close(theirs);
	loop_free(&loop);
	return 0;
}

struct unit_fixture unit_fixture = { set_up, tear_down };

TEST(servers)
{
	assert_int_equal(l.n_servers, 2);
	assert_string_equal(bridge_server(&l, "git-hub")->alias, "git_hub");
	assert_non_null(bridge_server(&l, "git_hub")->rules);
	assert_string_equal(bridge_server(&l, "w2")->description, "d");
	assert_null(bridge_server(&l, "nobody"));
	bridge_says("{\"event\":\"state\",\"server\":\"w\",\"state\":\"ready\"}", NULL, 0);
	settle();
	assert_string_equal(bridge_server(&l, "w")->state, "ready");
}

TEST(calls)
{
	struct bridge_call a = { .done = on_done, .arg = &heard[0] },
			   b = { .done = on_done, .arg = &heard[1] };
	_buf_ struct buf body = BUF_INIT(BRIDGE_BODY_MAX);
	struct err e = { 0 };

	assert_int_equal(bridge_call(&l, &a, "w", "t", "{\"x\":1}", 7, 5000, &e), 0);
	assert_int_equal(bridge_tools(&l, &b, "w", 7000, &e), 0);
	json_t *h = bridge_hears(&body);

	assert_string_equal(json_string_value(json_object_get(h, "op")), "call");
	assert_string_equal(json_string_value(json_object_get(h, "tool")), "t");
	assert_int_equal(json_integer_value(json_object_get(h, "timeout_ms")), 5000);
	assert_string_equal(buf_str(&body), "{\"x\":1}");
	json_decref(h);
	h = bridge_hears(&body);
	assert_string_equal(json_string_value(json_object_get(h, "op")), "tools");
	assert_int_equal(json_integer_value(json_object_get(h, "timeout_ms")), 7000);
	json_decref(h);
	/* In any order; what was never asked for, and what makes no sense for anybody, is passed
	 * over. */
	bridge_says("{\"event\":\"progress\",\"id\":2,\"progress\":1}", NULL, 0);
	bridge_says("{\"event\":\"error\",\"id\":2,\"code\":\"timeout\",\"message\":\"m\"}", NULL,
		    0);
	bridge_says("{\"event\":\"result\",\"id\":99,\"is_error\":false}", "{}", 2);
	bridge_says("{\"event\":\"result\",\"id\":1,\"is_error\":true}", "{\"r\":2}", 7);
	bridge_says("{\"event\":\"result\",\"id\":1,\"is_error\":true}", "{\"r\":2}", 7);
	settle();
	assert_int_equal(heard[0].n, 1);
	assert_true(heard[0].ok && heard[0].is_error);
	assert_string_equal(heard[0].text, "{\"r\":2}");
	assert_int_equal(heard[1].n, 1);
	assert_string_equal(heard[1].code, "timeout");
}

TEST(large)
{
	struct bridge_call a = { .done = on_done, .arg = &heard[0] };
	size_t len = 5u << 20;
	_mem_ char *text = malloc(len);
	_buf_ struct buf body = BUF_INIT(BRIDGE_BODY_MAX);

	assert_non_null(text);
	memset(text, 'x', len);
	assert_int_equal(bridge_call(&l, &a, "w", "t", text, len, 1, NULL), 0);
	json_decref(bridge_hears(&body));
	assert_int_equal(body.len, len);
	bridge_says("{\"event\":\"result\",\"id\":1,\"is_error\":false}", text, len);
	settle();
	assert_int_equal(heard[0].len, len);
}

TEST(cancel)
{
	struct bridge_call a = { .done = on_done, .arg = &heard[0] };
	_buf_ struct buf body = BUF_INIT(BRIDGE_BODY_MAX);

	assert_int_equal(bridge_call(&l, &a, "w", "t", "{}", 2, 1, NULL), 0);
	bridge_cancel(&l, &a);
	bridge_cancel(&l, &a);
	json_decref(bridge_hears(&body));
	json_t *h = bridge_hears(&body);

	assert_string_equal(json_string_value(json_object_get(h, "op")), "cancel");
	assert_int_equal(json_integer_value(json_object_get(h, "id")), 1);
	json_decref(h);
	bridge_says("{\"event\":\"result\",\"id\":1,\"is_error\":false}", "{}", 2);
	settle();
	assert_int_equal(heard[0].n, 0);
}

TEST(restart_and_end)
{
	struct bridge_call a = { .done = on_done, .arg = &heard[0] },
			   b = { .done = on_done, .arg = &heard[1] };
	struct err e = { 0 };

	assert_int_equal(bridge_call(&l, &a, "w", "t", "{}", 2, 1, NULL), 0);
	bridge_says("{\"event\":\"hello\",\"life\":2}", servers, strlen(servers));
	settle();
	assert_int_equal(heard[0].n, 1);
	assert_string_equal(heard[0].code, "internal");
	assert_int_equal(l.life, 2);
	assert_int_equal(bridge_call(&l, &b, "w", "t", "{}", 2, 1, NULL), 0);
	theirs = fd_close(theirs);
	settle();
	assert_int_equal(heard[1].n, 1);
	assert_string_equal(heard[1].code, "internal");
	assert_int_equal(bridge_call(&l, &b, "w", "t", "{}", 2, 1, &e), -EPIPE);
	assert_string_equal(bridge_server(&l, "w")->state, "failed");
}

TEST(refused)
{
	static const char no[] = "{\"event\":\"refused\",\"message\":\"f: mcpServers.x: no\"}";
	struct bridge_link other;
	struct err e = { 0 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(packet_put(&out, pair[1], no, strlen(no), NULL, 0), 0);
	assert_int_equal(bridge_link_init(&other, &loop, pair[0], &e), -EINVAL);
	assert_string_equal(e.msg, "f: mcpServers.x: no");
	bridge_link_free(&other);
	fd_close(pair[1]);
	assert_int_equal(bridge_link_init(&other, &loop, -1, &e), 0);
	struct bridge_call c = { .done = on_done };

	assert_int_equal(bridge_tools(&other, &c, "w", 7000, &e), -EPIPE);
	bridge_link_free(&other);
}

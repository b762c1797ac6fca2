/* SPDX-License-Identifier: Apache-2.0 */
/* test_service_link.c - Replies, a full socket, and a service that dies or is replaced. */
#include "front/support/service_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"

#define VERSION 7
#define QUEUE 40

struct msg {
	uint32_t version, op; /* op 1: an answer, 2: another has taken its place */
	uint64_t seq;
	int32_t code, pad;
};

struct call {
	struct service_call call;
	int answers, code;
	uint64_t seq;
};

static struct loop loop;
static struct service_link link_;
static int peer, n_gone;

static void receive(struct service_link *l, void *message, int *fds, size_t n_fds)
{
	const struct msg *m = message;

	(void)fds;
	if (m->op == 2) {
		service_link_fail(l, l->seq, -ECONNRESET, "replaced");
		return;
	}
	struct call *c = (struct call *)service_link_take(l, m->seq);

	if (c) {
		c->answers++;
		c->code = m->code + (int)n_fds;
		c->seq = m->seq;
	}
}

static void on_fail(struct service_call *call, int code, const char *why)
{
	struct call *c = (struct call *)call;
	struct msg m = { .op = 1 };

	assert_non_null(why);
	c->answers++;
	c->code = code;
	if (code == -ECONNRESET && c->seq == 99) /* sends a request in the callback */
		assert_int_equal(service_link_ask(&link_, call, &m, NULL, 0, NULL), 0);
}

static void gone(struct service_link *l)
{
	n_gone++;
	assert_true(l->watch.fd < 0);
	service_link_fail(l, UINT64_MAX, -EPIPE, "gone");
}

static struct service service = {
	.name = "the test",
	.version = VERSION,
	.request_size = sizeof(struct msg),
	.message_size = sizeof(struct msg),
	.seq_at = offsetof(struct msg, seq),
	.fds_max = 1,
	.queue_max = QUEUE,
	.receive = receive,
	.fail = on_fail,
	.gone = gone,
};

static int begin(void **state)
{
	int pair[2], size = 1;

	(void)state;
	n_gone = 0;
	assert_int_equal(loop_init(&loop, NULL), 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	peer = pair[1];
	service_link_init(&link_, &service, pair[0]);
	return service_link_start(&link_, &loop, NULL);
}

static int end(void **state)
{
	(void)state;
	service_link_free(&link_);
	service_link_free(&link_);
	loop_free(&loop);
	peer = fd_close(peer);
	return 0;
}

static void stop(struct deferred *d)
{
	loop_stop(d->arg);
}

/* One round of the loop. */
static void turn(void)
{
	struct deferred d = { .fn = stop, .arg = &loop };

	loop_defer(&loop, &d);
	assert_int_equal(loop_run(&loop, NULL), 0);
}

static int ask(struct call *c, int fd)
{
	struct msg m = { .op = 1 };

	return service_link_ask(&link_, c ? &c->call : NULL, &m, &fd, fd >= 0 ? 1 : 0, NULL);
}

static void answer(uint64_t seq, uint32_t op, uint32_t version, size_t len, int fd)
{
	const struct msg m = { .version = version, .op = op, .seq = seq, .code = 5 };

	assert_int_equal(fd_send(peer, &m, len, &fd, fd >= 0 ? 1 : 0), 0);
	turn();
}

static struct msg hear(void)
{
	struct msg m = { 0 };
	int fd = -1;
	size_t n_fds = 1;

	assert_int_equal(fd_recv(peer, &m, sizeof(m), &fd, &n_fds), sizeof(m));
	if (n_fds)
		fd_close(fd);
	return m;
}

TEST(answers, begin, end)
{
	struct call a = { 0 }, b = { 0 }, left = { 0 };
	int before = open_fds();

	assert_int_equal(ask(&a, -1), 0);
	assert_int_equal(ask(&b, 0), 0);
	assert_int_equal(ask(&left, -1), 0);
	assert_int_equal(hear().version, VERSION);
	assert_int_equal(hear().seq, 2);
	service_link_forget(&link_, &left.call);
	service_link_forget(&link_, &left.call);
	answer(3, 1, VERSION, sizeof(struct msg), 0); /* not requested: its descriptor is closed */
	answer(2, 1, VERSION, sizeof(struct msg), 0);
	answer(1, 1, VERSION, sizeof(struct msg), -1);
	answer(1, 1, VERSION, sizeof(struct msg), -1); /* twice */
	assert_int_equal(a.code, 5);
	assert_int_equal(b.code, 6);
	assert_int_equal(a.answers + b.answers, 2);
	assert_int_equal(left.answers, 0);
	assert_int_equal(n_gone, 0);
	assert_int_equal(open_fds(), before);
}

TEST(full_socket, begin, end)
{
	static struct call calls[4096];
	size_t n = 0, sent;
	int before = open_fds(), r = 0;

	memset(calls, 0, sizeof(calls));
	while (n < 4096 && (r = ask(&calls[n], 0)) == 0)
		n++;
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(link_.n_out, QUEUE);
	assert_int_equal(open_fds(), before + QUEUE);
	for (sent = 0; sent < n; sent++) { /* in order, whether they waited or not */
		assert_int_equal(hear().seq, sent + 1);
		turn();
	}
	assert_int_equal(link_.n_out, 0);
	assert_int_equal(open_fds(), before);
	assert_int_equal(ask(NULL, -1), 0);
	assert_true(hear().seq > n);
}

TEST(replaced, begin, end)
{
	struct call a = { 0 }, eager = { .seq = 99 };

	assert_int_equal(ask(&a, -1), 0);
	assert_int_equal(ask(&eager, -1), 0);
	answer(0, 2, VERSION, sizeof(struct msg), -1);
	assert_int_equal(a.code, -ECONNRESET);
	assert_int_equal(a.call.seq, 0);
	assert_int_equal(eager.answers, 1);
	assert_int_equal(eager.call.seq, 3); /* asked again, and not lost with the others */
	service_link_forget(&link_, &eager.call);
}

TEST(gone, begin, end)
{
	struct call a = { 0 };
	struct err e = { 0 };
	struct msg m = { 0 };

	assert_int_equal(ask(&a, -1), 0);
	peer = fd_close(peer);
	assert_int_equal(ask(NULL, -1), 0); /* the next event tells */
	turn();
	assert_int_equal(a.code, -EPIPE);
	assert_int_equal(n_gone, 1);
	assert_int_equal(service_link_ask(&link_, &a.call, &m, NULL, 0, &e), -EPIPE);
	assert_string_equal(e.msg, "the test is gone");
	assert_int_equal(a.answers, 1);
}

TEST(nonsense, begin, end)
{
	answer(1, 1, VERSION + 1, sizeof(struct msg), 0);
	assert_int_equal(n_gone, 1);
	end(NULL);
	begin(NULL);
	answer(1, 1, VERSION, sizeof(struct msg) - 1, 0);
	assert_int_equal(n_gone, 1);
}

/* More descriptors than there is room for: the end, unless the service may lose them. */
TEST(lost_descriptors, begin, end)
{
	const struct msg m = { .version = VERSION, .op = 1, .seq = 1, .code = 5 };
	const int two[] = { 0, 0 };
	struct call a = { 0 };
	int before = open_fds();

	service.loses_fds = true;
	assert_int_equal(ask(&a, -1), 0);
	assert_int_equal(fd_send(peer, &m, sizeof(m), two, 2), 0);
	turn();
	assert_int_equal(n_gone, 0);
	assert_int_equal(a.code, 5);
	assert_int_equal(open_fds(), before);
	service.loses_fds = false;
	assert_int_equal(fd_send(peer, &m, sizeof(m), two, 2), 0);
	turn();
	assert_int_equal(n_gone, 1);
}

TEST(wait, begin, end)
{
	struct msg q = { .op = 1 }, r, m = { .version = VERSION, .op = 1, .seq = 1 };

	assert_int_equal(fd_send(peer, &m, sizeof(m), NULL, 0), 0);
	assert_int_equal(service_link_wait(&link_, &q, -1, &r), 0);
	m.seq = 0; /* a successor's */
	assert_int_equal(fd_send(peer, &m, sizeof(m), NULL, 0), 0);
	assert_int_equal(service_link_wait(&link_, &q, -1, &r), -EPIPE);
	peer = fd_close(peer);
	assert_int_equal(service_link_wait(&link_, &q, -1, &r), -EPIPE);
}

TEST(dir)
{
	char top[] = "/tmp/test-service-XXXXXX", path[64];
	struct stat st;
	struct err e = { 0 };

	assert_non_null(mkdtemp(top));
	(void)snprintf(path, sizeof(path), "%s/store", top);
	for (int i = 0; i < 2; i++) {
		_fd_ int fd = service_open_dir(top, "store", &e);

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(fchmod(fd, 0311), 0);
	}
	assert_int_equal(st.st_mode & 0700 & ~(mode_t)0300, geteuid() ? 0400 : 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/", path), 0);
	assert_true(service_open_dir(top, "store", &e) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(top), 0);
}

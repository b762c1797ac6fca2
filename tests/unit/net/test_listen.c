/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_listen.c - Addresses, listening sockets, caps, and a listener that runs out of descriptors.
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "child.h"
#include "net/addr.h"
#include "net_kit.h"

TEST(loopback_addresses)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "127.0.0.1:8001", 1 },
		{ "127.255.3.4:0", 1 },
		{ "[::1]:65535", 1 },
		{ "[::ffff:127.0.0.1]:80", 1 },
		{ "0.0.0.0:8001", 0 },
		{ "126.255.255.255:1", 0 },
		{ "128.0.0.1:1", 0 },
		{ "[::]:8001", 0 },
		{ "[::2]:8001", 0 },
		{ "[::ffff:10.0.0.1]:80", 0 },
		{ "[2001:db8::1]:443", 0 },
		{ "", -EINVAL },
		{ ":", -EINVAL },
		{ ":8001", -EINVAL },
		{ "8001", -EINVAL },
		{ "127.0.0.1", -EINVAL },
		{ "127.0.0.1:", -EINVAL },
		{ "127.0.0.1:65536", -EINVAL },
		{ "127.0.0.1:-1", -EINVAL },
		{ "127.0.0.1:+80", -EINVAL },
		{ "127.0.0.1: 80", -EINVAL },
		{ "127.0.0.1:80 ", -EINVAL },
		{ "127.0.0.1:0x50", -EINVAL },
		{ "127.1:80", -EINVAL },
		{ "0177.0.0.1:80", -EINVAL },
		{ "2130706433:80", -EINVAL },
		{ "localhost:8001", -EINVAL },
		{ "::1:8001", -EINVAL },
		{ "[::1]", -EINVAL },
		{ "[::1]8001", -EINVAL },
		{ "[::1:8001", -EINVAL },
		{ "[]:8001", -EINVAL },
		{ "[:8001", -EINVAL },
		{ "[127.0.0.1]:8001", -EINVAL },
		{ "[fe80::1%lo]:8001", -EINVAL },
		{ "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc]:1", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = { 0 };
		int r = addr_is_loopback(cases[i].text, &e);

		if (r != cases[i].result)
			fail_msg("'%s': %d, not %d (%s)", cases[i].text, r, cases[i].result, e.msg);
		assert_int_equal(r < 0, e.msg[0] != '\0');
	}
}

TEST(address_messages)
{
	struct err e;
	char huge[5000];

	assert_int_equal(listener_tcp(":8001", &e), -EINVAL);
	assert_string_equal(e.msg, "':8001' names no address; 127.0.0.1:8001 is this machine only, "
				   "0.0.0.0:8001 every interface");
	assert_int_equal(listener_tcp("localhost:80", &e), -EINVAL);
	assert_string_equal(e.msg,
			    "'localhost:80' is not a numeric address with a port; write it as "
			    "127.0.0.1:8001 or [::1]:8001");
	assert_int_equal(listener_tcp("127.0.0.1:70000", &e), -EINVAL);
	assert_string_equal(e.msg,
			    "'127.0.0.1:70000' has no port between 0 and 65535 after its address");
	assert_int_equal(listener_tcp("a\nb\x1b[0m", &e), -EINVAL);
	assert_non_null(strstr(e.msg, "'a?b?[0m'"));
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	assert_int_equal(listener_tcp(huge, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "write it as"));
}

TEST(peer_text)
{
	static const struct {
		const char *text, *peer, *host, *net;
	} cases[] = {
		{ "10.1.2.3:5", "10.1.2.3:5", "10.1.2.3", "10.1.2.3" },
		{ "[::ffff:10.1.2.3]:5", "10.1.2.3:5", "10.1.2.3", "10.1.2.3" },
		{ "[2001:db8::00ff]:65535", "[2001:db8::ff]:65535", "2001:db8::ff", "2001:db8::" },
		{ "[1111:2222:3333:4444:5555:6666:7777:8888]:65535",
		  "[1111:2222:3333:4444:5555:6666:7777:8888]:65535",
		  "1111:2222:3333:4444:5555:6666:7777:8888", "1111:2222:3333:4444::" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sockaddr_storage ss;
		struct peer p = { 0 };

		assert_true(addr_parse(cases[i].text, &ss, NULL) > 0);
		addr_peer(&ss, &p);
		assert_string_equal(p.text, cases[i].peer);
		assert_string_equal(p.host, cases[i].host);
		assert_string_equal(p.net, cases[i].net);
	}
}

TEST(tcp_errors)
{
	struct err e = { 0 };
	char addr[32], want[128];

	kit_listen(-1, NULL);
	(void)snprintf(addr, sizeof(addr), "127.0.0.1:%u", ntohs(kit.to.sin_port));
	(void)snprintf(want, sizeof(want), "listen on %s: Address already in use; ", addr);
	assert_int_equal(listener_tcp(addr, &e), -EADDRINUSE);
	assert_ptr_equal(strstr(e.msg, want), e.msg);
	assert_non_null(strstr(e.msg, "choose another port"));
	assert_int_equal(listener_tcp("192.0.2.1:0", &e), -EADDRNOTAVAIL);
	assert_non_null(strstr(e.msg, "no interface of this machine"));
}

/* The address can be taken again at once, although a connection of the last owner lingers. */
TEST(tcp_again)
{
	struct rec *r;
	char addr[32];

	kit_listen(-1, NULL);
	(void)snprintf(addr, sizeof(addr), "127.0.0.1:%u", ntohs(kit.to.sin_port));
	_fd_ int fd = client_new(&r);

	conn_close(r->c, 0); /* we close first: TIME_WAIT is ours */
	WAIT_FOR(r->closes);
	fd_close(TAKE_FD(fd));
	listener_free(kit.ls);
	_fd_ int again = listener_tcp(addr, NULL);

	assert_true(again >= 0);
	kit_listen(TAKE_FD(again), NULL);
}

/* [::] accepts IPv4 clients, with their IPv4 addresses. */
TEST(dual_stack)
{
	struct err e = { 0 };
	int fd = listener_tcp("[::]:0", &e);
	struct sockaddr_in6 at;
	socklen_t len = sizeof(at);
	struct rec *r;

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) {
		(void)printf("# skipped: no IPv6 here: %s\n", e.msg);
		skip();
	}
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(listener_start(&kit.loop, fd, NULL, &kit.config, &kit.ls, &e), 0);
	kit.to = (struct sockaddr_in){ .sin_family = AF_INET,
				       .sin_port = at.sin6_port,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	_fd_ int client = client_new(&r);

	assert_string_equal(conn_peer(r->c)->host, "127.0.0.1");
	assert_true(conn_peer(r->c)->is_loopback);
	(void)client;
}

/* Unix sockets */

struct place {
	char dir[32], path[48];
};

static struct place place_new(void)
{
	struct place p = { .dir = "/tmp/caisson-listen-XXXXXX" };

	assert_non_null(mkdtemp(p.dir));
	(void)snprintf(p.path, sizeof(p.path), "%s/sock", p.dir);
	return p;
}

static void place_free(const struct place *p)
{
	(void)unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0);
}

static unsigned int mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

TEST(unix_mode_whatever_the_mask)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };
	static const unsigned int modes[] = { 0600, 0660, 0666 };
	struct place p = place_new();

	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(modes); k++) {
			mode_t old = umask(masks[i]);
			_fd_ int fd = listener_unix(p.path, modes[k], NULL);

			assert_int_equal(umask(old), masks[i]); /* as it was */
			assert_true(fd >= 0);
			assert_int_equal(mode_of(p.path), S_IFSOCK | modes[k]);
			assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
			assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		}
	}
	place_free(&p);
}

TEST(unix_stale_and_live)
{
	struct place p = place_new();
	struct err e = { 0 };

	_fd_ int first = listener_unix(p.path, 0600, &e);

	assert_true(first >= 0);
	assert_int_equal(listener_unix(p.path, 0600, &e), -EADDRINUSE);
	assert_non_null(strstr(e.msg, p.path));
	assert_non_null(strstr(e.msg, "another program serves"));

	/* Dead: replaced. */
	fd_close(TAKE_FD(first));
	_fd_ int second = listener_unix(p.path, 0600, &e);

	assert_true(second >= 0);
	place_free(&p);
}

/* A live server whose backlog is full is not stale. */
TEST(unix_full_backlog_is_live)
{
	struct place p = place_new();
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct err e = { 0 };
	_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_fd_ int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, p.path, sizeof(p.path));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listener_unix(p.path, 0600, &e), -EADDRINUSE);

	/* Nor is a socket of another type that is in use. */
	assert_int_equal(unlink(p.path), 0);
	_fd_ int dgram = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(dgram, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listener_unix(p.path, 0600, &e), -EADDRINUSE);
	place_free(&p);
}

TEST(unix_errors)
{
	struct place p = place_new();
	struct err e = { 0 };
	char longest[200];

	/* Not a socket: no file is removed. */
	fd_close(open(p.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(listener_unix(p.path, 0600, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "is not a socket"));
	assert_int_equal(mode_of(p.path), S_IFREG | 0600);
	/* A link to a socket that is dead is not followed. */
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(symlink("/nonexistent/x", p.path), 0);
	assert_int_equal(listener_unix(p.path, 0600, &e), -EEXIST);
	place_free(&p);

	assert_int_equal(listener_unix("/nonexistent/sock", 0600, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "/nonexistent/sock"));
	assert_int_equal(listener_unix("", 0600, &e), -ENAMETOOLONG);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(listener_unix(longest, 0600, &e), -ENAMETOOLONG);
	assert_non_null(strstr(e.msg, "1 to 107 bytes"));
}

/* Caps */

static bool is_closed(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, 0);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

TEST(cap_total)
{
	const size_t cap = 5;
	int fds[8];

	kit.config.max_conns = cap;
	kit_listen(-1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = client_connect();
	WAIT_FOR(listener_refused(kit.ls) == ARRAY_SIZE(fds) - cap);
	assert_int_equal(listener_count(kit.ls), cap);
	assert_int_equal(kit.n_recs, cap);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (i >= cap)
			assert_true(is_closed(fds[i]));

	/* A place that is given back can be had again. */
	fd_close(fds[0]);
	WAIT_FOR(kit.recs[0].eofs);
	conn_close(kit.recs[0].c, 0);
	WAIT_FOR(listener_count(kit.ls) == cap - 1);
	struct rec *r;

	fds[0] = client_new(&r);
	assert_int_equal(listener_count(kit.ls), cap);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
}

/* One address: the newest gets in, the oldest stranger goes, and those who said who they are stay.
 */
TEST(strangers)
{
	struct rec *recs[4];
	int fds[4];

	kit.config.max_strangers = 3;
	kit_listen(-1, NULL);
	for (size_t i = 0; i < 3; i++)
		fds[i] = client_new(&recs[i]);
	conn_admit(recs[0]->c);
	conn_admit(recs[0]->c);
	fds[3] = client_new(&recs[3]);
	assert_int_equal(listener_count(kit.ls), 4);
	assert_int_equal(listener_refused(kit.ls), 0);

	struct rec *r;
	_fd_ int fifth = client_new(&r);

	WAIT_FOR(recs[1]->closes);
	assert_int_equal(recs[1]->why, -EUSERS);
	assert_true(is_closed(fds[1]));
	assert_int_equal(listener_count(kit.ls), 4);
	assert_int_equal(listener_refused(kit.ls), 1);
	assert_int_equal(recs[0]->closes + recs[2]->closes + recs[3]->closes + r->closes, 0);

	/* Another address has places of its own. */
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr = { htonl(INADDR_LOOPBACK + 1) } };
	_fd_ int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t n = kit.n_recs;

	assert_int_equal(bind(other, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(other, (struct sockaddr *)&kit.to, sizeof(kit.to)), 0);
	WAIT_FOR(kit.n_recs == n + 1);
	assert_string_equal(conn_peer(kit.recs[n].c)->net, "127.0.0.2");
	assert_int_equal(listener_refused(kit.ls), 1);

	/* A place that is given back can be had again. */
	conn_close(recs[2]->c, 0);
	WAIT_FOR(recs[2]->closes);
	_fd_ int sixth = client_new(&r);

	assert_int_equal(listener_refused(kit.ls), 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	(void)fifth;
	(void)sixth;
}

static int connect_from(uint32_t host)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = { htonl(host) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t n = kit.n_recs;

	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&kit.to, sizeof(kit.to)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	WAIT_FOR(kit.n_recs == n + 1 || is_closed(fd));
	return fd;
}

/* Many addresses fill all places: the oldest stranger of all goes, and admitted ones stay. */
TEST(strangers_of_many_addresses)
{
	const size_t cap = 6;
	int fds[8];

	kit.config.max_conns = cap;
	kit.config.max_strangers = 2;
	kit_listen(-1, NULL);
	for (size_t i = 0; i < cap; i++)
		fds[i] = connect_from(INADDR_LOOPBACK + 1 + (uint32_t)i / 2);
	assert_int_equal(listener_refused(kit.ls), 0);
	conn_admit(kit.recs[0].c);
	for (size_t i = cap; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_from(INADDR_LOOPBACK + 9);
	WAIT_FOR(kit.recs[1].closes && kit.recs[2].closes);
	assert_int_equal(kit.n_recs, cap + 2);
	assert_int_equal(listener_count(kit.ls), cap);
	assert_int_equal(listener_refused(kit.ls), 2);
	assert_int_equal(kit.recs[0].closes + kit.recs[3].closes + kit.recs[6].closes, 0);

	/* All connections were admitted: none is closed, and the new one is refused. */
	for (size_t i = 0; i < kit.n_recs; i++)
		if (kit.recs[i].c)
			conn_admit(kit.recs[i].c);
	_fd_ int late = connect_from(INADDR_LOOPBACK + 10);

	assert_true(is_closed(late));
	assert_int_equal(kit.n_recs, cap + 2);
	assert_int_equal(listener_count(kit.ls), cap);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
}

TEST(unwanted)
{
	kit.refuse = true;
	kit_listen(-1, NULL);
	_fd_ int fd = client_connect();

	WAIT_FOR(is_closed(fd));
	WAIT_FOR(listener_count(kit.ls) == 0);
	assert_int_equal(kit.n_recs, 1);
	assert_int_equal(kit.recs[0].closes, 0);
}

static void close_at_once(struct rec *r)
{
	conn_close(r->c, -EBUSY);
}

TEST(close_inside_accept)
{
	kit.on_accept = close_at_once;
	kit_listen(-1, NULL);
	_fd_ int fd = client_connect();

	WAIT_FOR(kit.n_recs == 1 && kit.recs[0].closes);
	assert_int_equal(kit.recs[0].why, -EBUSY);
	assert_true(is_closed(fd));
}

/* Stopping */

static void stop_listening(struct rec *r)
{
	(void)r;
	listener_stop(kit.ls);
	listener_stop(kit.ls);
}

TEST(stop)
{
	int fds[3];

	kit.on_accept = stop_listening;
	kit_listen(-1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = client_connect();
	WAIT_FOR(kit.n_recs == 1);
	kit_run_ms(5);
	assert_int_equal(kit.loop.n_timers, 0); /* nothing will try again */
	assert_int_equal(kit.n_recs, 1);        /* the others were waiting, and are notified */
	WAIT_FOR(is_closed(fds[1]) && is_closed(fds[2]));
	_fd_ int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(late, (struct sockaddr *)&kit.to, sizeof(kit.to)), -1);
	assert_int_equal(errno, ECONNREFUSED);

	/* The one that was accepted lives on. */
	struct rec *r = &kit.recs[0];

	assert_int_equal(send(fds[0], "x", 1, 0), 1);
	WAIT_FOR(r->pieces);
	assert_int_equal(conn_write(r->c, "y", 1), 0);
	assert_false(is_closed(fds[0]));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
}

TEST(free_ends_open_connections)
{
	struct rec *r[3];
	_mem_ char *data = pattern_new(3 << 20);

	kit_listen(-1, NULL);
	_fd_ int a = client_new(&r[0]), b = client_new(&r[1]), c = client_new(&r[2]);

	assert_int_equal(conn_write(r[0]->c, data, 3 << 20), 0);
	conn_deadline(r[0]->c, clock_now_ns() + CLOCK_NS_PER_S);
	conn_finish(r[1]->c);
	conn_close(r[2]->c, -EINTR); /* its on_close is still to come */
	listener_free(kit.ls);
	kit.ls = NULL;
	assert_int_equal(r[0]->closes, 1);
	assert_int_equal(r[0]->why, -ESHUTDOWN);
	assert_int_equal(r[1]->why, -ESHUTDOWN);
	assert_int_equal(r[2]->why, -EINTR);
	(void)a;
	(void)b;
	(void)c;
}

TEST(bad_descriptor)
{
	struct err e = { 0 };

	assert_int_equal(listener_start(&kit.loop, -1, NULL, &kit.config, &kit.ls, &e), -EBADF);
	assert_null(kit.ls);
}

/*
 * Out of descriptors: the connection waits in the backlog, the loop does not spin, others go on;
 * and when there are descriptors again, it is accepted. In a child, for the limit.
 */
CHILD_TEST(out_of_descriptors)
{
	struct rlimit limit;
	struct rec *r;

	kit_listen(-1, NULL);
	int first = client_new(&r), second = client_connect();

	CHILD_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	rlim_t old = limit.rlim_cur;

	limit.rlim_cur = (rlim_t)second + 1;
	CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);

	struct timespec a, b;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	kit_run_ms(250);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	CHILD_CHECK((b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec) < 60000000);
	CHILD_CHECK(kit.n_recs == 1);
	CHILD_CHECK(send(first, "x", 1, 0) == 1);
	for (int i = 0; i < 5000 && !r->pieces; i++)
		kit_run_ms(1);
	CHILD_CHECK(r->pieces == 1);

	limit.rlim_cur = old;
	CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < 1000 && kit.n_recs < 2; i++)
		kit_run_ms(1);
	CHILD_CHECK(kit.n_recs == 2);
	CHILD_CHECK(listener_refused(kit.ls) == 0);
	kit_free();
}

/* Hundreds of connections, all served, none left behind. */
static void echo(struct rec *r)
{
	assert_int_equal(conn_write(r->c, r->in.data, r->in.len), 0);
	conn_finish(r->c);
}

static void echo_setup(struct rec *r)
{
	r->on_data = echo;
}

TEST(many_connections)
{
	int fds[300];
	size_t closed = 0;

	kit.on_accept = echo_setup;
	kit_listen(-1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = client_connect();
		assert_int_equal(send(fds[i], &i, sizeof(i), 0), sizeof(i));
	}
	WAIT_FOR(kit.n_recs == ARRAY_SIZE(fds));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		size_t got = 0;

		WAIT_FOR(recv(fds[i], &got, sizeof(got), MSG_PEEK) == sizeof(got));
		assert_int_equal(recv(fds[i], &got, sizeof(got), 0), sizeof(got));
		assert_int_equal(got, i);
		WAIT_FOR(is_closed(fds[i]));
		fd_close(fds[i]);
		closed++;
	}
	assert_int_equal(closed, ARRAY_SIZE(fds));
	WAIT_FOR(listener_count(kit.ls) == 0);
}

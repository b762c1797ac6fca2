/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stream.c - Carrying bytes between pipes: nothing lost, nothing doubled, nothing read while a
 * slow reader still has something to take, and never a call that blocks.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "cli/stdio_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../unit.h"

/* from[1] -> (from[0] stream to[1]) -> to[0] */
static int from[2], to[2];
static struct stream s;

static int setup(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)alarm(60); /* a call that blocks ends the test instead of the patience */
	if (pipe2(from, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(to, O_CLOEXEC) < 0)
		return -1;
	return fcntl(to[0], F_SETFL, O_NONBLOCK);
}

static int teardown(void **state)
{
	(void)state;
	stream_close(&s);
	(void)alarm(0);
	/* The stream closed what it owned. */
	from[1] = fd_close(from[1]);
	to[0] = fd_close(to[0]);
	to[1] = fd_close(to[1]);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* One round of poll and step, as the caller's loop does. Return: whether anything was ready. */
static bool turn(void)
{
	struct pollfd p;

	stream_poll(&s, &p);
	if (p.fd < 0 || poll(&p, 1, 0) <= 0)
		return false;
	stream_step(&s, p.revents);
	return true;
}

static void feed(const void *data, size_t len)
{
	assert_int_equal(write(from[1], data, len), len);
}

static size_t drain(char *data, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(to[0], data + len, size - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

static int unread(int fd)
{
	int n = -1;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

/* Fill a pipe to the last byte; the descriptor stays as blocking as it was. */
static size_t fill(int fd)
{
	static const char bytes[4096];
	int flags = fcntl(fd, F_GETFL);
	size_t n = 0;

	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	for (ssize_t k; (k = write(fd, bytes, sizeof(bytes))) > 0;)
		n += (size_t)k;
	assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
	return n;
}

TEST(carry)
{
	struct pollfd p;
	char got[64];

	stream_open(&s, from[0], to[1], false, NULL);
	assert_true(stream_active(&s));
	stream_poll(&s, &p);
	assert_int_equal(p.fd, from[0]);
	assert_int_equal(p.events, POLLIN);
	assert_false(turn()); /* nothing there */
	feed("hello\0world", 11);
	assert_true(turn());
	/* Taken, and now it waits for the other side. */
	stream_poll(&s, &p);
	assert_int_equal(p.fd, to[1]);
	assert_int_equal(p.events, POLLOUT);
	assert_int_equal(drain(got, sizeof(got)), 0);
	assert_true(turn());
	assert_int_equal(drain(got, sizeof(got)), 11);
	assert_memory_equal(got, "hello\0world", 11);
	assert_int_equal(s.bytes, 11);

	/* A step without an event does nothing. */
	feed("x", 1);
	stream_step(&s, 0);
	assert_int_equal(s.bytes, 11);
}

TEST(end_of_file)
{
	struct pollfd p;
	char got[8];

	stream_open(&s, from[0], to[1], false, NULL);
	feed("last", 4);
	from[1] = fd_close(from[1]);
	while (turn())
		;
	assert_false(stream_active(&s));
	assert_int_equal(drain(got, sizeof(got)), 4);
	assert_false(is_open(from[0]));
	assert_true(is_open(to[1])); /* borrowed */
	stream_poll(&s, &p);
	assert_int_equal(p.fd, -1);
	stream_step(&s, POLLIN | POLLHUP); /* does nothing */
	assert_false(stream_active(&s));
}

/* A pipe into the cell ends when its source does: the program sees the end of its input. */
TEST(owned_end)
{
	char ch;

	stream_open(&s, from[0], to[1], true, NULL);
	feed("x", 1);
	assert_true(turn() && turn());
	from[1] = fd_close(from[1]);
	assert_true(turn());
	assert_false(is_open(to[1]));
	to[1] = -1;
	assert_int_equal(read(to[0], &ch, 1), 1);
	assert_int_equal(read(to[0], &ch, 1), 0);
}

TEST(close)
{
	stream_open(&s, from[0], to[1], true, NULL);
	feed("x", 1);
	assert_true(turn());
	assert_non_null(s.pending);
	stream_close(&s);
	assert_false(stream_active(&s));
	assert_false(is_open(from[0]) || is_open(to[1]));
	to[1] = -1;
	stream_close(&s);
	assert_int_equal(s.from, -1);
	assert_int_equal(s.to, -1);
}

/* While the reader outside is slow nothing more is read: the program inside has to wait. */
TEST(back_pressure)
{
	static char chunk[STREAM_CHUNK];
	size_t full = fill(to[1]);
	struct pollfd p;

	stream_open(&s, from[0], to[1], false, NULL);
	feed(chunk, 1000);
	assert_true(turn());
	feed(chunk, 5000);
	for (int i = 0; i < 10; i++) {
		stream_poll(&s, &p);
		assert_int_equal(p.fd, to[1]);
		assert_int_equal(p.events, POLLOUT);
		assert_false(turn());
		assert_int_equal(unread(from[0]), 5000);
		assert_int_equal(s.bytes, 1000);
	}
	/* The reader takes all of it, and everything flows again. */
	char *rest = malloc(full + 6000);

	assert_non_null(rest);
	assert_int_equal(drain(rest, full), full);
	while (turn())
		;
	assert_int_equal(drain(rest, full + 6000), 6000);
	assert_int_equal(s.bytes, 6000);
	assert_int_equal(unread(from[0]), 0);
	free(rest);
}

/* The descriptor is blocking: no write is larger than what poll() has promised room for. */
TEST(small_writes)
{
	static char chunk[STREAM_CHUNK], got[2 * STREAM_CHUNK];
	size_t full = fill(to[1]);
	size_t sent = 0;

	for (size_t i = 0; i < sizeof(chunk); i++)
		chunk[i] = (char)(i * 31 + i / 256);
	stream_open(&s, from[0], to[1], false, NULL);
	while (sent < sizeof(chunk)) {
		ssize_t n = write(from[1], chunk + sent, sizeof(chunk) - sent);

		if (n < 0)
			break;
		sent += (size_t)n;
	}
	assert_true(turn());
	/* One page of room: one page goes, whatever waits behind it. */
	while (full > 0) {
		size_t n = drain(got, full < PIPE_BUF ? full : PIPE_BUF);
		size_t before = s.off;

		full -= n;
		if (turn())
			assert_in_range(s.off - before, 1, PIPE_BUF);
		if (s.off == s.len)
			break;
	}
	/* The rest, and then all of it is there in order after what was in the pipe before. */
	size_t len = drain(got, full);

	assert_int_equal(len, full);
	len = 0;
	for (int idle = 0; idle < 3;) {
		size_t n = drain(got + len, sizeof(got) - len);

		len += n;
		idle = turn() || n ? 0 : idle + 1;
	}
	assert_int_equal(len, sent);
	assert_memory_equal(got, chunk, sent);
	assert_int_equal(s.bytes, sent);
}

/* A regular file takes any amount at once: no small pieces there. */
TEST(to_a_file)
{
	static char chunk[STREAM_CHUNK];
	char path[] = "/tmp/test-stream-XXXXXX";
	int file = mkstemp(path);

	assert_true(file >= 0);
	assert_int_equal(unlink(path), 0);
	stream_open(&s, from[0], file, false, NULL);
	assert_true(s.to_is_file);
	feed(chunk, 30000);
	assert_true(turn());
	assert_true(turn());
	assert_int_equal(lseek(file, 0, SEEK_CUR), 30000);
	assert_int_equal(s.off, s.len);
	fd_close(file);
}

/* The reader went away: the program gets what it would have got without us. */
TEST(reader_gone)
{
	stream_open(&s, from[0], to[1], false, NULL);
	feed("x", 1);
	assert_true(turn());
	to[0] = fd_close(to[0]);
	assert_true(turn()); /* POLLERR, EPIPE */
	assert_false(stream_active(&s));
	assert_false(is_open(from[0]));
	assert_int_equal(write(from[1], "y", 1), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(s.bytes, 1);
}

TEST(full_disk)
{
	_fd_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	stream_open(&s, from[0], full, false, NULL);
	feed("x", 1);
	assert_true(turn());
	assert_true(turn());
	assert_false(stream_active(&s));
	assert_true(is_open(full));
}

/* A non-blocking target that is full after all answers EAGAIN: the bytes stay for the next time. */
TEST(spurious_wakeups)
{
	char got[16];
	size_t full;

	assert_int_equal(fcntl(to[1], F_SETFL, O_NONBLOCK), 0);
	full = fill(to[1]);
	stream_open(&s, from[0], to[1], false, NULL);
	stream_step(&s, POLLIN); /* nothing to read: EAGAIN */
	assert_true(stream_active(&s));
	assert_int_equal(s.bytes, 0);
	feed("kept", 4);
	stream_step(&s, POLLIN);
	stream_step(&s, POLLOUT);
	assert_int_equal(s.len - s.off, 4);
	char *before = malloc(full);

	assert_non_null(before);
	assert_int_equal(drain(before, full), full);
	free(before);
	assert_true(turn());
	assert_int_equal(drain(got, sizeof(got)), 4);
	assert_memory_equal(got, "kept", 4);
}

/* Captured only: the beginning is kept, everything is counted, nothing grows. */
TEST(capture)
{
	_buf_ struct buf keep = BUF_INIT(10);

	stream_open(&s, from[0], -1, false, &keep);
	for (int i = 0; i < 100; i++) {
		feed("0123456", 7);
		assert_true(turn());
		assert_int_equal(s.off, s.len);
	}
	assert_int_equal(s.bytes, 700);
	assert_int_equal(keep.len, 10);
	assert_string_equal(buf_str(&keep), "0123456012");
	assert_int_equal(keep.err, 0);
	from[1] = fd_close(from[1]);
	assert_true(turn());
	assert_false(stream_active(&s));
}

TEST(capture_and_carry)
{
	_buf_ struct buf keep = BUF_INIT(3);
	char got[16];

	stream_open(&s, from[0], to[1], false, &keep);
	feed("abcdef", 6);
	while (turn())
		;
	assert_int_equal(drain(got, sizeof(got)), 6);
	assert_string_equal(buf_str(&keep), "abc");
}

/* A terminal whose last user is gone reads EIO: that is its end of file. */
TEST(terminal_end)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0) {
		printf("# skipped: no pty: %s\n", strerror(errno));
		fd_close(master);
		stream_open(&s, from[0], -1, false, NULL);
		skip();
	}
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	assert_true(slave >= 0);
	fd_close(from[0]);
	stream_open(&s, master, to[1], false, NULL);
	assert_int_equal(write(slave, "bye", 3), 3);
	fd_close(slave);
	while (turn())
		;
	assert_false(stream_active(&s));
	assert_int_equal(s.bytes, 3);
}

/* Half a megabyte through two small pipes, reader and writer at random: equal at the end. */
TEST(random_pace)
{
	static char sent[1 << 19], got[sizeof(sent) + 1];
	size_t in = 0, out = 0;
	unsigned int seed = 3;

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)rand_r(&seed);
	stream_open(&s, from[0], to[1], false, NULL);
	while (out < sizeof(sent)) {
		size_t n = (size_t)rand_r(&seed) % 20000;

		switch (rand_r(&seed) % 3) {
		case 0:
			n = n < sizeof(sent) - in ? n : sizeof(sent) - in;
			ssize_t k = n ? write(from[1], sent + in, n) : 0;

			in += k > 0 ? (size_t)k : 0;
			break;
		case 1:
			(void)turn();
			break;
		default:
			n = n < sizeof(got) - out ? n : sizeof(got) - out;
			out += drain(got + out, n);
		}
		assert_true(s.off <= s.len && s.len <= STREAM_CHUNK);
		assert_true(out <= s.bytes && s.bytes <= in);
	}
	assert_int_equal(in, sizeof(sent));
	assert_int_equal(out, sizeof(sent));
	assert_int_equal(s.bytes, sizeof(sent));
	assert_memory_equal(got, sent, sizeof(sent));
}

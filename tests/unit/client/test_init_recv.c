/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_init_recv.c - Messages of init: whole messages with the descriptors that belong to them,
 * refusals that leave nothing open, and the error text of a failed start.
 */
#include "base/err.h"
#include "base/fd.h"
#include "client/init_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"

static int channel[2]; /* the client's end, init's end */
static int fds_before;
static struct err err;

static int setup(void **state)
{
	(void)state;
	fds_before = open_fds();
	err = (struct err){ 0 };
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, channel);
}

/* Whatever a test did, no descriptor is left. */
static int teardown(void **state)
{
	(void)state;
	channel[0] = fd_close(channel[0]);
	channel[1] = fd_close(channel[1]);
	return open_fds() == fds_before ? 0 : -1;
}

struct unit_fixture unit_fixture = { setup, teardown };

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

TEST(recv)
{
	struct init_msg sent = { .type = INIT_STARTED, .id = 5, .u.pid = 2 }, m;
	int fds[INIT_FDS_MAX];
	size_t n = 42;

	assert_int_equal(init_recv(channel[0], &m, fds, &n, &err), -EAGAIN);
	assert_int_equal(n, 0);
	assert_int_equal(fd_send(channel[1], &sent, sizeof(sent), NULL, 0), 0);
	n = 42;
	assert_int_equal(init_recv(channel[0], &m, fds, &n, &err), 1);
	assert_int_equal(n, 0);
	assert_memory_equal(&m, &sent, sizeof(m));

	channel[1] = fd_close(channel[1]);
	n = 42;
	assert_int_equal(init_recv(channel[0], &m, fds, &n, &err), 0);
	assert_int_equal(n, 0);
}

/* As many as init may send, each in its place, close-on-exec and the caller's. */
TEST(recv_descriptors)
{
	struct init_msg sent = { .type = INIT_STARTED, .id = 5, .u.pid = 2 }, m;
	int ours[INIT_FDS_MAX], fds[INIT_FDS_MAX], held;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		ours[i] = fd_memfd("descriptor", "x", 1);
	held = open_fds();
	for (size_t count = 1; count <= ARRAY_SIZE(ours); count++) {
		assert_int_equal(fd_send(channel[1], &sent, sizeof(sent), ours, count), 0);
		n = 42;
		assert_int_equal(init_recv(channel[0], &m, fds, &n, &err), 1);
		assert_int_equal(n, count);
		assert_memory_equal(&m, &sent, sizeof(m));
		for (size_t i = 0; i < n; i++) {
			assert_true(same_file(fds[i], ours[i]));
			assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
			fd_close(fds[i]);
		}
		assert_int_equal(open_fds(), held);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		fd_close(ours[i]);
}

/* Anything but one whole message with at most that many descriptors is refused without a leak.
 */
TEST(recv_nonsense)
{
	char bytes[sizeof(struct init_msg) + 1] = { 0 };
	static const size_t lens[] = { 1, sizeof(struct init_msg) - 1,
				       sizeof(struct init_msg) + 1 };
	struct init_msg m;
	int nulls[INIT_FDS_MAX + 2], fds[INIT_FDS_MAX], held = open_fds();
	size_t got;

	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
		nulls[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++)
		for (size_t n = 0; n <= ARRAY_SIZE(nulls); n++) {
			got = 42;
			err.msg[0] = '\0';
			assert_int_equal(fd_send(channel[1], bytes, lens[i], nulls, n), 0);
			assert_true(init_recv(channel[0], &m, fds, &got, &err) < 0);
			assert_int_equal(got, 0);
			assert_true(err.msg[0]);
			assert_int_equal(open_fds(), held + (int)ARRAY_SIZE(nulls));
		}
	for (size_t n = INIT_FDS_MAX + 1; n <= ARRAY_SIZE(nulls); n++) {
		got = 42;
		assert_int_equal(fd_send(channel[1], bytes, sizeof(m), nulls, n), 0);
		assert_int_equal(init_recv(channel[0], &m, fds, &got, &err), -EMSGSIZE);
		assert_int_equal(got, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
		fd_close(nulls[i]);
	assert_int_equal(open_fds(), held);
}

TEST(explain)
{
	static const struct {
		enum init_stage stage;
		int error, code, exit_code;
		const char *part;
	} rows[] = {
		{ INIT_STAGE_EXEC, ENOENT, -ENOENT, 127, "frob: not found in the cell" },
		{ INIT_STAGE_EXEC, ENOTDIR, -ENOTDIR, 127, "frob: not found" },
		{ INIT_STAGE_EXEC, EACCES, -EACCES, 126, "frob: found in the cell but" },
		{ INIT_STAGE_EXEC, ENOEXEC, -ENOEXEC, 126, "cannot be executed" },
		{ INIT_STAGE_EXEC, E2BIG, -E2BIG, 125, "execute frob" },
		{ INIT_STAGE_CWD, ENOENT, -ENOENT, 125, "--workdir /nowhere" },
		{ INIT_STAGE_FORK, EAGAIN, -EAGAIN, 125, "pids limit" },
		{ INIT_STAGE_FORK, ENOMEM, -ENOMEM, 125, "could not fork" },
		{ INIT_STAGE_SEAL, EPERM, -EPERM, 125, "seal the cell" },
		{ INIT_STAGE_REQUEST, EINVAL, -EINVAL, 125, "read the request" },
		{ INIT_STAGE_TTY, ENOSPC, -ENOSPC, 125, "open a terminal" },
		{ INIT_STAGE_CREDS, EPERM, -EPERM, 125, "--user" },
		{ INIT_STAGE_CREDS, EINVAL, -EINVAL, 125, "give up privileges" },
		{ INIT_STAGE_LIMITS, EPERM, -EPERM, 125, "set limits" },
		{ INIT_STAGE_SCRIPT, EEXIST, -EEXIST, 125, "write the script" },
		{ INIT_STAGE_STDIO, EBADF, -EBADF, 125, "connect stdio" },
		{ INIT_STAGE_MAX_, EIO, -EIO, 125, "read the request" },
		{ (enum init_stage)4711, EIO, -EIO, 125, "read the request" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct init_failed f = { (uint32_t)rows[i].stage, rows[i].error };

		err = (struct err){ 0 };
		assert_int_equal(init_explain(&f, "frob", "/nowhere", &err), rows[i].exit_code);
		assert_int_equal(err.code, rows[i].code);
		assert_non_null(strstr(err.msg, rows[i].part));
	}
	struct init_failed missing = { INIT_STAGE_EXEC, ENOENT };

	assert_int_equal(init_explain(&missing, "ls -l", "/", &err), 127);
	assert_non_null(strstr(err.msg, "ls -l: not found in the cell; give a program and its"));
}

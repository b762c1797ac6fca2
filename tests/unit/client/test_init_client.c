/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_init_client.c - Requests to init, read back with init's own reader: init unpacks the same
 * request that the client packs, and the client does not send one that init would refuse.
 */
#include "base/err.h"
#include "base/fd.h"
#include "client/init_client.h"
#include "init/init_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"

static int channel[2]; /* the client's end, init's end */
static int fds_before;
static struct err err;

static int pipe_ends[2]; /* what init gives to a program */
static const char *const no_env[] = { NULL };
static const char *const one_arg[] = { "true", NULL };

static int setup(void **state)
{
	(void)state;
	fds_before = open_fds();
	err = (struct err){ 0 };
	if (pipe2(pipe_ends, O_CLOEXEC) < 0)
		return -1;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, channel);
}

/* Whatever a test did, no descriptor is left. */
static int teardown(void **state)
{
	(void)state;
	channel[0] = fd_close(channel[0]);
	channel[1] = fd_close(channel[1]);
	pipe_ends[0] = fd_close(pipe_ends[0]);
	pipe_ends[1] = fd_close(pipe_ends[1]);
	return open_fds() == fds_before ? 0 : -1;
}

struct unit_fixture unit_fixture = { setup, teardown };

static struct exec_request request(void)
{
	return (struct exec_request){
		.id = 7,
		.cwd = "/workspace",
		.argv = one_arg,
		.envp = no_env,
		.script_fd = -1,
		.stdio = { pipe_ends[0], pipe_ends[1], pipe_ends[1] },
		.uid = 1000,
		.gid = 1000,
		.rows = 50,
		.cols = 132,
	};
}

/* Receive as init does, and unpack. */
static int receive(struct init_msg *m, struct command *c)
{
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = fd_recv(channel[1], m, sizeof(*m), fds, &n_fds);

	assert_int_equal(n, sizeof(*m));
	assert_int_equal(m->type, INIT_EXEC);
	return command_unpack(&m->u.exec, fds, n_fds, c);
}

static void assert_nothing_sent(void)
{
	char byte;

	assert_int_equal(recv(channel[1], &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static void check_round_trip(const struct exec_request *x)
{
	struct init_msg m;
	struct command c;
	size_t n;

	if (init_exec(channel[0], x, &err) < 0)
		fail_msg("init_exec: %s", err.msg);
	assert_int_equal(receive(&m, &c), 0);
	assert_int_equal(m.id, x->id);
	assert_int_equal(c.flags, x->flags | (x->script_fd >= 0 ? INIT_SCRIPT : 0u));
	assert_int_equal(c.uid, x->uid);
	assert_int_equal(c.gid, x->gid);
	assert_int_equal(c.rows, x->rows);
	assert_int_equal(c.cols, x->cols);
	assert_string_equal(c.cwd, x->cwd);
	assert_string_equal(c.script_path, x->script_fd >= 0 ? x->script_path : "");
	for (n = 0; x->argv[n]; n++)
		assert_string_equal(c.argv[n], x->argv[n]);
	assert_null(c.argv[n]);
	for (n = 0; x->envp[n]; n++)
		assert_string_equal(c.envp[n], x->envp[n]);
	assert_null(c.envp[n]);
	if (x->script_fd >= 0)
		assert_true(same_file(c.script_fd, x->script_fd));
	for (int i = 0; i < 3; i++) {
		if (x->flags & (INIT_TTY | INIT_CONTROL))
			assert_int_equal(c.stdio[i], -1);
		else
			assert_true(same_file(c.stdio[i], x->stdio[i]));
	}
	command_free(&c);
}

TEST(round_trip)
{
	static const char *const argv[] = { "python3", "-c", "print('\xc3\xa4\n\x01\xff')",
					    "",        "-",  NULL };
	static const char *const envp[] = { "A=1", "EMPTY=", "B=x y\nz", NULL };
	struct exec_request x = request();

	check_round_trip(&x);
	x.argv = argv;
	x.envp = envp;
	x.cwd = "/";
	check_round_trip(&x);
	x.flags = INIT_HOLD;
	x.uid = 65535;
	x.gid = 1;
	check_round_trip(&x);
}

TEST(script_and_tty)
{
	_fd_ int script = fd_memfd("script", "print(1)\n", 9);
	struct exec_request x = request();

	x.script_path = "/workspace/main.py";
	check_round_trip(&x); /* no script descriptor: the path stays here */
	x.script_fd = script;
	check_round_trip(&x);
	x.flags = INIT_TTY;
	check_round_trip(&x);
	x.script_fd = -1;
	x.stdio[0] = x.stdio[1] = x.stdio[2] = -1;
	check_round_trip(&x);
}

/* A kernel's descriptors are made in the cell: whatever stands in stdio stays here. */
TEST(control)
{
	_fd_ int script = fd_memfd("script", "print(1)\n", 9);
	struct exec_request x = request();

	x.flags = INIT_CONTROL;
	check_round_trip(&x);
	x.stdio[0] = x.stdio[1] = x.stdio[2] = -1;
	check_round_trip(&x);
	x.script_fd = script;
	x.script_path = "/workspace/main.py";
	check_round_trip(&x);
}

/* The blob may have 4 MiB: all of that arrives, one byte more is refused here. */
TEST(largest_blob)
{
	/* cwd "/", empty script path, one argument: four bytes beside its letters */
	size_t most = INIT_BLOB_MAX - 4;
	char *arg = malloc(most + 2);
	const char *argv[] = { arg, NULL };
	struct exec_request x = request();

	assert_non_null(arg);
	memset(arg, 'a', most + 2);
	x.cwd = "/";
	x.argv = argv;
	arg[most] = '\0'; /* exactly INIT_BLOB_MAX */
	check_round_trip(&x);
	memcpy(arg + most, "a", 2);
	assert_int_equal(init_exec(channel[0], &x, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "4194304"));
	assert_nothing_sent();
	free(arg);
}

TEST(most_strings)
{
	const char **many = calloc(INIT_ARGS_MAX + 2, sizeof(*many));
	struct exec_request x = request();

	assert_non_null(many);
	for (size_t i = 0; i < INIT_ARGS_MAX; i++)
		many[i] = "K=V";
	x.argv = many;
	check_round_trip(&x);
	x.argv = one_arg;
	x.envp = many;
	check_round_trip(&x);
	many[INIT_ARGS_MAX] = "one too many";
	assert_int_equal(init_exec(channel[0], &x, &err), -E2BIG);
	assert_nothing_sent();
	x.argv = many;
	x.envp = no_env;
	assert_int_equal(init_exec(channel[0], &x, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "65537"));
	assert_nothing_sent();
	free(many);
}

/* Invalid requests reach init, which refuses them: it does not trust its client. */
TEST(requests_that_init_refuses)
{
	struct exec_request x = request();
	struct init_msg m;
	struct command c;

	x.argv = no_env;
	assert_int_equal(init_exec(channel[0], &x, &err), 0);
	assert_int_equal(receive(&m, &c), E2BIG);
	command_free(&c);
	x = request();
	x.stdio[0] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a way out of the cell */
	assert_int_equal(init_exec(channel[0], &x, &err), 0);
	assert_int_equal(receive(&m, &c), EBADF);
	command_free(&c);
	fd_close(x.stdio[0]);
	x = request();
	x.cwd = "relative";
	assert_int_equal(init_exec(channel[0], &x, &err), 0);
	assert_int_equal(receive(&m, &c), EINVAL);
	command_free(&c);
	static const uint32_t together[] = { INIT_CONTROL | INIT_TTY, INIT_CONTROL | INIT_HOLD,
					     INIT_CONTROL | INIT_TTY | INIT_HOLD };

	for (size_t i = 0; i < ARRAY_SIZE(together); i++) {
		x = request();
		x.flags = together[i];
		assert_int_equal(init_exec(channel[0], &x, &err), 0);
		assert_int_equal(receive(&m, &c), EINVAL);
		command_free(&c);
	}
}

TEST(channel_that_is_gone)
{
	struct exec_request x = request();

	channel[1] = fd_close(channel[1]);
	assert_int_equal(init_exec(channel[0], &x, &err), -EPIPE); /* and no SIGPIPE */
	assert_true(err.msg[0]);
	assert_int_equal(init_signal(channel[0], 1, INIT_TARGET_COMMAND, 0, SIGTERM, &err), -EPIPE);
	assert_int_equal(init_go(channel[0], 1, &err), -EPIPE);
	assert_int_equal(init_disk(channel[0], 1, &err), -EPIPE);
	x.stdio[1] = 9999;
	assert_true(init_exec(channel[0], &x, &err) < 0);
}

/* The next message at init's end; nothing of our stack goes along behind its @used bytes. */
static struct init_msg hear(uint32_t type, uint32_t id, size_t used)
{
	struct init_msg m, zero = { 0 };

	memset(&m, 0xa5, sizeof(m));
	assert_int_equal(recv(channel[1], &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.type, type);
	assert_int_equal(m.id, id);
	assert_memory_equal((char *)&m.u + used, (char *)&zero.u + used, sizeof(m.u) - used);
	return m;
}

TEST(signal)
{
	static const struct {
		uint32_t id;
		enum init_target target;
		int pid, signo;
	} rows[] = {
		{ 3, INIT_TARGET_COMMAND, 0, SIGTERM },
		{ 4, INIT_TARGET_GROUP, 0, SIGKILL },
		{ 0, INIT_TARGET_PID_GROUP, 17, SIGINT },
		{ UINT32_MAX, INIT_TARGET_ALL, 0, SIGKILL },
		/* Init refuses nonsense, so it has to arrive as it is. */
		{ 5, INIT_TARGET_PID_GROUP, -1, 0 },
		{ 6, (enum init_target)4711, INT32_MAX, -9 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(init_signal(channel[0], rows[i].id, rows[i].target, rows[i].pid,
					     rows[i].signo, &err),
				 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct init_msg m = hear(INIT_SIGNAL, rows[i].id, sizeof(m.u.signal));

		assert_int_equal(m.u.signal.target, rows[i].target);
		assert_int_equal(m.u.signal.pid, rows[i].pid);
		assert_int_equal(m.u.signal.signo, rows[i].signo);
	}
	assert_nothing_sent();
}

TEST(go_and_disk)
{
	assert_int_equal(init_go(channel[0], 8, &err), 0);
	assert_int_equal(init_disk(channel[0], 9, &err), 0);
	(void)hear(INIT_GO, 8, 0);
	(void)hear(INIT_DISK, 9, 0);
	assert_nothing_sent();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_init_command_start.c - Starting a command: which descriptors the program has, which go to
 * the client, and when it is held. A failure leaves nothing open and nothing running. For kernels
 * see test_control.c.
 */
#include "start_kit.h"

#include "../unit.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* Pipes as the client makes them, and a program that looks: on 1, asked through 0. */
static void start_plain(uint32_t flags, void (*held)(uint32_t, pid_t))
{
	int in[2], out[2], before = open_fds();
	struct words w;
	struct command c = command(&w, flags, "1", "0");
	struct command_start s;
	uid_t uid = geteuid();

	CHILD_CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	c.stdio[0] = in[0];
	c.stdio[1] = c.stdio[2] = out[1];
	CHILD_CHECK(command_start(&c, &config, held, 42, &s) == 0);
	CHILD_CHECK(s.pid > 0 && s.n_fds == 0);
	check_fd(out[0], 0, S_IFIFO, O_RDONLY, uid);
	check_fd(out[0], 1, S_IFIFO, O_WRONLY, uid);
	check_fd(out[0], 2, S_IFIFO, O_WRONLY, uid);
	check_no_more(out[0]);
	CHILD_CHECK(write(in[1], "g", 1) == 1);
	CHILD_CHECK(WEXITSTATUS(child_wait(s.pid)) == LOOKED);
	for (int i = 0; i < 2; i++) {
		fd_close(in[i]);
		fd_close(out[i]);
	}
	CHILD_CHECK(open_fds() == before);
}

static void plain(void *arg)
{
	enter_world(arg != NULL);
	start_plain(0, no_hold);
}

TEST(plain)
{
	child_run(plain, "separate");
}

TEST(plain_one_user)
{
	child_run(plain, NULL);
}

static int n_held;

/* Not yet the program: execve is what is left. */
static void on_held(uint32_t id, pid_t pid)
{
	char link[64], exe[256] = "", mine[256] = "";

	n_held++;
	CHILD_CHECK(id == 42 && kill(pid, 0) == 0);
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	CHILD_CHECK(readlink(link, exe, sizeof(exe) - 1) > 0);
	CHILD_CHECK(readlink("/proc/self/exe", mine, sizeof(mine) - 1) > 0);
	CHILD_CHECK(strcmp(exe, mine) == 0 && strcmp(exe, program) != 0);
}

CHILD_TEST(held)
{
	enter_world(geteuid() == 0);
	start_plain(INIT_HOLD, on_held);
	CHILD_CHECK(n_held == 1);
}

CHILD_TEST(terminal)
{
	struct words w;
	struct command c = command(&w, INIT_TTY, "1", "0");
	struct command_start s;
	char text[sizeof(struct seen)];

	enter_world(geteuid() == 0);
	c.rows = 33;
	c.cols = 44;
	if (command_start(&c, &config, no_hold, 1, &s) < 0)
		CHILD_SKIP("no terminal here: stage %u, %s", s.failed.stage,
			   strerror(s.failed.error));
	CHILD_CHECK(s.n_fds == 1 && fcntl(s.fds[0], F_GETFD) == FD_CLOEXEC);
	CHILD_CHECK(ptsname(s.fds[0]) != NULL);
	CHILD_CHECK(read(s.fds[0], text, 1) == 1); /* binary through a terminal: not compared */
	CHILD_CHECK(kill(s.pid, SIGKILL) == 0 && WTERMSIG(child_wait(s.pid)) == SIGKILL);
	fd_close(s.fds[0]);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* It has to fail so, with nothing open that was not, and its child on the way out. */
static void check_failure(struct command *c, enum init_stage stage, int error)
{
	struct command_start s;
	int before = open_fds();

	memset(&s, 0xa5, sizeof(s));
	CHILD_CHECK(command_start(c, &config, no_hold, 1, &s) == -1);
	if (s.failed.stage != stage || s.failed.error != error)
		(void)fprintf(stderr, "# stage %u, %s\n", s.failed.stage, strerror(s.failed.error));
	CHILD_CHECK(s.failed.stage == (uint32_t)stage && s.failed.error == error);
	CHILD_CHECK(s.n_fds == 0 && open_fds() == before);
	CHILD_CHECK(WEXITSTATUS(child_wait(-1)) == 1);
}

CHILD_TEST(failures)
{
	static const uint32_t flags[] = { 0, INIT_CONTROL, INIT_PIPES };
	static char missing[] = "/nowhere/program", directory[] = "/";

	enter_world(geteuid() == 0);
	_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct words w;
		struct command c = command(&w, flags[i], "kernel", NULL);

		c.stdio[0] = c.stdio[1] = c.stdio[2] = null;
		c.cwd = "/nowhere";
		check_failure(&c, INIT_STAGE_CWD, ENOENT);
		c.cwd = "/";
		c.uid = 0;
		check_failure(&c, INIT_STAGE_CREDS, EPERM);
		c.uid = AGENT;
		/* The pipes of a kernel are made by then: they have to go again. */
		w.argv[0] = missing;
		check_failure(&c, INIT_STAGE_EXEC, ENOENT);
		w.argv[0] = directory;
		check_failure(&c, INIT_STAGE_EXEC, EACCES);
	}
}

/* Pipes of the cell's user: stdin in, stdout and stderr out, and nobody else has the program's
 * ends. */
static void pipes(void *arg)
{
	struct words w;
	struct command c = command(&w, INIT_PIPES, "1", "0");
	struct command_start s;
	char byte;

	enter_world(arg != NULL);
	c.cwd = "/";
	memset(&s, 0xa5, sizeof(s));
	CHILD_CHECK(command_start(&c, &config, no_hold, 1, &s) == 0 && s.n_fds == 3);
	for (int fd = 0; fd < 3; fd++)
		check_fd(s.fds[1], fd, S_IFIFO, fd == 0 ? O_RDONLY : O_WRONLY, AGENT);
	check_no_more(s.fds[1]);
	CHILD_CHECK(write(s.fds[0], "g", 1) == 1);
	CHILD_CHECK(WEXITSTATUS(child_wait(s.pid)) == LOOKED);
	CHILD_CHECK(read(s.fds[1], &byte, 1) == 0 && read(s.fds[2], &byte, 1) == 0);
	for (size_t i = 0; i < s.n_fds; i++)
		fd_close(s.fds[i]);
}

TEST(pipes)
{
	child_run(pipes, "separate");
}

TEST(pipes_one_user)
{
	child_run(pipes, NULL);
}

int main(int argc, char **argv)
{
	START_KIT_PROGRAM(argc, argv);
	return unit_run();
}

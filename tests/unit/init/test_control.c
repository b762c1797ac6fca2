/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_control.c - Starting a kernel: its descriptors 0 to 4 and nothing above, pipes that belong
 * to the cell's user, and the client's four ends in their order, whatever numbers were free on the
 * way.
 */
#include "start_kit.h"

#include "../unit.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The client's ends are in this order: control in, control out, stdout, stderr. */
static void use_kernel(const struct command_start *s)
{
	uid_t uid = AGENT;
	char byte;

	CHILD_CHECK(s->n_fds == 4);
	for (size_t i = 0; i < s->n_fds; i++) {
		struct stat st;

		CHILD_CHECK(fcntl(s->fds[i], F_GETFD) == FD_CLOEXEC);
		CHILD_CHECK((fcntl(s->fds[i], F_GETFL) & O_ACCMODE) ==
			    (i == 0 ? O_WRONLY : O_RDONLY));
		/* The cell's user made them: they are its own to open by name. */
		CHILD_CHECK(fstat(s->fds[i], &st) == 0 && S_ISFIFO(st.st_mode) && st.st_uid == uid);
	}
	check_fd(s->fds[1], 0, S_IFCHR, O_RDWR, uid);
	check_fd(s->fds[1], 1, S_IFIFO, O_WRONLY, uid);
	check_fd(s->fds[1], 2, S_IFIFO, O_WRONLY, uid);
	check_fd(s->fds[1], 3, S_IFIFO, O_RDONLY, uid);
	check_fd(s->fds[1], 4, S_IFIFO, O_WRONLY, uid);
	check_no_more(s->fds[1]);
	CHILD_CHECK(write(s->fds[0], "g", 1) == 1);
	check_read(s->fds[2], "out");
	check_read(s->fds[3], "err");
	check_read(s->fds[2], "put");
	/* Nobody else holds the program's ends: with it they are gone. */
	for (size_t i = 1; i < s->n_fds; i++)
		CHILD_CHECK(read(s->fds[i], &byte, 1) == 0);
	(void)signal(SIGPIPE, SIG_IGN);
	CHILD_CHECK(write(s->fds[0], "x", 1) < 0 && errno == EPIPE);
	CHILD_CHECK(WEXITSTATUS(child_wait(s->pid)) == LOOKED);
}

static void start_kernel(uint32_t flags, int script)
{
	struct words w;
	struct command c = command(&w, flags | INIT_CONTROL, "kernel", NULL);
	struct command_start s;
	int before = open_fds();

	c.script_fd = script;
	c.script_path = script >= 0 ? script_path : "";
	c.cwd = top;
	memset(&s, 0xa5, sizeof(s));
	if (command_start(&c, &config, no_hold, 1, &s) < 0)
		(void)fprintf(stderr, "# stage %u: %s\n", s.failed.stage, strerror(s.failed.error));
	CHILD_CHECK(s.pid > 0 && open_fds() == before + 4);
	use_kernel(&s);
	for (size_t i = 0; i < s.n_fds; i++)
		fd_close(s.fds[i]);
	CHILD_CHECK(open_fds() == before);
}

static void control(void *arg)
{
	enter_world(arg != NULL);
	start_kernel(0, -1);
}

TEST(control)
{
	child_run(control, "separate");
}

TEST(control_one_user)
{
	child_run(control, NULL);
}

/* Whatever numbers init's own descriptors have: none of the program's is overwritten on the way. */
CHILD_TEST(control_numbers)
{
	enter_world(geteuid() == 0);
	for (int closed = 0; closed < 3; closed++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (int fd = closed; fd < 3; fd++)
				(void)close(fd);
			start_kernel(0, -1);
			_exit(0);
		}
		CHILD_CHECK(child_wait(pid) == 0);
	}
	for (int taken = 3; taken < 32; taken++) {
		start_kernel(0, -1);
		CHILD_CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) == taken);
	}
}

/* The fewest open files that a cell can be given are enough for what the program starts with. */
CHILD_TEST(control_few_files)
{
	enter_world(geteuid() == 0);
	config.files = 16;
	start_kernel(0, -1);
	_fd_ int script = fd_memfd("script", "print(1)\n", 9);

	start_kernel(INIT_SCRIPT, script);
}

CHILD_TEST(control_script)
{
	char text[16] = "";
	struct stat st;

	enter_world(geteuid() == 0);
	_fd_ int script = fd_memfd("script", "print(1)\n", 9);

	start_kernel(INIT_SCRIPT, script);
	CHILD_CHECK(fd_read_file(AT_FDCWD, script_path, text, sizeof(text)) == 9);
	CHILD_CHECK(strcmp(text, "print(1)\n") == 0);
	CHILD_CHECK(stat(script_path, &st) == 0 && st.st_uid == AGENT);
}

/* Too few numbers for its descriptors is a reported failure, not a start without them. */
CHILD_TEST(no_numbers)
{
	struct words w;
	struct command c = command(&w, INIT_CONTROL, "kernel", NULL);
	struct rlimit few;

	enter_world(geteuid() == 0);
	CHILD_CHECK(getrlimit(RLIMIT_NOFILE, &few) == 0);
	few.rlim_cur = 10; /* init's own, which its children begin with */
	CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	config.files = 10;
	struct command_start s;
	int before = open_fds();

	CHILD_CHECK(command_start(&c, &config, no_hold, 1, &s) == -1);
	CHILD_CHECK(s.failed.stage == INIT_STAGE_STDIO && s.failed.error != 0);
	CHILD_CHECK(s.n_fds == 0 && open_fds() == before);
}

int main(int argc, char **argv)
{
	START_KIT_PROGRAM(argc, argv);
	return unit_run();
}

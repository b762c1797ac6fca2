/* SPDX-License-Identifier: Apache-2.0 */
/* own_daemon.c - Start a daemon, wait for its first line of output, keep it, end it. */
#include "remote/own_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cli/prepare.h"
#include "client/program.h"
#include "remote/problem.h"

#define START_NS (90 * CLOCK_NS_PER_S)
#define END_MS 15000
#define OPTIONS_MAX 128

/* ---- the daemon ---------------------------------------------------------------------------- */

/* Settings of a daemon that others reach. */
static const char *const foreign[] = { "CAISSON_LISTEN",   "CAISSON_SOCKET",   "CAISSON_STATE",
				       "CAISSON_TLS_CERT", "CAISSON_TLS_KEY",  "CAISSON_TOKEN_FILE",
				       "CAISSON_TOKEN",    "CAISSON_NO_TOKEN", "CAISSON_LOG_FORMAT",
				       "NOTIFY_SOCKET",    "LISTEN_FDS",       "LISTEN_PID" };

static void become_daemon(const char *program, char **argv, int out)
{
	struct err e = { 0 };
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* holds until the daemon changes its user */
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		(void)unsetenv(foreign[i]);
	if (dup2(out, STDOUT_FILENO) < 0)
		_exit(EXIT_OURS);
	if (prepare_daemon(argv, &e) < 0) {
		(void)fprintf(stderr, "caisson: %s\n", e.msg);
		_exit(EXIT_OURS);
	}
	(void)execv(program, argv);
	(void)fprintf(stderr, "caisson: execute %s: %s\n", program, strerror(errno));
	_exit(EXIT_OURS);
}

/* ---- the process in between ---------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	(void)remove(path);
	return 0;
}

/* Until the lease is closed or the daemon has ended. */
static void await(int lease, int daemon, int timeout_ms)
{
	struct pollfd p[] = { { .fd = lease, .events = POLLIN },
			      { .fd = daemon, .events = POLLIN } };

	(void)TEMP_FAILURE_RETRY(poll(p, 2, timeout_ms));
}

/* The pipes of the host would otherwise stay open for as long as this process lives. */
static void leave_pipes(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
}

static _Noreturn void keep(const struct own_daemon *d, const char *program, char **argv, int lease,
			   int ready)
{
	pid_t pid;
	int fd;

	(void)setsid();
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	leave_pipes();
	pid = fork();
	if (pid == 0)
		become_daemon(program, argv, ready);
	(void)close(ready);
	if (pid > 0) {
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		await(lease, fd, -1);
		(void)kill(pid, SIGTERM);
		await(-1, fd, END_MS);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	(void)nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	_exit(0);
}

/* ---- begin and end ------------------------------------------------------------------------- */

static int make_dir(struct own_daemon *d, struct problem *p)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool fits = runtime && runtime[0] == '/' && strlen(runtime) < sizeof(d->dir) - 36;

	(void)snprintf(d->dir, sizeof(d->dir), "%s/caisson-mcp-XXXXXX", fits ? runtime : "/tmp");
	if (!mkdtemp(d->dir)) {
		(void)problem_say(p, EXIT_OURS, "EIO", "make a directory %s: %s", d->dir,
				  strerror(errno));
		d->dir[0] = '\0';
		return -1;
	}
	(void)snprintf(d->socket, sizeof(d->socket), "%s/sock", d->dir);
	return 0;
}

/* The daemon prints a line when it serves. */
static int await_line(int ready, int signals, struct problem *p)
{
	uint64_t until = clock_now_ns() + START_NS;
	struct pollfd f[] = { { .fd = ready, .events = POLLIN },
			      { .fd = signals, .events = POLLIN } };
	char c = 0;

	while (c != '\n') {
		uint64_t now = clock_now_ns();

		if (now >= until)
			return problem_say(p, EXIT_NO_DAEMON, "no_answer",
					   "the daemon of our own is not ready after %llu s",
					   (unsigned long long)(START_NS / CLOCK_NS_PER_S));
		if (poll(f, 2, (int)((until - now) / CLOCK_NS_PER_MS) + 1) < 0)
			continue;
		if (f[1].revents)
			return problem_say(p, EXIT_OURS, "ECANCELED",
					   "a signal came before the daemon was ready");
		if (f[0].revents && read(ready, &c, 1) != 1) {
			(void)problem_say(p, EXIT_NO_DAEMON, "no_daemon",
					  "no daemon runs, and one of our own did not start");
			problem_hint(
				p,
				"'caisson doctor' says what this machine lacks; after -- come "
				"options of the daemon, as in 'caisson mcp -- --without cgroup'; "
				"--socket PATH or --url URL names another daemon");
			return -1;
		}
	}
	return 0;
}

static int fill_argv(const struct own_daemon *d, const char *tools, char *const *options,
		     char **argv, char *state, struct problem *p)
{
	/* The last value of an option counts: our defaults come first, the caller's options next,
	 * and the options that make the daemon private last. */
	const char *const first[] = { "serve", "--drain-timeout", "2s", "--log-level", "warning" };
	const char *const last[] = { "--listen", "none", "--socket", d->socket, "--state", state };
	/* An option would take precedence over the caller's variable. */
	bool has_level = getenv("CAISSON_LOG_LEVEL") || getenv("LOG_LEVEL");
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(first) - (has_level ? 2 : 0); i++)
		argv[n++] = (char *)first[i];
	if (tools) {
		argv[n++] = (char *)"--tools";
		argv[n++] = (char *)tools;
	}
	for (; *options; options++) {
		if (n + ARRAY_SIZE(last) + 1 >= OPTIONS_MAX)
			return problem_say(p, EXIT_OURS, "E2BIG", "too many options after --");
		argv[n++] = *options;
	}
	for (size_t i = 0; i < ARRAY_SIZE(last); i++)
		argv[n++] = (char *)last[i];
	argv[n] = NULL;
	return 0;
}

int own_daemon_start(struct own_daemon *d, const char *tools, char *const *options, int signals,
		     struct problem *p)
{
	char program[PATH_MAX], state[sizeof(d->dir) + 8], *argv[OPTIONS_MAX];
	int lease[2], ready[2];
	struct err e = { 0 };

	*d = (struct own_daemon){ .keeper = -1, .lease = -1 };
	if (program_find("caisson-front", program, sizeof(program), &e) < 0)
		return problem_ours(p, &e);
	if (make_dir(d, p) < 0)
		return -1;
	(void)snprintf(state, sizeof(state), "%s/state", d->dir);
	if (fill_argv(d, tools, options, argv, state, p) < 0)
		return -1;
	/* Without the second pipe the command ends, and the first one with it. */
	if (pipe2(lease, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		return problem_say(p, EXIT_OURS, "EMFILE", "make a pipe: %s", strerror(errno));
	d->lease = lease[1];
	_fd_ int theirs = lease[0], ours = ready[0];

	d->keeper = fork();
	if (d->keeper == 0) {
		(void)close(d->lease);
		(void)close(ours);
		keep(d, program, argv, theirs, ready[1]);
	}
	(void)close(ready[1]);
	if (d->keeper < 0)
		return problem_say(p, EXIT_OURS, "EAGAIN", "start a process: %s", strerror(errno));
	return await_line(ours, signals, p);
}

void own_daemon_stop(struct own_daemon *d)
{
	d->lease = fd_close(d->lease);
	if (d->keeper > 0)
		(void)TEMP_FAILURE_RETRY(waitpid(d->keeper, NULL, 0));
	else if (d->dir[0])
		(void)rmdir(d->dir); /* the process in between was never started */
	*d = (struct own_daemon){ .keeper = -1, .lease = -1 };
}

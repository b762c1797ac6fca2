/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_command.c - From a request to a running program.
 *
 * The child gives up, in this order: its group list and ids, all capabilities in all five sets, its
 * limits' upper ends, init's descriptors, init's session. It inherits init's own layers
 * (no-new-privileges, the system call filter, the Landlock domain) and cannot shed them. A step
 * that fails is reported through a close-on-exec socket as {stage, errno}; end of file there means
 * that execve succeeded.
 */
#include "init/init_command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/caps.h"
#include "init/files.h"
#include "init/score.h"

#define HELD_FD 3
#define CONTROL_ABOVE 16

/* ---- unpack --------------------------------------------------------------------------------- */

static int find_strings(const struct init_exec *x, struct command *c)
{
	size_t at = 0, n = (size_t)x->argc + x->envc;

	if (x->argc == 0 || x->argc > INIT_ARGS_MAX || x->envc > INIT_ARGS_MAX)
		return E2BIG;
	c->vectors = calloc(n + 2, sizeof(char *));
	if (!c->vectors)
		return ENOMEM;
	c->cwd = blob_next(&c->blob, &at);
	c->script_path = blob_next(&c->blob, &at);
	c->argv = c->vectors;
	c->envp = c->vectors + x->argc + 1;
	for (uint32_t i = 0; i < x->argc; i++)
		if (!(c->argv[i] = blob_next(&c->blob, &at)))
			return EINVAL;
	for (uint32_t i = 0; i < x->envc; i++)
		if (!(c->envp[i] = blob_next(&c->blob, &at)))
			return EINVAL;
	return at == c->blob.len && c->script_path && c->cwd[0] == '/' ? 0 : EINVAL;
}

/*
 * A program gets pipes from the client, and no other kind of descriptor. The client may have been
 * taken over, and code in the cell may be its accomplice: a directory of the host would lead that
 * code out of the cell's root by its "..".
 */
static bool is_pipe(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int command_unpack(const struct init_exec *x, const int *fds, size_t n_fds, struct command *ret)
{
	struct command *c = ret;
	size_t used = 0;
	uint32_t own_stdio = x->flags & (INIT_TTY | INIT_CONTROL | INIT_PIPES);
	size_t want = 1u + (x->flags & INIT_SCRIPT ? 1u : 0u) + (own_stdio ? 0u : 3u);

	*c = (struct command){
		.flags = x->flags,
		.uid = x->uid,
		.gid = x->gid,
		.rows = x->rows,
		.cols = x->cols,
		.script_fd = -1,
		.stdio = { -1, -1, -1 },
	};
	/* A held command has nothing but stdio and its report: no room for a control channel. */
	if (n_fds != want || (x->flags & INIT_CONTROL && x->flags & (INIT_TTY | INIT_HOLD)) ||
	    (x->flags & INIT_PIPES && x->flags & (INIT_TTY | INIT_CONTROL)) ||
	    x->flags &
		    ~(uint32_t)(INIT_TTY | INIT_HOLD | INIT_SCRIPT | INIT_CONTROL | INIT_PIPES)) {
		fd_close_all(fds, n_fds);
		return EINVAL;
	}
	_fd_ int blob = fds[used++];

	if (x->flags & INIT_SCRIPT)
		c->script_fd = fds[used++];
	for (int i = 0; i < 3 && !own_stdio; i++)
		c->stdio[i] = fds[used++];

	int r = blob_map(&c->blob, blob, x->blob_len);

	for (int i = 0; i < 3 && !own_stdio && r == 0; i++)
		r = is_pipe(c->stdio[i]) ? 0 : EBADF;
	return r ? r : find_strings(x, c);
}

void command_free(struct command *c)
{
	blob_unmap(&c->blob);
	free(c->vectors);
	c->script_fd = fd_close(c->script_fd);
	for (int i = 0; i < 3; i++)
		c->stdio[i] = fd_close(c->stdio[i]);
	c->vectors = NULL;
}

/* ---- the child ------------------------------------------------------------------------------ */

static _Noreturn void fail(int report, enum init_stage stage, int error)
{
	struct init_failed f = { .stage = (uint32_t)stage, .error = error };

	(void)fd_send(report, &f, sizeof(f), NULL, 0);
	_exit(1);
}

/*
 * The bounding set first: emptying it needs CAP_SETPCAP, which leaves with the user id. Then the
 * ids, whose change from the cell's root clears the rest; the last call makes that true for the
 * unprivileged case too, where there is no id to change.
 */
int command_shed(uint32_t uid, uint32_t gid, const struct init_config *config)
{
	int r = caps_bound(0);

	if (r < 0)
		return -r;
	if (uid == 0 || gid == 0 ||
	    (!config->separate && (uid != config->uid || gid != config->gid)))
		return EPERM;
	if (config->separate && (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
				 setresuid(uid, uid, uid) < 0))
		return errno;
	return -caps_drop();
}

/*
 * Written before the program starts, by the program's own user, never through a link. The limits
 * are set later, and the signal of the one for the size of files would give no reason: so the size
 * is checked here.
 */
static int write_script(const struct command *c, const struct init_config *config)
{
	struct stat st;
	off_t at = 0;

	_fd_ int out =
		open(c->script_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (out < 0 || fstat(c->script_fd, &st) < 0)
		return errno;
	if ((uint64_t)st.st_size > config->disk_bytes)
		return EFBIG;
	while (at < st.st_size) {
		ssize_t n = TEMP_FAILURE_RETRY(
			sendfile(out, c->script_fd, &at, (size_t)(st.st_size - at)));

		if (n <= 0)
			return n < 0 ? errno : EIO;
	}
	return 0;
}

/* A pty of the cell's own devpts, opened by its user, who then owns it. Init gets the master. */
static int open_tty(const struct command *c, int report)
{
	int unlock = 0;
	struct winsize size = { .ws_row = c->rows, .ws_col = c->cols };
	struct init_failed none = { 0 };

	_fd_ int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
	    ioctl(master, TIOCSWINSZ, &size) < 0)
		return errno;
	_fd_ int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		return errno;
	int r = fd_send(report, &none, sizeof(none), &master, 1);

	if (r < 0)
		return -r;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(slave, fd) < 0)
			return errno;
	return 0;
}

/* A pipe of the command: which number its end has, and whether it reads from it. */
struct pipe_end {
	int number;
	bool in;
};

/*
 * Pipes made by the cell's user, who may then open them by name; init gets the other ends. All of
 * them are above the numbers in use until they are copied down. Descriptor @null becomes /dev/null;
 * -1: none does.
 */
static int open_pipes(int report, int null, const struct pipe_end *ends, size_t n)
{
	struct init_failed none = { 0 };
	int pipes[INIT_FDS_MAX][2];
	int host[INIT_FDS_MAX];

	if (null >= 0) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (fd < 0 || dup2(fd, null) < 0)
			return errno;
	}
	for (size_t i = 0; i < n; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return errno;
		for (int end = 0; end < 2; end++)
			if ((pipes[i][end] = fcntl(pipes[i][end], F_DUPFD_CLOEXEC, CONTROL_ABOVE)) <
			    0)
				return errno;
		host[i] = pipes[i][ends[i].in ? 1 : 0];
	}
	int r = fd_send(report, &none, sizeof(none), host, n);

	if (r < 0)
		return -r;
	for (size_t i = 0; i < n; i++)
		if (dup2(pipes[i][ends[i].in ? 0 : 1], ends[i].number) < 0)
			return errno;
	return 0;
}

/* Control in, control out, stdout, stderr; stdin is empty. */
static const struct pipe_end kernel_ends[] = {
	{ 3, true }, { 4, false }, { 1, false }, { 2, false }
};
static const struct pipe_end stdio_ends[] = { { 0, true }, { 1, false }, { 2, false } };
static const struct pipe_end files_ends[] = { { FILES_IN, true }, { FILES_OUT, false } };

static int open_own(const struct command *c, int report)
{
	if (c->files)
		return open_pipes(report, STDERR_FILENO, files_ends, ARRAY_SIZE(files_ends));
	if (c->flags & INIT_PIPES)
		return open_pipes(report, -1, stdio_ends, ARRAY_SIZE(stdio_ends));
	return open_pipes(report, STDIN_FILENO, kernel_ends, ARRAY_SIZE(kernel_ends));
}

static int set_stdio(const struct command *c)
{
	if (c->flags & (INIT_CONTROL | INIT_PIPES) || c->files)
		return 0; /* open_own() has done it */
	/* The descriptors came by SCM_RIGHTS, above 2: no dup2 can overwrite one still needed. */
	for (int fd = 0; fd < 3; fd++)
		if (dup2(c->stdio[fd], fd) < 0)
			return errno;
	return 0;
}

static void reset_signals(void)
{
	sigset_t none;

	process_reset_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Report that only execve is left, and wait for permission. A warden of an ordinary user inspects
 * this process, and the Linux kernel shows that user the descriptors of a dumpable process only: so
 * become one, as execve would; nothing of init's is left to be found. Returns the report socket,
 * the only descriptor that remains.
 */
static int hold(int report)
{
	struct init_failed none = { 0 };
	char go;

	if (dup3(report, HELD_FD, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, HELD_FD + 1u, ~0u, 0u) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
	    fd_send(HELD_FD, &none, sizeof(none), NULL, 0) < 0 ||
	    fd_recv(HELD_FD, &go, 1, NULL, NULL) != 1)
		_exit(1);
	return HELD_FD;
}

/* As execvpe(), but never hands a file to a shell. Returns the most specific errno. */
static int exec_path(char **argv, char **envp)
{
	const char *path = "";
	int best = ENOENT;

	if (strchr(argv[0], '/')) {
		(void)execve(argv[0], argv, envp);
		return errno;
	}
	for (char **v = envp; *v; v++)
		if (strncmp(*v, "PATH=", 5) == 0)
			path = *v + 5;
	while (*path && argv[0][0]) {
		char full[4096];
		size_t n = strcspn(path, ":");
		int len = snprintf(full, sizeof(full), "%.*s/%s", (int)n, path, argv[0]);

		path += n + (path[n] == ':');
		if (n == 0 || len < 0 || (size_t)len >= sizeof(full))
			continue;
		(void)execve(full, argv, envp);
		if (errno != ENOENT && errno != ENOTDIR)
			best = errno;
	}
	return best;
}

/* A file call: the program is part of init. It has started when the report socket is closed. */
static _Noreturn void work(const struct files_call *call, int report)
{
	if (prctl(PR_SET_NAME, "caisson-files", 0, 0, 0) < 0)
		fail(report, INIT_STAGE_EXEC, errno);
	reset_signals();
	if (syscall(SYS_close_range, 3u, ~0u, 0u) < 0)
		fail(report, INIT_STAGE_STDIO, errno);
	files_main(call);
}

static _Noreturn void child(const struct command *c, const struct init_config *config, int report)
{
	int r;

	(void)setsid();
	if ((r = command_shed(c->uid, c->gid, config)))
		fail(report, INIT_STAGE_CREDS, r);
	if (c->flags & INIT_SCRIPT && (r = write_script(c, config)))
		fail(report, INIT_STAGE_SCRIPT, r);
	/* After the script, whose descriptor may have a number that the command needs; before the
	 * limits, because for a moment there are descriptors above a low one. */
	if (c->flags & (INIT_CONTROL | INIT_PIPES) || c->files) {
		/* Its number may also be one that the command needs. */
		int high = fcntl(report, F_DUPFD_CLOEXEC, CONTROL_ABOVE);

		if (high < 0)
			fail(report, INIT_STAGE_STDIO, errno);
		report = high;
		if ((r = open_own(c, report)))
			fail(report, INIT_STAGE_STDIO, r);
	}
	if ((r = -process_limit(config)))
		fail(report, INIT_STAGE_LIMITS, r);
	if (chdir(c->cwd) < 0)
		fail(report, INIT_STAGE_CWD, errno);
	if (c->flags & INIT_TTY && (r = open_tty(c, report)))
		fail(report, INIT_STAGE_TTY, r);
	if (!(c->flags & INIT_TTY) && (r = set_stdio(c)))
		fail(report, INIT_STAGE_STDIO, r);
	if (c->files)
		work(c->files, report);
	if (syscall(SYS_close_range, c->flags & INIT_CONTROL ? 5u : 3u, ~0u,
		    1u << 2 /* CLOSE_RANGE_CLOEXEC */) < 0)
		fail(report, INIT_STAGE_STDIO, errno);
	reset_signals();
	if (c->flags & INIT_HOLD)
		report = hold(report);
	fail(report, INIT_STAGE_EXEC, exec_path(c->argv, c->envp));
}

/* ---- the parent ----------------------------------------------------------------------------- */

int command_start(const struct command *c, const struct init_config *config,
		  void (*held)(uint32_t id, pid_t pid), uint32_t id, struct command_start *ret)
{
	int pair[2];

	*ret = (struct command_start){ .pid = -1, .failed.stage = INIT_STAGE_FORK };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		ret->failed.error = errno;
		return -1;
	}
	_fd_ int parent_end = pair[0];
	_fd_ int child_end = pair[1];
	score_child(c->files ? INIT_SCORE_FILES : INIT_SCORE_COMMAND);
	pid_t pid = fork();

	if (pid == 0)
		child(c, config, child_end);
	if (pid < 0)
		ret->failed.error = errno;
	score_own();
	if (pid < 0)
		return -1;
	child_end = fd_close(child_end);
	for (;;) {
		struct init_failed f;
		int fds[INIT_FDS_MAX];
		size_t n_fds = ARRAY_SIZE(fds);
		ssize_t n = fd_recv(parent_end, &f, sizeof(f), fds, &n_fds);

		if (n == (ssize_t)sizeof(f) && n_fds > 0) {
			memcpy(ret->fds, fds, sizeof(fds));
			ret->n_fds = n_fds;
			continue;
		}
		if (n == (ssize_t)sizeof(f) && f.error == 0) {
			held(id, pid);
			(void)fd_send(parent_end, "g", 1, NULL, 0);
			continue;
		}
		if (n == 0)
			break; /* executed, or died without a report: wait() tells which */
		ret->failed = n == (ssize_t)sizeof(f) ?
				      f :
				      (struct init_failed){ INIT_STAGE_FORK, EPROTO };
		fd_close_all(ret->fds, ret->n_fds);
		ret->n_fds = 0;
		return -1; /* the child is about to exit; init's reaper collects it */
	}
	ret->pid = pid;
	return 0;
}

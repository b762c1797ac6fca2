/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.c - Entries for the users of a cell in the image's /etc/passwd and /etc/group.
 *
 * Theory of operation. Code runs as a user that most images do not name. Without an entry git, ssh,
 * whoami and every program that looks up its own user fail. So each file gets the lines that it
 * lacks: the agent's and root's. The host image's files have them already (cell/root_host.c).
 *
 * The texts are a stranger's, and init, which could end the cell and start its commands, does not
 * read them. It makes an empty file beside each and starts a worker, which is what any command of
 * the cell is: the agent, sealed, limited, without capabilities or descriptors of init's. The
 * worker reads the image's files and writes the new ones. Its exit status reports which are
 * complete, and init gives those their names. So a worker that an image has taken over can write
 * two files of its own cell, which are the image's anyway. No other program runs in the cell yet.
 *
 * The worker looks up names as any program of the cell does: a link leads to a file of the image,
 * or to nothing. A file of another file system is refused: /proc/self of the worker shows where
 * init's memory lies.
 *
 * An image keeps its file where that has both numbers already, under whatever names; where it is
 * not a file, is not readable by the agent, or is larger than TEXT_MAX; where the image has a file
 * of the draft's name; and where the writable layer is full.
 */
#include "init/users.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/spec.h"
#include "init/init_command.h"
#include "init/score.h"

#define TEXT_MAX 65536u
#define LINES_MAX 256u
#define WORKER_MS 5000u /* for a file system that does not answer */

static const struct row {
	const char *name, *draft, *path;
	const char *root, *agent;
	bool shell; /* ends the agent's line */
} rows[] = {
	{ "passwd", "passwd.caisson", "/etc/passwd", CELL_PASSWD_ROOT, CELL_PASSWD_AGENT, true },
	{ "group", "group.caisson", "/etc/group", CELL_GROUP_ROOT, CELL_GROUP_AGENT, false },
};

/* ---- the worker ----------------------------------------------------------------------------- */

/* A decimal number that ends the field at @at. */
static bool field_is(const char *at, const char *end, unsigned int id)
{
	uint64_t value = 0;
	const char *from = at;

	for (; at < end && *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
		value = value * 10 + (unsigned int)(*at - '0');
	return at > from && (at == end || *at == ':') && value == id;
}

bool users_has(const char *text, size_t len, unsigned int id)
{
	const char *stop = text + len;

	for (const char *line = text, *end; line < stop; line = end + 1) {
		end = memchr(line, '\n', (size_t)(stop - line));
		end = end ? end : stop;
		const char *at = *line == '#' ? NULL : memchr(line, ':', (size_t)(end - line));

		at = at ? memchr(at + 1, ':', (size_t)(end - at - 1)) : NULL;
		if (at && field_is(at + 1, end, id))
			return true;
	}
	return false;
}

static char text[TEXT_MAX + LINES_MAX];
static size_t text_len;

static void add(const char *more)
{
	size_t n = strlen(more);

	if (n > sizeof(text) - text_len)
		return;
	memcpy(text + text_len, more, n);
	text_len += n;
}

/* A file that does not exist is empty. */
static bool read_text(const char *path)
{
	struct stat st;
	struct statfs fs;

	text_len = 0;
	_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)TEXT_MAX ||
	    fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return false;
	ssize_t n = fd_read_full(fd, text, TEXT_MAX);

	text_len = n > 0 ? (size_t)n : 0;
	return n >= 0;
}

static const char *find_shell(void)
{
	static const char *const shells[] = { "/bin/bash", "/bin/sh" };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (access(shells[i], X_OK) == 0)
			return shells[i];
	return "/usr/sbin/nologin";
}

/* Whether @draft has become what the file should be. */
static bool complete(const struct row *row, int draft)
{
	if (!read_text(row->path))
		return false;
	bool root = users_has(text, text_len, 0), agent = users_has(text, text_len, CELL_UID);

	if (root && agent)
		return false;
	if (text_len > 0 && text[text_len - 1] != '\n')
		add("\n");
	if (!root)
		add(row->root);
	if (!agent) {
		add(row->agent);
		add(row->shell ? find_shell() : "");
		add(row->shell ? "\n" : "");
	}
	return fd_write_all(draft, text, text_len) == 0;
}

/* The drafts become its descriptors 0 and 1; it keeps no others. */
static _Noreturn void work(const struct init_config *c, const int *drafts)
{
	int made = 0;

	(void)setsid();
	if (command_shed(c->uid, c->gid, c) != 0 || process_limit(c) < 0)
		_exit(0);
	for (int i = 0; i < (int)ARRAY_SIZE(rows); i++)
		if (dup2(drafts[i], i) < 0)
			_exit(0);
	if (syscall(SYS_close_range, (unsigned int)ARRAY_SIZE(rows), ~0u, 0u) < 0)
		_exit(0);
	for (int i = 0; i < (int)ARRAY_SIZE(rows); i++)
		made |= complete(&rows[i], i) ? 1 << i : 0;
	_exit(made);
}

/* ---- init ----------------------------------------------------------------------------------- */

/* Return: the wait status of @pid; that of a kill where it does not end by itself. */
static int wait_worker(pid_t pid)
{
	const uint64_t until = clock_now_ns() + WORKER_MS * CLOCK_NS_PER_MS;
	const struct timespec moment = { .tv_nsec = 100000000 };
	sigset_t chld;
	int status = -1;

	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		(void)sigtimedwait(&chld, NULL, &moment);
		if (clock_now_ns() > until)
			(void)kill(pid, SIGKILL);
	}
	return status;
}

/* SIGCHLD is blocked. Return: a bit for each row whose draft is complete. */
static int have_written(const struct init_config *c, const int *drafts)
{
	score_child(INIT_SCORE_COMMAND);
	pid_t pid = fork();

	if (pid == 0)
		work(c, drafts);
	score_own();
	int status = pid < 0 ? -1 : wait_worker(pid);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/*
 * The image's own /etc: a directory of the overlay that is the root. It is not in the host image,
 * and not where the client has mounted a directory there.
 */
static int open_etc(void)
{
	struct stat root, st;
	struct statfs fs;

	if (statfs("/", &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return -1;
	_fd_ int etc = open("/etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (etc < 0 || fstat(etc, &st) < 0 || stat("/", &root) < 0 || st.st_dev != root.st_dev)
		return -1;
	return TAKE_FD(etc);
}

void users_begin(const struct init_config *c)
{
	int drafts[ARRAY_SIZE(rows)], made = 0;
	size_t n = 0;
	_fd_ int etc = open_etc();

	if (etc < 0)
		return;
	for (; n < ARRAY_SIZE(rows); n++) {
		drafts[n] = openat(etc, rows[n].draft,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (drafts[n] < 0)
			break;
	}
	if (n == ARRAY_SIZE(rows))
		made = have_written(c, drafts);
	for (size_t i = 0; i < n; i++)
		if (!(made & 1 << i) || renameat(etc, rows[i].draft, etc, rows[i].name) < 0)
			(void)unlinkat(etc, rows[i].draft, 0);
	fd_close_all(drafts, n);
}

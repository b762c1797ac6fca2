/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - posix_spawn(3) with every result checked.
 *
 * An action that is silently missing would start a program without its socket, or with descriptors
 * of ours. So each step that fails ends the start.
 *
 * A descriptor that already has a number out of the table would be overwritten before it is copied,
 * or stay close-on-exec because it is copied onto itself. Such a descriptor is first copied to a
 * number above the table.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

static bool is_placed(const struct spawn *s, int fd)
{
	for (size_t i = 0; i < s->n_fds; i++)
		if (s->fds[i].from >= 0 && s->fds[i].to == fd)
			return true;
	return false;
}

static int highest(const struct spawn *s)
{
	int fd = STDERR_FILENO;

	for (size_t i = 0; i < s->n_fds; i++)
		if (s->fds[i].from >= 0 && s->fds[i].to > fd)
			fd = s->fds[i].to;
	return fd;
}

/* Returns an errno, as the functions of posix_spawn(3) do. */
static int place(const struct spawn *s, const int *from, posix_spawn_file_actions_t *a)
{
	int r = 0, last = highest(s);

	if (s->no_input)
		r = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0 && s->no_output)
		r = posix_spawn_file_actions_addopen(a, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	for (size_t i = 0; r == 0 && i < s->n_fds; i++)
		if (from[i] >= 0)
			r = posix_spawn_file_actions_adddup2(a, from[i], s->fds[i].to);
	/* A number above the limit on open files is refused in this way. */
	if (r == EBADF)
		r = EMFILE;
	if (s->keep_others)
		return r;
	for (int fd = STDERR_FILENO + 1; r == 0 && fd < last; fd++)
		if (!is_placed(s, fd))
			r = posix_spawn_file_actions_addclose(a, fd);
	return r ? r : posix_spawn_file_actions_addclosefrom_np(a, last + 1);
}

static int set_signals(const struct spawn *s, posix_spawnattr_t *attr)
{
	int flags = POSIX_SPAWN_SETSIGMASK;
	sigset_t none;

	(void)sigemptyset(&none);
	int r = posix_spawnattr_setsigmask(attr, s->mask ? s->mask : &none);

	if (r == 0 && s->unignored) {
		flags |= POSIX_SPAWN_SETSIGDEF;
		r = posix_spawnattr_setsigdefault(attr, s->unignored);
	}
	if (s->own_group) /* whose number is the child's: the attribute's default */
		flags |= POSIX_SPAWN_SETPGROUP;
	return r ? r : posix_spawnattr_setflags(attr, (short)flags);
}

static int start(const struct spawn *s, const int *from, pid_t *ret)
{
	static char *const empty[] = { NULL };
	char *const *envp = s->envp ? s->envp : empty;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return r;
	r = posix_spawnattr_init(&attr);
	if (r == 0) {
		r = place(s, from, &actions);
		if (r == 0)
			r = set_signals(s, &attr);
		if (r == 0)
			r = s->path ? posix_spawn(ret, s->path, &actions, &attr, s->argv, envp) :
				      posix_spawnp(ret, s->argv[0], &actions, &attr, s->argv, envp);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

void spawn_pick_env(char *const *env, const char *const *names, char **ret, size_t size)
{
	size_t n = 0;

	for (; env && *env; env++)
		for (size_t i = 0; names[i] && n < size - 1; i++)
			if (strncmp(*env, names[i], strlen(names[i])) == 0)
				ret[n++] = *env;
	ret[n] = NULL;
}

int spawn_program(const struct spawn *s, pid_t *ret_pid, struct err *e)
{
	int from[SPAWN_FDS_MAX], moved[SPAWN_FDS_MAX];
	pid_t pid;
	int r = s->n_fds > SPAWN_FDS_MAX ? E2BIG : 0;
	size_t n = 0;

	for (; r == 0 && n < s->n_fds; n++) {
		from[n] = s->fds[n].from;
		moved[n] = -1;
		if (from[n] < 0 || !is_placed(s, from[n]))
			continue;
		from[n] = moved[n] = fcntl(from[n], F_DUPFD_CLOEXEC, highest(s) + 1);
		if (moved[n] < 0)
			r = errno == EINVAL ? EMFILE : errno; /* above the limit */
	}
	if (r == 0)
		r = start(s, from, &pid);
	while (n > 0)
		fd_close(moved[--n]);
	if (r)
		return err_set(e, -r, "start %s", s->path ? s->path : s->argv[0]);
	if (ret_pid)
		*ret_pid = pid;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - The places of our programs and of the state directory; starting a program; messages
 * to a service manager, over a datagram socket. */
#include "client/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"

int program_find(const char *name, char *path, size_t size, struct err *e)
{
	size_t len = strlen(name);
	ssize_t n = readlink("/proc/self/exe", path, size - len - 1);

	if (n > 0) {
		path[n] = '\0';
		char *slash = strrchr(path, '/');

		if (slash) {
			memcpy(slash + 1, name, len + 1);
			if (access(path, X_OK) == 0)
				return 0;
		}
	}
	(void)snprintf(path, size, "%s/%s", CAISSON_LIBEXECDIR, name);
	if (access(path, X_OK) == 0)
		return 0;
	return err_say(e, -ENOENT,
		       "%s is neither beside caisson nor in " CAISSON_LIBEXECDIR
		       ": install it (make install)",
		       name);
}

int program_start(struct spawn *s, int at, pid_t *ret_pid, struct err *e)
{
	char path[4096];
	int pair[2];
	int r = program_find(s->argv[0], path, sizeof(path), e);

	if (r < 0)
		return r;
	if (s->n_fds == SPAWN_FDS_MAX)
		return err_set(e, -E2BIG, "start %s", path);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	_fd_ int ours = pair[0], theirs = pair[1];

	s->path = path;
	s->fds[s->n_fds++] = (struct spawn_fd){ theirs, at };
	r = spawn_program(s, ret_pid, e);
	s->path = NULL;
	s->n_fds--;
	return r < 0 ? r : TAKE_FD(ours);
}

int state_dir(const char *given, const char *runtime, char *path, size_t size, struct err *e)
{
	int n;

	if (given)
		n = snprintf(path, size, "%s", given);
	else if (geteuid() == 0)
		n = snprintf(path, size, "/run/caisson");
	else if (runtime && runtime[0] == '/')
		n = snprintf(path, size, "%s/caisson", runtime);
	else
		n = snprintf(path, size, "/tmp/caisson-%u", (unsigned int)geteuid());
	return n < 0 || (size_t)n >= size ?
		       err_say(e, -ENAMETOOLONG, "--state: the path is too long") :
		       0;
}

int notify_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;

	(void)unsetenv("NOTIFY_SOCKET"); /* the text stays where it is */
	if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -1;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	_fd_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return -1;
	return TAKE_FD(fd);
}

void notify_say(int fd, const char *text)
{
	if (fd >= 0)
		(void)send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

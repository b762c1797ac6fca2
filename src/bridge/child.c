/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.c - Start a server's program, watch it, end it.
 *
 * The environment is new: PATH, HOME and LANG of ours, and the variables of the configuration.
 * Between fork and exec there are only system calls; a failure of exec is reported through a pipe
 * that exec closes.
 */
#include "bridge/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/spawn.h"
#include "bridge/config.h"

#define STEP_NS CLOCK_NS_PER_S
#define PIPE_BYTES (1 << 20)

/* ---- the environment ----------------------------------------------------------------------- */

/* The value in @env of the variable of @pair, as in "PATH="; NULL: it is not there. */
static const char *value_of(char *const *env, const char *pair)
{
	size_t len = strcspn(pair, "=") + 1;

	for (; env && *env; env++)
		if (strncmp(*env, pair, len) == 0)
			return *env + len;
	return NULL;
}

/* The list is the caller's to free; its texts are not. */
static char **make_env(char *const *env)
{
	static const char *const names[] = { "PATH=", "HOME=", "LANG=", NULL };
	char *ours[ARRAY_SIZE(names)];
	size_t n = 0, at = 0;

	while (env && env[n])
		n++;
	char **list = calloc(n + ARRAY_SIZE(names), sizeof(char *));

	spawn_pick_env(environ, names, ours, ARRAY_SIZE(ours));
	for (size_t i = 0; list && ours[i]; i++)
		if (!value_of(env, ours[i]))
			list[at++] = ours[i];
	if (list && n > 0)
		memcpy(list + at, env, n * sizeof(char *));
	return list;
}

/* The path of the program, by the PATH that it will have itself. */
static int find_program(const char *name, const char *path, char ret[PATH_MAX], struct err *e)
{
	if (strchr(name, '/')) {
		if ((size_t)snprintf(ret, PATH_MAX, "%s", name) >= PATH_MAX)
			return err_say(e, -ENAMETOOLONG, "its command is too long");
		return 0;
	}
	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
		size_t len = strcspn(p, ":");

		if (len > 0 &&
		    (size_t)snprintf(ret, PATH_MAX, "%.*s/%s", (int)len, p, name) < PATH_MAX &&
		    access(ret, X_OK) == 0)
			return 0;
		p += len + (p[len] == ':');
	}
	return err_say(e, -ENOENT, "its command is not in PATH: install it, or give its path");
}

/* ---- starting ------------------------------------------------------------------------------ */

struct pipes {
	int in[2], out[2], err[2], why[2];
};

static void close_pipes(struct pipes *p)
{
	int *all = (int *)p;

	for (size_t i = 0; i < sizeof(*p) / sizeof(int); i++)
		all[i] = fd_close(all[i]);
}

static int open_pipes(struct pipes *p, struct err *e)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (pipe2(p->in, O_CLOEXEC) < 0 || pipe2(p->out, O_CLOEXEC) < 0 ||
	    pipe2(p->err, O_CLOEXEC) < 0 || pipe2(p->why, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make pipes");
	/* Large results come in fewer pieces; without it they come too. */
	(void)fcntl(p->out[0], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

static void report(int fd)
{
	int code = errno;

	if (write(fd, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

__attribute__((noreturn)) static void become(const char *path, char *const *argv, char *const *env,
					     const char *cwd, const struct pipes *p, pid_t parent)
{
	/* It is numbered above those that are about to be replaced. */
	int why = fcntl(p->why[1], F_DUPFD_CLOEXEC, 10);
	sigset_t none;

	(void)sigemptyset(&none);
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		report(why);
	if (getppid() != parent)
		_exit(127);
	/* None of ours is below 3, so no copy overwrites another's source. */
	if (dup2(p->in[0], 0) < 0 || dup2(p->out[1], 1) < 0 || dup2(p->err[1], 2) < 0)
		report(why);
	(void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	if (cwd && chdir(cwd) < 0)
		report(why);
	(void)execve(path, argv, env);
	report(why);
	_exit(127);
}

static int spawn(const struct server_config *s, struct pipes *p, pid_t *ret, struct err *e)
{
	char path[PATH_MAX];
	_mem_ char **env = make_env(s->env);
	int r = env ? find_program(s->argv[0], value_of(env, "PATH="), path, e) :
		      err_set(e, -ENOMEM, "start it"),
	    code = 0;
	pid_t parent = getpid();

	if (r == 0) {
		*ret = fork();
		if (*ret == 0)
			become(path, s->argv, env, s->cwd, p, parent);
		if (*ret < 0)
			r = err_set(e, -errno, "start it");
	}
	if (r < 0)
		return r;
	p->why[1] = fd_close(p->why[1]);
	/* The pipe ends without a report: exec has closed it. */
	if (read(p->why[0], &code, sizeof(code)) == (ssize_t)sizeof(code)) {
		(void)waitpid(*ret, NULL, 0);
		return err_set(e, -code, "its command cannot be executed%s",
			       s->cwd && code == ENOENT ? " (or its directory cwd does not exist)" :
							  "");
	}
	return 0;
}

/* ---- ending -------------------------------------------------------------------------------- */

static void free_child(struct child *c)
{
	struct children *all = c->all;

	loop_del(&c->gone);
	timer_cancel(&c->timer);
	fd_close(c->gone.fd);
	fd_close(c->in);
	fd_close(c->out);
	fd_close(c->err);
	LIST_DROP(all->first, c);
	free(c);
	if (!all->first)
		all->on_none(all->arg);
}

static void on_gone(struct watch *w, uint32_t events)
{
	struct child *c = w->arg;
	siginfo_t info = { 0 };
	char how[80];

	(void)events;
	if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return;
	/* The rest of its group. The number cannot be another group's yet, or is no group's. */
	(void)kill(-c->pid, SIGKILL);
	if (info.si_code == CLD_EXITED)
		(void)snprintf(how, sizeof(how), "ended with status %d", info.si_status);
	else
		(void)snprintf(how, sizeof(how), "was ended by SIG%s",
			       sigabbrev_np(info.si_status) ? sigabbrev_np(info.si_status) : "?");
	if (c->on_exit)
		c->on_exit(c, how);
	free_child(c);
}

static void on_time(struct timer *t)
{
	struct child *c = t->arg;

	(void)kill(-c->pid, c->step++ == 0 ? SIGTERM : SIGKILL);
	timer_set(c->all->loop, t, c->all->loop->now_ns + STEP_NS);
}

void child_end(struct child *c)
{
	c->on_exit = NULL;
	c->in = fd_close(c->in);
	c->out = fd_close(c->out);
	c->err = fd_close(c->err);
	timer_set(c->all->loop, &c->timer, clock_now_ns() + STEP_NS);
}

int child_start(struct children *all, const struct server_config *s, struct child **ret,
		struct err *e)
{
	struct child *c = calloc(1, sizeof(*c));
	struct pipes p;
	int r = c ? open_pipes(&p, e) : err_set(e, -ENOMEM, "start it");

	if (!c)
		return r;
	if (r == 0)
		r = spawn(s, &p, &c->pid, e);
	if (r == 0) {
		c->gone = (struct watch){ .fd = (int)syscall(SYS_pidfd_open, c->pid, 0),
					  .events = EPOLLIN,
					  .fn = on_gone,
					  .arg = c };
		r = c->gone.fd < 0 ? err_set(e, -errno, "watch it") :
				     loop_add(all->loop, &c->gone, e);
		if (r < 0) {
			fd_close(c->gone.fd);
			(void)kill(-c->pid, SIGKILL);
			(void)waitpid(c->pid, NULL, 0);
		}
	}
	if (r < 0) {
		close_pipes(&p);
		free(c);
		return r;
	}
	c->in = TAKE_FD(p.in[1]);
	c->out = TAKE_FD(p.out[0]);
	c->err = TAKE_FD(p.err[0]);
	close_pipes(&p);
	(void)fcntl(c->in, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->out, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->err, F_SETFL, O_NONBLOCK);
	c->timer = (struct timer){ .fn = on_time, .arg = c };
	c->all = all;
	LIST_PUSH(all->first, c);
	*ret = c;
	return 0;
}

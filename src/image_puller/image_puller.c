/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_puller.c - caisson-image-puller: starts `caisson image pull` for a daemon that pulls.
 *
 * Theory of operation. To pull takes the rights of the user who owns the image store, and that
 * user's credentials for registries. The front has neither, and can start no program in its jail.
 * So it starts this process before, which has the starter's rights and waits. A request is a
 * reference; the answer is the reading end of a pipe, on which caisson-image reports its progress,
 * and, when caisson-image has ended, its exit status.
 *
 * Why it is safe. The front may have been taken over. This process accepts messages of one fixed
 * size: start a pull, and stop it. A reference is parsed (image/ref.h), has to be in its one
 * canonical form, and of a registry that the operator allowed: these were arguments at the start.
 * All other arguments of caisson-image are from the start, too. It reads no byte of a registry and
 * none of the pipe. It starts one pull at a time. The pull itself leaves the registry's bytes to a
 * process without rights (image/fetch.h).
 *
 * It ends with its socket, and with it the pull that runs: what was loaded is kept for the next
 * one.
 *
 * usage: caisson-image-puller [--store=DIR] [--authfile=FILE] [--ca=FILE] --registry=PATTERN...
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/spawn.h"
#include "client/program.h"
#include "image/ref.h"
#include "wire/image_puller.h"

#define PROGRAM "caisson-image"
#define REGISTRIES_MAX 32
#define NOT_BEGUN (-2)
#define KILLED (-1)

_Static_assert(IMAGE_PULLER_REF_MAX == IMAGE_REF_MAX, "a canonical reference fits");

struct puller {
	const char *store, *authfile, *ca; /* NULL: the default */
	const char *registries[REGISTRIES_MAX + 1];
	int signals;
	pid_t pid; /* of the pull; 0: none */
	uint64_t seq;
};

#define AT(member) offsetof(struct puller, member)

static const struct option_row rows[] = {
	{ "--store", NULL, "DIR", OPTION_STRING, AT(store) },
	{ "--authfile", NULL, "FILE", OPTION_STRING, AT(authfile) },
	{ "--ca", NULL, "FILE", OPTION_STRING, AT(ca) },
	{ "--registry", NULL, "PATTERN", OPTION_LIST, AT(registries), .max = REGISTRIES_MAX },
};

/* ---- replies ------------------------------------------------------------------------------- */

/* A front that is gone shows on the socket. */
static void say(uint64_t seq, enum image_puller_say what, int status, int fd, const char *msg)
{
	struct image_puller_reply r = {
		.version = IMAGE_PULLER_VERSION, .say = what, .seq = seq, .status = status
	};

	(void)snprintf(r.msg, sizeof(r.msg), "%s", msg);
	(void)fd_send(IMAGE_PULLER_FD, &r, sizeof(r), &fd, fd >= 0 ? 1 : 0);
}

/* ---- pulls --------------------------------------------------------------------------------- */

/* Safe: what the front sends is a reference in canonical form, of an allowed registry. It begins
 * with the name of a host, and so is no option. */
static int check(const struct puller *p, const char *text, struct err *e)
{
	char canonical[IMAGE_REF_MAX];
	struct ref ref;

	if (ref_parse(text, &ref, e) < 0)
		return -EINVAL;
	ref_format(&ref, canonical);
	if (strcmp(canonical, text) != 0)
		return err_say(e, -EINVAL, "the reference of the image is not canonical");
	if (!ref_is_of(&ref, p->registries))
		return err_say(e, -EACCES, "the registry %.100s is not allowed", ref.host);
	return p->pid ? err_say(e, -EBUSY, "another image is being pulled") : 0;
}

static int spawn(struct puller *p, const char *ref, int out, struct err *e)
{
	/* Where the store and the credentials are, the way to helpers and to registries. */
	static const char *const names[] = {
		"HOME=",          "XDG_DATA_HOME=", "XDG_RUNTIME_DIR=", "REGISTRY_AUTH_FILE=",
		"DOCKER_CONFIG=", "PATH=",          "HTTPS_PROXY=",     "https_proxy=",
		"http_proxy=",    "NO_PROXY=",      "no_proxy=",        "ALL_PROXY=",
		"all_proxy=",     "LANG=",          "TMPDIR=",          NULL
	};
	char name[] = PROGRAM, verb[] = "pull", json[] = "--json", quiet[] = "--quiet",
	     end[] = "--";
	char path[4096], word[IMAGE_REF_MAX], options[3][4096 + 16], *envp[ARRAY_SIZE(names)];
	const char *const given[3][2] = { { "--store", p->store },
					  { "--authfile", p->authfile },
					  { "--ca", p->ca } };
	char *argv[12] = { name, verb, json, quiet };
	struct spawn s = { .path = path,
			   .argv = argv,
			   .envp = envp,
			   .fds = { { out, STDOUT_FILENO } },
			   .n_fds = 1,
			   .no_input = true,
			   .own_group = true };
	size_t n = 4;

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		if (!given[i][1])
			continue;
		if ((size_t)snprintf(options[i], sizeof(options[i]), "%s=%s", given[i][0],
				     given[i][1]) >= sizeof(options[i]))
			return err_say(e, -ENAMETOOLONG, "%s: the path is too long", given[i][0]);
		argv[n++] = options[i];
	}
	argv[n++] = end;
	(void)snprintf(word, sizeof(word), "%s", ref);
	argv[n] = word;
	spawn_pick_env(environ, names, envp, ARRAY_SIZE(envp));
	int r = program_find(PROGRAM, path, sizeof(path), e);

	return r < 0 ? r : spawn_program(&s, &p->pid, e);
}

static void begin(struct puller *p, const struct image_puller_req *q)
{
	struct err e = { 0 };
	int ends[2];

	if (check(p, q->ref, &e) == 0 && pipe2(ends, O_CLOEXEC) < 0)
		(void)err_set(&e, -errno, "make a pipe");
	if (e.code == 0) {
		_fd_ int in = ends[0], out = ends[1];

		if (spawn(p, q->ref, out, &e) == 0) {
			p->seq = q->seq;
			say(q->seq, IMAGE_PULLER_BEGUN, 0, in, "");
		}
	}
	if (e.code < 0)
		say(q->seq, IMAGE_PULLER_ENDED, NOT_BEGUN, -1, e.msg);
}

/* Its unpackers and the process that loads are in its group, and die with it. */
static void stop(const struct puller *p)
{
	if (p->pid)
		(void)kill(-p->pid, SIGKILL);
}

static void bury(struct puller *p)
{
	struct signalfd_siginfo info;
	siginfo_t ended = { .si_pid = 0 };
	int status = 0;

	while (read(p->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	if (!p->pid || waitid(P_PID, (id_t)p->pid, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    !ended.si_pid)
		return;
	stop(p); /* what is left of its group: its number is not free before it is buried */
	(void)TEMP_FAILURE_RETRY(waitpid(p->pid, &status, 0));
	p->pid = 0;
	say(p->seq, IMAGE_PULLER_ENDED, WIFEXITED(status) ? WEXITSTATUS(status) : KILLED, -1, "");
}

/* ---- requests ------------------------------------------------------------------------------ */

/* False: the front is gone, or sent something else. */
static bool take(struct puller *p)
{
	static struct image_puller_req q;
	size_t no_fds = 0;
	ssize_t n = fd_recv(IMAGE_PULLER_FD, &q, sizeof(q), NULL, &no_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n != (ssize_t)sizeof(q) || q.version != IMAGE_PULLER_VERSION)
		return false;
	q.ref[sizeof(q.ref) - 1] = '\0';
	if (q.op == IMAGE_PULLER_PULL)
		begin(p, &q);
	else if (q.op == IMAGE_PULLER_STOP)
		stop(p);
	return true;
}

static void serve(struct puller *p)
{
	struct pollfd all[] = { { .fd = IMAGE_PULLER_FD, .events = POLLIN },
				{ .fd = p->signals, .events = POLLIN } };
	bool there = true;

	while (there) {
		if (poll(all, ARRAY_SIZE(all), -1) < 0 && errno != EINTR)
			break;
		if (all[1].revents)
			bury(p);
		if (all[0].revents)
			there = take(p);
	}
	stop(p);
}

static int setup(struct puller *p, int argc, char **argv, struct err *e)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
	struct options o = { .rows = rows, .n_rows = ARRAY_SIZE(rows), .target = p };
	const struct rlimit no_core = { 0, 0 };

	if (options_arguments(&o, argc, argv, e) < 0)
		return e->code;
	/* Signals of the terminal reach the group; the front's end is the end. */
	p->signals = fd_signals(signals, ARRAY_SIZE(signals), NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	if (p->signals < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set(e, -errno, "start");
	return 0;
}

int main(int argc, char **argv)
{
	static struct puller p;
	struct err e = { 0 };

	if (fcntl(IMAGE_PULLER_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "caisson-image-puller: started by caisson, not by hand\n");
		return 2;
	}
	if (setup(&p, argc, argv, &e) < 0) {
		(void)fprintf(stderr, "caisson-image-puller: %s\n", e.msg);
		return 125;
	}
	serve(&p);
	return 0;
}

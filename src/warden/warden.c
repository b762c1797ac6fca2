/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden.c - caisson-warden: the only process with privileges. Makes and ends cells for one client.
 *
 * Theory of operation. One socket (descriptor 3) to one client, and an epoll loop over that socket
 * and the descriptors of each cell and zygote. The warden never waits: the end of slow work is an
 * event (warden_events.c). dispatch.c has the requests: a client can make cells out of files that
 * it can open itself, have warm interpreters fork kernels into them, and end them. An attacker who
 * takes over the client can do no more.
 *
 * When the client goes away every cell is destroyed. When the warden is killed, its cells die with
 * it (parent-death signal) and the next warden removes what the journal has on record.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/idmap.h"
#include "cell/stage.h"
#include "warden/dispatch.h"
#include "wire/warden.h"

#define ANSWER_S 5 /* a client that does not take an answer for so long is gone */

/* ---- the loop ------------------------------------------------------------------------------- */

static void loop(struct warden *w)
{
	while (!w->deaf) {
		struct epoll_event ev[64];
		int n = epoll_wait(w->epoll, ev, ARRAY_SIZE(ev), dispatch_check(w));

		/* Events first: a request may be about them. */
		for (int i = 0; i < n; i++)
			dispatch_event(w, ev[i].data.u64);
		for (int i = 0; i < n; i++)
			if (source_of(ev[i].data.u64) == SOURCE_CLIENT && !dispatch_serve(w))
				return;
	}
}

/* ---- start and end -------------------------------------------------------------------------- */

/* Init lies beside us, or where both were installed. */
static int find_init(char *path, size_t size, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof("caisson-init"));

	if (n < 0)
		return err_set(e, -errno, "find caisson-warden's own directory");
	path[n] = '\0';
	char *slash = strrchr(path, '/');

	if (!slash)
		return err_say(e, -ENOENT, "caisson-warden has no directory");
	memcpy(slash + 1, "caisson-init", sizeof("caisson-init"));
	if (access(path, X_OK) < 0)
		return err_set(e, -errno, "find %s", path);
	return 0;
}

static int lacking(uint64_t caps, struct err *e)
{
	char names[128] = "";

	for (int cap = 0; cap < 64; cap++)
		if (caps & 1ull << cap) {
			size_t n = strlen(names);

			(void)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
				       caps_name(cap));
		}
	return err_say(e, -EPERM,
		       "root lacks capabilities that cells need: give it %s (docker: --cap-add), "
		       "or run as an ordinary user",
		       names);
}

static int harden(struct err *e)
{
	struct rlimit core = { 0, 0 };
	sigset_t none;

	(void)setrlimit(RLIMIT_CORE, &core);
	fd_many(); /* a dozen per cell */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* cells must not inherit our client's */
	/* Ctrl-C goes to the whole foreground group; ending cells is the client's decision. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "set no-new-privileges");
	/* Kernels are forked by a child of a zygote; when that ends the warden has to reap them. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "become a subreaper");
	if (geteuid() == 0) {
		struct idmap ids;
		uint64_t have = 0, want = WARDEN_CAPS;
		int r = caps_permitted(&have);

		/* Root of a small namespace can map only itself; for id 0 that takes this. */
		idmap_choose(0, &ids);
		if (!ids.ranged)
			want |= 1ull << CAP_SETFCAP;
		if (r == 0 && (have & want) != want)
			return lacking(want & ~have, e);
		if (r == 0)
			r = caps_keep(want | (have & 1ull << CAP_MKNOD), 0);
		if (r < 0)
			return err_set(e, r, "drop capabilities");
		/* The kept capabilities stay when we are another user (launch.c, clone_as). */
		if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
			return err_set(e, -errno, "set securebits");
	}
	return 0;
}

static int start(struct warden *w, const char *state, struct err *e)
{
	struct sweep_result swept;
	const struct timeval patience = { .tv_sec = ANSWER_S };
	struct err site_error = { 0 };
	int r;

	if ((r = harden(e)) < 0 ||
	    (r = find_init(w->host.init_path, sizeof(w->host.init_path), e)) < 0)
		return r;
	/* Without the right to mount here, each cell does it for itself. */
	w->host.init_fd = geteuid() == 0 ? stage_open_init(w->host.init_path) : -1;
	w->sock = WARDEN_FD;
	if (setsockopt(WARDEN_FD, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return err_set(e, -errno, "set up the client's socket");
	w->host.records = record_dir(state, e);
	if (w->host.records < 0)
		return w->host.records;
	r = record_sweep(w->host.records, &swept, e);
	if (r < 0)
		return r;
	w->host.site_code = cgroup_site_find(&w->host.site, &site_error);
	(void)snprintf(w->host.site_msg, sizeof(w->host.site_msg), "%s", site_error.msg);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0 || fcntl(WARDEN_FD, F_SETFD, FD_CLOEXEC) < 0)
		return err_set(e, -errno, "set up the loop");
	return watch(w, WARDEN_FD, SOURCE_CLIENT, 0, 0, e);
}

/* The client learns why there is no warden from the answer to its first request. */
static int refuse(const struct err *e)
{
	struct warden_req req;
	struct warden_reply reply = { .version = WARDEN_VERSION, .code = e->code };
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);

	if (fd_recv(WARDEN_FD, &req, sizeof(req), fds, &n_fds) == (ssize_t)sizeof(req)) {
		reply.op = req.op;
		reply.seq = req.seq;
		(void)snprintf(reply.msg, sizeof(reply.msg), "%s", e->msg);
		(void)fd_send(WARDEN_FD, &reply, sizeof(reply), NULL, 0);
	}
	return 1;
}

int main(int argc, char **argv)
{
	static struct warden w;
	struct err e = { 0 };

	if (argc != 2) {
		(void)fprintf(stderr, "caisson-warden is started by caisson; usage: caisson-warden "
				      "STATE-DIR 3<>SOCKET\n");
		return 125;
	}
	if (start(&w, argv[1], &e) < 0)
		return refuse(&e);
	loop(&w);
	dispatch_end(&w);
	return 0;
}

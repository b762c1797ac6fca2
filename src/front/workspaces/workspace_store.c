/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_store.c - Starting the workspace store, and talking to it.
 *
 * Its directory belongs to a user of its own (as root), whose id the warden knows: files of it are
 * shown in cells as the agent's. The front hands it two descriptors and no path.
 */
#include "front/workspaces/workspace_store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/support/log.h"
#include "wire/warden.h"

#define WORKSPACE_STORE_NAME "caisson-workspace-store"
#define DIR_NAME "workspaces"
#define TELL_MS 100
#define TELL_TRIES 20
#define VOLUMES_NAME "volumes"
#define VOLUMES_FD (WORKSPACE_STORE_DIR_FD + 1) /* as in workspace_store/volume_mounter.h */

/* ---- before the jail ----------------------------------------------------------------------- */

static int open_dir(const char *state, uid_t uid, struct err *e)
{
	_fd_ int top = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0 || (mkdirat(top, DIR_NAME, 0700) < 0 && errno != EEXIST))
		return err_set(e, -errno, "--state: make %s/" DIR_NAME, state);
	_fd_ int fd = openat(top, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "--state: open %s/" DIR_NAME, state);
	/* Who mounts file systems in it has to get there, and has no right beyond that. */
	if (uid && (fchown(fd, uid, uid) < 0 || fchmod(fd, 0711) < 0))
		return err_set(e, -errno, "--state: give %s/" DIR_NAME " to uid %u", state, uid);
	return TAKE_FD(fd);
}

/* Where the file systems of workspaces are: only root has any. */
static int open_volumes(const char *state, struct err *e)
{
	_fd_ int top = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0 || (mkdirat(top, VOLUMES_NAME, 0700) < 0 && errno != EEXIST))
		return err_set(e, -errno, "--state: make %s/" VOLUMES_NAME, state);
	int fd = openat(top, VOLUMES_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "--state: open %s/" VOLUMES_NAME, state) : fd;
}

int workspace_store_open(struct workspace_store *s, const char *state, struct err *e)
{
	const uid_t uid = geteuid() == 0 ? CELL_WORKSPACE_ID : 0;
	char name[] = WORKSPACE_STORE_NAME, id[16];
	char *argv[] = { name, id, id, NULL };
	struct spawn child = { .argv = argv, .n_fds = 2 };

	s->watch.fd = -1;
	_fd_ int dir = open_dir(state, uid, e);

	if (dir < 0)
		return dir;
	_fd_ int volumes = uid ? open_volumes(state, e) : -1;

	if (uid && volumes < 0)
		return volumes;
	(void)snprintf(id, sizeof(id), "%u", uid);
	child.fds[0] = (struct spawn_fd){ dir, WORKSPACE_STORE_DIR_FD };
	child.fds[1] = (struct spawn_fd){ volumes, VOLUMES_FD };
	int fd = program_start(&child, WORKSPACE_STORE_FD, NULL, e);

	if (fd < 0)
		return fd;
	s->watch.fd = fd;
	return 0;
}

/* ---- in the jail --------------------------------------------------------------------------- */

static struct workspace_store_call *take(struct workspace_store *p, uint64_t seq)
{
	for (struct workspace_store_call **at = &p->calls; *at; at = &(*at)->next)
		if ((*at)->seq == seq) {
			struct workspace_store_call *c = *at;

			*at = c->next;
			c->seq = 0;
			return c;
		}
	return NULL;
}

/* All that were asked up to then; who hears of it may ask again at once. */
static void fail_until(struct workspace_store *p, uint64_t seq, const char *why)
{
	struct workspace_store_reply dead = { .code = -EPIPE };
	struct workspace_store_call *c;
	int none = -1;

	(void)snprintf(dead.msg, sizeof(dead.msg), "%s", why);
	do {
		for (c = p->calls; c && c->seq > seq;)
			c = c->next;
		if (c) {
			(void)take(p, c->seq);
			c->fn(c, &dead, &none);
		}
	} while (c);
}

static void gone(struct workspace_store *p)
{
	loop_del(&p->watch);
	p->watch.fd = fd_close(p->watch.fd);
	log_event(LOG_LEVEL_ERROR, "workspace_store_gone",
		  F_STR("what", "no workspace can be used until the daemon is restarted"));
	fail_until(p, UINT64_MAX, "the workspace store is gone");
}

static void again(struct workspace_store *p, uint32_t life)
{
	uint64_t asked = p->seq;

	log_event(LOG_LEVEL_WARNING, "workspace_store_killed",
		  F_STR("what", "another has taken its place"));
	if (p->again(p, life) < 0) {
		gone(p);
		return;
	}
	fail_until(p, asked, "the workspace store was killed: try again");
}

static void on_event(struct watch *w, uint32_t events)
{
	struct workspace_store *p = w->arg;
	static struct workspace_store_reply r;
	int fd = -1;
	size_t n_fds = 1;

	(void)events;
	ssize_t n = fd_recv(w->fd, &r, sizeof(r), &fd, &n_fds);

	if (n == -EAGAIN)
		return;
	if (n != (ssize_t)sizeof(r) || r.version != WORKSPACE_STORE_VERSION) {
		if (n_fds && n > 0)
			fd_close(fd);
		gone(p);
		return;
	}
	r.key[sizeof(r.key) - 1] = r.tree[sizeof(r.tree) - 1] = r.msg[sizeof(r.msg) - 1] = '\0';
	struct workspace_store_call *c = r.op == WORKSPACE_STORE_AGAIN ? NULL : take(p, r.seq);

	if (n_fds == 0)
		fd = -1;
	if (r.op == WORKSPACE_STORE_AGAIN)
		again(p, r.life);
	else if (c)
		c->fn(c, &r, &fd);
	fd_close(fd);
}

int workspace_store_wait(struct workspace_store *p, struct workspace_store_req *q, int fd,
			 struct workspace_store_reply *ret)
{
	size_t n_fds = 0;
	int code = workspace_store_ask(p, NULL, q, fd);

	if (code == 0 &&
	    (fd_recv(p->watch.fd, ret, sizeof(*ret), NULL, &n_fds) != (ssize_t)sizeof(*ret) ||
	     ret->version != WORKSPACE_STORE_VERSION || ret->op == WORKSPACE_STORE_AGAIN))
		code = -EPIPE; /* killed so early, it is the next front's start that goes well */
	return code < 0 ? code : ret->code;
}

int workspace_store_start(struct workspace_store *p, struct loop *l, struct err *e)
{
	p->watch.events = EPOLLIN;
	p->watch.fn = on_event;
	p->watch.arg = p;
	if (fcntl(p->watch.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the workspace store's socket");
	return loop_add(l, &p->watch, e);
}

int workspace_store_ask(struct workspace_store *p, struct workspace_store_call *c,
			struct workspace_store_req *q, int fd)
{
	if (p->watch.fd < 0)
		return -EPIPE;
	q->version = WORKSPACE_STORE_VERSION;
	q->seq = ++p->seq;
	int r = fd_send(p->watch.fd, q, sizeof(*q), &fd, fd >= 0 ? 1 : 0);

	if (r < 0)
		return r;
	if (c) {
		c->seq = q->seq;
		c->next = p->calls;
		p->calls = c;
	}
	return 0;
}

/* What fills it was asked of a workspace store that is dead: the next one reads that quickly, to
 * throw it away. */
int workspace_store_tell(struct workspace_store *p, struct workspace_store_req *q, int fd)
{
	struct pollfd room = { .fd = p->watch.fd, .events = POLLOUT };
	int r = workspace_store_ask(p, NULL, q, fd);

	for (int i = 0; r == -EAGAIN && i < TELL_TRIES; i++) {
		(void)poll(&room, 1, TELL_MS);
		r = workspace_store_ask(p, NULL, q, fd);
	}
	return r;
}

void workspace_store_forget(struct workspace_store *p, struct workspace_store_call *c)
{
	if (c->seq)
		(void)take(p, c->seq);
}

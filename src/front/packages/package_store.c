/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.c - Starting the package store, and talking to it.
 *
 * Its directory belongs to a user of its own (as root): "caisson-package-store" when there is one,
 * else an id below the front's. The front hands it two descriptors and no path.
 */
#include "front/packages/package_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
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

#define PACKAGE_STORE_NAME "caisson-package-store"
#define PACKAGE_STORE_ID 0x6ffffffdu /* just below the front's own (jail.c) */

/* ---- before the jail ----------------------------------------------------------------------- */

static void identity(uid_t *uid, gid_t *gid)
{
	const struct passwd *pw = geteuid() == 0 ? getpwnam(PACKAGE_STORE_NAME) : NULL;

	*uid = geteuid() != 0 ? 0 : pw && pw->pw_uid ? pw->pw_uid : PACKAGE_STORE_ID;
	*gid = geteuid() != 0 ? 0 : pw && pw->pw_gid ? pw->pw_gid : PACKAGE_STORE_ID;
}

/* Its mode while it is in use keeps even its owner from listing it: opened again, it has to be
 * undone. */
static int open_store(const char *state, uid_t uid, gid_t gid, struct err *e)
{
	_fd_ int top = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0 || (mkdirat(top, "packages", 0700) < 0 && errno != EEXIST))
		return err_set(e, -errno, "--state: make %s/packages", state);
	if (fchmodat(top, "packages", 0700, 0) < 0)
		return err_set(e, -errno, "--state: open %s/packages", state);
	_fd_ int fd = openat(top, "packages", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "--state: open %s/packages", state);
	if (uid && fchown(fd, uid, gid) < 0)
		return err_set(e, -errno, "--state: give %s/packages to uid %u", state, uid);
	return TAKE_FD(fd);
}

int package_store_open(struct package_store *p, const char *state, struct err *e)
{
	char name[] = PACKAGE_STORE_NAME, uid_arg[16], gid_arg[16];
	char *argv[] = { name, uid_arg, gid_arg, NULL };
	struct spawn s = { .argv = argv, .n_fds = 1 };
	uid_t uid;
	gid_t gid;

	p->watch.fd = -1;
	identity(&uid, &gid);
	_fd_ int dir = open_store(state, uid, gid, e);

	if (dir < 0)
		return dir;
	(void)snprintf(uid_arg, sizeof(uid_arg), "%u", uid);
	(void)snprintf(gid_arg, sizeof(gid_arg), "%u", gid);
	s.fds[0] = (struct spawn_fd){ dir, PACKAGE_STORE_DIR_FD };
	int fd = program_start(&s, PACKAGE_STORE_FD, NULL, e);

	if (fd < 0)
		return fd;
	p->watch.fd = fd;
	return TAKE_FD(dir);
}

/* ---- in the jail --------------------------------------------------------------------------- */

static struct package_store_call *take(struct package_store *p, uint64_t seq)
{
	for (struct package_store_call **at = &p->calls; *at; at = &(*at)->next)
		if ((*at)->seq == seq) {
			struct package_store_call *c = *at;

			*at = c->next;
			c->seq = 0;
			return c;
		}
	return NULL;
}

static void fail_all(struct package_store *p)
{
	static const struct package_store_reply dead = { .code = -EPIPE,
							 .msg = "the package store was killed" };

	while (p->calls) {
		struct package_store_call *c = take(p, p->calls->seq);

		c->fn(c, &dead);
	}
}

static void gone(struct package_store *p)
{
	loop_del(&p->watch);
	p->watch.fd = fd_close(p->watch.fd);
	log_event(LOG_LEVEL_ERROR, "package_store_gone",
		  F_STR("what", "no packages can be installed until the daemon is restarted"));
	fail_all(p);
}

/* Always ended by a NUL, whoever wrote it. */
static void close_texts(struct package_store_reply *r)
{
	r->key[sizeof(r->key) - 1] = r->sha256[sizeof(r->sha256) - 1] = '\0';
	r->seal[sizeof(r->seal) - 1] = r->msg[sizeof(r->msg) - 1] = '\0';
}

static void on_event(struct watch *w, uint32_t events)
{
	struct package_store *p = w->arg;
	static struct package_store_reply r;
	size_t n_fds = 0;

	(void)events;
	ssize_t n = fd_recv(w->fd, &r, sizeof(r), NULL, &n_fds);

	if (n == -EAGAIN)
		return;
	if (n != (ssize_t)sizeof(r) || r.version != PACKAGE_STORE_VERSION) {
		gone(p);
		return;
	}
	close_texts(&r);
	struct package_store_call *c = r.op == PACKAGE_STORE_AGAIN ? NULL : take(p, r.seq);

	if (r.op == PACKAGE_STORE_AGAIN) {
		log_event(LOG_LEVEL_WARNING, "package_store_killed",
			  F_STR("what", "another has taken its place"));
		fail_all(p);
	} else if (c) {
		c->fn(c, &r);
	} else if (r.op == PACKAGE_STORE_STORE && r.code == 0) { /* nobody waits for it any more */
		struct package_store_req q = { .op = PACKAGE_STORE_DROP };

		memcpy(q.key, r.key, PACKAGE_STORE_KEY_LEN);
		(void)package_store_ask(p, NULL, &q, -1);
	}
}

int package_store_wait(struct package_store *p, struct package_store_req *q,
		       struct package_store_reply *ret)
{
	size_t n_fds = 0;
	int code = package_store_ask(p, NULL, q, -1);

	if (code == 0 &&
	    (fd_recv(p->watch.fd, ret, sizeof(*ret), NULL, &n_fds) != (ssize_t)sizeof(*ret) ||
	     ret->version != PACKAGE_STORE_VERSION))
		code = -EPIPE;
	if (code < 0)
		return code;
	close_texts(ret);
	return ret->code;
}

int package_store_start(struct package_store *p, struct loop *l, struct err *e)
{
	p->watch.events = EPOLLIN;
	p->watch.fn = on_event;
	p->watch.arg = p;
	if (fcntl(p->watch.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the package store's socket");
	return loop_add(l, &p->watch, e);
}

int package_store_ask(struct package_store *p, struct package_store_call *c,
		      struct package_store_req *q, int fd)
{
	if (p->watch.fd < 0)
		return -EPIPE;
	q->version = PACKAGE_STORE_VERSION;
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

void package_store_forget(struct package_store *p, struct package_store_call *c)
{
	if (c->seq)
		(void)take(p, c->seq);
}

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
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/support/log.h"

#define PACKAGE_STORE_NAME "caisson-package-store"
#define KILLED "the package store was killed"
#define PACKAGE_STORE_ID 0x6ffffffdu /* just below the front's own (jail.c) */

/* ---- replies ------------------------------------------------------------------------------ */

static void fail(struct service_call *call, int code, const char *why)
{
	struct package_store_call *c = (struct package_store_call *)call;
	struct package_store_reply r = { .code = code };

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	c->fn(c, &r);
}

static void gone(struct service_link *l)
{
	log_event(LOG_LEVEL_ERROR, "package_store_gone",
		  F_STR("what", "no packages can be installed until the daemon is restarted"));
	service_link_fail(l, UINT64_MAX, -EPIPE, KILLED);
}

/* Always ended by a NUL, whoever wrote it. */
static void close_texts(struct package_store_reply *r)
{
	r->key[sizeof(r->key) - 1] = r->sha256[sizeof(r->sha256) - 1] = '\0';
	r->seal[sizeof(r->seal) - 1] = r->msg[sizeof(r->msg) - 1] = '\0';
}

static void receive(struct service_link *l, void *message, int *fds, size_t n_fds)
{
	struct package_store_reply *r = message;
	struct package_store_call *c;

	(void)fds, (void)n_fds;
	close_texts(r);
	if (r->op == PACKAGE_STORE_AGAIN) {
		log_event(LOG_LEVEL_WARNING, "package_store_killed",
			  F_STR("what", "another has taken its place"));
		service_link_fail(l, UINT64_MAX, -EPIPE, KILLED);
	} else if ((c = (struct package_store_call *)service_link_take(l, r->seq))) {
		c->fn(c, r);
	} else if (r->op == PACKAGE_STORE_STORE && r->code == 0) { /* its asker went away */
		struct package_store_req q = { .op = PACKAGE_STORE_DROP };

		memcpy(q.key, r->key, PACKAGE_STORE_KEY_LEN);
		(void)service_link_ask(l, NULL, &q, NULL, 0, NULL);
	}
}

static const struct service package_store_service = {
	.name = "the package store",
	.version = PACKAGE_STORE_VERSION,
	.request_size = sizeof(struct package_store_req),
	.message_size = sizeof(struct package_store_reply),
	.seq_at = offsetof(struct package_store_reply, seq),
	.receive = receive,
	.fail = fail,
	.gone = gone,
};

_Static_assert(offsetof(struct package_store_req, seq) ==
			       offsetof(struct package_store_reply, seq) &&
		       sizeof(struct package_store_reply) <= SERVICE_MESSAGE_MAX,
	       "as service_link.h has them");

/* ---- before the jail ---------------------------------------------------------------------- */

static void identity(uid_t *uid, gid_t *gid)
{
	const struct passwd *pw = geteuid() == 0 ? getpwnam(PACKAGE_STORE_NAME) : NULL;

	*uid = geteuid() != 0 ? 0 : pw && pw->pw_uid ? pw->pw_uid : PACKAGE_STORE_ID;
	*gid = geteuid() != 0 ? 0 : pw && pw->pw_gid ? pw->pw_gid : PACKAGE_STORE_ID;
}

static int open_store(const char *state, uid_t uid, gid_t gid, struct err *e)
{
	_fd_ int fd = service_open_dir(state, "packages", e);

	if (fd >= 0 && uid && fchown(fd, uid, gid) < 0)
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

	service_link_init(&p->link, &package_store_service, -1);
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
	p->link.watch.fd = fd;
	return TAKE_FD(dir);
}

/* ---- in the jail -------------------------------------------------------------------------- */

int package_store_wait(struct package_store *p, struct package_store_req *q,
		       struct package_store_reply *ret)
{
	int r = service_link_wait(&p->link, q, -1, ret);

	if (r < 0)
		return r;
	close_texts(ret);
	return ret->code;
}

int package_store_start(struct package_store *p, struct loop *l, struct err *e)
{
	return service_link_start(&p->link, l, e);
}

int package_store_ask(struct package_store *p, struct package_store_call *c,
		      struct package_store_req *q, int fd)
{
	return service_link_ask(&p->link, c ? &c->call : NULL, q, &fd, fd >= 0 ? 1 : 0, NULL);
}

void package_store_forget(struct package_store *p, struct package_store_call *c)
{
	service_link_forget(&p->link, &c->call);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.c - Start the package store, send it requests, receive its replies.
 *
 * It has a user of its own (as root): "caisson-package-store" where there is one, otherwise an id
 * below the front's. The front passes it two descriptors and no path. The directory is root's, and
 * the package store has its group's rights: with the sticky bit it can make entries, and rename and
 * remove its own, but not the front's programs for cells beside them (tools.c), of which every
 * interpreter of a cell imports. An ordinary user's package store is that user.
 */
#include "front/packages/package_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "cell/power.h"
#include "client/program.h"
#include "front/support/log.h"

#define PACKAGE_STORE_NAME "caisson-package-store"
#define KILLED "the package store was killed"
#define PACKAGE_STORE_ID 0x6ffffffdu /* just below the front's own (jail.c) */
/* Cells enter it and do not list it: to an ordinary user's cell its user is the owner, too. */
#define MODE_OF_ROOT 01731
#define MODE_OF_USER 0311

/* ---- replies ------------------------------------------------------------------------------- */

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

/* The package store may have been taken over: end every text. */
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
	} else if (r->op == PACKAGE_STORE_STORE && r->code == 0) { /* nobody waits for it */
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

/* ---- before the jail ----------------------------------------------------------------------- */

int package_store_open(struct service_link *l, const char *state, struct err *e)
{
	char name[] = PACKAGE_STORE_NAME, uid[16], gid[16];
	char *argv[] = { name, uid, gid, NULL };
	struct spawn s = { .argv = argv, .n_fds = 1 };
	struct power_user user;

	service_link_init(l, &package_store_service, -1);
	if (power_user(PACKAGE_STORE_NAME, PACKAGE_STORE_ID, &user, e) < 0)
		return e->code;
	_fd_ int dir = service_open_dir(state, "packages", e);

	if (dir < 0)
		return dir;
	if ((user.uid && fchown(dir, 0, user.gid) < 0) ||
	    fchmod(dir, user.uid ? MODE_OF_ROOT : MODE_OF_USER) < 0)
		return err_set(e, -errno, "--state: give %s/packages to gid %u", state, user.gid);
	(void)snprintf(uid, sizeof(uid), "%u", user.uid);
	(void)snprintf(gid, sizeof(gid), "%u", user.gid);
	s.fds[0] = (struct spawn_fd){ dir, PACKAGE_STORE_DIR_FD };
	int fd = program_start(&s, PACKAGE_STORE_FD, NULL, e);

	if (fd < 0)
		return fd;
	l->watch.fd = fd;
	return TAKE_FD(dir);
}

/* ---- in the jail --------------------------------------------------------------------------- */

int package_store_wait(struct service_link *l, struct package_store_req *q,
		       struct package_store_reply *ret)
{
	int r = service_link_wait(l, q, -1, ret);

	if (r < 0)
		return r;
	close_texts(ret);
	return ret->code;
}

int package_store_ask(struct service_link *l, struct package_store_call *c,
		      struct package_store_req *q, int fd)
{
	return service_link_ask(l, c ? &c->call : NULL, q, &fd, fd >= 0 ? 1 : 0, NULL);
}

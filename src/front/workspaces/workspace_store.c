/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_store.c - Start the workspace store, send it requests, receive its replies.
 *
 * Its directory belongs to a user of its own (as root), whose id the warden knows: cells see the
 * files of that user as the agent's. The front passes it two descriptors and no path.
 */
#include "front/workspaces/workspace_store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
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

/* ---- replies ------------------------------------------------------------------------------- */

static void fail(struct service_call *call, int code, const char *why)
{
	struct workspace_store_call *c = (struct workspace_store_call *)call;
	struct workspace_store_reply r = { .code = code };
	int none = -1;

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	c->fn(c, &r, &none);
}

static void gone(struct service_link *l)
{
	log_event(LOG_LEVEL_ERROR, "workspace_store_gone",
		  F_STR("what", "no workspace can be used until the daemon is restarted"));
	service_link_fail(l, UINT64_MAX, -EPIPE, "the workspace store is gone");
}

static void again(struct workspace_store *s, uint32_t life)
{
	uint64_t asked = s->link.seq;

	log_event(LOG_LEVEL_WARNING, "workspace_store_killed",
		  F_STR("what", "another has taken its place"));
	if (s->again(s, life) < 0) {
		service_link_close(&s->link);
		gone(&s->link);
		return;
	}
	service_link_fail(&s->link, asked, -EPIPE, "the workspace store was killed: try again");
}

static void receive(struct service_link *l, void *message, int *fds, size_t n_fds)
{
	struct workspace_store_reply *r = message;
	struct workspace_store_call *c;
	int none = -1;

	r->key[sizeof(r->key) - 1] = r->tree[sizeof(r->tree) - 1] = r->msg[sizeof(r->msg) - 1] =
		'\0';
	if (r->op == WORKSPACE_STORE_AGAIN)
		again((struct workspace_store *)l, r->life);
	else if ((c = (struct workspace_store_call *)service_link_take(l, r->seq)))
		c->fn(c, r, n_fds ? &fds[0] : &none);
}

const struct service workspace_store_service = {
	.name = "the workspace store",
	.version = WORKSPACE_STORE_VERSION,
	.request_size = sizeof(struct workspace_store_req),
	.message_size = sizeof(struct workspace_store_reply),
	.seq_at = offsetof(struct workspace_store_reply, seq),
	.fds_max = 1,
	.loses_fds = true, /* a full table of descriptors fails one request, not all of them */
	.receive = receive,
	.fail = fail,
	.gone = gone,
};

_Static_assert(offsetof(struct workspace_store_req, seq) ==
			       offsetof(struct workspace_store_reply, seq) &&
		       sizeof(struct workspace_store_reply) <= SERVICE_MESSAGE_MAX,
	       "as service_link.h has them");

/* ---- before the jail ----------------------------------------------------------------------- */

static int open_dir(const char *state, uid_t uid, struct err *e)
{
	_fd_ int fd = service_open_dir(state, DIR_NAME, e);

	/* The volume mounter has to reach it, and may not override its mode. */
	if (fd >= 0 && uid && (fchown(fd, uid, uid) < 0 || fchmod(fd, 0711) < 0))
		return err_set(e, -errno, "--state: give %s/" DIR_NAME " to uid %u", state, uid);
	return TAKE_FD(fd);
}

int workspace_store_open(struct workspace_store *s, const char *state, struct err *e)
{
	const uid_t uid = geteuid() == 0 ? CELL_WORKSPACE_ID : 0;
	char name[] = WORKSPACE_STORE_NAME, id[16];
	char *argv[] = { name, id, id, NULL };
	struct spawn child = { .argv = argv, .n_fds = 2 };

	service_link_init(&s->link, &workspace_store_service, -1);
	_fd_ int dir = open_dir(state, uid, e);

	if (dir < 0)
		return dir;
	/* The file systems of workspaces: only root can mount any. */
	_fd_ int volumes = uid ? service_open_dir(state, VOLUMES_NAME, e) : -1;

	if (uid && volumes < 0)
		return volumes;
	(void)snprintf(id, sizeof(id), "%u", uid);
	child.fds[0] = (struct spawn_fd){ dir, WORKSPACE_STORE_DIR_FD };
	child.fds[1] = (struct spawn_fd){ volumes, VOLUMES_FD };
	int fd = program_start(&child, WORKSPACE_STORE_FD, NULL, e);

	if (fd < 0)
		return fd;
	s->link.watch.fd = fd;
	return 0;
}

/* ---- in the jail --------------------------------------------------------------------------- */

int workspace_store_wait(struct workspace_store *s, struct workspace_store_req *q, int fd,
			 struct workspace_store_reply *ret)
{
	int r = service_link_wait(&s->link, q, fd, ret);

	return r < 0 ? r : ret->code;
}

int workspace_store_ask(struct workspace_store *s, struct workspace_store_call *c,
			struct workspace_store_req *q, int fd)
{
	return service_link_ask(&s->link, c ? &c->call : NULL, q, &fd, fd >= 0 ? 1 : 0, NULL);
}

/* Requests to the dead worker may fill the socket: the next worker drops them quickly. */
int workspace_store_tell(struct workspace_store *s, struct workspace_store_req *q, int fd)
{
	struct pollfd room = { .fd = s->link.watch.fd, .events = POLLOUT };
	int r = workspace_store_ask(s, NULL, q, fd);

	for (int i = 0; r == -EAGAIN && i < TELL_TRIES; i++) {
		(void)poll(&room, 1, TELL_MS);
		r = workspace_store_ask(s, NULL, q, fd);
	}
	return r;
}

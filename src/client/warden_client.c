/* SPDX-License-Identifier: Apache-2.0 */
/* warden_client.c - Start a warden, and send it requests. */
#include "client/warden_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "client/program.h"

#define WARDEN_NAME "caisson-warden"

int warden_start(const char *state, struct warden_client *ret, struct err *e)
{
	char name[] = WARDEN_NAME, state_arg[4096];
	char *argv[] = { name, state_arg, NULL };
	struct spawn s = { .argv = argv };

	if ((size_t)snprintf(state_arg, sizeof(state_arg), "%s", state) >= sizeof(state_arg))
		return err_say(e, -ENAMETOOLONG, "--state: the path is too long");
	int fd = program_start(&s, WARDEN_FD, &ret->pid, e);

	if (fd < 0)
		return fd;
	ret->seq = 0;
	ret->fd = fd;
	return 0;
}

void warden_stop(struct warden_client *w)
{
	if (w->pid <= 0)
		return;
	w->fd = fd_close(w->fd);
	(void)TEMP_FAILURE_RETRY(waitpid(w->pid, NULL, 0));
	w->pid = 0;
}

/* One request, its reply, and at most one descriptor with it. */
static int ask(struct warden_client *w, struct warden_req *req, const int *fds, size_t n_fds,
	       struct warden_reply *reply, int *ret_fd, struct err *e)
{
	size_t got = 1;
	int fd = -1;

	req->version = WARDEN_VERSION;
	req->seq = ++w->seq;
	int r = fd_send(w->fd, req, sizeof(*req), fds, n_fds);

	if (r < 0)
		return err_set(e, r, "ask the warden");
	ssize_t n = fd_recv(w->fd, reply, sizeof(*reply), &fd, &got);

	if (n == 0)
		return err_say(e, -EPIPE, "the warden died; its cells died with it");
	if (n < 0)
		return err_set(e, (int)n, "receive from the warden");
	if (n != (ssize_t)sizeof(*reply) || reply->version != WARDEN_VERSION ||
	    reply->seq != req->seq) {
		fd_close(fd);
		return err_say(
			e, -EPROTO,
			"caisson and caisson-warden are of different versions; reinstall both");
	}
	reply->msg[sizeof(reply->msg) - 1] = '\0';
	if (reply->code < 0) {
		fd_close(fd);
		return err_say(e, reply->code, "%s", reply->msg);
	}
	if (ret_fd)
		*ret_fd = fd;
	else
		fd_close(fd);
	return 0;
}

static int ask_cell(struct warden_client *w, enum warden_op op, uint32_t cell,
		    struct warden_reply *reply, int *ret_fd, struct err *e)
{
	struct warden_req req;

	memset(&req, 0, sizeof(req));
	req.op = op;
	req.cell = cell;
	return ask(w, &req, NULL, 0, reply, ret_fd, e);
}

int warden_create(struct warden_client *w, const struct cell_spec *spec, const int *fds,
		  size_t n_fds, struct warden_cell *ret, struct err *e)
{
	struct warden_req req;
	struct warden_reply reply;
	int channel = -1;

	memset(&req, 0, sizeof(req));
	req.op = WARDEN_CREATE;
	req.spec = *spec;
	int r = ask(w, &req, fds, n_fds, &reply, &channel, e);

	if (r < 0)
		return r;
	if (channel < 0)
		return err_say(e, -EPROTO, "the warden sent no channel");
	*ret = (struct warden_cell){
		.handle = reply.cell,
		.channel = channel,
		.host_base = reply.host_base,
	};
	return 0;
}

int warden_evidence(struct warden_client *w, uint32_t cell, struct err *e)
{
	struct warden_reply reply;
	int fd = -1;
	int r = ask_cell(w, WARDEN_EVIDENCE, cell, &reply, &fd, e);

	return r < 0 ? r : fd;
}

int warden_destroy(struct warden_client *w, uint32_t cell, struct cell_usage *ret, struct err *e)
{
	struct warden_reply reply = { 0 };
	int r = ask_cell(w, WARDEN_DESTROY, cell, &reply, NULL, e);

	*ret = reply.usage;
	return r;
}

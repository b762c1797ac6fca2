/* SPDX-License-Identifier: Apache-2.0 */
/* image_opener_client.c - Start an image opener, and send it requests. */
#include "client/image_opener_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "client/program.h"

#define IMAGE_OPENER_NAME "caisson-image-opener"
#define ANSWER_S 10 /* a disk that sleeps; more is a fault */

int image_opener_start(const char *store, pid_t *ret_pid, struct err *e)
{
	/* Where the default store is depends on these two. */
	static const char *const names[] = { "XDG_DATA_HOME=", "HOME=", NULL };
	const struct timeval limit = { .tv_sec = ANSWER_S };
	char name[] = IMAGE_OPENER_NAME, store_arg[4096], *envp[ARRAY_SIZE(names)];
	char *argv[] = { name, store ? store_arg : NULL, NULL };
	struct spawn s = { .argv = argv, .envp = envp };

	if (store &&
	    (size_t)snprintf(store_arg, sizeof(store_arg), "%s", store) >= sizeof(store_arg))
		return err_say(e, -ENAMETOOLONG, "--image-store: the path is too long");
	spawn_pick_env(environ, names, envp, ARRAY_SIZE(envp));
	_fd_ int ours = program_start(&s, IMAGE_OPENER_FD, ret_pid, e);

	if (ours < 0)
		return ours;
	if (setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		return err_set(e, -errno, "start the image opener");
	return TAKE_FD(ours);
}

static int check(const struct loan *l, ssize_t n)
{
	const struct image_opener_reply *r = &l->reply;

	return n == (ssize_t)sizeof(*r) && r->version == IMAGE_OPENER_VERSION &&
	       (r->code < 0 ||
		(r->n_layers >= 1 && r->n_layers <= CELL_LAYERS_MAX &&
		 l->n_fds == 1 + (size_t)r->n_layers && r->text_len <= sizeof(r->text) &&
		 r->text_len > 0 && r->text[r->text_len - 1] == '\0'));
}

int image_opener_ask(int sock, const char *ref, const char *const *programs, struct loan *ret,
		     struct err *e)
{
	struct image_opener_req q = { .version = IMAGE_OPENER_VERSION };
	struct image_opener_reply *r = &ret->reply;

	ret->n_fds = 0;
	if ((size_t)snprintf(q.ref, sizeof(q.ref), "%s", ref) >= sizeof(q.ref))
		return err_say(e, -EINVAL, "the reference of an image has at most %zu characters",
			       sizeof(q.ref) - 1);
	for (; programs && *programs && q.n_programs < IMAGE_OPENER_PROGRAMS_MAX; programs++)
		(void)snprintf(q.programs[q.n_programs++], sizeof(q.programs[0]), "%s", *programs);
	int code = sock < 0 ? -EPIPE : fd_send(sock, &q, sizeof(q), NULL, 0);

	if (code < 0)
		return err_say(e, code, "caisson-image-opener, which opens images, has ended");
	ret->n_fds = ARRAY_SIZE(ret->fds);
	ssize_t n = fd_recv(sock, r, sizeof(*r), ret->fds, &ret->n_fds);

	if (n <= 0) {
		ret->n_fds = 0;
		return n == -EAGAIN ?
			       err_say(e, -ETIMEDOUT, "the store of images does not answer") :
			       err_say(e, -EPIPE,
				       "caisson-image-opener, which opens images, has ended");
	}
	r->msg[sizeof(r->msg) - 1] = r->ref[sizeof(r->ref) - 1] = '\0';
	r->digest[sizeof(r->digest) - 1] = '\0';
	if (!check(ret, n)) {
		loan_close(ret);
		return err_say(
			e, -EPROTO,
			"caisson and caisson-image-opener are of different versions; reinstall "
			"both");
	}
	if (r->code < 0) {
		loan_close(ret);
		return err_say(e, r->code, "%s", r->msg);
	}
	return 0;
}

void loan_close(struct loan *l)
{
	for (size_t i = 0; i < l->n_fds; i++)
		l->fds[i] = fd_close(l->fds[i]);
	l->n_fds = 0;
}

const char *loan_string(const struct loan *l, size_t *at)
{
	const char *s = l->reply.text + *at;

	if (*at >= l->reply.text_len)
		return NULL;
	*at += strlen(s) + 1; /* the last of them ends the text */
	return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* image_opener_client.c - Start an image opener, and ask it. */
#include "client/image_opener_client.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/program.h"

#define IMAGE_OPENER_NAME "caisson-image-opener"
#define ANSWER_S 10 /* a disk that sleeps; more is a fault */

/* Where the default store is depends on these two. */
static size_t environment(char **ret)
{
	static const char *const names[] = { "XDG_DATA_HOME=", "HOME=" };
	size_t n = 0;

	for (char **v = environ; *v; v++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (strncmp(*v, names[i], strlen(names[i])) == 0 && n < ARRAY_SIZE(names))
				ret[n++] = *v;
	ret[n] = NULL;
	return n;
}

static int spawn(const char *path, const char *store, int sock, pid_t *ret, struct err *e)
{
	char name[] = IMAGE_OPENER_NAME, store_arg[4096], *envp[3];
	char *argv[] = { name, store ? store_arg : NULL, NULL };
	posix_spawn_file_actions_t actions;

	if (store &&
	    (size_t)snprintf(store_arg, sizeof(store_arg), "%s", store) >= sizeof(store_arg))
		return err_say(e, -ENAMETOOLONG, "--image-store: the path is too long");
	(void)environment(envp);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, sock, IMAGE_OPENER_FD);
	(void)posix_spawn_file_actions_addclosefrom_np(&actions, IMAGE_OPENER_FD + 1);
	int r = posix_spawn(ret, path, &actions, NULL, argv, envp);

	(void)posix_spawn_file_actions_destroy(&actions);
	return r ? err_set(e, -r, "start %s", path) : 0;
}

int image_opener_start(const char *store, pid_t *ret_pid, struct err *e)
{
	const struct timeval limit = { .tv_sec = ANSWER_S };
	char path[4096];
	int pair[2];
	pid_t pid;
	int r = program_find(IMAGE_OPENER_NAME, path, sizeof(path), e);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	_fd_ int ours = pair[0];
	/* Another number, so that the copy loses close-on-exec. */
	_fd_ int theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, IMAGE_OPENER_FD + 1);

	fd_close(pair[1]);
	if (theirs < 0 || setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		return err_set(e, -errno, "start the image opener");
	r = spawn(path, store, theirs, &pid, e);
	if (r < 0)
		return r;
	if (ret_pid)
		*ret_pid = pid;
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
			"caisson and caisson-image-opener are of different versions; reinstall both");
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

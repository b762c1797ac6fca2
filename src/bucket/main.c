/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - caisson-bucket: the only one that can reach the operator's buckets.
 *
 * Theory of operation. The front reads strangers' bytes, so it has neither keys nor a way out. This
 * program has both, and little else: its own user, no capability, no file but its manifests, no
 * program (jail.c). It is asked by the front alone, on descriptor 3, and ends when that ends.
 * Content comes and goes on pipes.
 *
 * Each job is a process of its own, which does one thing after another and may wait: one that is
 * slow, or that a server's answer crashes, is nobody else's trouble. It ends when nobody reads its
 * answers any more.
 *
 * A front in its jail can start no other one. So what was started, in its jail, only makes the one
 * that works, and another when that is killed and its jobs with it. Their pipes end, which says
 * that they died; what was not begun is in the socket still, and is the next one's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/supervise.h"
#include "bucket/bucket.h"

#define EXIT_FAILED 125
#define FDS_MAX 3u
#define DEATHS_MAX 100u
#define AGAIN_MS 100u

static void say(int fd, struct bucket_reply *r)
{
	r->version = BUCKET_VERSION;
	(void)fd_write_all(fd, r, sizeof(*r));
}

static void refuse(int answer, int code, const char *why)
{
	struct bucket_reply r = { .say = BUCKET_DONE, .code = code };

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	say(answer, &r);
}

/* ---- a job --------------------------------------------------------------------------------- */

/* The child: until its end. */
static void work(const struct bucket_config *c, const struct bucket_req *q, int *fds)
{
	static struct job j;
	struct err e = { 0 };

	j = (struct job){ .q = q,
			  .answer = fds[0],
			  .fds = { fds[1], fds[2] },
			  .dir = BUCKET_DIR_FD,
			  .place = bucket_place(c, q->place) };
	j.client.site = c->site;
	j.client.creds = c->creds;
	j.client.ca = c->ca.len ? &c->ca : NULL;
	j.client.cancel_fd = j.answer;
	int r = j.place ? s3_client_open(&j.client, &e) :
			  err_say(&e, -ENOENT, "no place of this name is configured");

	if (r == 0)
		r = job_run(&j, &e);
	j.r.say = BUCKET_DONE;
	j.r.code = r < 0 ? r : 0;
	if (r < 0)
		(void)snprintf(j.r.msg, sizeof(j.r.msg), "%.479s", e.msg);
	say(j.answer, &j.r);
	_exit(r < 0);
}

static size_t live; /* jobs */

static void reap(void)
{
	while (live > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		live--;
}

static void begin(const struct bucket_config *c, struct bucket_req *q, int *fds)
{
	reap();
	if (live >= BUCKET_JOBS_MAX) {
		refuse(fds[0], -EBUSY, "too many transfers at once; try again");
		return;
	}
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		/* Nobody would count it any more. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		(void)close(BUCKET_FD);
		work(c, q, fds);
	}
	if (pid < 0)
		refuse(fds[0], -errno, "no process can be started");
	else
		live++;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Texts of a stranger have an end. */
static void tame(struct bucket_req *q)
{
	q->place[sizeof(q->place) - 1] = q->work[sizeof(q->work) - 1] = '\0';
	q->key[sizeof(q->key) - 1] = q->type[sizeof(q->type) - 1] = '\0';
}

/* False: the front is gone, or makes no sense. */
static bool receive(const struct bucket_config *c)
{
	static struct bucket_req q;
	int fds[FDS_MAX] = { -1, -1, -1 };
	size_t n_fds = FDS_MAX;
	ssize_t n = fd_recv(BUCKET_FD, &q, sizeof(q), fds, &n_fds);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	bool good = n == (ssize_t)sizeof(q) && q.version == BUCKET_VERSION && n_fds > 0;

	if (good) {
		tame(&q);
		begin(c, &q, fds);
	}
	for (size_t i = 0; n > 0 && i < n_fds; i++)
		fd_close(fds[i]);
	return good;
}

static int serve(const struct bucket_config *c)
{
	struct pollfd p = { .fd = BUCKET_FD, .events = POLLIN };

	for (;;) {
		int n = poll(&p, 1, live > 0 ? 1000 : -1);

		if (n < 0 && errno != EINTR)
			return EXIT_FAILED;
		reap();
		if (n > 0 && !receive(c))
			return 0;
	}
}

/* ---- one after the other ------------------------------------------------------------------- */

static int work_for_life(void *arg, uint32_t life)
{
	(void)life;
	return serve(arg);
}

static int supervise_all(struct bucket_config *c)
{
	const struct bucket_reply ready = { .version = BUCKET_VERSION, .say = BUCKET_READY };
	const struct supervise workers = { .work = work_for_life,
					   .arg = c,
					   .name = "caisson-bucket",
					   .lives_max = DEATHS_MAX,
					   .failed = EXIT_FAILED,
					   .bury_all = true,
					   .pause_ms = AGAIN_MS };

	if (fd_send(BUCKET_FD, &ready, sizeof(ready), NULL, 0) < 0)
		return EXIT_FAILED;
	return supervise(&workers);
}

int main(int argc, char **argv)
{
	static struct bucket_config c;
	struct stat st;
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group; the front says when */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)umask(077);
	if (fstat(BUCKET_DIR_FD, &st) < 0 || fcntl(BUCKET_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		(void)fprintf(stderr, "caisson-bucket: started by caisson serve, not by hand\n");
		return 2;
	}
	int r = bucket_config_parse(argc, argv, &c, &e);

	if (r == 0)
		r = curl_global_init(CURL_GLOBAL_DEFAULT) ?
			    err_say(&e, -ENOMEM, "libcurl does not start") :
			    bucket_jail(&e);
	if (r < 0) {
		(void)fprintf(stderr, "caisson-bucket: %s\n", e.msg);
		return EXIT_FAILED;
	}
	return supervise_all(&c);
}

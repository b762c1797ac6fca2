/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - The table of requests, reports of progress, and the job that puts one object. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "bucket/bucket.h"
#include "bucket/manifest.h"
#include "s3/object.h"

#define TELL_NS (CLOCK_NS_PER_S / 4)

void job_moved(struct job *j)
{
	struct pollfd p = { .fd = j->answer, .events = POLLOUT };
	uint64_t now = clock_now_ns();

	/* A front that does not read now gets a later report: never wait for it. */
	if (now - j->told_ns < TELL_NS || poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return;
	j->told_ns = now;
	j->r.version = BUCKET_VERSION;
	j->r.say = BUCKET_MOVED;
	(void)fd_write_all(j->answer, &j->r, sizeof(j->r));
}

/* ---- one object ---------------------------------------------------------------------------- */

static int from_pipe(void *arg, char *data, size_t len)
{
	const struct job *j = arg;

	while (len > 0) {
		ssize_t n = read(j->fds[0], data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA; /* it became shorter, or was given up */
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static void put_moved(void *arg, uint64_t bytes)
{
	struct job *j = arg;

	j->r.bytes = bytes;
	job_moved(j);
}

static int job_put(struct job *j, struct err *e)
{
	_buf_ struct buf key = BUF_INIT(S3_KEY_MAX), link = BUF_INIT(sizeof(j->r.link) - 1);
	const char *problem = s3_key_problem(j->q->key, strlen(j->q->key));
	struct s3_new n = { .bucket = j->place->bucket,
			    .size = j->q->size,
			    .type = j->q->type[0] ? j->q->type : NULL };

	if (problem)
		return err_say(e, -EINVAL, "the name %s", problem);
	if (buf_printf(&key, "%s%s", j->place->prefix, j->q->key) < 0)
		return err_say(e, -EINVAL, "the name is longer than 1024 bytes");
	if (n.type && strpbrk(n.type, "\r\n"))
		return err_say(e, -EINVAL, "the type is not valid in a header");
	n.key = buf_str(&key);
	j->r.total_bytes = n.size;
	int r = s3_put(&j->client, &n, from_pipe, j, put_moved, e);

	if (r < 0)
		return r;
	j->r.bytes = n.size;
	if (!j->q->expires)
		return 0;
	r = s3_link(&j->client, n.bucket, n.key, j->q->expires, &link);
	if (r < 0)
		return err_set(e, r, "make a link");
	memcpy(j->r.link, buf_str(&link), link.len + 1);
	return 0;
}

/* ---- the table------------------------------------------------------------------------------ */

int job_run(struct job *j, struct err *e)
{
	static const struct {
		int (*fn)(struct job *j, struct err *e);
		int fds;
		bool work;
	} ops[BUCKET_OP_MAX_] = {
		[BUCKET_PUT] = { job_put, 1, false },
		[BUCKET_LOOK] = { job_look, 0, true },
		[BUCKET_PULL] = { job_pull, 1, true },
		[BUCKET_PUSH] = { job_push, 2, true },
		[BUCKET_KEEP] = { manifest_keep, 0, true },
		[BUCKET_FORGET] = { manifest_forget, 0, true },
	};
	uint32_t op = j->q->op;

	if (op >= BUCKET_OP_MAX_ || !ops[op].fn)
		return err_say(e, -EINVAL, "unknown request");
	for (int i = 0; i < ops[op].fds; i++)
		if (j->fds[i] < 0)
			return err_say(e, -EBADF, "a descriptor is missing");
	if (ops[op].work && (strlen(j->q->work) != BUCKET_WORK_LEN ||
			     strspn(j->q->work, "0123456789abcdef") != BUCKET_WORK_LEN))
		return err_say(e, -EINVAL, "invalid key of a workspace");
	return ops[op].fn(j, e);
}

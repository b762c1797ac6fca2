/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - One call reads the file in the cell, one job puts it into the bucket; a pipe and a
 * buffer connect them. */
#include "front/buckets/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "front/files/artifact.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/workspaces/workspaces.h"

#define PENDING_MAX (2u << 20)
#define PENDING_HIGH (256u << 10)

static void close_pipe(struct publish *p)
{
	loop_del(&p->out);
	p->out.fd = fd_close(p->out.fd);
}

/* Nothing of it is under way any more. Idempotent. */
static void stop(struct publish *p)
{
	p->over = true;
	loop_undefer(p->buckets->loop, &p->end);
	file_call_release(&p->call);
	bucket_stop(&p->job);
	if (p->out.fd >= 0)
		close_pipe(p);
	buf_free(&p->pending);
}

static void conclude(struct deferred *d)
{
	struct publish *p = d->arg;

	stop(p);
	p->done(p);
}

static void finish(struct publish *p, int code, const char *why)
{
	if (p->over)
		return;
	p->over = true;
	p->code = code;
	(void)snprintf(p->why, sizeof(p->why), "%s", why);
	loop_defer(p->buckets->loop, &p->end); /* the caller may be the call that is stopped */
}

/* ---- into the pipe ------------------------------------------------------------------------- */

static void flush(struct publish *p)
{
	while (p->out.fd >= 0 && p->pending.len > 0) {
		ssize_t n = write(p->out.fd, p->pending.data, p->pending.len);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* the job has ended, and reports the reason */
			close_pipe(p);
			return;
		}
		buf_consume(&p->pending, (size_t)n);
	}
	if (p->out.fd >= 0 && p->pending.len == 0 && p->read)
		close_pipe(p);
	if (p->out.fd < 0)
		return;
	loop_mod(&p->out, p->pending.len > 0 ? EPOLLOUT : 0);
	if (p->pending.len < PENDING_HIGH)
		file_call_resume(&p->call);
}

static void on_writable(struct watch *w, uint32_t events)
{
	struct publish *p = w->arg;

	if (events & EPOLLERR)
		close_pipe(p);
	else
		flush(p);
}

static void on_put(struct bucket_job *j, const struct bucket_reply *r)
{
	struct publish *p = j->arg;

	memcpy(p->link, r->link, sizeof(p->link));
	finish(p, r->code < 0 ? r->code : 0, r->msg);
}

/* ---- out of the cell ----------------------------------------------------------------------- */

/* The file is open: its size is promised to the bucket. */
static void on_stat(struct file_call *c, const struct files_stat *st, struct files_text name,
		    struct files_text target)
{
	struct publish *p = c->owner;
	int pair[2];

	(void)name;
	(void)target;
	if (p->job.all || p->over)
		return;
	p->q.size = p->left = st->size;
	if (pipe2(pair, O_CLOEXEC) < 0) {
		finish(p, -errno, "no pipe can be made");
		return;
	}
	p->out = (struct watch){ .fd = pair[1], .fn = on_writable, .arg = p };
	p->job.done = on_put;
	p->job.arg = p;
	if (fcntl(p->out.fd, F_SETFL, O_NONBLOCK) < 0 ||
	    loop_add(p->buckets->loop, &p->out, NULL) < 0) {
		fd_close(pair[0]);
		finish(p, -ENOMEM, "the pipe cannot be watched");
	} else if (bucket_ask(p->buckets, &p->job, &p->q, pair, 1) < 0) {
		finish(p, -EPIPE, "caisson-bucket is gone, so no bucket can be reached");
	}
}

static void on_data(struct file_call *c, const char *data, size_t len)
{
	struct publish *p = c->owner;
	size_t n = len < p->left ? len : (size_t)p->left;

	p->left -= n;
	if (p->over || p->out.fd < 0)
		return;
	if (buf_append(&p->pending, data, n) < 0)
		finish(p, -ENOMEM, "the daemon is out of memory");
	else
		flush(p);
}

static bool is_congested(struct file_call *c)
{
	const struct publish *p = c->owner;

	return p->out.fd >= 0 && p->pending.len >= PENDING_HIGH;
}

static void on_read(struct file_call *c)
{
	struct publish *p = c->owner;

	p->read = true;
	if (c->refusal.kind)
		finish(p, -EIO, c->refusal.message);
	else
		flush(p);
}

static const struct file_call_ops read_ops = {
	.stat = on_stat,
	.data = on_data,
	.congested = is_congested,
	.done = on_read,
};

/* ---- life ---------------------------------------------------------------------------------- */

/* Where it will be: as artifacts/OWNER/SANDBOX/PATH. */
static int set_key(struct publish *p, const struct sandbox *s, const char *path)
{
	int n = snprintf(p->q.key, sizeof(p->q.key), "artifacts/%s/%s/%s", s->owner, s->name, path);

	return n < 0 || (size_t)n >= sizeof(p->q.key) ? -ENAMETOOLONG : 0;
}

struct publish *publish_new(struct buckets *buckets, struct sandbox *s, const char *path,
			    void (*done)(struct publish *p), void *arg)
{
	struct publish *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->buckets = buckets;
	p->done = done;
	p->arg = arg;
	p->end = (struct deferred){ .fn = conclude, .arg = p };
	p->out.fd = -1;
	buf_init(&p->pending, PENDING_MAX);
	p->q.op = BUCKET_PUT;
	p->q.expires = (uint32_t)(buckets->daemon->config.s3_link_ms / 1000);
	memcpy(p->q.place, BUCKETS_ARTIFACTS, sizeof(BUCKETS_ARTIFACTS));
	(void)snprintf(p->q.type, sizeof(p->q.type), "%.127s", mime_of(path));
	p->call = (struct file_call){ .sandboxes = buckets->workspaces->sandboxes,
				      .owner = p,
				      .ops = &read_ops };
	p->call.q.op = FILES_READ;
	p->call.q.length = UINT64_MAX;
	if (set_key(p, s, path) < 0 || strlen(path) >= sizeof(p->call.path)) {
		finish(p, -ENAMETOOLONG, "its name is too long for a bucket");
		return p;
	}
	memcpy(p->call.path, path, strlen(path) + 1);
	file_call_run(&p->call, s);
	return p;
}

static void reap(struct deferred *d)
{
	free(d->arg);
}

void publish_free(struct publish *p)
{
	if (!p)
		return;
	stop(p);
	/* Not before the end of the round: the caller may be its own callback. */
	p->end = (struct deferred){ .fn = reap, .arg = p };
	loop_defer(p->buckets->loop, &p->end);
}

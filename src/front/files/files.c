/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - The life of one file call, event by event.
 *
 * A call ends with the worker's last frame. A worker that ends without one was ended by something
 * in its sandbox: code there may signal it, or memory may run out. Nothing more is known about
 * that.
 *
 * Files are in the cell's memory, and the Linux kernel ends processes of the cell when that is used
 * up. So content that does not fit is refused, before any of it is taken if its size is known: the
 * worker compares it with the room on the file system, and with the room in memory that the front
 * has read. Both may change while content comes, so the front looks at the memory again and again.
 */
#include "front/files/files.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "cell/spec.h"
#include "client/result.h"
#include "front/sandbox/sandboxes.h"

#define SILENCE_NS (30 * CLOCK_NS_PER_S)
#define INPUT_MAX (17u << 20) /* all that one call of write_file (MCP) gives, with its heads */
#define READ_BYTES 65536u
#define ROUNDS 4u
#define RETRY_S 1u
#define SMALL_BYTES (64u << 10)
#define LOOK_BYTES (1u << 20) /* of content, between two looks at the cell's memory */

static struct file_call *of_job(struct cell_command *job)
{
	return (struct file_call *)((char *)job - offsetof(struct file_call, job));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void close_watch(struct watch *w)
{
	loop_del(w);
	w->fd = fd_close(w->fd);
}

static void let_go(struct file_call *c)
{
	c->over = true;
	timer_cancel(&c->timer);
	close_watch(&c->in);
	close_watch(&c->out);
	if (c->cell)
		cell_forget(c->cell, &c->job);
	c->cell = NULL;
	buf_free(&c->input);
	if (!c->feeding)
		files_parser_free(&c->parser);
	sandbox_leave(&c->entry);
}

static void done(struct file_call *c)
{
	if (c->over)
		return;
	let_go(c);
	c->ops->done(c);
}

static void refuse(struct file_call *c, enum refusal_kind kind, const char *code,
		   unsigned int retry_after_s, const char *text)
{
	(void)refusal_set(&c->refusal, kind, code, NULL, NULL, "%s", text);
	c->refusal.retry_after_s = retry_after_s;
	done(c);
}

/* A write removes its temporary file when its pipe ends, so it is not killed; other calls are. */
static void end_worker(struct file_call *c)
{
	if (c->cell && c->job.id && c->q.op != FILES_WRITE)
		cell_signal(c->cell, &c->job, INIT_TARGET_COMMAND, SIGKILL);
}

void file_call_release(struct file_call *c)
{
	if (!c->sandboxes || c->over)
		return;
	end_worker(c);
	let_go(c);
}

static void died(struct file_call *c)
{
	bool killed = c->exited && WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL;

	if (killed && c->cell && gauges_oom(&c->cell->gauges) > c->oom_kills) {
		(void)refusal_set(&c->refusal, REFUSAL_UNAVAILABLE, "file_call_ended", NULL,
				  "end processes, delete files, or make a sandbox with more "
				  "memory_mib",
				  "the call was killed in the sandbox: its memory is full");
		c->refusal.retry_after_s = RETRY_S;
		done(c);
		return;
	}
	refuse(c, REFUSAL_UNAVAILABLE, "file_call_ended", RETRY_S,
	       killed ? "the call was killed by code in the sandbox" :
			"the call was ended by something in the sandbox");
}

static void broke_protocol(struct file_call *c)
{
	end_worker(c);
	refuse(c, REFUSAL_BAD_ANSWER, "file_call_ended", 0,
	       "the worker in the sandbox said what makes no sense");
}

/* ---- frames of the worker ------------------------------------------------------------------ */

static int on_stat(void *arg, const struct files_stat *st, struct files_text name,
		   struct files_text target)
{
	struct file_call *c = arg;

	if (c->ops->stat)
		c->ops->stat(c, st, name, target);
	return c->over ? -ECANCELED : 0;
}

static int on_data(void *arg, const char *data, size_t len)
{
	struct file_call *c = arg;

	if (c->ops->data)
		c->ops->data(c, data, len);
	return c->over ? -ECANCELED : 0;
}

static int on_event(void *arg, const struct files_event *ev, struct files_text name,
		    struct files_text from)
{
	struct file_call *c = arg;

	if (c->ops->event)
		c->ops->event(c, ev, name, from);
	return c->over ? -ECANCELED : 0;
}

static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	struct file_call *c = arg;

	c->ended = true;
	c->end = *end;
	if (end->error)
		file_error(end->error, where, &c->refusal);
	if (c->ops->feed && c->cell && (end->error == ENOSPC || end->error == ENOMEM))
		file_no_room(end->error, end, c->q.length == FILES_TO_END ? 0 : c->q.length,
			     c->q.limit, &c->cell->limits, &c->refusal);
	if (end->error == ENOENT && !(c->q.flags & FILES_PARENTS) &&
	    (c->q.op == FILES_WRITE || c->q.op == FILES_MKDIR || c->q.op == FILES_TAR_IN))
		c->refusal.hint = "parents=true makes the missing directories above it";
	if (end->error && c->q.op == FILES_MOVE)
		c->refusal.field = where.len == strlen(c->to) &&
						   memcmp(where.data, c->to, where.len) == 0 ?
					   "to" :
					   "from";
	return 0;
}

/* One read. 1: there may be more; 0: not now, or it is over. */
static int take(struct file_call *c)
{
	static char chunk[READ_BYTES]; /* there is one thread, and no pointer into it is kept */
	static const struct files_sink sink = { on_stat, on_data, on_event, on_end };
	ssize_t n = foreign_read(c->out.fd, chunk, sizeof(chunk), &c->cell->stalled_ns);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		close_watch(&c->out);
		if (c->exited)
			died(c);
		return 0;
	}
	c->moved_ns = c->sandboxes->loop->now_ns;
	c->feeding = true;
	int r = files_feed(&c->parser, &sink, c, chunk, (size_t)n);

	c->feeding = false;
	if (c->over) /* a callback has released it */
		files_parser_free(&c->parser);
	else if (r < 0)
		broke_protocol(c);
	else if (c->ended)
		done(c);
	return c->over ? 0 : 1;
}

static void on_output(struct watch *w, uint32_t events)
{
	struct file_call *c = w->arg;

	(void)events;
	for (unsigned int i = 0; i < ROUNDS && take(c) == 1; i++)
		if (c->ops->congested && c->ops->congested(c)) {
			/* Removed, and not only set to no events: the loop would report the end of
			 * the pipe again and again. */
			c->paused = true;
			loop_del(&c->out);
			return;
		}
}

void file_call_resume(struct file_call *c)
{
	if (!c->paused || c->over)
		return;
	c->paused = false;
	c->moved_ns = c->sandboxes->loop->now_ns;
	if (loop_add(c->sandboxes->loop, &c->out, NULL) < 0) {
		end_worker(c);
		refuse(c, REFUSAL_UNAVAILABLE, "sandbox_failed", RETRY_S,
		       "the pipe could not be watched");
	}
}

/* ---- content for the worker ---------------------------------------------------------------- */

static void flush(struct file_call *c)
{
	size_t at = 0;

	while (c->in.fd >= 0 && at < c->input.len) {
		ssize_t n = foreign_write(c->in.fd, c->input.data + at, c->input.len - at,
					  &c->cell->stalled_ns);

		if (n == -EAGAIN)
			break;
		if (n < 0) { /* it takes no more; its last frame has the reason */
			close_watch(&c->in);
			break;
		}
		at += (size_t)n;
		c->moved_ns = c->sandboxes->loop->now_ns;
	}
	if (c->in.fd < 0) {
		if (c->started)
			buf_free(&c->input);
		return;
	}
	buf_consume(&c->input, at);
	if (c->input.len == 0 && c->input_end)
		close_watch(&c->in);
	else
		loop_mod(&c->in, c->input.len > 0 ? EPOLLOUT : 0);
}

bool file_call_wants(const struct file_call *c)
{
	return !c->over && c->in.fd >= 0 && c->in.loop && !c->input_end && c->input.len == 0;
}

static void put(struct file_call *c, const void *data, size_t len)
{
	struct files_frame head = files_head(len);

	(void)buf_append(&c->input, &head, sizeof(head));
	(void)buf_append(&c->input, data, len);
}

/* Whether the cell's memory still takes content. False: refused, and the worker undoes its part. */
static bool has_room(struct file_call *c)
{
	uint64_t needed = c->q.length == FILES_TO_END ? 0 : c->q.length, room;

	if (!c->cell || c->given - c->looked < LOOK_BYTES)
		return true;
	c->looked = c->given;
	if (!gauges_room(&c->cell->gauges, c->cell->limits.memory_bytes, &room) || room > 0)
		return true;
	/* The room at the beginning, unless that was enough, and something else has taken it. */
	room = needed && needed <= c->q.limit ? 0 : c->q.limit;
	file_error(ENOMEM, (struct files_text){ .data = "" }, &c->refusal);
	file_no_room(ENOMEM, NULL, needed, room, &c->cell->limits, &c->refusal);
	done(c);
	return false;
}

void file_call_give(struct file_call *c, const void *data, size_t len)
{
	if (c->over || (c->started && c->in.fd < 0))
		return;
	c->given += len;
	if (!has_room(c))
		return;
	for (size_t n; len > 0; data = (const char *)data + n, len -= n) {
		n = len < FILES_FRAME_MAX ? len : FILES_FRAME_MAX;
		put(c, data, n);
	}
	if (c->input.err) { /* a part of the content must not look like all of it */
		close_watch(&c->in);
		refuse(c, REFUSAL_UNAVAILABLE, "out_of_memory", RETRY_S,
		       "the daemon is out of memory");
		return;
	}
	flush(c);
}

void file_call_finish(struct file_call *c)
{
	if (c->over || (c->started && c->in.fd < 0) || c->input_end)
		return;
	put(c, "", 0);
	c->input_end = true;
	flush(c);
}

static void on_input(struct watch *w, uint32_t events)
{
	struct file_call *c = w->arg;

	if (c->input.len == 0 && events & EPOLLERR) {
		close_watch(w); /* it has ended */
		return;
	}
	flush(c);
	if (file_call_wants(c))
		c->ops->feed(c);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void on_timer(struct timer *t)
{
	struct file_call *c = t->arg;
	uint64_t now = c->sandboxes->loop->now_ns;
	bool ours = c->paused || file_call_wants(c); /* the worker waits for us */

	if (ours)
		c->moved_ns = now;
	if (now < c->moved_ns + SILENCE_NS) {
		timer_set(c->sandboxes->loop, &c->timer, c->moved_ns + SILENCE_NS);
		return;
	}
	if (c->cell && c->job.id)
		cell_signal(c->cell, &c->job, INIT_TARGET_COMMAND, SIGKILL);
	refuse(c, REFUSAL_TIMEOUT, "file_call_timeout", 0,
	       "the call did not get on in the sandbox");
}

/* ---- messages of pid 1 --------------------------------------------------------------------- */

static int watch_pipe(struct file_call *c, struct watch *w, int *fd, uint32_t events,
		      void (*fn)(struct watch *w, uint32_t events))
{
	*w = (struct watch){ .fd = TAKE_FD(*fd), .events = events, .fn = fn, .arg = c };
	return loop_add(c->sandboxes->loop, w, NULL);
}

static void on_started(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct file_call *c = of_job(job);

	(void)pid;
	c->moved_ns = c->sandboxes->loop->now_ns;
	if (n_fds == 0) /* it was killed before it had made them: its end is reported, too */
		return;
	if (n_fds != 2 || watch_pipe(c, &c->out, &fds[1], EPOLLIN, on_output) < 0 ||
	    (c->ops->feed && watch_pipe(c, &c->in, &fds[0], 0, on_input) < 0)) {
		end_worker(c);
		refuse(c, REFUSAL_UNAVAILABLE, "sandbox_failed", RETRY_S,
		       "the pipes could not be watched");
		return;
	}
	c->started = true;
	if (c->ops->feed)
		flush(c);
	if (file_call_wants(c))
		c->ops->feed(c);
}

static void on_failed(struct cell_command *job, const struct init_failed *f)
{
	struct file_call *c = of_job(job);
	char text[160];

	if (f->stage == INIT_STAGE_FORK && f->error == EAGAIN) {
		refuse(c, REFUSAL_UNAVAILABLE, "process_limit", RETRY_S,
		       "the sandbox has as many processes as its pids allow: none is left for the call");
	} else if (f->stage == INIT_STAGE_REQUEST && f->error == EAGAIN) {
		refuse(c, REFUSAL_TOO_MANY, "busy", RETRY_S,
		       "too much runs in this sandbox already");
	} else if (f->stage == INIT_STAGE_REQUEST || f->stage == INIT_STAGE_CWD) {
		file_error(f->error, (struct files_text){ .data = "" }, &c->refusal);
		done(c);
	} else {
		(void)snprintf(text, sizeof(text), "the call could not be started: %s",
			       strerror(f->error));
		refuse(c, REFUSAL_UNAVAILABLE, "sandbox_failed", RETRY_S, text);
	}
}

static void on_exited(struct cell_command *job, const struct init_exited *x)
{
	struct file_call *c = of_job(job);

	c->exited = true;
	c->status = x->status;
	if (c->out.fd < 0) /* nothing more can come */
		died(c);
}

/* ---- the sandbox --------------------------------------------------------------------------- */

static void on_in(struct entry *en, struct cell *r)
{
	struct file_call *c = en->arg;
	struct err e = { 0 };

	c->cell = r;
	c->job = (struct cell_command){ .started = on_started,
					.failed = on_failed,
					.exited = on_exited };
	c->oom_kills = gauges_oom(&r->gauges);
	c->q.path = c->path;
	c->q.to = c->to;
	c->q.uid = CELL_UID;
	c->q.gid = CELL_GID;
	if (c->ops->feed) {
		uint64_t room;

		/* A small file always fits into the part of memory that is kept free. */
		if (gauges_room(&r->gauges, r->limits.memory_bytes, &room))
			c->q.limit = room > SMALL_BYTES ? room : SMALL_BYTES;
	}
	if (cell_files(r, &c->job, &c->q, &e) < 0) {
		refuse(c, REFUSAL_UNAVAILABLE, "sandbox_failed", RETRY_S, e.msg);
		return;
	}
	c->moved_ns = c->sandboxes->loop->now_ns;
	if (!c->patient)
		timer_set(c->sandboxes->loop, &c->timer, c->moved_ns + SILENCE_NS);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	struct file_call *c = en->arg;

	c->refusal = *why;
	done(c);
}

static void on_gone(struct entry *en, const struct cell_usage *u)
{
	struct file_call *c = en->arg;
	struct refusal *why = &c->refusal;

	if (c->cell)
		cell_forget(c->cell, &c->job);
	c->cell = NULL;
	(void)refusal_set(why, REFUSAL_CONFLICT, "sandbox_ended", NULL, NULL,
			  "the sandbox's cell ended before the call did");
	if (u->end != CELL_END_CLIENT) {
		(void)snprintf(why->message, sizeof(why->message),
			       "the sandbox's cell ended before the call did (%s): its files, "
			       "processes and variables are gone",
			       result_end_name(u->end));
		why->lost_by = result_end_name(u->end);
		why->epoch = c->sandbox->epoch;
	}
	if (u->end == CELL_END_MEMORY)
		why->hint = "make a sandbox with more memory_mib";
	done(c);
}

void file_call_run(struct file_call *c, struct sandbox *s)
{
	c->sandboxes = s->sandboxes;
	c->sandbox = s;
	c->in.fd = c->out.fd = -1;
	buf_init(&c->input, INPUT_MAX);
	c->timer.arg = c;
	c->timer.fn = on_timer;
	c->entry = (struct entry){ .in = on_in, .refused = on_refused, .gone = on_gone, .arg = c };
	sandbox_enter(s, &c->entry);
}

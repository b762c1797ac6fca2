/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - The start of a kernel, and its end.
 *
 * A warm start, for the image `host`: the warden makes the kernel's pipes and lets the zygote fork
 * into the cell; the kernel reports on a socket of its own that it is sealed, and its pidfd is
 * readable when it has ended. A cold start: pid 1 of the cell makes the pipes, starts the
 * interpreter with the driver, and waits for it. If a warm start fails for any reason, a cold one
 * follows: no request fails because a zygote died.
 */
#include "front/cell/kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "client/init_client.h"
#include "front/cell/cell.h"
#include "front/cell/cells.h"
#include "front/cell/command_line.h"
#include "front/cell/image_use.h"
#include "front/cell/language.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "wire/keeper.h"
#include "wire/zygote.h"

#define KERNEL_START_NS (60 * CLOCK_NS_PER_S)
#define WARM_NS (3 * CLOCK_NS_PER_S)
#define CLOSED_NS (200 * CLOCK_NS_PER_MS)
#define STATUS_AGAIN_NS (10 * CLOCK_NS_PER_MS)

/* ---- messages of the kernel ---------------------------------------------------------------- */

static void on_message(struct kernel_pipes *k, const char *type, json_t *m)
{
	struct kernel *s = k->owner;
	struct cell *r = s->cell;

	if (s->settling) {
		kernel_settle_message(s, type, m);
		return;
	}
	if (strcmp(type, "ready") != 0) {
		if (r->ops->message)
			r->ops->message(r, s, type, m);
		return;
	}
	if (s->state != KERNEL_STARTING)
		return; /* a second "ready" has no effect */
	json_int_t pid = json_integer_value(json_object_get(m, "pid"));
	const char *version = json_string_value(json_object_get(m, "version"));

	if (version) /* only for display: code of the image reports it */
		(void)snprintf(r->image->versions[s->language->id], sizeof(r->image->versions[0]),
			       "%.31s", version);
	s->pid = pid > 1 && pid < 1 << 22 ? (int)pid : 0;
	s->state = KERNEL_IDLE;
	kernel_keep(s);
	timer_cancel(&r->start_timer);
	metric_add(M_KERNELS_STARTED, 1);
	metric_observe(H_KERNEL_START, clock_now_ns() - s->started_ns);
	if (r->want_python) {
		r->want_python = false;
		r->ops->ready(r);
	} else {
		r->ops->kernel_ready(r, s);
	}
}

static void on_output(struct kernel_pipes *k, enum kernel_stream stream, const char *data,
		      size_t len)
{
	struct kernel *s = k->owner;

	if (s->cell->ops->output)
		s->cell->ops->output(s->cell, s, stream, data, len);
}

static void ask_status(struct kernel *s);

static void on_closed_late(struct timer *t)
{
	struct kernel *s = t->arg;

	s->why = "the kernel closed its channel";
	cell_kill_all(s->cell);
	/* The report of its end may have gone to the former front. */
	if (s->joined)
		kernel_ended(s, SIGKILL);
	else if (s->pidfd.fd >= 0)
		ask_status(s); /* a thread that is traced may hold that report up (warden/reap.c) */
}

/*
 * The kernel broke the protocol, or closed its channel. It is killed, and the report of its end
 * follows. A closed channel mostly means that the process just died: then its exit status is the
 * answer.
 */
static void on_broken(struct kernel_pipes *k, const char *why, bool closed)
{
	struct kernel *s = k->owner;
	struct loop *l = s->cell->cells->loop;

	if (closed) {
		s->closed.fn = on_closed_late;
		s->closed.arg = s;
		timer_after(l, &s->closed, CLOSED_NS);
		return;
	}
	s->why = why;
	log_event(LOG_LEVEL_INFO, "kernel_broken", F_STR("language", s->language->name),
		  F_STR("why", why), F_STR("state", s->state == KERNEL_BUSY ? "busy" : "idle"));
	cell_kill_all(s->cell);
}

static void on_drained(struct kernel_pipes *k)
{
	struct kernel *s = k->owner;

	if (s->cell->ops->drained)
		s->cell->ops->drained(s->cell, s);
}

static const struct kernel_pipes_ops kernel_ops = {
	.message = on_message, .output = on_output, .broken = on_broken, .drained = on_drained
};

/* ---- the end ------------------------------------------------------------------------------- */

void kernel_init(struct kernel *s, struct cell *r, const struct language *l)
{
	*s = (struct kernel){ .cell = r, .language = l };
	s->hello.fd = s->pidfd.fd = -1;
	for (size_t i = 0; i < KERNEL_FDS; i++)
		s->ends[i] = -1;
}

/* Close the descriptors that the warden sent for a warm start, which is complete or has failed. */
static void drop_warm(struct kernel *s)
{
	timer_cancel(&s->warm);
	loop_del(&s->hello);
	s->hello.fd = fd_close(s->hello.fd);
	for (size_t i = 0; i < KERNEL_FDS; i++)
		s->ends[i] = fd_close(s->ends[i]);
}

static void drop_pidfd(struct kernel *s)
{
	loop_del(&s->pidfd);
	s->pidfd.fd = fd_close(s->pidfd.fd);
}

void kernel_clear(struct kernel *s)
{
	kernel_unkeep(s);
	kernel_unsettle(s);
	if (s->attached)
		kernel_pipes_detach(&s->pipes);
	timer_cancel(&s->closed);
	timer_cancel(&s->status);
	drop_warm(s);
	drop_pidfd(s);
	s->attached = false;
	s->state = KERNEL_EMPTY;
	s->pid = 0;
	s->command = 0;
	s->env_sent = false;
	s->packages = 0;
	s->asked_packages = false;
}

void kernel_ended(struct kernel *s, int status)
{
	struct cell *r = s->cell;
	bool starting = s->state == KERNEL_STARTING;

	if (s->attached)
		kernel_pipes_drain(&s->pipes); /* its last output is not lost */
	if (r->ending)
		return;
	metric_add(M_KERNELS_DIED, 1);
	kernel_clear(s);
	if (!starting)
		r->ops->kernel_ended(r, s, status);
	else if (s->killed && !s->why) /* by the front, with everything in the cell */
		cell_start(r, s->language);
	else if (r->want_python)
		r->ops->failed(r, "the kernel ended before it was ready");
	else
		r->ops->kernel_failed(r, s, false, "the kernel ended before it was ready");
	s->why = NULL;
}

static void on_status_again(struct timer *t);

static void on_status(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	struct cell *r = c->arg;
	struct kernel *s = &r->kernels[LANG_PYTHON];

	(void)fds;
	(void)n;
	if (reply->code < 0 || s->state == KERNEL_EMPTY)
		return; /* the cell is ending, too, and its channel reports that */
	if (reply->usage.kernel != KERNEL_ENDED) {
		/* The kernel is dead, but the warden could not wait for it yet: a debugger may hold
		 * it. */
		s->status.fn = on_status_again;
		s->status.arg = s;
		timer_after(r->cells->loop, &s->status, STATUS_AGAIN_NS);
		return;
	}
	kernel_ended(s, reply->usage.kernel_status);
}

static void ask_status(struct kernel *s)
{
	struct cell *r = s->cell;

	timer_cancel(&s->status);
	warden_link_forget(r->cells->link, &r->kernel_call); /* if it is under way already */
	r->kernel_call.fn = on_status;
	r->kernel_call.arg = r;
	(void)warden_link_ask_cell(r->cells->link, &r->kernel_call, WARDEN_USAGE, r->handle, 0,
				   NULL);
}

static void on_status_again(struct timer *t)
{
	ask_status(t->arg);
}

/* A forked kernel has ended. The warden waits for it, and has its exit status. */
static void on_pidfd(struct watch *w, uint32_t events)
{
	(void)events;
	loop_del(w);
	ask_status(w->arg);
}

/* ---- starting ------------------------------------------------------------------------------ */

static void start_failed(struct kernel *s, bool missing, const char *message)
{
	struct cell *r = s->cell;

	kernel_clear(s);
	if (r->want_python && !missing) {
		r->ops->failed(r, message);
	} else if (r->want_python) {
		/* An image without python can still run other languages. */
		r->want_python = false;
		r->image->has_language[LANG_PYTHON] = false;
		r->ops->ready(r);
	} else {
		r->ops->kernel_failed(r, s, missing, message);
	}
}

static bool attach(struct kernel *s, int *fds)
{
	struct err e = { 0 };
	const int ends[KERNEL_FDS] = { fds[0], fds[1], fds[2], fds[3] };

	for (size_t i = 0; i < KERNEL_FDS; i++)
		fds[i] = -1;
	s->attached =
		kernel_pipes_attach(&s->pipes, s->cell->cells->loop, &kernel_ops, s, ends, &e) == 0;
	if (s->attached)
		s->pipes.share = &s->cell->share;
	return s->attached;
}

static void start_cold(struct kernel *s)
{
	const struct language *l = s->language;
	struct cell *r = s->cell;
	struct command_line line = { 0 };
	struct refusal why = { 0 };
	struct err e = { 0 };
	char path[64];
	const char *words[5];
	size_t n = 0;

	s->command = cell_name(r);
	(void)snprintf(path, sizeof(path), "/tmp/.kernel-%u-%s", s->command, l->driver);
	for (size_t i = 0; i < ARRAY_SIZE(l->args) && l->args[i]; i++)
		words[n++] = l->args[i];
	words[n++] = path;
	words[n] = NULL;
	const struct command_words w = { .program = l->program,
					 .tail = words,
					 .image_env = r->image->env,
					 .sandbox_env = r->env };

	if (command_line_make(&w, &line, &why) < 0)
		(void)err_say(&e, -EINVAL, "%s", why.message);
	struct exec_request x = {
		.id = s->command,
		.flags = INIT_CONTROL,
		.cwd = line.cwd,
		.argv = (const char *const *)line.argv,
		.envp = (const char *const *)line.envp,
		.script_path = path,
		.script_fd = r->cells->drivers->fd[l->id],
		.uid = CELL_UID,
		.gid = CELL_GID,
	};

	if (e.code || r->channel.fd < 0 || init_exec(r->channel.fd, &x, &e) < 0)
		start_failed(s, false, e.code ? e.msg : "the cell is gone");
	command_line_free(&line);
}

bool kernel_join(struct kernel *s, const struct keeper_kernel *was, int *fds, size_t n)
{
	struct err e = { 0 };

	if (!attach(s, fds))
		return false;
	s->pipes.joined = s->joined = s->kept = true;
	s->command = was->command;
	s->pid = was->pid;
	s->env_sent = was->env_sent;
	if (n <= KERNEL_FDS)
		return true;
	s->pidfd = (struct watch){
		.fd = TAKE_FD(fds[KERNEL_FDS]), .events = EPOLLIN, .fn = on_pidfd, .arg = s
	};
	if (loop_add(s->cell->cells->loop, &s->pidfd, &e) == 0)
		return true;
	kernel_clear(s); /* without the watch the front would not notice the kernel's end */
	return false;
}

void kernel_started(struct kernel *s, int *fds, size_t n_fds)
{
	if (s->state != KERNEL_STARTING || s->attached || n_fds != KERNEL_FDS || !attach(s, fds))
		start_failed(s, false, "the kernel's pipes did not arrive");
}

void kernel_failed(struct kernel *s, const struct init_failed *f)
{
	struct err e = { 0 };
	bool missing = f->stage == INIT_STAGE_EXEC && (f->error == ENOENT || f->error == ENOTDIR);

	(void)init_explain(f, s->language->program, CELL_WORKDIR, &e);
	if (s->state == KERNEL_STARTING)
		start_failed(s, missing, e.msg);
}

/* The kernel is sealed, and reads its pipes. */
static void on_hello(struct watch *w, uint32_t events)
{
	struct kernel *s = w->arg;
	struct kernel_hello h = { 0 };
	ssize_t n = recv(w->fd, &h, sizeof(h), MSG_DONTWAIT);
	bool whole = n == (ssize_t)sizeof(h) && h.magic == KERNEL_HELLO_MAGIC;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (whole && h.code == 0) {
		bool attached = attach(s, s->ends);

		drop_warm(s);
		if (!attached)
			start_failed(s, false, "the kernel's pipes could not be watched");
		return;
	}
	log_event(LOG_LEVEL_WARNING, "kernel_entry_failed",
		  F_INT("error", whole ? h.code : -EPROTO), F_UINT("step", whole ? h.step : 0));
	drop_warm(s);
	drop_pidfd(s);
	start_cold(s);
}

static void on_forked(struct warden_call *c, const struct warden_reply *reply, int *fds,
		      size_t n_fds)
{
	struct cell *r = c->arg;
	struct kernel *s = &r->kernels[LANG_PYTHON];
	struct err e = { 0 };

	if (s->state != KERNEL_STARTING)
		return;
	if (reply->code == -ESRCH) {
		return; /* the cell is over: its channel reports that */
	}
	if (reply->code < 0 || n_fds != 2 + KERNEL_FDS) {
		timer_cancel(&s->warm);
		start_cold(s);
		return;
	}
	s->hello = (struct watch){ .fd = fds[0], .events = EPOLLIN, .fn = on_hello, .arg = s };
	s->pidfd = (struct watch){ .fd = fds[1], .events = EPOLLIN, .fn = on_pidfd, .arg = s };
	memcpy(s->ends, &fds[2], sizeof(s->ends));
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = -1;
	if (loop_add(r->cells->loop, &s->hello, &e) < 0 ||
	    loop_add(r->cells->loop, &s->pidfd, &e) < 0)
		start_failed(s, false, e.msg);
}

/* A zygote that does not answer is replaced; meanwhile the kernel starts cold. */
static void on_warm_late(struct timer *t)
{
	struct kernel *s = t->arg;
	struct cell *r = s->cell;

	warden_link_forget(r->cells->link, &r->kernel_call);
	drop_warm(s);
	drop_pidfd(s);
	if (r->zygote == r->image->supply.zygote)
		zygote_supply_replace(&r->image->supply);
	start_cold(s);
}

static void on_late(struct timer *t)
{
	struct cell *r = t->arg;

	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].state == KERNEL_STARTING)
			start_failed(&r->kernels[i], false, "the kernel was not ready in time");
}

void cell_start(struct cell *r, const struct language *l)
{
	struct kernel *s = &r->kernels[l->id];

	s->state = KERNEL_STARTING;
	s->killed = false;
	s->started_ns = clock_now_ns();
	r->start_timer.fn = on_late;
	r->start_timer.arg = r;
	timer_after(r->cells->loop, &r->start_timer, KERNEL_START_NS);
	if (l->id == LANG_PYTHON && r->zygote && r->zygote == r->image->supply.zygote) {
		r->kernel_call.fn = on_forked;
		r->kernel_call.arg = r;
		s->warm.fn = on_warm_late;
		s->warm.arg = s;
		timer_after(r->cells->loop, &s->warm, WARM_NS);
		if (warden_link_ask_cell(r->cells->link, &r->kernel_call, WARDEN_KERNEL, r->handle,
					 r->zygote, NULL) == 0)
			return;
		timer_cancel(&s->warm);
	}
	start_cold(s);
}

void kernel_acknowledge(struct kernel *s)
{
	_buf_ struct buf b = BUF_INIT(64);

	(void)buf_puts(&b, "{\"type\":\"ack\"}");
	kernel_pipes_send(&s->pipes, &b);
}

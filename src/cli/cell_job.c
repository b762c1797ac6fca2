/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_job.c - The loop around one command in a cell.
 *
 * Theory of operation. Everything that can happen is a descriptor: the cell's channel, three
 * streams, our signals; the deadline is poll's timeout. The run is over when init reports the main
 * program's end, when a limit of ours is passed (wall, output), when we are told to stop, or when
 * the cell is gone. Then the cell is destroyed first, which closes every pipe end inside it, and
 * only then the rest in the pipes is read: an orphan that holds stdout open can neither delay the
 * result nor lose us a byte that was written in time.
 */
#include "cli/cell_job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cli/stdio_stream.h"
#include "client/receipt.h"
#include "client/warden_client.h"

enum { SRC_CHANNEL, SRC_SIGNAL, SRC_IN, SRC_OUT, SRC_ERR, SRC_N };

struct loop {
	struct job *job;
	struct outcome *o;
	struct warden_client warden;
	uint32_t cell;
	int channel;
	int signals;
	struct stream in, out, err;
	uint64_t started_ns, deadline_ns;
	uint64_t budget; /* output that may still come */
	bool over;
	unsigned int n_signals;
	bool raw; /* our terminal is in raw mode; saved holds how it was */
	struct termios saved;
};

/* ---- stdio ---------------------------------------------------------------------------------- */

static int set_nonblock(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Pipes between us and the command. The cell never gets a descriptor of our own stdio. */
static int open_pipes(struct loop *l, int theirs[3], struct err *e)
{
	struct job *j = l->job;
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make pipes");
	(void)set_nonblock(in[1]);
	(void)set_nonblock(out[0]);
	(void)set_nonblock(err[0]);
	theirs[0] = in[0];
	theirs[1] = out[1];
	theirs[2] = err[1];
	stream_open(&l->in, stream_stdio(STDIN_FILENO, O_RDONLY), in[1], true, NULL);
	if (l->in.from < 0)
		stream_close(&l->in); /* we were started without stdin: the command has an empty one
				       */
	stream_open(&l->out, out[0], j->capture ? -1 : stream_stdio(STDOUT_FILENO, O_WRONLY), true,
		    &j->out);
	stream_open(&l->err, err[0], j->capture ? -1 : stream_stdio(STDERR_FILENO, O_WRONLY), true,
		    &j->err);
	l->out.budget = l->err.budget = j->max_output ? &l->budget : NULL;
	return 0;
}

static void attach_tty(struct loop *l, int master)
{
	int copy = fcntl(master, F_DUPFD_CLOEXEC, 3);

	(void)set_nonblock(master);
	stream_open(&l->out, master, stream_stdio(STDOUT_FILENO, O_WRONLY), true, &l->job->out);
	l->out.budget = l->job->max_output ? &l->budget : NULL;
	stream_open(&l->in, stream_stdio(STDIN_FILENO, O_RDONLY), copy, true, NULL);
	if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &l->saved) == 0) {
		struct termios raw = l->saved;

		cfmakeraw(&raw);
		l->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
	}
}

static void window_changed(struct loop *l)
{
	struct winsize size;

	if (l->job->exec.flags & INIT_TTY && l->out.from >= 0 &&
	    ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
		(void)ioctl(l->out.from, TIOCSWINSZ, &size);
}

/* ---- events --------------------------------------------------------------------------------- */

static int take_receipt(struct loop *l, struct err *e)
{
	struct job *j = l->job;

	_fd_ int evidence = warden_evidence(&l->warden, l->cell, e);

	if (evidence < 0)
		return evidence;
	return receipt_write(evidence, j->spec, &j->ready, true, &j->receipt_json, e);
}

static int on_started(struct loop *l, int fd, struct err *e)
{
	struct job *j = l->job;

	if (l->o->started) { /* it would move the deadline */
		fd_close(fd);
		return err_say(e, -EPROTO, "the cell's pid 1 broke the protocol");
	}
	l->o->started = true;
	if (j->exec.flags & INIT_TTY && fd >= 0)
		attach_tty(l, fd);
	else
		fd_close(fd);
	l->started_ns = clock_now_ns();
	l->deadline_ns = l->started_ns + j->timeout_ms * CLOCK_NS_PER_MS;
	return 0;
}

static int on_channel(struct loop *l, struct err *e)
{
	struct job *j = l->job;
	struct init_msg m;
	int fds[INIT_FDS_MAX];
	size_t n_fds;
	_fd_ int fd = -1; /* the one that may mean something; closed unless it does */
	int r = init_recv(l->channel, &m, fds, &n_fds, e);

	if (r < 0)
		return r;
	for (size_t i = 1; i < n_fds; i++)
		fd_close(fds[i]);
	if (n_fds > 0)
		fd = fds[0];
	if (r == 0) {
		l->over = true; /* the warden's last reply has the reason */
		return 0;
	}
	switch (m.type) {
	case INIT_READY:
		j->ready = m.u.ready;
		break;
	case INIT_HELD:
		if (!j->receipt || j->receipt_json.len > 0)
			return err_say(e, -EPROTO, "the cell's pid 1 broke the protocol");
		r = take_receipt(l, e);
		return r < 0 ? r : init_go(l->channel, j->exec.id, e);
	case INIT_STARTED:
		return on_started(l, TAKE_FD(fd), e);
	case INIT_FAILED:
		j->start_code = init_explain(&m.u.failed, j->exec.argv[0], j->exec.cwd, e);
		return e->code;
	case INIT_EXITED:
		l->o->exited = true;
		l->o->exit = m.u.exited;
		l->over = true;
		break;
	default:
		break;
	}
	return 0;
}

static void on_signal(struct loop *l)
{
	struct signalfd_siginfo info;

	if (read(l->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		window_changed(l);
		return;
	}
	l->n_signals++;
	l->o->interrupted = (int)info.ssi_signo;
	l->over = true;
}

static void check_limits(struct loop *l)
{
	l->o->stdout_bytes = l->out.bytes;
	l->o->stderr_bytes = l->err.bytes;
	/* Also of a program that has ended by itself: what was too much is dropped, which is no
	 * success. */
	if ((l->out.over || l->err.over) && !l->o->interrupted)
		l->o->output_hit = l->over = true;
	if (!l->over && l->deadline_ns && clock_now_ns() >= l->deadline_ns)
		l->o->wall_hit = l->over = true;
}

static int poll_timeout(const struct loop *l)
{
	if (!l->deadline_ns || l->over)
		return -1;
	uint64_t now = clock_now_ns();

	return now >= l->deadline_ns ? 0 : (int)((l->deadline_ns - now) / CLOCK_NS_PER_MS + 1);
}

/* One round. After the cell is gone the channel is -1 and only the streams are left. */
static int turn(struct loop *l, struct err *e)
{
	struct pollfd p[SRC_N] = {
		[SRC_CHANNEL] = { .fd = l->channel, .events = POLLIN },
		[SRC_SIGNAL] = { .fd = l->signals, .events = POLLIN },
	};
	int r = 0;

	stream_poll(&l->in, &p[SRC_IN]);
	stream_poll(&l->out, &p[SRC_OUT]);
	stream_poll(&l->err, &p[SRC_ERR]);
	if (poll(p, SRC_N, poll_timeout(l)) < 0 && errno != EINTR)
		return err_set(e, -errno, "poll");
	stream_step(&l->in, p[SRC_IN].revents);
	stream_step(&l->out, p[SRC_OUT].revents);
	stream_step(&l->err, p[SRC_ERR].revents);
	if (p[SRC_SIGNAL].revents)
		on_signal(l);
	if (p[SRC_CHANNEL].revents)
		r = on_channel(l, e);
	check_limits(l);
	return r;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int begin(struct loop *l, struct err *e)
{
	static const int watched[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	struct job *j = l->job;
	int theirs[3] = { -1, -1, -1 };
	struct warden_cell cell;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	l->signals = fd_signals(watched, ARRAY_SIZE(watched), NULL);
	if (l->signals < 0)
		return err_set(e, -errno, "watch signals");
	r = warden_create(&l->warden, j->spec, j->fds, j->n_fds, &cell, e);
	if (r < 0)
		return r;
	l->cell = cell.handle;
	l->channel = cell.channel;
	if (!(j->exec.flags & INIT_TTY)) {
		r = open_pipes(l, theirs, e);
		memcpy(j->exec.stdio, theirs, sizeof(theirs));
		/* A program may open its own streams by name (/dev/stderr): they are its user's. */
		for (int i = 0; cell.host_base && i < 3 && r == 0; i++)
			if (fchown(theirs[i], cell.host_base + j->exec.uid,
				   cell.host_base + j->exec.gid) < 0)
				r = err_set(e, -errno, "give the pipes to the cell's user");
	}
	if (j->receipt)
		j->exec.flags |= INIT_HOLD;
	if (r == 0)
		r = init_exec(l->channel, &j->exec, e);
	for (int i = 0; i < 3; i++)
		fd_close(theirs[i]);
	return r;
}

/* After this nothing runs in the cell, so every pipe has an end. */
static int end(struct loop *l, struct err *e)
{
	int r = 0;

	if (l->channel >= 0)
		r = warden_destroy(&l->warden, l->cell, &l->o->usage, e);
	l->channel = fd_close(l->channel);
	l->deadline_ns = 0;
	stream_close(&l->in);
	return r;
}

int job_run(struct job *j, struct outcome *ret, struct err *e)
{
	struct loop l = {
		.job = j, .o = ret, .channel = -1, .signals = -1, .budget = j->max_output
	};
	struct err end_error = { 0 };
	int r;

	memset(ret, 0, sizeof(*ret));
	l.in.from = l.in.to = l.out.from = l.out.to = l.err.from = l.err.to = -1;
	buf_init(&j->out, j->capture_bytes);
	buf_init(&j->err, j->capture_bytes);
	buf_init(&j->receipt_json, 4u << 20);
	j->start_code = 125;
	ret->wall_limit_ms = j->timeout_ms;
	ret->output_limit = j->max_output;
	r = warden_start(j->state, &l.warden, e);
	if (r < 0)
		return r;
	r = begin(&l, e);
	while (r == 0 && !l.over)
		r = turn(&l, e);
	if (l.started_ns)
		ret->wall_ns = clock_now_ns() - l.started_ns;
	int ended = end(&l, &end_error);
	unsigned int before = l.n_signals;

	/* The reader of our output may be slow for ever: another signal ends the wait. */
	while (r == 0 && (stream_active(&l.out) || stream_active(&l.err)) && l.n_signals == before)
		r = turn(&l, e);
	if (ret->usage.cgroup_kind == 0) { /* no cgroup: the main program's own numbers are all
					      there is */
		ret->usage.cpu_ns = ret->exit.user_ns + ret->exit.system_ns;
		ret->usage.memory_peak = ret->exit.maxrss_bytes;
	}
	/* A reader that left is the program's business (it got SIGPIPE); lost output is ours. */
	int lost = l.out.error && l.out.error != EPIPE ? l.out.error : l.err.error;

	if (r == 0 && lost && lost != EPIPE)
		r = err_set(e, -lost, "pass the program's output on");
	stream_close(&l.out);
	stream_close(&l.err);
	if (l.raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &l.saved);
	warden_stop(&l.warden);
	fd_close(l.signals);
	if (r == 0 && ended < 0) {
		*e = end_error;
		r = ended;
	}
	return r;
}

void job_free(struct job *j)
{
	buf_free(&j->out);
	buf_free(&j->err);
	buf_free(&j->receipt_json);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - SIGTERM and SIGINT: no new connection, executions that run may finish, then the process
 * ends. A second signal ends it at once.
 */
#include "front/main/drain.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/foreign.h"
#include "front/cell/image_use.h"
#include "front/http/listeners.h"
#include "front/mcp/mcp.h"
#include "front/support/front.h"
#include "front/support/log.h"
#include "net/http.h"

static struct {
	struct watch signals;
	struct timer timer; /* looks whether the drain is over */
	uint64_t until_ns;
	unsigned int told, passed_on; /* signals to us, and from the keeper */
} drain;

static void stop_if_quiet(struct timer *t)
{
	struct front *f = t->arg;
	bool late = clock_now_ns() >= drain.until_ns;

	mcp_drain(f);
	/* An answer counts as given when all of it is sent. */
	if ((f->n_queued == 0 && http_live(f->http) == 0) || late) {
		if (f->n_queued > 0)
			log_event(LOG_LEVEL_WARNING, "drain_timeout", F_UINT("left", f->n_queued));
		loop_stop(&f->loop);
		return;
	}
	timer_set(&f->loop, t, f->loop.now_ns + 20 * CLOCK_NS_PER_MS);
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct front *f = w->arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	/* Ctrl-C goes to the whole group, so that the keeper passes on a signal that has come
	 * already. */
	unsigned int n = info.ssi_signo == (uint32_t)KEEPER_STOP ? ++drain.passed_on : ++drain.told;

	if (f->draining) {
		if (n > 1)
			loop_stop(&f->loop);
		return;
	}
	f->draining = true;
	systemd_say(f->systemd, KEEPER_STOPPING);
	log_event(LOG_LEVEL_INFO, "drain", F_UINT("executions", f->n_queued));
	listeners_close(f);
	mcp_drain(f);
	http_drain(f->http);
	images_stop(f);
	drain.until_ns = clock_now_ns() + f->config.drain_ms * CLOCK_NS_PER_MS;
	drain.timer = (struct timer){ .fn = stop_if_quiet, .arg = f };
	timer_set(&f->loop, &drain.timer, f->loop.now_ns);
}

int drain_open(struct front *f, struct err *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, KEEPER_STOP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)foreign_init();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error of the write */
	drain.signals = (struct watch){
		.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.events = EPOLLIN,
		.fn = on_signal,
		.arg = f,
	};
	if (drain.signals.fd < 0)
		return err_set(e, -errno, "watch signals");
	return loop_add(&f->loop, &drain.signals, e);
}

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
#include "front/main/parts.h"
#include "front/mcp/mcp.h"
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
	struct parts *p = t->arg;
	bool late = clock_now_ns() >= drain.until_ns;

	mcp_drain(&p->mcp);
	/* An answer counts as given when all of it is sent. */
	if ((p->sandboxes.n_queued == 0 && http_live(&p->server.http) == 0) || late) {
		if (p->sandboxes.n_queued > 0)
			log_event(LOG_LEVEL_WARNING, "drain_timeout",
				  F_UINT("left", p->sandboxes.n_queued));
		loop_stop(&p->daemon.loop);
		return;
	}
	timer_after(&p->daemon.loop, t, 20 * CLOCK_NS_PER_MS);
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct parts *p = w->arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	/* Ctrl-C goes to the whole group, so that the keeper passes on a signal that has come
	 * already. */
	unsigned int n = info.ssi_signo == (uint32_t)KEEPER_STOP ? ++drain.passed_on : ++drain.told;

	if (p->daemon.draining) {
		if (n > 1)
			loop_stop(&p->daemon.loop);
		return;
	}
	p->daemon.draining = true;
	systemd_say(&p->systemd, KEEPER_STOPPING);
	log_event(LOG_LEVEL_INFO, "drain", F_UINT("executions", p->sandboxes.n_queued));
	listeners_close(&p->server);
	pulls_drain(&p->pulls);
	mcp_drain(&p->mcp);
	http_drain(&p->server.http);
	images_stop(&p->cells);
	drain.until_ns = clock_now_ns() + p->daemon.config.drain_ms * CLOCK_NS_PER_MS;
	drain.timer = (struct timer){ .fn = stop_if_quiet, .arg = p };
	timer_set(&p->daemon.loop, &drain.timer, p->daemon.loop.now_ns);
}

int drain_open(struct parts *p, struct err *e)
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
		.arg = p,
	};
	if (drain.signals.fd < 0)
		return err_set(e, -errno, "watch signals");
	return loop_add(&p->daemon.loop, &drain.signals, e);
}

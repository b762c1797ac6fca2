/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.c - `caisson mcp`: what a host of models starts to get tools.
 *
 * A daemon that runs is used, so that sandboxes are shared with everybody else who uses it. When
 * there is none, or options were given for one, it has a daemon of its own, which ends with it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/mcp_config.h"
#include "remote/private.h"
#include "remote/relay.h"
#include "remote/session.h"
#include "remote/verbs.h"

static int watch_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A daemon of our own, and a connection to it. */
static struct relay *open_private(struct session *s, struct private_daemon *d, int signals)
{
	struct remote_options at = { .socket = d->socket };
	struct api api;
	struct relay *r = NULL;

	s->problem = (struct problem){ 0 };
	if (private_start(d, s->o.tools, s->o.rest, signals, &s->problem) < 0)
		return NULL;
	if (api_open(&api, &at, &s->problem) == 0)
		r = relay_open(&api, signals, &s->problem);
	api_close(&api);
	return r;
}

static bool nobody_there(const struct problem *p)
{
	return p->exit_code == EXIT_NO_DAEMON;
}

static int serve(struct session *s)
{
	bool named = s->o.url || s->o.socket, own = s->o.dashes || s->o.tools;
	struct private_daemon d = { .keeper = -1, .lease = -1 };
	_fd_ int signals = watch_signals();
	struct relay *r = NULL;
	int code = -1;

	if (!own)
		r = relay_open(&s->api, signals, &s->problem);
	if (!r && (own || (!named && nobody_there(&s->problem))))
		r = open_private(s, &d, signals);
	if (r) {
		s->problem = (struct problem){ 0 };
		code = relay_run(r, &s->problem);
	}
	relay_close(r);
	private_stop(&d);
	return code;
}

static int check(const struct remote_options *o, struct err *e)
{
	if (o->n_before > 0)
		return err_say(e, -EINVAL, "'%.64s': options of a daemon follow after --",
			       o->rest[0]);
	if ((o->url || o->socket) && (o->dashes || o->tools))
		return err_say(e, -EINVAL,
			       "%s is for a daemon of our own: leave out --socket and --url, and "
			       "CAISSON_SOCKET and CAISSON_URL",
			       o->tools ? "--tools" : "--");
	return 0;
}

int verb_mcp(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_MCP,
		.usage = "mcp [OPTIONS] [-- SERVE OPTIONS]",
		.text = "Speaks the Model Context Protocol on standard input and output, one message per line. Uses the\n"
			"daemon that runs. When none does, or after --, it starts one that ends with it; what\n"
			"follows after -- are options of 'caisson serve', as in: caisson mcp -- --memory 1G\n",
		.min = 0,
		.max = -1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		struct err e = { 0 };

		if (s.o.print_config) {
			if (mcp_config_print(&s.o, &e) < 0)
				session_fail_err(&s, &e);
		} else if (check(&s.o, &e) < 0) {
			session_fail_err(&s, &e);
		} else {
			int code = serve(&s);

			if (code < 0)
				session_fail(&s);
			else
				s.code = code;
		}
	}
	return session_end(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - caisson-gate: the only way out of a cell.
 *
 * Theory of operation. The front starts this program before it enters its jail. The first process
 * is the supervisor (supervisor.c), which starts the gate: one process for all sandboxes of a
 * daemon, and another one when it has died. The front sends the gate sockets that were made inside
 * cells, with the rules for each. The gate accepts connections there, decides by name, connects
 * outside, moves bytes, and reports events to the front, which records them. It reads bytes of
 * cells and of the internet, so it has no power: a user of its own, no capability, no file, no
 * program. It can make and connect sockets (policy/gate.policy).
 *
 * The gate ends with the front, and all its connections with it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "cell/landlock.h"
#include "cell/power.h"
#include "cell/seccomp.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"
#include "gate/lookup.h"
#include "gate_filter.h"
#include "net/tls.h"

#define EXIT_FAILED 125
#define FILES_PER_FLOW 4u  /* two sockets, and a pipe when a peer is slow */
#define FILES_OF_OURS 256u /* with the listening sockets */
#define FLOWS_MAX 8192u
#define JAIL_USER "caisson-gate"
#define JAIL_ID 0x6ffffffbu /* beside the front's: see front/support/jail.c */

static size_t flows_max(void)
{
	struct rlimit l;

	fd_many();
	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur < 2 * FILES_OF_OURS)
		return 16;
	size_t n = (size_t)(l.rlim_cur - FILES_OF_OURS) / (FILES_PER_FLOW + 1);

	return n < FLOWS_MAX ? n : FLOWS_MAX;
}

/*
 * The jail leaves the gate the descriptors that it is sent, sockets, and their bytes. It has the
 * same layers as the front's jail (front/support/jail.c), with another user and another filter: an
 * attacker who takes over the gate cannot reach the front, nor the other way round. Landlock leaves
 * it no file. It may connect TCP, which is its purpose.
 */
static int enter_jail(struct err *e)
{
	struct power_user user;

	if (power_user(JAIL_USER, JAIL_ID, &user, e) < 0 || power_leave(&user, e) < 0 ||
	    power_settle(e) < 0)
		return e->code;
	if (POWER_SANITIZED)
		return 0;
	int r = landlock_deny_files_but(NULL, 0);

	if (r < 0)
		return err_set(e, r, "enter a Landlock domain");
	if (power_has_filters() &&
	    seccomp_install_program(GATE_FILTER, ARRAY_SIZE(GATE_FILTER), e) < 0)
		return err_wrap(e, "enter the jail");
	return 0;
}

static int start(struct gate *g, struct err *e)
{
	const struct proxy *proxy = &g->config.proxy;
	bool proxy_named = proxy->on && !proxy->is_address;

	g->flows_max = flows_max();
	if (loop_init(&g->loop, e) < 0 ||
	    lookups_open(&g->loop, g->config.dns, false, &g->lookups, e) < 0 ||
	    (proxy_named && lookups_open(&g->loop, g->config.dns, true, &g->proxies, e) < 0) ||
	    tls_client_new(g->config.ca, &g->tls, e) < 0)
		return e->code;
	if (vault_init(&g->vault, false) < 0)
		return err_set(e, -ENOMEM, "prepare the vault");
	int r = enter_jail(e);

	return r < 0 ? r : control_open(g, GATE_FD, GATE_SUPERVISOR_FD, e);
}

static int fail(const struct err *e)
{
	(void)fprintf(stderr, "caisson-gate: %s\n", e->msg);
	return EXIT_FAILED;
}

static int run(struct gate *g, struct err *e)
{
	int r;

	(void)prctl(PR_SET_NAME, "caisson-gate");
	(void)foreign_init();
	(void)signal(SIGPIPE, SIG_IGN);
	/* The terminal's signals go to the whole group; the gate ends when the front does. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	r = start(g, e);
	if (r == 0)
		r = loop_run(&g->loop, e);
	if (r == -EPIPE)
		return EXIT_FAILED; /* the front was killed meanwhile: there is no reader */
	if (r < 0)
		return fail(e);
	while (!LIST_EMPTY(&g->sandboxes))
		gate_sandbox_close(LIST_FIRST(&g->sandboxes));
	lookups_close(g->lookups);
	lookups_close(g->proxies);
	vault_free(&g->vault);
	tls_client_free(g->tls);
	return 0;
}

int main(int argc, char **argv, char **env)
{
	static struct gate g;
	const struct sources from = supervisor_sources(argv);
	struct err e = { 0 };

	for (argc = 0; argv[argc];)
		argc++;
	/* The supervisor checks the options too: errors show before anything is started. */
	if (gate_config_parse(argc, argv, env, &g.config, &e) < 0)
		return fail(&e);
	return g.config.life ? run(&g, &e) : supervisor_run(argv, env, &from);
}

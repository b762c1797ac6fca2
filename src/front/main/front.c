/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - caisson-front: the daemon behind `caisson serve`.
 *
 * Theory of operation. Everything that needs a right is done first, as whoever started us: reading
 * the tokens and certificates, opening the drivers and the image, binding the addresses, starting
 * the warden. Then the jail closes (jail.h) and the loop begins: from there on this process reads
 * strangers' bytes and has no power but the descriptors it holds.
 *
 * SIGTERM and SIGINT drain: no new connection, what runs may finish, then the end. A second one
 * ends at once. The warden sees our socket close and takes everything down that is left.
 */
#include "front/support/front.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "cell/spec.h"
#include "client/warden_client.h"
#include "front/buckets/backing.h"
#include "front/buckets/buckets.h"
#include "front/cell/image_use.h"
#include "front/cell/keep.h"
#include "front/cell/warden_link.h"
#include "front/egress/egress.h"
#include "front/egress/narrow.h"
#include "front/gate/gate_link.h"
#include "front/http/listeners.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"
#include "front/main/hooks.h"
#include "front/main/policy_check.h"
#include "front/main/policy_load.h"
#include "front/main/statedir.h"
#include "front/mcp/mcp.h"
#include "front/output/stream_log.h"
#include "front/packages/packages.h"
#include "front/policy/policy.h"
#include "front/sandbox/adopt.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/open_executions.h"
#include "front/sandbox/sandbox.h"
#include "front/secrets/secrets.h"
#include "front/spec/mount_use.h"
#include "front/support/jail.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/schema.h"
#include "front/support/time_text.h"
#include "front/tool_calls/bridge_link.h"
#include "front/tool_calls/upstream.h"
#include "front/workspaces/workspaces.h"
#include "ledger/ledger.h"
#include "net/http.h"

#define LARGE_BYTES (256 * 1024)
#define EXIT_FAILED 125

/* ---- before the jail ----------------------------------------------------------------------- */

static void set_spec(struct front *f)
{
	const struct config *c = &f->config;

	spec_default(&f->spec);
	f->spec.limits.memory_bytes = c->memory_bytes;
	f->spec.limits.cpu_milli = c->cpu_milli;
	f->spec.limits.pids = c->pids;
	f->spec.limits.disk_bytes = c->disk_bytes;
	f->spec.limits.wall_ms = 0; /* deadlines are per execution here */
}

static int open_signals(struct front *f, void (*fn)(struct watch *, uint32_t), struct err *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, KEEPER_STOP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)foreign_init();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of the write */
	f->signals = (struct watch){
		.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.events = EPOLLIN,
		.fn = fn,
		.arg = f,
	};
	if (f->signals.fd < 0)
		return err_set(e, -errno, "watch signals");
	return loop_add(&f->loop, &f->signals, e);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void stop_if_quiet(struct timer *t)
{
	struct front *f = t->arg;
	bool late = clock_now_ns() >= f->drain_until_ns;

	mcp_drain(f);
	/* An answer is only given when it has left us. */
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
	/* Ctrl-C goes to the whole group: the keeper passes on what we have been told already. */
	unsigned int n = info.ssi_signo == (uint32_t)KEEPER_STOP ? ++f->passed_on : ++f->told;

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
	f->drain_until_ns = clock_now_ns() + f->config.drain_ms * CLOCK_NS_PER_MS;
	f->drain_timer.fn = stop_if_quiet;
	f->drain_timer.arg = f;
	timer_set(&f->loop, &f->drain_timer, f->loop.now_ns);
}

static void on_warden_gone(struct warden_link *l)
{
	struct front *f = l->arg;

	log_event(LOG_LEVEL_ERROR, "warden_gone", F_STR("what", "every sandbox is dead; ending"));
	f->failed = true;
	loop_stop(&f->loop);
}

/*
 * Its supervisor is gone too, and from in here no other can be started. The next front can, and
 * takes the sandboxes over: so this one ends as if it were killed.
 */
static void on_gate_gone(struct gate_link *l)
{
	struct front *f = l->arg;

	log_event(LOG_LEVEL_ERROR, "gate_gone",
		  F_STR("what",
			f->keep->watch.fd >= 0 ? "the next front starts another" : "ending"));
	if (f->keep->watch.fd >= 0 && !f->draining)
		abort();
	f->failed = true;
	loop_stop(&f->loop);
}

static int get_gate(struct front *f, struct err *e)
{
	int r = gate_open(f->gate, &f->loop, e);

	f->gate->on_event = egress_event;
	f->gate->on_again = egress_again;
	f->gate->on_secrets = secrets_again;
	f->gate->on_gone = on_gate_gone;
	f->gate->arg = f;
	return r;
}

/* SIGHUP came: it hands over a file that has changed. Or nobody is left who would start another
 * front. */
static void on_keeper(struct watch *w, uint32_t events)
{
	struct front *f = w->arg;
	int fd, error, file = keep_hear(f->keep, &fd, &error);

	(void)events;
	if (file == KEEPER_FILE_POLICY)
		policy_reload(f, fd, error);
	if (file == KEEPER_FILE_SECRETS)
		secrets_reload(f);
	if (file >= 0)
		return;
	loop_del(w);
	w->fd = fd_close(w->fd);
	log_event(LOG_LEVEL_ERROR, "keeper_gone", F_STR("what", "ending"));
	f->failed = true;
	loop_stop(&f->loop);
}

static int watch_keeper(struct front *f, struct err *e)
{
	f->keep->watch.events = EPOLLIN;
	f->keep->watch.fn = on_keeper;
	f->keep->watch.arg = f;
	return f->keep->watch.fd < 0 ? 0 : loop_add(&f->loop, &f->keep->watch, e);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* For whoever started us by hand: what to type next. */
static void banner(const struct front *f)
{
	const struct config *c = &f->config;
	const char *scheme = c->tls_cert ? "https" : "http";
	const char *auth = auth_has_tokens(f->auth) ? " -H \"Authorization: Bearer $TOKEN\"" : "";

	if (strcmp(c->listen, "none") == 0) {
		(void)printf("caisson listens on %s\n", c->socket);
	} else {
		(void)printf("caisson listens on %s://%s%s%s\n\n"
			     "  curl %s://%s/execute%s -H 'Content-Type: application/json' \\\n"
			     "    -d '{\"code\": \"print(6 * 7)\"}'\n"
			     "  curl %s://%s/health\n"
			     "  and in a browser: %s://%s/docs\n\n",
			     scheme, c->listen, strcmp(c->socket, "none") ? " and " : "",
			     strcmp(c->socket, "none") ? c->socket : "", scheme, c->listen, auth,
			     scheme, c->listen, scheme, c->listen);
	}
	(void)fflush(stdout);
}

/* A daemon that can serve nobody does not start: make one cell as all others will be made, and end
 * it. */
static int probe(const struct front *f, struct warden_client *w, struct err *e)
{
	struct warden_cell cell;
	struct cell_usage ignored;
	const struct image_use *own = &f->images->own;
	struct cell_spec spec = f->spec;

	image_spec(own, &spec);
	int r = warden_create(w, &spec, own->fds, own->n_fds, &cell, e);

	if (r < 0) {
		/* What the message ends with is an option of `caisson run`, and no choice here. */
		char *other = strstr(e->msg, ", or give up whole-cell limits");

		if (other)
			*other = '\0';
		/* Of a record in the journal, then. */
		return r == -ENOSPC || r == -EROFS ? err_wrap(e, "--state %s", f->config.state) : r;
	}
	fd_close(cell.channel);
	return warden_destroy(w, cell.handle, &ignored, e);
}

/* The warden of the front before us, if there is one: it has proved that it can make cells. */
static int get_warden(struct front *f, struct warden_client *w, bool *ret_kept, struct err *e)
{
	int r = 0;

	w->fd = keep_take_one(f->keep, KEEPER_WARDEN);
	*ret_kept = w->fd >= 0;
	if (w->fd < 0)
		r = warden_start(f->config.state, w, e);
	if (r == 0 && !*ret_kept)
		r = probe(f, w, e);
	if (r == 0)
		keep_put(f->keep, KEEPER_WARDEN, &w->fd, 1);
	return r;
}

/* Its own configuration may be wrong: better now than at the first call. */
static int get_bridge(struct front *f, struct err *e)
{
	int fd = bridge_wanted(&f->config) ? bridge_start(&f->config, e) : -1;

	if (fd < 0 && bridge_wanted(&f->config))
		return fd;
	int r = bridge_link_init(f->bridge, &f->loop, fd, e);

	return r < 0 ? r : upstreams_open(f, e);
}

static int get_state(struct front *f, struct statedir *state, struct err *e)
{
	const struct ledger_config config = { .line = open_executions_line,
					      .arg = f->open_executions };
	pid_t pid = f->keep->pid ? f->keep->pid : getpid();
	int r = statedir_open(f->config.state, keep_take_one(f->keep, KEEPER_LOCK), pid, state, e);

	if (r == 0)
		keep_put(f->keep, KEEPER_LOCK, &state->lock, 1);
	f->spool_dir = state->spool;
	if (r == 0)
		r = spool_bank_open(f->spools, f->spool_dir, SPOOL_BANK_DISK, SPOOL_BANK_MEMORY, e);
	return r == 0 ? ledger_open(state->ledger, &config, &f->ledger, e) : r;
}

/*
 * Everything that is ours closes when a program is executed. Another descriptor is one that whoever
 * started us had open: a terminal, an agent's socket, a file. None of that is for one who takes
 * this process over.
 */
static int close_strangers(struct err *e)
{
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return err_set(e, -errno, "list our descriptors");
	for (const struct dirent *d; (d = readdir(dir));) {
		int fd = (int)strtol(d->d_name, NULL, 10);
		int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			(void)close(fd);
	}
	(void)closedir(dir);
	return 0;
}

static int start(struct front *f, struct warden_client *w, struct err *e)
{
	static struct listeners listeners;
	struct statedir state = { -1, -1, -1, { -1, -1 } };
	bool same_warden = false;
	int r = keep_open(f->keep, e);

	if (r == 0)
		r = listeners_take(f, &listeners, e);
	if (r < 0)
		return r;
	systemd_open(f->systemd, f->keep);
	r = loop_init(&f->loop, e);
	if (r == 0) /* early: it gets ready while we do */
		r = gate_start(f->gate, &f->config, e);

	listeners_share(f);
	f->meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	log_setup(f->config.log_level, f->config.log_json);
	metrics_setup();
	schema_setup();
	mcp_setup(f);
	route_setup(f->config.timeout_ms, f->config.max_timeout_ms);
	set_spec(f);
	f->streams->max = STREAM_BANK_BYTES;
	if (r == 0)
		r = spec_check(&f->spec, e);
	if (r == 0)
		r = auth_load(&f->config, &f->auth, e);
	if (r == 0)
		r = secrets_load(f->gate, f->secrets, e);
	if (r == 0)
		r = policy_load(f, e);
	if (r == 0)
		r = drivers_open(f->drivers, e);
	if (r == 0)
		r = images_open(f, e);
	if (r == 0)
		r = get_state(f, &state, e);
	if (r == 0)
		r = packages_open(f, e);
	if (r == 0)
		r = workspaces_open(f, e);
	if (r == 0)
		r = mounts_open(f, e);
	if (r == 0)
		mounts_pool(f);
	if (r == 0)
		r = buckets_start(f->buckets, &f->config, &f->loop, e);
	if (r == 0)
		r = get_warden(f, w, &same_warden, e);
	if (r == 0)
		r = get_gate(f, e);
	if (r == 0)
		r = listeners_bind(f, &listeners, e);
	if (r == 0)
		r = auth_open_tcp(f->auth, listeners.tcp, e);
	if (r == 0)
		r = open_signals(f, on_signal, e);
	if (r == 0)
		r = warden_link_init(f->link, &f->loop, w->fd, f->keep->life, e);
	if (r == 0)
		r = get_bridge(f, e);
	if (r == 0)
		r = watch_keeper(f, e);
	if (r == 0)
		r = close_strangers(e);
	if (r == 0)
		r = jail_enter(ledger_dirfd(f->ledger), f->jail, e);
	if (r < 0)
		return r;
	adopt_open(f, same_warden);
	r = statedir_load(&state, f->adopt->ids, f->adopt->n, &f->store, e);
	if (r < 0)
		return r;
	f->link->on_gone = on_warden_gone;
	f->link->arg = f;
	serve_setup(f, &serve_hooks);
	r = policy_open(f, e);
	if (r < 0)
		return r;
	/* First of all: it tells the warden what of the front before us is to be ended. */
	r = audit_open(f, e);
	if (r == 0)
		r = packages_start(f, e);
	if (r == 0)
		r = workspaces_start(f, e);
	if (r < 0)
		return r;
	backing_start(f);
	policy_narrow_all(f); /* those that were taken over */
	images_start(f);
	return listeners_open(f, &listeners, e);
}

/* One of each part, for as long as the process lives. */
static void make_parts(struct front *f)
{
	static struct adopt adopt;
	static struct bridge_link bridge;
	static struct buckets buckets;
	static struct drivers drivers;
	static struct gate_link gate;
	static struct http_config http;
	static struct images images;
	static struct jail_report jail;
	static struct keep keep;
	static struct mcp mcp;
	static struct mounts mounts;
	static struct open_executions open_executions;
	static struct packages packages;
	static struct policy_now policy;
	static struct secrets secrets;
	static struct spool_bank spools;
	static struct stream_bank streams;
	static struct systemd systemd;
	static struct upstreams upstreams;
	static struct warden_link link;
	static struct workspaces workspaces;

	f->adopt = &adopt;
	f->bridge = &bridge;
	f->buckets = &buckets;
	f->drivers = &drivers;
	f->gate = &gate;
	f->http = &http;
	f->images = &images;
	f->jail = &jail;
	f->keep = &keep;
	f->link = &link;
	f->mcp = &mcp;
	f->mounts = &mounts;
	f->open_executions = &open_executions;
	f->packages = &packages;
	f->policy = &policy;
	f->secrets = &secrets;
	f->spools = &spools;
	f->streams = &streams;
	f->systemd = &systemd;
	f->upstreams = &upstreams;
	f->workspaces = &workspaces;
	f->policy->count = sandboxes_of;
	f->server_name = upstream_name;
	f->cell_hooks = &cell_hooks;
	f->hooks = &sandbox_hooks;
}

static int fail(const struct err *e)
{
	(void)fprintf(stderr, "caisson serve: %s\n", e->msg);
	return EXIT_FAILED;
}

int main(int argc, char **argv, char **env)
{
	static struct front f;
	struct warden_client w = { .fd = -1 };
	struct err e = { 0 };

	(void)signal(SIGHUP, SIG_IGN); /* it is the keeper's */
	if (argc > 0 && strcmp(argv[0], "policy") == 0)
		return policy_verb(argc, argv, env);
	f.started_ns = clock_now_ns();
	f.started_ms = time_now_ms();
	make_parts(&f);
	f.secrets->roots = f.buckets->fd = -1;
	/* A large buffer is a mapping of its own, and given back when it is done with, however many
	 * there were. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (config_parse(argc, argv, env, &f.config, &e) < 0)
		return fail(&e);
	if (f.config.help) {
		(void)printf("usage: caisson serve [OPTIONS]\n\n");
		config_usage(stdout);
		return 0;
	}
	if (f.config.version) {
		(void)printf("caisson %s\n", CAISSON_VERSION);
		return 0;
	}
	int r = start(&f, &w, &e);

	if (r == 0) {
		log_event(LOG_LEVEL_INFO, "listening", F_STR("address", f.config.listen),
			  F_STR("socket", f.config.socket), F_BOOL("jail_user", f.jail->user),
			  F_BOOL("jail_seccomp", f.jail->seccomp),
			  F_BOOL("jail_landlock", f.jail->landlock));
		banner(&f);
		systemd_ready(f.systemd, &f.loop);
		r = loop_run(&f.loop, &e);
	}
	mcp_end(&f);
	jsessions_free(&f);
	while (f.sandboxes) {
		struct sandbox *s = f.sandboxes;

		sandbox_halt(s, SANDBOX_LOST, "the daemon was stopped"); /* may unlist it */
		sandbox_end(s, NULL);
	}
	bridge_link_free(f.bridge);
	upstreams_close(&f);
	audit_close(&f);
	policy_close(&f);
	gate_free(f.gate);
	backing_end(&f);
	buckets_free(f.buckets);
	if (f.link->link.service) { /* the socket is the link's, once there is one */
		warden_link_free(f.link);
		w.fd = -1;
	}
	if (f.keep->watch.fd < 0) /* otherwise the keeper has the socket too, and waits for the end
				   */
		warden_stop(&w);
	store_close(f.store);
	secrets_free(f.secrets);
	if (r < 0)
		return fail(&e);
	return f.failed ? EXIT_FAILED : 0;
}

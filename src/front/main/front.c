/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - caisson-front: the daemon behind `caisson serve`.
 *
 * Theory of operation. Everything that needs a right is done first, with the rights of the user who
 * started the daemon: reading the tokens and certificates, opening the drivers and the image,
 * binding the addresses, starting the warden. Then the jail closes (jail.h) and the loop begins:
 * from there on this process reads strangers' bytes and has no power but the descriptors it holds.
 *
 * drain.c ends the process on SIGTERM and SIGINT. Without a warden, a gate or a keeper it ends,
 * too: none of them can be started from inside the jail. The warden sees its socket close and ends
 * every cell that is left.
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
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
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
#include "front/main/drain.h"
#include "front/main/parts.h"
#include "front/main/policy_load.h"
#include "front/main/statedir.h"
#include "front/mcp/mcp.h"
#include "front/output/spool.h"
#include "front/packages/packages.h"
#include "front/sandbox/adopt.h"
#include "front/sandbox/audit.h"
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

/* ---- services that are gone ---------------------------------------------------------------- */

static void on_warden_gone(struct warden_link *l)
{
	struct front *f = l->arg;

	log_event(LOG_LEVEL_ERROR, "warden_gone", F_STR("what", "every sandbox is dead; ending"));
	f->failed = true;
	loop_stop(&f->loop);
}

/*
 * The gate's supervisor is gone too, and no other can be started from inside the jail. The next
 * front can start one, and takes the sandboxes over: so this front ends as if it were killed.
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

/* After SIGHUP the keeper hands over a file that has changed. Otherwise the keeper is gone, which
 * could start another front. */
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

/* ---- start and end ------------------------------------------------------------------------- */

/* Commands to try, for a person who started the daemon by hand. */
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

/* Make one cell as all others will be made, and end it: a daemon that cannot make cells does not
 * start. */
static int probe(const struct front *f, struct warden_client *w, struct err *e)
{
	struct warden_cell cell;
	struct cell_usage ignored;
	const struct image_use *own = &f->images->own;
	struct cell_spec spec = f->spec;

	image_spec(own, &spec);
	int r = warden_create(w, &spec, own->fds, own->n_fds, &cell, e);

	if (r < 0) {
		/* The end of the message is about an option that only `caisson run` has. */
		char *other = strstr(e->msg, ", or give up whole-cell limits");

		if (other)
			*other = '\0';
		/* The journal has no room for a record. */
		return r == -ENOSPC || r == -EROFS ? err_wrap(e, "--state %s", f->config.state) : r;
	}
	fd_close(cell.channel);
	return warden_destroy(w, cell.handle, &ignored, e);
}

/* The warden of the former front, if there is one: it has proved that it can make cells. */
static int get_warden(struct front *f, struct warden_client *w, bool *ret_kept, struct err *e)
{
	int r;

	w->fd = keep_take_one(f->keep, KEEPER_WARDEN);
	*ret_kept = w->fd >= 0;
	if (!*ret_kept &&
	    ((r = warden_start(f->config.state, w, e)) < 0 || (r = probe(f, w, e)) < 0))
		return r;
	keep_put(f->keep, KEEPER_WARDEN, &w->fd, 1);
	return 0;
}

/* At the start, so that an error in its configuration is found now and not at the first call. */
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

	if (r < 0)
		return r;
	keep_put(f->keep, KEEPER_LOCK, &state->lock, 1);
	r = spool_bank_open(f->spools, state->spool, SPOOL_BANK_DISK, SPOOL_BANK_MEMORY, e);
	return r < 0 ? r : ledger_open(state->ledger, &config, &f->ledger, e);
}

/*
 * Our own descriptors are close-on-exec. The others were open when the daemon was started: a
 * terminal, an agent's socket, a file. An attacker who takes this process over must not get them.
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

/* Never 0, also if a function failed without a message. */
static int failed(const struct err *e)
{
	return e->code < 0 ? e->code : -EIO;
}

/* Between the two halves of the start. */
struct start {
	struct warden_client *warden;
	struct listeners listeners;
	struct statedir state;
	bool same_warden; /* the warden of the former front */
};

/* With the rights of the starter: everything that needs a file, an address or a process. */
static int open_parts(struct front *f, struct start *s, struct err *e)
{
	if (keep_open(f->keep, e) < 0 || listeners_take(f, &s->listeners, e) < 0)
		return failed(e);
	systemd_open(f->systemd, f->keep);
	/* The gate first: it gets ready while this process goes on. */
	if (loop_init(&f->loop, e) < 0 || gate_start(f->gate, &f->config, e) < 0)
		return failed(e);
	listeners_share(f);
	f->meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	log_setup(f->config.log_level, f->config.log_json);
	metrics_setup();
	schema_setup();
	mcp_setup(f);
	field_set_timeouts(f->config.timeout_ms, f->config.max_timeout_ms);
	set_spec(f);
	if (spec_check(&f->spec, e) < 0 || auth_load(&f->config, &f->auth, e) < 0 ||
	    secrets_load(f->gate, f->secrets, e) < 0 || policy_load(f, e) < 0 ||
	    drivers_open(f->drivers, e) < 0 || images_open(f, e) < 0 ||
	    get_state(f, &s->state, e) < 0 || packages_open(f, e) < 0 ||
	    workspaces_open(f, e) < 0 || mounts_open(f->mounts, f->config.mounts, &f->spec, e) < 0)
		return failed(e);
	mounts_pool(f);
	if (buckets_start(f->buckets, &f->config, &f->loop, e) < 0 ||
	    get_warden(f, s->warden, &s->same_warden, e) < 0 || get_gate(f, e) < 0 ||
	    listeners_bind(f, &s->listeners, e) < 0 ||
	    auth_open_tcp(f->auth, s->listeners.tcp, e) < 0 || drain_open(f, e) < 0 ||
	    warden_link_init(f->link, &f->loop, s->warden->fd, f->keep->life, e) < 0 ||
	    get_bridge(f, e) < 0 || watch_keeper(f, e) < 0)
		return failed(e);
	return close_strangers(e);
}

/* In the jail: take over what the former front had, and serve. */
static int begin(struct front *f, struct start *s, struct err *e)
{
	adopt_open(f, s->same_warden);
	if (statedir_load(&s->state, f->adopt->ids, f->adopt->n, &f->store, e) < 0)
		return failed(e);
	f->link->on_gone = on_warden_gone;
	f->link->arg = f;
	serve_setup(f, &serve_hooks);
	/* audit_open() tells the warden which cells of the former front are to be ended: before any
	 * part makes one. */
	if (policy_open(f, e) < 0 || audit_open(f, e) < 0 || packages_start(f, e) < 0 ||
	    workspaces_start(f, e) < 0)
		return failed(e);
	backing_start(f);
	policy_narrow_all(f); /* sandboxes of the former front */
	images_start(f);
	return listeners_open(f, &s->listeners, e);
}

static int start(struct front *f, struct warden_client *w, struct err *e)
{
	static struct start s = { .state = { -1, -1, -1, { -1, -1 } } };
	int r;

	s.warden = w;
	if ((r = open_parts(f, &s, e)) < 0 ||
	    (r = jail_enter(ledger_dirfd(f->ledger), f->jail, e)) < 0)
		return r;
	return begin(f, &s, e);
}

static void serve(struct front *f)
{
	log_event(LOG_LEVEL_INFO, "listening", F_STR("address", f->config.listen),
		  F_STR("socket", f->config.socket), F_BOOL("jail_user", f->jail->user),
		  F_BOOL("jail_seccomp", f->jail->seccomp),
		  F_BOOL("jail_landlock", f->jail->landlock));
	banner(f);
	systemd_ready(f->systemd, &f->loop);
}

/* Also after a start that failed half-way. */
static void finish(struct front *f, struct warden_client *w)
{
	mcp_end(f);
	jsessions_free(f);
	while (f->sandboxes) {
		struct sandbox *s = f->sandboxes;

		sandbox_halt(s, SANDBOX_LOST, "the daemon was stopped"); /* may unlist it */
		sandbox_end(s, NULL);
	}
	bridge_link_free(f->bridge);
	upstreams_close(f);
	audit_close(f);
	policy_close(f);
	gate_free(f->gate);
	backing_end(f);
	buckets_free(f->buckets);
	if (f->link->link.service) { /* the socket is the link's, once there is one */
		warden_link_free(f->link);
		w->fd = -1;
	}
	if (f->keep->watch.fd < 0) /* otherwise the keeper has the socket, too */
		warden_stop(w);
	store_close(f->store);
	secrets_free(f->secrets);
}

static int fail(const struct err *e)
{
	(void)fprintf(stderr, "caisson serve: %s\n", e->msg);
	return EXIT_FAILED;
}

int main(int argc, char **argv, char **env)
{
	struct warden_client w = { .fd = -1 };
	struct err e = { 0 };

	(void)signal(SIGHUP, SIG_IGN); /* it is for the keeper */
	if (argc > 0 && strcmp(argv[0], "policy") == 0)
		return policy_verb(argc, argv, env);
	struct front *f = parts_make();

	f->started_ns = clock_now_ns();
	f->started_ms = time_now_ms();
	/* A large buffer is a mapping of its own, which is given back when it is freed. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (config_parse(argc, argv, env, &f->config, &e) < 0)
		return fail(&e);
	if (f->config.help) {
		(void)printf("usage: caisson serve [OPTIONS]\n\n");
		config_usage(stdout);
		return 0;
	}
	if (f->config.version) {
		(void)printf("caisson %s\n", CAISSON_VERSION);
		return 0;
	}
	int r = start(f, &w, &e);

	if (r == 0) {
		serve(f);
		r = loop_run(&f->loop, &e);
	}
	finish(f, &w);
	if (r < 0)
		return fail(&e);
	return f->failed ? EXIT_FAILED : 0;
}

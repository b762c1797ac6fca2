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
#include "front/main/parts.h"

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
#include "front/buckets/space.h"
#include "front/egress/narrow.h"
#include "front/http/listeners.h"
#include "front/main/drain.h"
#include "front/main/policy_load.h"
#include "front/main/statedir.h"
#include "front/mcp/tool.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/sandbox.h"
#include "front/spec/mount_use.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/schema.h"
#include "front/support/time_text.h"
#include "front/tool_calls/upstream.h"
#include "ledger/ledger.h"

#define LARGE_BYTES (256 * 1024)
#define EXIT_FAILED 125

/* ---- before the jail ----------------------------------------------------------------------- */

static void set_spec(struct parts *p)
{
	const struct config *c = &p->daemon.config;

	spec_default(&p->cells.spec);
	p->cells.spec.limits.memory_bytes = c->memory_bytes;
	p->cells.spec.limits.cpu_milli = c->cpu_milli;
	p->cells.spec.limits.pids = c->pids;
	p->cells.spec.limits.disk_bytes = c->disk_bytes;
	p->cells.spec.without = c->without;
	p->cells.spec.limits.wall_ms = 0; /* deadlines are per execution here */
}

/* ---- services that are gone ---------------------------------------------------------------- */

static void on_warden_gone(struct warden_link *l)
{
	struct parts *p = l->arg;

	log_event(LOG_LEVEL_ERROR, "warden_gone", F_STR("what", "every sandbox is dead; ending"));
	p->daemon.failed = true;
	loop_stop(&p->daemon.loop);
}

/*
 * The gate's supervisor is gone too, and no other can be started from inside the jail. The next
 * front can start one, and takes the sandboxes over: so this front ends as if it were killed.
 */
static void on_gate_gone(struct gate_link *l)
{
	struct parts *p = l->arg;

	log_event(LOG_LEVEL_ERROR, "gate_gone",
		  F_STR("what",
			p->keep.watch.fd >= 0 ? "the next front starts another" : "ending"));
	if (p->keep.watch.fd >= 0 && !p->daemon.draining)
		abort();
	p->daemon.failed = true;
	loop_stop(&p->daemon.loop);
}

static int get_gate(struct parts *p, struct err *e)
{
	int r = gate_open(&p->gate, &p->daemon.loop, e);

	p->gate.on_event = egress_event;
	p->gate.on_again = egress_again;
	p->gate.on_secrets = secrets_again;
	p->gate.on_gone = on_gate_gone;
	p->gate.arg = p;
	p->gate.egresses = &p->egresses;
	p->gate.secrets = &p->secrets;
	return r;
}

/* After SIGHUP the keeper hands over a file that has changed. Otherwise the keeper is gone, which
 * could start another front. */
static void on_keeper(struct watch *w, uint32_t events)
{
	struct parts *p = w->arg;
	int fd, error, file = keep_hear(&p->keep, &fd, &error);

	(void)events;
	if (file == KEEPER_FILE_POLICY)
		policy_reload(p, fd, error);
	if (file == KEEPER_FILE_SECRETS)
		secrets_reload(&p->secrets);
	if (file >= 0)
		return;
	loop_del(w);
	w->fd = fd_close(w->fd);
	log_event(LOG_LEVEL_ERROR, "keeper_gone", F_STR("what", "ending"));
	p->daemon.failed = true;
	loop_stop(&p->daemon.loop);
}

static int watch_keeper(struct parts *p, struct err *e)
{
	p->keep.watch.events = EPOLLIN;
	p->keep.watch.fn = on_keeper;
	p->keep.watch.arg = p;
	return p->keep.watch.fd < 0 ? 0 : loop_add(&p->daemon.loop, &p->keep.watch, e);
}

/* ---- start and end ------------------------------------------------------------------------- */

/* Commands to try, for a person who started the daemon by hand. */
static void banner(const struct parts *p)
{
	const struct config *c = &p->daemon.config;
	const char *scheme = c->tls_cert ? "https" : "http";
	const char *auth =
		auth_has_tokens(p->server.auth) ? " -H \"Authorization: Bearer $TOKEN\"" : "";

	/* A client calls an address; the wildcard is only for listening. */
	bool any = strncmp(c->listen, "0.0.0.0:", 8) == 0;
	char call[64];

	(void)snprintf(call, sizeof(call), "%s%s", any ? "127.0.0.1" : "",
		       c->listen + (any ? strlen("0.0.0.0") : 0));
	if (strcmp(c->listen, "none") == 0) {
		(void)printf("caisson listens on %s\n", c->socket);
	} else {
		(void)printf("caisson listens on %s://%s%s%s\n\n"
			     "  curl %s://%s/execute%s -H 'Content-Type: application/json' \\\n"
			     "    -d '{\"code\": \"print(6 * 7)\"}'\n"
			     "  curl %s://%s/health\n"
			     "  and in a browser: %s://%s/docs\n\n",
			     scheme, c->listen, strcmp(c->socket, "none") ? " and " : "",
			     strcmp(c->socket, "none") ? c->socket : "", scheme, call, auth, scheme,
			     call, scheme, call);
	}
	(void)fflush(stdout);
}

/* Make one cell as all others will be made, and end it: a daemon that cannot make cells does not
 * start. */
static int probe(const struct parts *p, struct warden_client *w, struct err *e)
{
	struct warden_cell cell;
	struct cell_usage ignored;
	const struct image_use *own = &p->images.own;
	struct cell_spec spec = p->cells.spec;

	image_spec(own, &spec);
	int r = warden_create(w, &spec, own->fds, own->n_fds, &cell, e);

	if (r < 0) /* -ENOSPC, -EROFS: the journal has no room for a record */
		return r == -ENOSPC || r == -EROFS ?
			       err_wrap(e, "--state %s", p->daemon.config.state) :
			       r;
	fd_close(cell.channel);
	return warden_destroy(w, cell.handle, &ignored, e);
}

/* The warden of the former front, if there is one: it has proved that it can make cells. */
static int get_warden(struct parts *p, struct warden_client *w, bool *ret_kept, struct err *e)
{
	int r;

	w->fd = keep_take_one(&p->keep, KEEPER_WARDEN);
	*ret_kept = w->fd >= 0;
	if (!*ret_kept &&
	    ((r = warden_start(p->daemon.config.state, w, e)) < 0 || (r = probe(p, w, e)) < 0))
		return r;
	keep_put(&p->keep, KEEPER_WARDEN, &w->fd, 1);
	return 0;
}

/* At the start, so that an error in its configuration is found now and not at the first call. */
static int get_bridge(struct parts *p, struct err *e)
{
	int fd = bridge_wanted(&p->daemon.config) ? bridge_start(&p->daemon.config, e) : -1;

	if (fd < 0 && bridge_wanted(&p->daemon.config))
		return fd;
	int r = bridge_link_init(&p->bridge, &p->daemon.loop, fd, e);

	return r < 0 ? r : upstreams_open(&p->tool_calls, e);
}

static int get_state(struct parts *p, struct statedir *state, struct err *e)
{
	const struct ledger_config config = { .line = open_executions_line,
					      .arg = &p->open_executions };
	pid_t pid = p->keep.pid ? p->keep.pid : getpid();
	int r = statedir_open(p->daemon.config.state, keep_take_one(&p->keep, KEEPER_LOCK), pid,
			      state, e);

	if (r < 0)
		return r;
	keep_put(&p->keep, KEEPER_LOCK, &state->lock, 1);
	r = spool_bank_open(&p->spools, state->spool, SPOOL_BANK_DISK, SPOOL_BANK_MEMORY, e);
	return r < 0 ? r : ledger_open(state->ledger, &config, &p->daemon.ledger, e);
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
static int open_parts(struct parts *p, struct start *s, struct err *e)
{
	if (keep_open(&p->keep, e) < 0 || listeners_take(&p->server, &s->listeners, e) < 0)
		return failed(e);
	systemd_open(&p->systemd, &p->keep);
	/* The gate first: it gets ready while this process goes on. */
	if (loop_init(&p->daemon.loop, e) < 0 || gate_start(&p->gate, &p->daemon.config, e) < 0)
		return failed(e);
	listeners_share(&p->daemon);
	p->daemon.meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	log_setup(p->daemon.config.log_level, p->daemon.config.log_json);
	metrics_setup();
	schema_setup();
	mcp_setup(&p->mcp);
	field_set_timeouts(p->daemon.config.timeout_ms, p->daemon.config.max_timeout_ms);
	set_spec(p);
	if (spec_check(&p->cells.spec, e) < 0 ||
	    auth_load(&p->daemon.config, &p->server.auth, e) < 0 ||
	    secrets_load(&p->secrets, e) < 0 || policy_load(p, e) < 0 ||
	    drivers_open(&p->drivers, e) < 0 || images_open(&p->cells, e) < 0 ||
	    pulls_open(&p->pulls, e) < 0 || get_state(p, &s->state, e) < 0 ||
	    packages_open(&p->packages, e) < 0 || workspaces_open(&p->workspaces, e) < 0 ||
	    mounts_open(&p->mounts, p->daemon.config.mounts, &p->cells.spec, e) < 0)
		return failed(e);
	mounts_pool(&p->admission);
	if (buckets_start(&p->buckets, e) < 0 || get_warden(p, s->warden, &s->same_warden, e) < 0 ||
	    get_gate(p, e) < 0 || listeners_bind(&p->server, &s->listeners, e) < 0 ||
	    auth_open_tcp(p->server.auth, s->listeners.tcp, e) < 0 || drain_open(p, e) < 0 ||
	    warden_link_init(&p->link, &p->daemon.loop, s->warden->fd, p->keep.life, e) < 0 ||
	    get_bridge(p, e) < 0 || watch_keeper(p, e) < 0)
		return failed(e);
	return close_strangers(e);
}

/* In the jail: take over what the former front had, and serve. */
static int begin(struct parts *p, struct start *s, struct err *e)
{
	adopt_open(&p->sandboxes, s->same_warden);
	if (statedir_load(&s->state, p->adopt.ids, p->adopt.n, &p->daemon.store, e) < 0)
		return failed(e);
	p->link.on_gone = on_warden_gone;
	p->link.arg = p;
	serve_setup(&p->server);
	/* audit_open() tells the warden which cells of the former front are to be ended: before any
	 * part makes one. */
	if (pulls_start(&p->pulls, e) < 0 || policy_open(p, e) < 0 ||
	    audit_open(&p->sandboxes, e) < 0 || packages_start(&p->packages, e) < 0 ||
	    workspaces_start(&p->workspaces, e) < 0)
		return failed(e);
	backing_start(&p->buckets);
	policy_narrow_all(&p->sandboxes); /* sandboxes of the former front */
	images_start(&p->cells);
	return listeners_open(&p->server, &s->listeners, e);
}

static int start(struct parts *p, struct warden_client *w, struct err *e)
{
	static struct start s = { .state = { -1, -1, -1, { -1, -1 } } };
	int r;

	s.warden = w;
	if ((r = open_parts(p, &s, e)) < 0 ||
	    (r = jail_enter(ledger_dirfd(p->daemon.ledger), &p->daemon.jail, e)) < 0)
		return r;
	return begin(p, &s, e);
}

static void serve(struct parts *p)
{
	if (p->daemon.config.without)
		log_event(
			LOG_LEVEL_WARNING, "weaker", F_STR("without", "cgroup"),
			F_STR("missing",
			      "memory is limited per process, not per sandbox; processors are not "
			      "limited; neither is counted for interpreters"));
	log_event(LOG_LEVEL_INFO, "listening", F_STR("address", p->daemon.config.listen),
		  F_STR("socket", p->daemon.config.socket),
		  F_BOOL("jail_user", p->daemon.jail.user),
		  F_BOOL("jail_seccomp", p->daemon.jail.seccomp),
		  F_BOOL("jail_landlock", p->daemon.jail.landlock));
	if (p->daemon.config.no_token)
		log_event(LOG_LEVEL_WARNING, "no_token",
			  F_STR("what", "every caller who reaches this address may run code"),
			  F_STR("address", p->daemon.config.listen));
	banner(p);
	systemd_ready(&p->systemd, &p->daemon.loop);
}

/* Also after a start that failed half-way. */
static void finish(struct parts *p, struct warden_client *w)
{
	mcp_end(&p->mcp);
	jsessions_free(&p->notebooks);
	while (p->sandboxes.first) {
		struct sandbox *s = p->sandboxes.first;

		sandbox_halt(s, SANDBOX_LOST, "the daemon was stopped"); /* may unlist it */
		sandbox_end(s, NULL);
	}
	bridge_link_free(&p->bridge);
	upstreams_close(&p->tool_calls);
	audit_close(&p->sandboxes);
	policy_close(p);
	gate_free(&p->gate);
	spaces_drop_all();
	buckets_free(&p->buckets);
	if (p->link.link.service) { /* the socket is the link's, once there is one */
		warden_link_free(&p->link);
		w->fd = -1;
	}
	if (p->keep.watch.fd < 0) /* otherwise the keeper has the socket, too */
		warden_stop(w);
	store_close(p->daemon.store);
	secrets_free(&p->secrets);
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
	struct parts *p = parts_make();

	p->daemon.started_ns = clock_now_ns();
	p->daemon.started_ms = time_now_ms();
	/* A large buffer is a mapping of its own, which is given back when it is freed. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (config_parse(argc, argv, env, mcp_tools_option, &p->daemon.config, &e) < 0)
		return fail(&e);
	if (p->daemon.config.help) {
		(void)printf("usage: caisson serve [OPTIONS]\n\n");
		config_usage(stdout);
		return 0;
	}
	if (p->daemon.config.version) {
		(void)printf("caisson %s\n", CAISSON_VERSION);
		return 0;
	}
	int r = start(p, &w, &e);

	if (r == 0) {
		serve(p);
		r = loop_run(&p->daemon.loop, &e);
	}
	finish(p, &w);
	if (r < 0)
		return fail(&e);
	return p->daemon.failed ? EXIT_FAILED : 0;
}

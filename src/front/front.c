/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - caisson-front: the daemon behind `caisson serve`.
 *
 * Theory of operation. Everything that needs a right is done first, as whoever started us: reading
 * the tokens and certificates, opening the drivers and the image, binding the addresses, starting
 * the warden. Then the jail closes (jail.h) and the loop begins: from there on this process reads
 * strangers' bytes and has no power but the descriptors it holds.
 *
 * SIGTERM and SIGINT drain: no new connection, what runs may finish, then the end. A second one ends
 * at once. The warden sees our socket close and takes everything down that is left.
 */
#include "front/front.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "client/warden_client.h"
#include "front/audit.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/sandbox.h"
#include "front/schema.h"
#include "front/serve.h"
#include "front/statedir.h"
#include "ledger/ledger.h"
#include "net/tls.h"

#define LARGE_BYTES (256 * 1024)
#define EXIT_FAILED 125
#define CONNS_MAX 10240u
#define QUEUE_HIGH (256u << 10)
#define QUEUE_LOW (64u << 10)
#define QUEUE_MAX (160u << 20) /* one whole answer */

/* ---- before the jail -------------------------------------------------------------------------------- */

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

/* Which interpreters the image has. A link is taken for what it links to: trying tells for sure. */
static void look_for_languages(struct front *f, int root)
{
	static const char *const dirs[] = { "usr/local/bin", "usr/bin", "bin" };
	char path[64];

	for (size_t i = 0; i < LANG_MAX_; i++)
		for (size_t d = 0; d < ARRAY_SIZE(dirs); d++) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], languages[i].program);
			if (faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
				f->has_language[i] = true;
		}
}

static int open_image(struct front *f, struct err *e)
{
	const char *image = f->config.image;

	f->image_fd = -1;
	if (strcmp(image, "host") == 0) {
		_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		look_for_languages(f, root);
		return 0;
	}
	if (strncmp(image, "dir:", 4) != 0)
		return err_say(e, -EINVAL, "--image: '%s' is unknown; host and dir:PATH are known",
			       image);
	f->spec.image = CELL_IMAGE_DIR;
	f->image_fd = open(image + 4, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->image_fd < 0)
		return err_set(e, -errno, "--image %s", image);
	look_for_languages(f, f->image_fd);
	return 0;
}

struct sockets {
	int tcp, local;
	struct tls_server *tls;
};

static int bind_all(const struct front *f, const struct systemd_sockets *given, struct sockets *s,
		    struct err *e)
{
	const struct config *c = &f->config;

	s->tcp = given->tcp;
	s->local = given->local;
	s->tls = NULL;
	if (c->tls_cert) {
		int r = tls_server_new(c->tls_cert, c->tls_key, &s->tls, e);

		if (r < 0)
			return r;
	}
	if (s->tcp >= 0 || s->local >= 0) /* whoever hands over sockets has chosen them all */
		return 0;
	if (strcmp(c->listen, "none") != 0 && (s->tcp = listener_tcp(c->listen, e)) < 0)
		return s->tcp;
	if (strcmp(c->socket, "none") != 0 && (s->local = listener_unix(c->socket, 0660, e)) < 0)
		return s->local;
	return 0;
}

/* Sockets that were handed over are the ones that rules about addresses are applied to. */
static void take_addresses(struct front *f, const struct systemd_sockets *given)
{
	if (given->tcp < 0 && given->local < 0)
		return;
	(void)snprintf(f->address, sizeof(f->address), "%s",
		       given->tcp >= 0 ? given->address : "none");
	f->config.listen = f->address;
	f->config.socket = given->local >= 0 && given->path[0] ? given->path : "none";
}

/* "Any free port" has become one by now: say which, wherever the address is said. */
static int real_port(struct front *f, const struct sockets *s, struct err *e)
{
	const char *colon = strrchr(f->config.listen, ':');
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (s->tcp < 0 || !colon || strcmp(colon, ":0") != 0)
		return 0;
	if (getsockname(s->tcp, (struct sockaddr *)&at, &len) < 0)
		return err_set(e, -errno, "--listen: find the port");
	in_port_t port = at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port :
						    ((struct sockaddr_in *)&at)->sin_port;

	(void)snprintf(f->address, sizeof(f->address), "%.*s:%u", (int)(colon - f->config.listen),
		       f->config.listen, ntohs(port));
	f->config.listen = f->address;
	return 0;
}

static int open_signals(struct front *f, void (*fn)(struct watch *, uint32_t), struct err *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
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

/* ---- the end ------------------------------------------------------------------------------------------ */

static void stop_if_quiet(struct timer *t)
{
	struct front *f = t->arg;
	bool late = clock_now_ns() >= f->drain_until_ns;

	/* An answer is only given when it has left us. */
	if ((f->n_queued == 0 && http_live(&f->http) == 0) || late) {
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
	if (f->draining) {
		loop_stop(&f->loop);
		return;
	}
	f->draining = true;
	systemd_say(&f->systemd, "STOPPING=1\nSTATUS=Finishing what runs");
	log_event(LOG_LEVEL_INFO, "drain", F_UINT("executions", f->n_queued));
	for (size_t i = 0; i < ARRAY_SIZE(f->listeners); i++)
		if (f->listeners[i])
			listener_stop(f->listeners[i]);
	http_drain(&f->http);
	pool_stop(&f->pool);
	nursery_stop(&f->nursery);
	f->drain_until_ns = clock_now_ns() + f->config.drain_ms * CLOCK_NS_PER_MS;
	f->drain_timer.fn = stop_if_quiet;
	f->drain_timer.arg = f;
	timer_set(&f->loop, &f->drain_timer, f->loop.now_ns);
}

static void on_warden_gone(struct link *l)
{
	struct front *f = l->arg;

	log_event(LOG_LEVEL_ERROR, "warden_gone", F_STR("what", "every sandbox is dead; ending"));
	f->failed = true;
	loop_stop(&f->loop);
}

/* ---- life --------------------------------------------------------------------------------------------- */

static bool on_accept(struct conn *c, void *arg)
{
	struct front *f = arg;

	metric_add(M_HTTP_CONNECTIONS, 1);
	http_serve(c, &f->http);
	return true;
}

/* As many connections as leave room for what sandboxes need. */
static size_t conns_max(void)
{
	struct rlimit l = { .rlim_cur = 1024 };

	(void)getrlimit(RLIMIT_NOFILE, &l);
	return l.rlim_cur / 4 < CONNS_MAX ? (size_t)l.rlim_cur / 4 : CONNS_MAX;
}

static int listen_all(struct front *f, const struct sockets *s, struct err *e)
{
	struct listener_config config = {
		.max_conns = f->conns_max,
		.max_conns_host = 0,
		.queue_high = QUEUE_HIGH,
		.queue_low = QUEUE_LOW,
		.queue_max = QUEUE_MAX,
		.linger_ns = 5 * CLOCK_NS_PER_S,
		.on_accept = on_accept,
		.arg = f,
	};
	int r = 0;

	if (s->tcp >= 0)
		r = listener_start(&f->loop, s->tcp, s->tls, &config, &f->listeners[0], e);
	if (r == 0 && s->local >= 0)
		r = listener_start(&f->loop, s->local, NULL, &config, &f->listeners[1], e);
	return r;
}

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

static void on_nursery(struct nursery *n)
{
	pool_poke(&n->f->pool);
}

/* A daemon that can serve nobody does not start: make one cell as all others will be made, and end it. */
static int probe(const struct front *f, struct warden_client *w, struct err *e)
{
	struct warden_cell cell;
	struct cell_usage ignored;
	int r = warden_create(w, &f->spec, &f->image_fd, f->image_fd >= 0 ? 1 : 0, &cell, e);

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

static int start(struct front *f, struct warden_client *w, struct err *e)
{
	struct sockets s;
	static struct systemd_sockets given;
	struct statedir state = { -1, -1, -1, { -1, -1 } };
	int r = systemd_sockets(&given, e);

	if (r < 0)
		return r;
	take_addresses(f, &given);
	systemd_open(&f->systemd);
	r = loop_init(&f->loop, e);

	fd_many(); /* half a dozen per sandbox, one per connection */
	f->conns_max = conns_max();
	f->meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	log_setup(f->config.log_level, f->config.log_json);
	metrics_setup();
	schema_setup();
	route_setup(f->config.timeout_ms, f->config.max_timeout_ms);
	set_spec(f);
	f->streams.max = STREAM_BANK_BYTES;
	if (r == 0)
		r = spec_check(&f->spec, e);
	if (r == 0)
		r = auth_load(&f->config, &f->auth, e);
	if (r == 0)
		r = drivers_open(&f->drivers, e);
	if (r == 0)
		r = open_image(f, e);
	if (r == 0)
		r = statedir_open(f->config.state, &state, e);
	f->spool_dir = state.spool;
	if (r == 0)
		r = spool_bank_open(&f->spools, f->spool_dir, SPOOL_BANK_DISK, SPOOL_BANK_MEMORY,
				    e);
	if (r == 0)
		r = ledger_open(state.ledger, NULL, &f->ledger, e);
	if (r == 0)
		r = warden_start(f->config.state, w, e);
	if (r == 0)
		r = probe(f, w, e);
	if (r == 0)
		r = bind_all(f, &given, &s, e);
	if (r == 0)
		r = real_port(f, &s, e);
	if (r == 0)
		r = open_signals(f, on_signal, e);
	if (r == 0)
		r = link_init(&f->link, &f->loop, w->fd, e);
	if (r == 0)
		r = jail_enter(ledger_dirfd(f->ledger), &f->jail, e);
	if (r == 0)
		r = statedir_load(&state, &f->store, e);
	if (r < 0)
		return r;
	f->link.on_gone = on_warden_gone;
	f->link.arg = f;
	f->nursery.on_change = on_nursery;
	serve_setup(f);
	nursery_start(&f->nursery, f);
	pool_start(&f->pool, f);
	r = audit_open(f, e);
	return r < 0 ? r : listen_all(f, &s, e);
}

static void put_line(const char *line, void *arg)
{
	(void)fprintf(arg, "%s\n", line);
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

	f.started_ns = clock_now_ns();
	/* A large buffer is a mapping of its own, and given back when it is done with, however many there were. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (config_parse(argc, argv, env, &f.config, &e) < 0)
		return fail(&e);
	if (f.config.help) {
		(void)printf("usage: caisson serve [OPTIONS]\n\n");
		config_usage(put_line, stdout);
		return 0;
	}
	if (f.config.version) {
		(void)printf("caisson %s\n", CAISSON_VERSION);
		return 0;
	}
	int r = start(&f, &w, &e);

	if (r == 0) {
		log_event(LOG_LEVEL_INFO, "listening", F_STR("address", f.config.listen),
			  F_STR("socket", f.config.socket), F_BOOL("jail_user", f.jail.user),
			  F_BOOL("jail_seccomp", f.jail.seccomp),
			  F_BOOL("jail_landlock", f.jail.landlock));
		banner(&f);
		systemd_ready(&f.systemd, &f.loop);
		r = loop_run(&f.loop, &e);
	}
	while (f.sandboxes) {
		sandbox_halt(f.sandboxes, SANDBOX_LOST, "the daemon was stopped");
		sandbox_end(f.sandboxes, NULL);
	}
	audit_close(&f);
	if (f.link.loop) { /* the socket is the link's, once there is one */
		link_free(&f.link);
		w.fd = -1;
	}
	warden_stop(&w);
	store_close(f.store);
	if (r < 0)
		return fail(&e);
	return f.failed ? EXIT_FAILED : 0;
}

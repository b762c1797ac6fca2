/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervisor.c - Start gate after gate on one socket, and give each the operator's secrets.
 *
 * Theory of operation. A gate reads strangers' bytes, which may crash it, and the front, in its
 * jail, can start no program. So the front starts this process before. It reads the secrets (in a
 * child: vault/source.h), sends the front the part that the front may know, and starts a gate: this
 * program again, executed anew. When a gate ends, another one follows, at once if it had lived for
 * a while. It uses the same socket: messages are packets, so none is cut in half, and each carries
 * the number of its gate. The front learns of it by GATE_READY and sends every sandbox again.
 *
 * Why it is safe. It keeps the starter's rights, because the next gate needs them until it is in
 * its jail, and because the sources have to be read again. From the front, which may have been
 * taken over, it accepts one fixed-size message with one meaning: read the sources that were named
 * at the start again. It never reads the gate's socket. Values of secrets are in a child that ends,
 * and in a sealed memfd that goes to gates alone: secrets that are tied to hosts never pass through
 * the front.
 *
 * Why base/supervise.h does not fit. A gate is executed anew, with a socket of its own and the
 * secrets in it. This process answers the front and the reader of secrets meanwhile.
 */
#include "gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "wire/gate.h"

#define EXIT_FAILED 125
#define HEALTHY_NS (10 * CLOCK_NS_PER_S) /* a gate that lived so long is followed at once */
#define BACK_OFF_MS 100u
#define BACK_OFF_MAX_MS 5000u
#define GRACE_NS (3 * CLOCK_NS_PER_S) /* for a gate whose front is gone */
#define ARGS_MAX 128u

struct supervisor {
	char *argv[ARGS_MAX]; /* of gates; the last one is the number of the gate */
	char life_text[24];
	char *env[5]; /* of gates: the variables for proxies alone */
	char **own_env;
	const struct sources *from;
	int signals;
	pid_t gate; /* 0: none */
	int line;   /* to it; -1 */
	uint32_t life;
	uint64_t began_ns, next_ns; /* when the gate began, when the next one begins */
	unsigned int wait_ms;
	int whole;    /* the secrets in force, for the next gate; -1: none */
	pid_t reader; /* 0: none */
	int answer;   /* of it; -1 */
	bool loaded;  /* once */
	bool again;   /* read once more: the front asked meanwhile */
	bool over;
	int status; /* to end with */
};

struct sources supervisor_sources(char **argv)
{
	struct sources s = { 0 };
	const struct {
		const char *name;
		const char **to;
	} ours[] = {
		{ "--secrets-file=", &s.file },
		{ "--secrets-env=", &s.prefix },
		{ "--secrets-command=", &s.command },
	};
	char **to = argv;

	for (char **at = argv; *at; at++) {
		bool taken = false;

		for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
			if (strncmp(*at, ours[i].name, strlen(ours[i].name)) == 0) {
				*ours[i].to = *at + strlen(ours[i].name);
				taken = true;
			}
		if (!taken)
			*to++ = *at;
	}
	*to = NULL;
	return s;
}

/* ---- gates --------------------------------------------------------------------------------- */

static void give_vault(struct supervisor *m)
{
	const struct gate_msg msg = { .version = GATE_VERSION, .op = GATE_VAULT, .id = 1 };

	/* A gate whose socket is full does not read: it is stuck. */
	if (m->line >= 0 && m->whole >= 0 &&
	    fd_send(m->line, &msg, sizeof(msg), &m->whole, 1) < 0 && m->gate > 0)
		(void)kill(m->gate, SIGKILL);
}

static int spawn(struct supervisor *m, int theirs)
{
	const struct spawn s = {
		.path = "/proc/self/exe", /* this program, whatever file has its name now */
		.argv = m->argv,
		.envp = m->env,
		.fds = { { GATE_FD, GATE_FD }, { theirs, GATE_SUPERVISOR_FD } },
		.n_fds = 2,
	};

	return spawn_program(&s, &m->gate, NULL);
}

static void start_later(struct supervisor *m)
{
	m->next_ns = clock_now_ns() + m->wait_ms * CLOCK_NS_PER_MS;
	m->wait_ms = m->wait_ms ? m->wait_ms * 2 : BACK_OFF_MS;
	if (m->wait_ms > BACK_OFF_MAX_MS)
		m->wait_ms = BACK_OFF_MAX_MS;
}

static void start(struct supervisor *m)
{
	int pair[2];

	m->next_ns = 0;
	m->line = fd_close(m->line);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		start_later(m);
		return;
	}
	_fd_ int theirs = pair[1];

	m->line = pair[0];
	m->life++;
	m->began_ns = clock_now_ns();
	(void)snprintf(m->life_text, sizeof(m->life_text), "--life=%u", m->life);
	(void)fcntl(m->line, F_SETFL, O_NONBLOCK);
	give_vault(m); /* waits in the socket */
	if (spawn(m, theirs) < 0)
		start_later(m);
}

/* A first gate that cannot start has reported why, and every other one would fail as well. */
static void on_gate_end(struct supervisor *m, int status)
{
	m->gate = 0;
	m->line = fd_close(m->line);
	if (m->over)
		return;
	if (m->life == 1 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILED) {
		m->status = EXIT_FAILED;
		m->over = true;
		return;
	}
	if (clock_now_ns() - m->began_ns > HEALTHY_NS)
		m->wait_ms = 0;
	start_later(m);
}

/* ---- secrets ------------------------------------------------------------------------------- */

static void report(const struct err *e, int blind)
{
	struct supervisor_msg msg = { .version = GATE_VERSION,
				      .op = SUPERVISOR_SECRETS,
				      .code = e->code };

	(void)snprintf(msg.why, sizeof(msg.why), "%.*s", (int)sizeof(msg.why) - 1, e->msg);
	(void)fd_send(GATE_SUPERVISOR_FD, &msg, sizeof(msg), &blind, blind >= 0 ? 1 : 0);
}

/* If the first reading fails, the daemon does not start; later the old secrets stay in force. */
static void finish(struct supervisor *m, const struct err *e, int whole, int blind)
{
	if (e->code == 0) {
		fd_close(m->whole);
		m->whole = whole;
		give_vault(m); /* before the front knows: it may ask the gate to bind them */
	}
	report(e, blind);
	if (m->loaded)
		return;
	m->loaded = true;
	if (e->code == 0) {
		start(m);
	} else {
		m->over = true;
		m->status = EXIT_FAILED;
	}
}

static void read_sources(struct supervisor *m)
{
	struct err e = { 0 };

	if (m->reader > 0) {
		m->again = true;
		return;
	}
	m->again = false;
	m->reader = source_begin(m->from, m->own_env, &m->answer, &e);
	if (m->reader > 0)
		return;
	m->reader = 0;
	finish(m, &e, -1, -1);
}

static void on_answer(struct supervisor *m)
{
	struct err e = { 0 };
	int whole = -1;
	_fd_ int blind = -1;
	pid_t pid = m->reader;

	m->reader = 0;
	(void)source_finish(pid, TAKE_FD(m->answer), &whole, &blind, &e);
	finish(m, &e, whole, blind);
	if (m->again && !m->over)
		read_sources(m);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void on_front(struct supervisor *m)
{
	struct supervisor_msg msg;
	ssize_t n = fd_recv(GATE_SUPERVISOR_FD, &msg, sizeof(msg), NULL, NULL);

	if (n == -EAGAIN)
		return;
	if (n == (ssize_t)sizeof(msg) && msg.version == GATE_VERSION && msg.op == SUPERVISOR_RELOAD)
		read_sources(m);
	else
		m->over = true;
}

static void on_signal(struct supervisor *m)
{
	struct signalfd_siginfo info;
	int status;

	while (read(m->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		; /* signals of the terminal are ignored: the front's end is the end */
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		if (pid == m->gate)
			on_gate_end(m, status);
}

static int patience(uint64_t until_ns)
{
	uint64_t now = clock_now_ns();

	if (until_ns == 0)
		return -1;
	return until_ns > now ? (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1 : 0;
}

static void turn(struct supervisor *m)
{
	struct pollfd p[] = { { .fd = m->signals, .events = POLLIN },
			      { .fd = GATE_SUPERVISOR_FD, .events = POLLIN },
			      { .fd = m->answer, .events = POLLIN } };

	(void)poll(p, ARRAY_SIZE(p), patience(m->next_ns));
	if (p[0].revents)
		on_signal(m);
	if (p[1].revents && !m->over)
		on_front(m);
	if (p[2].revents && !m->over)
		on_answer(m);
	if (m->next_ns && !m->over && clock_now_ns() >= m->next_ns)
		start(m);
}

/* The gate's socket closes with the front's: the gate ends by itself, or it is stuck. */
static void end_gate(struct supervisor *m)
{
	uint64_t until = clock_now_ns() + GRACE_NS;

	m->line = fd_close(m->line);
	while (m->gate > 0) {
		struct pollfd p = { .fd = m->signals, .events = POLLIN };

		if (poll(&p, 1, patience(until)) == 0) {
			(void)kill(m->gate, SIGKILL);
			until = clock_now_ns() + GRACE_NS;
		}
		on_signal(m);
	}
	if (m->reader > 0)
		(void)kill(m->reader, SIGKILL);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static int setup(struct supervisor *m)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
	const struct rlimit no_core = { 0, 0 };

	m->signals = fd_signals(signals, ARRAY_SIZE(signals), NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)prctl(PR_SET_NAME, "gate-supervisor");
	if (m->signals < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0 ||
	    fcntl(GATE_SUPERVISOR_FD, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int supervisor_run(char **argv, char **env, const struct sources *from)
{
	static const char *const names[] = { "HTTPS_PROXY=", "https_proxy=", "NO_PROXY=",
					     "no_proxy=", NULL };
	struct supervisor m = {
		.own_env = env, .from = from, .line = -1, .whole = -1, .answer = -1
	};
	size_t n = 0;

	for (; n < ARGS_MAX - 2 && argv[n]; n++)
		m.argv[n] = argv[n];
	m.argv[n] = m.life_text;
	spawn_pick_env(env, names, m.env, ARRAY_SIZE(m.env));
	if (setup(&m) < 0)
		return EXIT_FAILED;
	read_sources(&m);
	while (!m.over)
		turn(&m);
	end_gate(&m);
	return m.status;
}

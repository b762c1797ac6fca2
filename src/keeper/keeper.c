/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.c - caisson-keeper: starts the front, holds its descriptors, and starts the next front.
 *
 * Theory of operation. `caisson serve` becomes this process. It starts caisson-front and then does
 * three things: it takes descriptors under keys and gives them up again (wire/keeper.h); it passes
 * SIGTERM and SIGINT to the front, and three words of the front to a service manager; on SIGHUP it
 * opens the operator's files again and hands them over unread. When a signal kills the front, the
 * keeper starts the next one and hands over everything that it holds: cells, kernels and listening
 * sockets do not notice. When the front ends by itself (it was told to, it could not start, the
 * warden is gone) so does the keeper, with the same code; all descriptors close with it, and the
 * warden ends the cells.
 *
 * Why it is safe. It keeps the rights of its starter, because the next front needs them until it is
 * in its jail. So it reads from the front, which may have been taken over, fixed-size messages
 * alone: a key that is compared with a bound, and descriptors that it never reads, writes, maps or
 * opens anything with. Nothing is allocated per message. A front that floods it fills its own
 * table; after an invalid message it reads no more. The one thing that a front can make it do is
 * start a front, at most as often as the back-off allows, with the arguments and environment that
 * it was itself started with. These, and no message, also name the files that are opened on SIGHUP.
 *
 * The descriptors that a front leaves may be what kills the next one: a front reports when it has
 * lived with them for a moment (KEEPER_SETTLED). After a few that crashed before that, or more that
 * were killed, everything but lock and listening sockets is dropped; after some more the keeper
 * gives up.
 *
 * Why base/supervise.h does not fit. The keeper takes descriptors and signals while a front lives,
 * and hands them to the next one. How soon that starts, and with what, depends on whether the
 * fronts before it had settled.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/spawn.h"
#include "client/program.h"
#include "wire/keeper.h"

#define EXIT_FAILED 125
#define HARM_KILLED 1u   /* a front that did not settle, and was ended by SIGKILL */
#define HARM_CRASHED 3u  /* ... or died of itself */
#define HARM_DROP 9u     /* in a row: what they were handed may be the reason */
#define HARM_GIVE_UP 24u /* it was not */
#define BACK_OFF_MS 100u /* before the third front in a row, then twice as long each time */
#define BACK_OFF_MAX_MS 1000u
#define HAND_OVER_S 10    /* a front that does not take what it is handed for so long is stuck */
#define CHILDREN_MS 30000 /* how long the warden may take to end */

static struct held {
	unsigned int n;
	int fds[KEEPER_FDS_MAX];
} held[KEEPER_KEYS];

struct keeper {
	char path[PATH_MAX]; /* of the front */
	char **argv;
	sigset_t before; /* the signal mask that we came with, and the front gets */
	int signals;     /* signalfd */
	int sock;        /* to the front; -1: it closed it */
	int manager;     /* socket of the service manager; -1: none */
	int table;
	pid_t front; /* 0: none runs */
	int status;  /* of the last one */
	uint32_t life;
	unsigned int unsettled, harm; /* fronts in a row that died before they had settled */
	int stopping;                 /* the signal that told us to end; 0: none */
};

/* ---- what is held --------------------------------------------------------------------------- */

static void drop(uint32_t key)
{
	struct held *h = &held[key];

	while (h->n > 0)
		fd_close(h->fds[--h->n]);
}

static void drop_from(uint32_t key)
{
	for (; key < KEEPER_KEYS; key++)
		drop(key);
}

static void put(uint32_t key, const int *fds, size_t n)
{
	drop(key);
	memcpy(held[key].fds, fds, n * sizeof(*fds));
	held[key].n = (unsigned int)n;
}

static const char *const words[KEEPER_WORD_MAX_] = KEEPER_WORDS;

/*
 * All messages of the front. After an invalid one, or one that could not be read, the socket
 * closes. The front takes that for our end, and ends; so all descriptors are dropped too, or the
 * warden, for which the front then waits, would wait for us. An end of file alone is a front that
 * died, or is done: that is noticed elsewhere.
 */
static void listen_to_front(struct keeper *k)
{
	while (k->sock >= 0) {
		struct keeper_msg m = { 0 };
		int fds[KEEPER_FDS_MAX];
		size_t n_fds = ARRAY_SIZE(fds);
		ssize_t n = fd_recv(k->sock, &m, sizeof(m), fds, &n_fds);

		if (n == -EAGAIN)
			return;
		/* It died with a message of ours unread; its own messages are still to be read. */
		if (n == -ECONNRESET)
			continue;
		/* We have no descriptors left for those that came: the key gets none. */
		if (n == -EMSGSIZE && m.version == KEEPER_VERSION && m.key < KEEPER_KEYS) {
			drop(m.key);
			continue;
		}
		if (n == (ssize_t)sizeof(m) && m.version == KEEPER_VERSION && m.key < KEEPER_KEYS) {
			if (m.op == KEEPER_PUT) {
				put(m.key, fds, n_fds);
				continue;
			}
			if (m.op == KEEPER_DROP)
				drop(m.key);
			else if (m.op == KEEPER_SETTLED)
				k->unsettled = k->harm = 0;
			else if (m.op == KEEPER_SAY && m.key < KEEPER_WORD_MAX_)
				notify_say(k->manager, words[m.key]);
		} else {
			k->sock = fd_close(k->sock);
			if (n != 0)
				drop_from(0);
		}
		fd_close_all(fds, n > 0 ? n_fds : 0);
	}
}

/* ---- starting a front ----------------------------------------------------------------------- */

/* Its size is fixed, so that no front can take it from under another. */
static int make_table(struct keeper *k, struct err *e)
{
	fd_close(k->table);
	k->table = memfd_create("caisson-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (k->table < 0 || ftruncate(k->table, sizeof(struct keeper_table)) < 0 ||
	    fcntl(k->table, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(e, -errno, "make a table for the front");
	return 0;
}

/* With our descriptors: those of a service manager, and secrets of the environment, are among them.
 */
static int spawn(struct keeper *k, int theirs, struct err *e)
{
	sigset_t unignored, mask = k->before;
	const struct spawn s = {
		.path = k->path,
		.argv = k->argv,
		.envp = environ,
		.fds = { { theirs, KEEPER_FD } },
		.n_fds = 1,
		.keep_others = true,
		.mask = &mask,
		.unignored = &unignored,
	};

	(void)sigemptyset(&unignored);
	(void)sigaddset(&unignored, SIGPIPE);
	(void)sigaddset(&mask, SIGHUP); /* until it ignores it */
	/* While it takes over from another front, SIGTERM waits until it can handle it. */
	if (k->life > 1) {
		(void)sigaddset(&mask, SIGTERM);
		(void)sigaddset(&mask, SIGINT);
		(void)sigaddset(&mask, KEEPER_STOP);
	}
	return spawn_program(&s, &k->front, e);
}

static int send_front(struct keeper *k, enum keeper_op op, uint32_t key, const int *fds, size_t n)
{
	struct keeper_msg m = { .version = KEEPER_VERSION, .op = op, .key = key };

	m.signo = k->life > 1 ? (uint32_t)WTERMSIG(k->status) : 0;
	return fd_send(k->sock, &m, sizeof(m), fds, n);
}

/* A front that does not read, or cannot be sent to, would wait for the rest for ever: it is ended,
 * and the next one begins. */
static void hand_over(struct keeper *k)
{
	int r = send_front(k, KEEPER_TABLE, k->life, &k->table, 1);

	for (uint32_t key = 0; key < KEEPER_KEYS && r == 0; key++)
		if (held[key].n > 0)
			r = send_front(k, KEEPER_PUT, key, held[key].fds, held[key].n);
	if (r == 0)
		r = send_front(k, KEEPER_ALL, 0, NULL, 0);
	/* From here on nothing may wait for it, or signals would go unnoticed. */
	if (fcntl(k->sock, F_SETFL, O_NONBLOCK) < 0 || r < 0)
		(void)kill(k->front, SIGKILL);
}

static int start(struct keeper *k, struct err *e)
{
	const struct timeval patience = { .tv_sec = HAND_OVER_S };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	_fd_ int theirs = pair[1];

	k->sock = pair[0];
	if (setsockopt(k->sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return err_set(e, -errno, "set up the front's socket");
	k->life++;
	k->unsettled++;
	if (spawn(k, theirs, e) < 0)
		return e->code;
	theirs = fd_close(theirs);
	hand_over(k);
	return 0;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* The front may have ended, or a process whose parent it was. */
static void reap(struct keeper *k)
{
	int status;

	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		if (pid == k->front) {
			k->front = 0;
			/* A front that exits so asks to be treated as killed. */
			k->status = WIFEXITED(status) && WEXITSTATUS(status) == KEEPER_AGAIN ?
					    SIGKILL :
					    status;
		}
}

/* A front may open nothing, and what it had kept open would be the old file: editors rename a new
 * one into its place. */
static void hand_files(struct keeper *k)
{
	static const char *const options[KEEPER_FILE_MAX_] = {
		[KEEPER_FILE_POLICY] = "--policy",
	};

	for (uint32_t i = 0; i < KEEPER_FILE_MAX_ && k->sock >= 0; i++) {
		const char *path = options[i] ? options_peek(k->argv, environ, options[i]) : NULL;
		struct keeper_msg m = { .version = KEEPER_VERSION, .op = KEEPER_FILE, .key = i };
		_fd_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

		if (path && fd < 0)
			m.signo = (uint32_t)errno;
		if (path || !options[i]) /* files that are not ours to open: only the signal */
			(void)fd_send(k->sock, &m, sizeof(m), &fd, fd >= 0 ? 1 : 0);
	}
}

static void on_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue; /* several may be one */
		if (info.ssi_signo == SIGHUP) {
			hand_files(k);
			continue;
		}
		k->stopping = (int)info.ssi_signo;
		if (k->front > 0)
			(void)kill(k->front, KEEPER_STOP);
	}
	reap(k);
}

/* Until the front has ended, or for @ms without a front (-1: for ever), or until told to end. */
static void wait_for_front(struct keeper *k, int ms)
{
	bool any = k->front > 0;

	do {
		struct pollfd p[] = { { .fd = k->signals, .events = POLLIN },
				      { .fd = k->sock, .events = POLLIN } };

		if (poll(p, ARRAY_SIZE(p), ms) == 0)
			return;
		if (p[1].revents)
			listen_to_front(k);
		if (p[0].revents)
			on_signal(k);
	} while (any ? k->front > 0 : !k->stopping);
	/* Its last messages. */
	listen_to_front(k);
	k->sock = fd_close(k->sock);
}

/* The front is done. Close everything, so that the warden ends with everything that it made; wait
 * for that. */
static void let_go(struct keeper *k)
{
	struct pollfd p = { .fd = k->signals, .events = POLLIN };
	uint64_t until = clock_now_ns() + CHILDREN_MS * CLOCK_NS_PER_MS;

	k->sock = fd_close(k->sock);
	drop_from(0);
	for (;;) {
		uint64_t now = clock_now_ns();

		on_signal(k);
		if ((waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD) ||
		    now >= until)
			return;
		(void)poll(&p, 1, (int)((until - now) / CLOCK_NS_PER_MS) + 1);
	}
}

/* ---- life ----------------------------------------------------------------------------------- */

static int fail(const struct err *e)
{
	(void)fprintf(stderr, "caisson serve: %s\n", e->msg);
	return EXIT_FAILED;
}

/* The front was killed. Whether to start another; drops descriptors that may be the reason. */
static bool go_on(struct keeper *k, struct err *e)
{
	const char *name = sigabbrev_np(WTERMSIG(k->status));
	unsigned int wait_ms = BACK_OFF_MS;

	if (k->unsettled > 0)
		k->harm += WTERMSIG(k->status) == SIGKILL ? HARM_KILLED : HARM_CRASHED;
	if (k->harm >= HARM_GIVE_UP) {
		(void)err_say(e, -ECANCELED,
			      "the front was ended %u times in a row right after its start, last "
			      "by SIG%s; giving up",
			      k->unsettled, name ? name : "?");
		return false;
	}
	if (k->harm >= HARM_DROP) {
		drop_from(KEEPER_WARDEN);
		if (make_table(k, e) < 0)
			return false;
	}
	for (unsigned int i = 2; i < k->unsettled && wait_ms < BACK_OFF_MAX_MS; i++)
		wait_ms *= 2;
	if (k->unsettled > 1)
		wait_for_front(k, (int)wait_ms);
	return !k->stopping;
}

static int setup(struct keeper *k, struct err *e)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGCHLD, SIGHUP };

	k->sock = k->table = -1;
	k->manager = notify_open();
	k->signals = fd_signals(signals, ARRAY_SIZE(signals), &k->before);
	if (k->signals < 0)
		return err_set(e, -errno, "watch signals");
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, nothing would be left to wait for */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_DFL); /* ignored, it would not be reported */
	fd_many();                     /* a dozen per sandbox */
	/* Processes that a front started are ours when it dies: the warden, first of all. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "become a subreaper");
	/* Environments of sandboxes are among what is held. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setenv(KEEPER_ENV, "1", 1) < 0)
		return err_set(e, -errno, "set up the keeper");
	if (program_find("caisson-front", k->path, sizeof(k->path), e) < 0)
		return e->code;
	return make_table(k, e);
}

int main(int argc, char **argv)
{
	static struct keeper k;
	struct err e = { 0 };
	bool again = true;

	(void)argc;
	k.argv = argv;
	if (setup(&k, &e) < 0)
		return fail(&e);
	while (again) {
		if (start(&k, &e) < 0)
			break;
		wait_for_front(&k, -1);
		again = WIFSIGNALED(k.status) && !k.stopping && go_on(&k, &e);
	}
	let_go(&k);
	if (e.code)
		return fail(&e);
	if (WIFEXITED(k.status))
		return WEXITSTATUS(k.status);
	/* As the front ended, or by the signal that we got before it handled signals. */
	int signo = WTERMSIG(k.status) == KEEPER_STOP ? k.stopping : WTERMSIG(k.status);

	/* A front that was killed while it ended: nobody killed us. */
	if (k.stopping && signo == SIGKILL) {
		(void)err_say(&e, -ECANCELED, "the front was killed while it ended");
		return fail(&e);
	}

	(void)sigprocmask(SIG_SETMASK, &k.before, NULL);
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
	return 128 + signo;
}

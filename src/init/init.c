/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.c - caisson-init, pid 1 of a cell.
 *
 * Theory of operation. Init starts with its channel as descriptor 3, its own oom_score_adj as
 * descriptor 4 (score.c), a root that is already sealed, and four capabilities that mean something
 * only inside its own user namespace. It first seals itself (non-dumpable, Landlock scopes, system
 * call filter: inherited by all it starts), then serves requests one by one, reaps, and reports. It
 * keeps no output and no files: stdio of commands are the client's own pipes.
 *
 * It ends when the channel does: a cell without a client is over, and the Linux kernel kills the
 * other processes in the pid namespace of a pid 1 that ends. Guests cannot end it: signals from
 * inside its pid namespace do not reach a pid 1 that has no handler for them, it is another user,
 * and it is in no debugger's reach.
 *
 * An invalid message ends the cell too. Only the client can send one.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/landlock.h"
#include "cell/seccomp.h"
#include "init/files.h"
#include "init/init_command.h"
#include "init/machine.h"
#include "init/score.h"
#include "init/sockets.h"
#include "init/users.h"
#include "wire/init.h"
#include "wire/warden.h"

#define EXIT_CHANNEL 0   /* the client went away: the ordinary end */
#define EXIT_PROTOCOL 70 /* the client broke the protocol */
#define EXIT_SEAL 71     /* a layer could not be put on */

#define CAPS_SERVING                                                                               \
	(1ull << 5 /* KILL */ | 1ull << 6 /* SETGID */ | 1ull << 7 /* SETUID */ |                  \
	 1ull << 8 /* SETPCAP */)

struct running {
	uint32_t id;
	pid_t pid; /* 0: free */
	uint64_t started_ns;
};

static struct running running[INIT_COMMANDS_MAX];
static struct init_config config;

static void send_msg(const struct init_msg *m, const int *fds, size_t n_fds)
{
	if (fd_send(INIT_FD, m, sizeof(*m), fds, n_fds) < 0)
		_exit(EXIT_CHANNEL);
}

static void send_failed(uint32_t id, struct init_failed f)
{
	struct init_msg m = { .type = INIT_FAILED, .id = id, .u.failed = f };

	send_msg(&m, NULL, 0);
}

/* ---- sealing -------------------------------------------------------------------------------- */

static void read_config(void)
{
	struct init_msg m;

	if (fd_recv(INIT_FD, &m, sizeof(m), NULL, NULL) != (ssize_t)sizeof(m) ||
	    m.type != INIT_CONFIG)
		_exit(EXIT_PROTOCOL);
	config = m.u.config;
}

static _Noreturn void seal_failed(int error)
{
	send_failed(0, (struct init_failed){ .stage = INIT_STAGE_SEAL, .error = error });
	_exit(EXIT_SEAL);
}

static uint32_t nested_userns_max(void)
{
	char text[32];

	if (fd_read_file(AT_FDCWD, "/proc/sys/user/max_user_namespaces", text, sizeof(text)) < 0)
		return ~0u;
	return (uint32_t)strtoul(text, NULL, 10);
}

/* The order is forced: each step may need a system call that a later one takes away. */
static void seal(void)
{
	struct init_msg m = { .type = INIT_READY };

	/* Not dumpable: /proc/1 belongs to nobody here, no attach, no core. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		seal_failed(errno);
	/* The bounding set is the same already (cell/stage.c). */
	int r = caps_limit(CAPS_SERVING, 0);

	if (r < 0)
		seal_failed(-r);
	m.u.ready.nested_userns_max = nested_userns_max();
	m.u.ready.landlock_abi = (uint32_t)landlock_abi();
	if (!(config.without & CELL_WITHOUT_LANDLOCK)) {
		r = landlock_scope_self(!config.kernels);
		if (r < 0)
			seal_failed(-r);
		m.u.ready.landlock_on = (uint32_t)r;
	}
	if (!(config.without & CELL_WITHOUT_SECCOMP)) {
		r = seccomp_install(config.writable, NULL);
		if (r < 0)
			seal_failed(-r);
		m.u.ready.seccomp_on = 1;
	}
	send_msg(&m, NULL, 0);
}

/* ---- commands ------------------------------------------------------------------------------- */

static struct running *find(uint32_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(running); i++)
		if (running[i].pid && running[i].id == id)
			return &running[i];
	return NULL;
}

static struct running *find_free(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(running); i++)
		if (!running[i].pid)
			return &running[i];
	return NULL;
}

/* The command waits before execve: report it, and do nothing else until the client has looked. */
static void wait_go(uint32_t id, pid_t pid)
{
	struct init_msg held = { .type = INIT_HELD, .id = id, .u.pid = pid };
	struct init_msg m;

	send_msg(&held, NULL, 0);
	ssize_t n = fd_recv(INIT_FD, &m, sizeof(m), NULL, NULL);

	if (n == 0)
		_exit(EXIT_CHANNEL);
	if (n != (ssize_t)sizeof(m) || m.type != INIT_GO || m.id != id)
		_exit(EXIT_PROTOCOL);
}

/* @r: the positive errno of an invalid request, or 0. */
static void start_command(const struct init_msg *m, const struct command *c, int r)
{
	struct command_start start;
	struct running *slot = find_free();

	machine_refresh();
	if (r == 0 && (!slot || find(m->id)))
		r = slot ? EEXIST : EAGAIN;
	if (r) {
		send_failed(m->id, (struct init_failed){ INIT_STAGE_REQUEST, r });
	} else if (command_start(c, &config, wait_go, m->id, &start) < 0) {
		send_failed(m->id, start.failed);
	} else {
		struct init_msg started = { .type = INIT_STARTED, .id = m->id, .u.pid = start.pid };

		*slot = (struct running){ .id = m->id,
					  .pid = start.pid,
					  .started_ns = clock_now_ns() };
		send_msg(&started, start.fds, start.n_fds);
		fd_close_all(start.fds, start.n_fds);
	}
}

static void serve_exec(const struct init_msg *m, const int *fds, size_t n_fds)
{
	struct command c;
	int r = command_unpack(&m->u.exec, fds, n_fds, &c);

	start_command(m, &c, r);
	command_free(&c);
}

static void serve_files(const struct init_msg *m, const int *fds, size_t n_fds)
{
	struct files_call call;
	int r = files_unpack(&m->u.files, fds, n_fds, &call);
	struct command c = {
		.uid = m->u.files.uid,
		.gid = m->u.files.gid,
		.cwd = FILES_CWD,
		.script_fd = -1,
		.stdio = { -1, -1, -1 },
		.files = &call,
	};

	start_command(m, &c, r);
	blob_unmap(&call.blob);
}

/* @fd: the socket, or -errno of @stage. */
static void send_socket(uint32_t id, int fd, enum init_stage stage)
{
	struct init_msg made = { .type = INIT_CONNECTED, .id = id };

	if (fd < 0)
		send_failed(id, (struct init_failed){ stage, -fd });
	else
		send_msg(&made, &fd, 1);
	fd_close(fd);
}

/* All commands of a client that went away, except those that the next one takes over. */
static void signal_others(const struct init_signal *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(running); i++) {
		bool spared = !running[i].pid;

		for (size_t k = 0; k < INIT_SPARE_MAX && !spared; k++)
			spared = s->spare[k] && s->spare[k] == running[i].id;
		if (!spared)
			(void)kill(-running[i].pid, s->signo);
	}
}

/* A command that has ended gets no signal. Nothing outside this pid namespace can be named. */
static void serve_signal(const struct init_msg *m)
{
	const struct init_signal *s = &m->u.signal;
	const struct running *c = find(m->id);

	if (s->signo <= 0 || s->signo >= NSIG)
		return;
	switch (s->target) {
	case INIT_TARGET_COMMAND:
	case INIT_TARGET_GROUP: /* every command leads its own session and group */
		if (c)
			(void)kill(s->target == INIT_TARGET_GROUP ? -c->pid : c->pid, s->signo);
		break;
	case INIT_TARGET_PID_GROUP:
		if (s->pid > 1)
			(void)kill(-s->pid, s->signo);
		break;
	case INIT_TARGET_ALL:
		(void)kill(-1, s->signo);
		break;
	case INIT_TARGET_OTHERS:
		signal_others(s);
		break;
	default:
		_exit(EXIT_PROTOCOL);
	}
}

static void fill_disk(struct init_disk *d)
{
	struct statfs fs;

	if (statfs("/workspace", &fs) < 0)
		return;
	uint64_t block = (uint64_t)fs.f_bsize;

	d->size = (uint64_t)fs.f_blocks * block;
	d->used = (uint64_t)(fs.f_blocks - fs.f_bfree) * block;
	d->inodes_size = (uint64_t)fs.f_files;
	d->inodes_used = (uint64_t)(fs.f_files - fs.f_ffree);
}

static void serve_disk(uint32_t id)
{
	struct init_msg m = { .type = INIT_DISK, .id = id };

	fill_disk(&m.u.disk);
	send_msg(&m, NULL, 0);
}

static void serve(void)
{
	struct init_msg m;
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = fd_recv(INIT_FD, &m, sizeof(m), fds, &n_fds);

	if (n == 0)
		_exit(EXIT_CHANNEL);
	if (n != (ssize_t)sizeof(m))
		_exit(EXIT_PROTOCOL);
	switch (m.type) {
	case INIT_EXEC:
		serve_exec(&m, fds, n_fds);
		break;
	case INIT_FILES:
		serve_files(&m, fds, n_fds);
		break;
	case INIT_SIGNAL:
		serve_signal(&m);
		break;
	case INIT_CONNECT:
		send_socket(m.id, sockets_connect(&m.u.connect), INIT_STAGE_CONNECT);
		break;
	case INIT_LISTEN:
		send_socket(m.id, sockets_listen(&m.u.listen), INIT_STAGE_LISTEN);
		break;
	case INIT_DISK:
		serve_disk(m.id);
		break;
	default:
		_exit(EXIT_PROTOCOL);
	}
	/* A command and a file call take all descriptors that came; the others take none. */
	if (m.type != INIT_EXEC && m.type != INIT_FILES)
		fd_close_all(fds, n_fds);
}

/* ---- reaping -------------------------------------------------------------------------------- */

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_usec * 1000ull;
}

static void report_exit(struct running *c, int status, const struct rusage *ru)
{
	struct init_msg m = { .type = INIT_EXITED, .id = c->id };

	m.u.exited = (struct init_exited){
		.status = status,
		.user_ns = ns_of(ru->ru_utime),
		.system_ns = ns_of(ru->ru_stime),
		.wall_ns = clock_now_ns() - c->started_ns,
		.maxrss_bytes = (uint64_t)ru->ru_maxrss * 1024,
	};
	fill_disk(&m.u.exited.disk);
	c->pid = 0;
	send_msg(&m, NULL, 0);
}

/*
 * A child may make init its tracer (PTRACE_TRACEME): the Linux kernel then reports its stops here,
 * too, and its end later. Init does nothing about a stop.
 */
static void reap(void)
{
	int status;
	struct rusage ru;

	for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &ru)) > 0;)
		for (size_t i = 0; i < ARRAY_SIZE(running); i++)
			if (running[i].pid == pid && !WIFSTOPPED(status))
				report_exit(&running[i], status, &ru);
}

#ifndef __GLIBC__
static int protect(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size, (void)arg;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + p->p_vaddr;
		uintptr_t end = (begin + p->p_memsz) & -page;

		begin &= -page;
		if (p->p_type == PT_GNU_RELRO &&
		    mprotect((void *)begin, end - begin, PROT_READ) < 0)
			return -1;
	}
	return 0;
}
#endif

/* Relocated data is read-only from now on. The start of glibc does this itself, that of musl does
 * not. */
static void protect_relocated(void)
{
#ifndef __GLIBC__
	if (dl_iterate_phdr(protect, NULL) < 0)
		seal_failed(errno);
#endif
}

int main(void)
{
	static const int chld = SIGCHLD;

	/* If an ancestor ignores it, there would be no process to wait for. */
	(void)signal(SIGCHLD, SIG_DFL);
	protect_relocated();
	score_begin();
	read_config();
	machine_begin(&config);
	seal();
	int sig = fd_signals(&chld, 1, NULL);

	if (sig < 0)
		seal_failed(errno);
	users_begin(&config);
	for (;;) {
		struct signalfd_siginfo info[16];
		struct pollfd fds[] = { { .fd = INIT_FD, .events = POLLIN },
					{ .fd = sig, .events = POLLIN },
					{ .fd = machine_fd(), .events = POLLIN } };

		if (poll(fds, ARRAY_SIZE(fds), machine_wait_ms()) < 0 && errno != EINTR)
			_exit(EXIT_PROTOCOL);
		if (fds[2].revents)
			machine_serve();
		if (fds[1].revents) {
			(void)!read(sig, info, sizeof(info));
			reap();
		}
		if (fds[0].revents)
			serve();
	}
}

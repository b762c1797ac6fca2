/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_landlock.c - The scopes: nothing outside can be signalled or reached through an abstract
 * socket, everything inside can. And the domain without any right: open files stay usable, and
 * nothing can be opened any more. Each denial has its positive control before it.
 */
#include "cell/landlock.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

#define ABI_WITH_SCOPES 6

/* An abstract name of this process and its purpose; length as bind() wants it. */
static socklen_t abstract_name(struct sockaddr_un *a, const char *what)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "caisson-test-%s-%d", what,
			 (int)getpid());

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

struct place {
	struct sockaddr_un address;
	socklen_t len;
	int type;
	int fd;
};

static struct place make_place(const char *what, int type)
{
	struct place p = { .type = type, .fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0) };

	CHILD_CHECK(p.fd >= 0);
	p.len = abstract_name(&p.address, what);
	CHILD_CHECK(bind(p.fd, (const struct sockaddr *)&p.address, p.len) == 0);
	if (type == SOCK_STREAM)
		CHILD_CHECK(listen(p.fd, 4) == 0);
	return p;
}

/* 0, or the errno of talking to it. */
static int reach(const struct place *p)
{
	const struct sockaddr *a = (const struct sockaddr *)&p->address;
	_fd_ int fd = socket(AF_UNIX, p->type | SOCK_CLOEXEC, 0);

	CHILD_CHECK(fd >= 0);
	if (p->type == SOCK_DGRAM)
		return sendto(fd, "x", 1, 0, a, p->len) == 1 ? 0 : errno;
	return connect(fd, a, p->len) == 0 ? 0 : errno;
}

static int signal_error(pid_t pid, int signo)
{
	return kill(pid, signo) == 0 ? 0 : errno;
}

static void enter(bool signals)
{
	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	int r = landlock_scope_self(signals);

	if (r == 0)
		CHILD_SKIP("Landlock ABI %d has no scopes (6 has)", landlock_abi());
	CHILD_CHECK(r == 1);
}

/* Wait until the other end is closed. */
static void wait_for_end(int fd)
{
	char ch;

	while (read(fd, &ch, 1) > 0)
		;
}

struct scope {
	const struct place *outside;
	bool signals; /* abstract sockets are in either */
};

static void in_domain(void *arg)
{
	const struct scope *s = arg;
	const struct place *outside = s->outside;
	int pair[2];

	enter(s->signals);
	CHILD_CHECK(reach(&outside[0]) == EPERM);
	CHILD_CHECK(reach(&outside[1]) == EPERM);
	/* Sockets of our own domain can be reached. */
	struct place stream = make_place("stream", SOCK_STREAM);
	struct place datagram = make_place("datagram", SOCK_DGRAM);

	CHILD_CHECK(reach(&stream) == 0);
	CHILD_CHECK(reach(&datagram) == 0);
	CHILD_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHILD_CHECK(write(pair[0], "x", 1) == 1);
}

static void sockets(void *arg)
{
	struct place outside[] = { make_place("stream", SOCK_STREAM),
				   make_place("datagram", SOCK_DGRAM) };
	struct scope s = { .outside = outside, .signals = arg != NULL };

	CHILD_CHECK(reach(&outside[0]) == 0); /* controls */
	CHILD_CHECK(reach(&outside[1]) == 0);
	int status = child_wait(child_start(in_domain, &s));

	CHILD_CHECK(WIFEXITED(status));
	CHILD_CHECK(reach(&outside[0]) == 0);
	_exit(WEXITSTATUS(status));
}

TEST(sockets)
{
	child_run(sockets, NULL);
	child_run(sockets, "signals too");
}

static void sleeper(void *arg)
{
	const int *gate = arg;

	fd_close(gate[1]);
	wait_for_end(gate[0]);
}

CHILD_TEST(signals)
{
	int gate[2];

	CHILD_CHECK(pipe(gate) == 0);
	pid_t outside = child_start(sleeper, gate);

	CHILD_CHECK(signal_error(outside, 0) == 0); /* control */
	CHILD_CHECK(signal_error(getppid(), 0) == 0);
	enter(true);
	CHILD_CHECK(signal_error(outside, 0) == EPERM);
	CHILD_CHECK(signal_error(outside, SIGKILL) == EPERM);
	CHILD_CHECK(signal_error(getppid(), SIGTERM) == EPERM);

	/* A process that is started later is inside, and so can be ended. */
	pid_t inside = child_start(sleeper, gate);

	CHILD_CHECK(signal_error(getpid(), 0) == 0);
	CHILD_CHECK(signal_error(inside, 0) == 0);
	CHILD_CHECK(signal_error(inside, SIGKILL) == 0);
	CHILD_CHECK(WIFSIGNALED(child_wait(inside)));

	/* And it cannot leave by forking. */
	pid_t grandchild = fork();

	if (grandchild == 0)
		_exit(signal_error(outside, 0) == EPERM ? 0 : CHILD_FAILED);
	CHILD_CHECK(child_wait(grandchild) == 0);
	fd_close(gate[0]);
	fd_close(gate[1]);
	(void)child_wait(outside);
}

/*
 * Without the scope for signals they go both ways, into the domain and out of it, as between a
 * zygote's kernel and what init starts. A second domain with the scope takes that away again.
 */
CHILD_TEST(free_signals)
{
	int gate[2];

	CHILD_CHECK(pipe(gate) == 0);
	pid_t one = child_start(sleeper, gate), two = child_start(sleeper, gate);

	enter(false);
	CHILD_CHECK(signal_error(one, 0) == 0);
	CHILD_CHECK(signal_error(getppid(), 0) == 0);
	CHILD_CHECK(signal_error(one, SIGKILL) == 0);
	int status = child_wait(one);

	CHILD_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHILD_CHECK(landlock_scope_self(true) == 1);
	CHILD_CHECK(signal_error(two, 0) == EPERM);
	fd_close(gate[0]);
	fd_close(gate[1]);
	(void)child_wait(two);
}

/* Domains nest: putting one on twice is one more layer, not an error. Nothing stays open. */
CHILD_TEST(again)
{
	int before = open_fds();

	enter(true);
	CHILD_CHECK(landlock_scope_self(true) == 1);
	CHILD_CHECK(landlock_scope_self(false) == 1);
	CHILD_CHECK(signal_error(getppid(), 0) == EPERM); /* a weaker layer takes nothing back */
	CHILD_CHECK(open_fds() == before);
}

/* Without no-new-privileges and without privilege the Linux kernel refuses, and so do we. */
CHILD_TEST(forbidden)
{
	int before;

	if (landlock_abi() < ABI_WITH_SCOPES)
		CHILD_SKIP("Landlock ABI %d has no scopes (6 has)", landlock_abi());
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		CHILD_SKIP("no-new-privileges is set already");
	child_become_nobody();
	before = open_fds();
	CHILD_CHECK(landlock_scope_self(true) == -EPERM);
	CHILD_CHECK(landlock_scope_self(false) == -EPERM);
	CHILD_CHECK(open_fds() == before);
	CHILD_CHECK(signal_error(getpid(), 0) == 0);
}

/* 0, or the errno of opening it. */
static int open_error(const char *path, int flags)
{
	_fd_ int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? errno : 0;
}

static int connect_error(const struct sockaddr_in *to)
{
	_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 ? 0 : errno;
}

static void check_paths(int want, const char *own)
{
	CHILD_CHECK(open_error("/etc/passwd", O_RDONLY) == want);
	CHILD_CHECK(open_error("/", O_RDONLY | O_DIRECTORY) == want);
	CHILD_CHECK(open_error("/dev/null", O_RDWR) == want);
	CHILD_CHECK(open_error("/proc/self/status", O_RDONLY) == want);
	CHILD_CHECK(open_error(own, O_RDWR | O_CREAT) == want);
	if (want == 0)
		CHILD_CHECK(unlink(own) == 0);
}

CHILD_TEST(nothing)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	char own[64], text[4];
	int abi = landlock_abi();

	if (abi < 4)
		CHILD_SKIP("Landlock ABI %d has no rights over TCP (4 has)", abi);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)snprintf(own, sizeof(own), "/tmp/caisson-test-landlock-%d", (int)getpid());
	_fd_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_fd_ int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	CHILD_CHECK(bind(listener, (struct sockaddr *)&address, len) == 0);
	CHILD_CHECK(listen(listener, 4) == 0 && file >= 0);
	CHILD_CHECK(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
	check_paths(0, own); /* controls */
	CHILD_CHECK(connect_error(&address) == 0);

	int before = open_fds();

	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	_fd_ int spare = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHILD_CHECK(open_fds() == before + 1 && landlock_deny_all_but(NULL, 0) == abi);
	check_paths(EACCES, own);
	CHILD_CHECK(connect_error(&address) == EACCES);
	address.sin_port = 0;
	CHILD_CHECK(bind(spare, (struct sockaddr *)&address, len) < 0 && errno == EACCES);
	if (abi >= ABI_WITH_SCOPES)
		CHILD_CHECK(signal_error(getppid(), 0) == EPERM);

	/* Open descriptors go on working, and memory files are no paths. */
	_fd_ int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	_fd_ int memory = memfd_create("test", MFD_CLOEXEC);

	CHILD_CHECK(conn >= 0 && read(file, text, sizeof(text)) == (ssize_t)sizeof(text));
	CHILD_CHECK(memory >= 0 && ftruncate(memory, 4096) == 0 && write(memory, "x", 1) == 1);
	CHILD_CHECK(landlock_deny_all_but(NULL, 0) == abi); /* one more layer is not an error */
}

/* Everything is denied except the named rights, below the named directory. */
static void one_directory(void *arg)
{
	const char *top = arg;
	const int abi = landlock_abi(), make = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

	if (abi == 0)
		CHILD_SKIP("no Landlock here");
	_fd_ int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct landlock_dir keep = { dir, LANDLOCK_WRITE_FILE | LANDLOCK_MAKE_REG |
							LANDLOCK_REMOVE_FILE };

	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHILD_CHECK(landlock_deny_all_but(&keep, 1) == abi);
	_fd_ int file = openat(dir, "a", make, 0600);

	CHILD_CHECK(file >= 0 && write(file, "x", 1) == 1);
	if (abi >= 3)
		CHILD_CHECK(ftruncate(file, 0) < 0 && errno == EACCES);
	CHILD_CHECK(renameat(dir, "a", dir, "b") == 0);
	CHILD_CHECK(openat(dir, "b", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
	CHILD_CHECK(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES);
	CHILD_CHECK(mkdirat(dir, "c", 0700) < 0 && errno == EACCES);
	CHILD_CHECK(openat(dir, "../caisson-test-no", make, 0600) < 0 && errno == EACCES);
	CHILD_CHECK(unlinkat(dir, "b", 0) == 0);
	CHILD_CHECK(rmdir(top) < 0 && errno == EACCES);
}

TEST(one_directory)
{
	char top[] = "/tmp/caisson-test-landlock-XXXXXX";

	assert_non_null(mkdtemp(top));
	int status = child_wait(child_start(one_directory, top));

	assert_int_equal(rmdir(top), 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

TEST(abi)
{
	int abi = landlock_abi();

	printf("# Landlock ABI %d\n", abi);
	assert_true(abi >= 0);
	assert_int_equal(landlock_abi(), abi);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_landlock.c - The scopes: nothing outside can be signalled or reached through an abstract
 * socket, everything inside can. Each denial has its positive control before it.
 */
#include "cell/landlock.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../child.h"

#define ABI_WITH_SCOPES 6

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

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

static void enter(void)
{
	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	int r = landlock_scope_self();

	if (r == 0)
		CHILD_SKIP("Landlock ABI %d has no scopes (6 has)", landlock_abi());
	CHILD_CHECK(r == 1);
}

/* Wait until somebody closes the other end. */
static void wait_for_end(int fd)
{
	char ch;

	while (read(fd, &ch, 1) > 0)
		;
}

static void in_domain(void *arg)
{
	const struct place *outside = arg;
	int pair[2];

	enter();
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

	(void)arg;
	CHILD_CHECK(reach(&outside[0]) == 0); /* controls */
	CHILD_CHECK(reach(&outside[1]) == 0);
	int status = child_wait(child_start(in_domain, outside));

	CHILD_CHECK(WIFEXITED(status));
	CHILD_CHECK(reach(&outside[0]) == 0);
	_exit(WEXITSTATUS(status));
}

static void test_sockets(void **state)
{
	(void)state;
	child_run(sockets, NULL);
}

static void sleeper(void *arg)
{
	const int *gate = arg;

	fd_close(gate[1]);
	wait_for_end(gate[0]);
}

static void signals(void *arg)
{
	int gate[2];

	(void)arg;
	CHILD_CHECK(pipe(gate) == 0);
	pid_t outside = child_start(sleeper, gate);

	CHILD_CHECK(signal_error(outside, 0) == 0); /* control */
	CHILD_CHECK(signal_error(getppid(), 0) == 0);
	enter();
	CHILD_CHECK(signal_error(outside, 0) == EPERM);
	CHILD_CHECK(signal_error(outside, SIGKILL) == EPERM);
	CHILD_CHECK(signal_error(getppid(), SIGTERM) == EPERM);

	/* What is started later is inside, and so can be ended. */
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

static void test_signals(void **state)
{
	(void)state;
	child_run(signals, NULL);
}

/* Domains nest: putting one on twice is one more layer, not an error. Nothing stays open. */
static void again(void *arg)
{
	int before = open_fds();

	(void)arg;
	enter();
	CHILD_CHECK(landlock_scope_self() == 1);
	CHILD_CHECK(open_fds() == before);
}

static void test_again(void **state)
{
	(void)state;
	child_run(again, NULL);
}

/* Without no-new-privileges and without privilege the kernel says no, and we say so too. */
static void forbidden(void *arg)
{
	int before;

	(void)arg;
	if (landlock_abi() < ABI_WITH_SCOPES)
		CHILD_SKIP("Landlock ABI %d has no scopes (6 has)", landlock_abi());
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		CHILD_SKIP("no-new-privileges is set already");
	child_become_nobody();
	before = open_fds();
	CHILD_CHECK(landlock_scope_self() == -EPERM);
	CHILD_CHECK(open_fds() == before);
	CHILD_CHECK(signal_error(getpid(), 0) == 0);
}

static void test_forbidden(void **state)
{
	(void)state;
	child_run(forbidden, NULL);
}

static void test_abi(void **state)
{
	int abi = landlock_abi();

	(void)state;
	printf("# Landlock ABI %d\n", abi);
	assert_true(abi >= 0);
	assert_int_equal(landlock_abi(), abi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abi),       cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_signals),   cmocka_unit_test(test_again),
		cmocka_unit_test(test_forbidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

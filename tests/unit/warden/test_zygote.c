/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_zygote.c - The warden does not believe a zygote. A report is one whole message or the end of
 * the zygote; the process that it names is in the cell and not its pid 1, or it is not taken.
 */
#include "warden/warden_cell.h"

#include "warden_kit.h"

#include <limits.h>
#include <pthread.h>

#include "../unit.h"

#define LINE_FDS                                                                                   \
	((int)(1 + KERNEL_PIPES)) /* what a cell holds between a request and its answer            \
				   */

/* ---- answers --------------------------------------------------------------------------------- */

struct said {
	uint32_t handle;
	int code, result;
	pid_t pid;
};

static struct said listen_to(int fd)
{
	struct zygote z = { .l.channel_fd = fd };
	struct said s = { .handle = 4711, .code = 4711, .pid = 4711 };

	s.result = zygote_answer(&z, &s.handle, &s.code, &s.pid);
	return s;
}

static bool untouched(const struct said *s)
{
	return s->handle == 4711 && s->code == 4711 && s->pid == 4711;
}

TEST(answers)
{
	static const struct zygote_reply replies[] = {
		{ .seq = 4096, .code = 0, .pid = 77 },
		{ .seq = 0, .code = 0, .pid = 0 },
		{ .seq = UINT32_MAX, .code = -ENOMEM, .pid = 0 },
		{ .seq = 1, .code = INT32_MIN, .pid = INT32_MIN },
		{ .seq = 2, .code = INT32_MAX, .pid = INT32_MAX },
	};
	int pair[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	struct said s = listen_to(pair[0]);

	assert_true(s.result == -EAGAIN && untouched(&s));
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++)
		assert_int_equal(fd_send(pair[1], &replies[i], sizeof(replies[i]), NULL, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		s = listen_to(pair[0]);
		assert_int_equal(s.result, 1);
		assert_int_equal(s.handle, replies[i].seq);
		assert_int_equal(s.code, replies[i].code);
		assert_int_equal(s.pid, replies[i].pid);
	}
	s = listen_to(pair[0]);
	assert_int_equal(s.result, -EAGAIN);
	fd_close(pair[1]);
	s = listen_to(pair[0]);
	assert_true(s.result == 0 && untouched(&s));
	fd_close(pair[0]);
}

/* Too short, too long, empty, with unwanted descriptors: the zygote is given up. */
TEST(nonsense)
{
	static const struct {
		size_t len, n_fds;
	} rows[] = {
		{ 1, 0 },
		{ 1, 1 },
		{ sizeof(struct zygote_reply) - 1, 0 },
		{ sizeof(struct zygote_reply) - 1, 2 },
		{ sizeof(struct zygote_reply) + 1, 0 },
		{ sizeof(struct zygote_reply), 1 }, /* whole, but with something in its hand */
		{ sizeof(struct zygote_reply), FD_PASS_MAX },
		{ 65536, 0 },
		{ 65536, 3 },
		{ 0, 0 },
	};
	static char bytes[65536];
	int before = open_fds();

	memset(bytes, 0xff, sizeof(bytes));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int pair[2], fds[FD_PASS_MAX];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
					    0, pair),
				 0);
		for (size_t k = 0; k < rows[i].n_fds; k++)
			fds[k] = pair[1];
		if (rows[i].len == 0)
			assert_int_equal(send(pair[1], "", 0, 0), 0);
		else
			assert_int_equal(fd_send(pair[1], bytes, rows[i].len, fds, rows[i].n_fds),
					 0);
		struct said s = listen_to(pair[0]);

		assert_true(s.result == 0 && untouched(&s));
		fd_close(pair[0]);
		fd_close(pair[1]);
		assert_int_equal(open_fds(), before);
	}
}

/* ---- the kernel that it names -------------------------------------------------------------- */

static struct cell cell;
static struct err err;

static void make_cell(void)
{
	cell = (struct cell){ .kernel_pidfd = -1, .lease_fd = -1, .epoll = -1 };
	cell_line_init(&cell);
	cell.l.pid = kit_init(&cell.l.pidfd);
}

static void check_refused(pid_t pid, int code)
{
	int before = open_fds();

	err = (struct err){ 0 };
	if (zygote_adopt(&cell, pid, &err) != code)
		(void)fprintf(stderr, "# pid %d: %d %s\n", (int)pid, err.code, err.msg);
	CHILD_CHECK(err.code == code && err.msg[0]);
	CHILD_CHECK(cell.kernel == KERNEL_NONE && cell.kernel_pid == 0 && cell.kernel_pidfd == -1);
	CHILD_CHECK(open_fds() == before);
}

static void *sit(void *arg)
{
	int *pipe_and_tid = arg;
	char byte;

	pipe_and_tid[1] = (int)syscall(SYS_gettid);
	(void)!read(pipe_and_tid[0], &byte, 1);
	return NULL;
}

CHILD_TEST(lies)
{
	int other_pidfd, ends[2];
	pthread_t thread;

	make_cell();
	pid_t other = kit_init(&other_pidfd), stranger = kit_kernel(other_pidfd);
	pid_t plain = kit_bystander();
	static const pid_t numbers[] = { 0, 1, -1, -2, INT_MIN };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		check_refused(numbers[i], -EPROTO);
	check_refused(getpid(), -EPROTO);
	check_refused(getppid(), -EPROTO);
	check_refused(plain, -EPROTO);    /* a child of ours, but in no cell */
	check_refused(other, -EPROTO);    /* another cell's pid 1 */
	check_refused(stranger, -EPROTO); /* and its kernel */
	kit_make_zombie(stranger);
	check_refused(stranger, -EPROTO); /* also when it is dead */
	kit_make_zombie(plain);
	check_refused(plain, -EPROTO);
	CHILD_CHECK(child_wait(plain) >= 0);
	check_refused(plain, -ESRCH); /* no process has this number */
	check_refused(INT_MAX, -ESRCH);

	/* A thread is not a process. */
	CHILD_CHECK(pipe2(ends, O_CLOEXEC) == 0);
	int shared[] = { ends[0], 0 };

	CHILD_CHECK(pthread_create(&thread, NULL, sit, shared) == 0);
	while (!__atomic_load_n(&shared[1], __ATOMIC_SEQ_CST))
		(void)usleep(1000);
	int before = open_fds();

	CHILD_CHECK(zygote_adopt(&cell, shared[1], &err) < 0 && open_fds() == before);
}

/* Pid 1 is the warden's to collect as what it is: its status would be lost to a kernel's. */
CHILD_TEST(pid_one)
{
	make_cell();
	check_refused(cell.l.pid, -EPROTO);
	kit_make_zombie(cell.l.pid);
	check_refused(cell.l.pid, -EPROTO);
}

/* A process that cannot be examined is not taken: a warden of a user, a process of root. */
CHILD_TEST(out_of_sight)
{
	pid_t root = getppid();
	char path[64];
	struct stat st;

	if (geteuid() != 0)
		CHILD_SKIP("needs root to have somebody else's process");
	child_become_nobody();
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)root);
	CHILD_CHECK(stat(path, &st) < 0 && errno == EACCES); /* control */
	make_cell();
	check_refused(root, -EPROTO);
	pid_t kernel = kit_kernel(cell.l.pidfd);

	CHILD_CHECK(zygote_adopt(&cell, kernel, &err) == 0); /* its own it can see */
}

/* The whole life of one: taken, alive, dead, collected with its status. */
CHILD_TEST(kernel)
{
	struct pollfd p = { .events = POLLIN };

	make_cell();
	pid_t pid = kit_kernel(cell.l.pidfd);

	cell.kernel_status = 4711;
	CHILD_CHECK(zygote_adopt(&cell, pid, &err) == 0);
	CHILD_CHECK(cell.kernel == KERNEL_RUNS && cell.kernel_pid == pid);
	CHILD_CHECK(cell.kernel_status == 0);
	CHILD_CHECK(fcntl(cell.kernel_pidfd, F_GETFD) == FD_CLOEXEC);
	p.fd = cell.kernel_pidfd;
	CHILD_CHECK(poll(&p, 1, 0) == 0 && cell_kernel_reaped(&cell) == -EAGAIN);
	CHILD_CHECK(syscall(SYS_pidfd_send_signal, cell.kernel_pidfd, SIGKILL, NULL, 0) == 0);
	CHILD_CHECK(poll(&p, 1, KIT_WAIT_MS) == 1);
	CHILD_CHECK(cell_kernel_reaped(&cell) == 0);
	CHILD_CHECK(cell.kernel == KERNEL_ENDED && WTERMSIG(cell.kernel_status) == SIGKILL);
	CHILD_CHECK(cell.kernel_pid == 0 && cell.kernel_pidfd == -1);
}

/* One that died before it was named is still recognized, and its status is not lost. */
CHILD_TEST(dead_kernel)
{
	make_cell();
	pid_t pid = kit_kernel(cell.l.pidfd);

	kit_make_zombie(pid);
	CHILD_CHECK(zygote_adopt(&cell, pid, &err) == 0);
	CHILD_CHECK(cell_kernel_reaped(&cell) == 0 && WTERMSIG(cell.kernel_status) == SIGKILL);
}

/* ---- asking for one ------------------------------------------------------------------------ */

/* Each is one pipe with an end on either side, and no flag of the kernel's end is one of the
 * client's. */
static void hear_pipes(const int *kernel, const int *client_ends)
{
	for (size_t i = 0; i < KERNEL_PIPES; i++) {
		bool in = i == KERNEL_PIPE_IN;
		int from = in ? client_ends[i] : kernel[i], to = in ? kernel[i] : client_ends[i];
		char byte = (char)('a' + i), got = 0;

		CHILD_CHECK(write(from, &byte, 1) == 1 && read(to, &got, 1) == 1 && got == byte);
		CHILD_CHECK(fcntl(client_ends[i], F_SETFL, O_NONBLOCK) == 0);
		CHILD_CHECK(fcntl(kernel[i], F_SETFL, 0) == 0);
		CHILD_CHECK(fcntl(client_ends[i], F_GETFL) & O_NONBLOCK);
		CHILD_CHECK(fcntl(kernel[i], F_GETFD) == FD_CLOEXEC);
	}
}

static void hear_request(int peer, const struct cell *c, size_t n_cgroups)
{
	struct zygote_req q;
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	char byte = 0;

	CHILD_CHECK(fd_recv(peer, &q, sizeof(q), fds, &n_fds) == (ssize_t)sizeof(q));
	CHILD_CHECK(q.seq == c->handle && q.n_cgroups == n_cgroups);
	CHILD_CHECK(n_fds == ZYGOTE_FD_CGROUPS + n_cgroups);
	CHILD_CHECK(memcmp(&q.config, &c->config, sizeof(q.config)) == 0);
	/* The pidfd is that of the cell's pid 1, and the socket is the other end of the client's.
	 */
	CHILD_CHECK(syscall(SYS_pidfd_send_signal, fds[0], 0, NULL, 0) == 0);
	CHILD_CHECK(send(fds[1], "h", 1, 0) == 1 && recv(c->hello_fd, &byte, 1, 0) == 1);
	CHILD_CHECK(byte == 'h');
	hear_pipes(fds + ZYGOTE_FD_PIPES, c->pipes);
	for (size_t i = 0; i < n_cgroups; i++)
		CHILD_CHECK(write(fds[ZYGOTE_FD_CGROUPS + i], "0", 1) == 1);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	CHILD_CHECK(recv(c->hello_fd, &byte, 1, 0) == 0); /* nobody else holds it */
}

CHILD_TEST(request)
{
	int peer, before;
	char text[8] = "";

	kit_start();
	struct zygote *z = kit_zygote(3, &peer);
	struct cell *c = kit_cell(5, z);
	char path[96];

	before = open_fds();
	CHILD_CHECK(zygote_fork(z, c, &err) == 0 && open_fds() == before + LINE_FDS);
	hear_request(peer, c, 0);
	cell_line_close(c);

	/* With a cgroup: the files to move in by; here they are files. */
	(void)snprintf(path, sizeof(path), "%s/tasks", kit_state);
	fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	c->has_cgroup = true;
	c->cgroup = (struct cgroup){ .kind = CGROUP_V1, .n_dirs = 1, .oom_fd = -1 };
	memset(c->cgroup.dir_of, 0, sizeof(c->cgroup.dir_of));
	c->cgroup.dir_of[CGROUP_UNIFIED] = -1;
	c->cgroup.dirfd[0] = open(kit_state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	before = open_fds();
	CHILD_CHECK(zygote_fork(z, c, &err) == 0 && open_fds() == before + LINE_FDS);
	hear_request(peer, c, 1);
	cell_line_close(c);
	CHILD_CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) == 1 && text[0] == '0');
	CHILD_CHECK(unlink(path) == 0);
	before = open_fds();
	CHILD_CHECK(zygote_fork(z, c, &err) == -ENOENT && c->hello_fd == -1);
	CHILD_CHECK(open_fds() == before);
	fd_close(c->cgroup.dirfd[0]);
	c->has_cgroup = false;
	kit_end();
}

/* One that does not read is not waited for, and one that is gone is said to be. */
CHILD_TEST(deaf)
{
	int peer, before, r = 0, n = 0;

	kit_start();
	struct zygote *z = kit_zygote(0, &peer);
	struct cell *c = kit_cell(0, z);

	before = open_fds();
	while (n < 10000 && (r = zygote_fork(z, c, &err)) == 0) {
		cell_line_close(c);
		n++;
	}
	CHILD_CHECK(r == -EAGAIN && n > 0 && n < 10000);
	CHILD_CHECK(c->hello_fd == -1 && open_fds() == before);
	fd_close(peer);
	/* A process that looks into /proc/PID/fd just then holds it open for a moment longer. */
	for (n = 0; (r = zygote_fork(z, c, &err)) == -EAGAIN && n < 5000; n++)
		(void)usleep(1000);
	CHILD_CHECK(r == -ECONNRESET); /* with all that it had not read */
	CHILD_CHECK(zygote_fork(z, c, &err) == -EPIPE && c->hello_fd == -1);
	CHILD_CHECK(open_fds() == before - 1);
	CHILD_CHECK(listen_to(z->l.channel_fd).result == 0);
	kit_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_fd.c - Descriptor helpers: exact sizes, seals, passing, and no leak on any refusal. */
#include "base/fd.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"

static bool is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

/* A peer that does not use fd_send(): any number of descriptors, any length. */
static void raw_send(int sock, const void *data, size_t len, size_t n_fds, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 253)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	msg.msg_control = control.bytes;
	msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
	for (size_t i = 0; i < n_fds; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &msg, 0), len);
}

struct pair {
	int a, b;
};

static struct pair make_pair(void)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv),
			 0);
	return (struct pair){ sv[0], sv[1] };
}

TEST(close_and_scope)
{
	int before = open_fds();
	int carried;

	errno = EXDEV;
	assert_int_equal(fd_close(-1), -1);
	assert_int_equal(fd_close(-EBADF), -1);
	assert_int_equal(errno, EXDEV);
	{
		_fd_ int none = -1;
		_fd_ int gone = dup(0);
		_fd_ int kept = dup(0);

		assert_true(gone >= 0 && kept >= 0 && none == -1);
		carried = TAKE_FD(kept);
		assert_int_equal(kept, -1);
	}
	assert_int_equal(open_fds(), before + 1);
	/* fd_close() keeps errno even when close() fails. */
	assert_int_equal(fd_close(carried), -1);
	assert_int_equal(fd_close(carried), -1);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(open_fds(), before);
}

/* A directory of our own with one file "f" of @len bytes. */
static int scratch(char path[], size_t len)
{
	assert_non_null(mkdtemp(path));
	int dir = open(path, O_DIRECTORY | O_CLOEXEC);
	int fd = openat(dir, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(write(fd, &"abcdefgh"[i % 8], 1), 1);
	fd_close(fd);
	return dir;
}

static void scratch_end(int dir, const char *path)
{
	assert_int_equal(unlinkat(dir, "f", 0), 0);
	fd_close(dir);
	assert_int_equal(rmdir(path), 0);
}

TEST(read_file_boundaries)
{
	char path[] = "/tmp/test-fd-XXXXXX";
	int before = open_fds();
	int dir = scratch(path, 8);
	char buf[16];

	for (size_t size = 0; size <= sizeof(buf); size++) {
		memset(buf, 'Z', sizeof(buf));
		ssize_t n = fd_read_file(dir, "f", buf, size);

		if (size <= 8) {
			assert_int_equal(n, -E2BIG);
		} else {
			assert_int_equal(n, 8);
			assert_string_equal(buf, "abcdefgh");
		}
		for (size_t i = size; i < sizeof(buf); i++)
			assert_int_equal(buf[i], 'Z');
	}
	assert_int_equal(fd_read_file(dir, "missing", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(fd_read_file(dir, ".", buf, sizeof(buf)), -EISDIR);
	assert_int_equal(fd_read_file(AT_FDCWD, "/dev/zero", buf, sizeof(buf)), -E2BIG);
	assert_int_equal(fd_read_file(AT_FDCWD, "/dev/null", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(fd_read_file(AT_FDCWD, "/dev/null", buf, 1), 0);
	scratch_end(dir, path);
	assert_int_equal(open_fds(), before);
}

TEST(read_whole)
{
	size_t len = 99;
	_fd_ int fd = fd_memfd("test", "a\0b", 3);
	_mem_ char *text = fd_read_whole(fd, 3, &len);

	assert_int_equal(len, 3);
	assert_memory_equal(text, "a\0b", 4);
	assert_null(fd_read_whole(fd, 2, NULL));
	assert_int_equal(errno, EFBIG);
	assert_null(fd_read_whole(-1, 2, NULL));
	assert_int_equal(errno, EBADF);
}

TEST(grow)
{
	size_t cap = 0;
	_mem_ uint64_t *list = NULL;

	assert_int_equal(mem_grow(&list, &cap, 0, sizeof(*list)), 0);
	assert_null(list);
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(mem_grow(&list, &cap, i + 1, sizeof(*list)), 0);
		assert_true(cap > i);
		list[i] = i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
}

TEST(write_file)
{
	char path[] = "/tmp/test-fd-XXXXXX";
	int before = open_fds();
	int dir = scratch(path, 0);
	char buf[16];

	assert_int_equal(fd_write_file(dir, "f", "hello"), 0);
	assert_int_equal(fd_read_file(dir, "f", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(fd_write_file(dir, "f", ""), 0);
	assert_int_equal(fd_write_file(dir, "missing", "x"), -ENOENT);
	assert_int_equal(faccessat(dir, "missing", F_OK, 0), -1);
	assert_int_equal(fd_write_file(dir, ".", "x"), -EISDIR);
	assert_int_equal(fd_write_file(AT_FDCWD, "/dev/full", "x"), -ENOSPC);
	scratch_end(dir, path);
	assert_int_equal(open_fds(), before);
}

/* A buffer takes content up to its maximum, and one byte more is refused. */
TEST(read_buf)
{
	static char data[200000], got[200000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	_fd_ int fd = fd_memfd("data", data, sizeof(data));
	_buf_ struct buf just = BUF_INIT(sizeof(data)), small = BUF_INIT(sizeof(data) - 1);

	assert_int_equal(fd_read_buf(fd, &just), 0);
	assert_int_equal(just.len, sizeof(data));
	assert_memory_equal(buf_str(&just), data, sizeof(data));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_buf(fd, &small), -EMSGSIZE);
	assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
	assert_int_equal(fd_read_full(fd, got, sizeof(got)), sizeof(data) - 5);
	assert_memory_equal(got, data + 5, sizeof(data) - 5);
	assert_int_equal(fd_read_full(fd, got, sizeof(got)), 0);
	assert_int_equal(fd_read_full(-1, got, 1), -EBADF);
	assert_int_equal(fd_read_buf(-1, &just), -EBADF);
}

TEST(write_all)
{
	int p[2];
	char buf[8] = "";

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(p[1], "", 0), 0);
	assert_int_equal(fd_write_all(p[1], "abc", 3), 0);
	assert_int_equal(read(p[0], buf, sizeof(buf)), 3);
	assert_memory_equal(buf, "abc", 3);
	p[0] = fd_close(p[0]);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(fd_write_all(p[1], "abc", 3), -EPIPE);
	(void)signal(SIGPIPE, SIG_DFL);
	p[1] = fd_close(p[1]);
	assert_int_equal(fd_write_all(-1, "abc", 3), -EBADF);
}

/* The reader takes single bytes and signals interrupt the writer: everything still arrives once. */
static void on_signal(int signo)
{
	(void)signo;
}

TEST(write_all_interrupted)
{
	struct sigaction sa = { .sa_handler = on_signal }; /* without SA_RESTART */
	static char data[300000];
	int p[2];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 256);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char chunk[997];
		size_t at = 0;
		ssize_t n;

		fd_close(p[1]);
		while ((n = read(p[0], chunk, sizeof(chunk))) > 0) {
			if (at + (size_t)n > sizeof(data) ||
			    memcmp(chunk, data + at, (size_t)n) != 0)
				_exit(1);
			at += (size_t)n;
			(void)kill(getppid(), SIGUSR1);
		}
		_exit(at == sizeof(data) ? 0 : 2);
	}
	fd_close(p[0]);
	assert_int_equal(fd_write_all(p[1], data, sizeof(data)), 0);
	fd_close(p[1]);

	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(status, 0);
	(void)signal(SIGUSR1, SIG_DFL);
}

TEST(memfd_is_sealed)
{
	int before = open_fds();
	int fd = fd_memfd("test", "content", 7);
	char buf[16] = "";

	assert_true(fd >= 0);
	assert_true(is_cloexec(fd));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(read(fd, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "content");
	assert_int_equal(pwrite(fd, "X", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 100), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	fd_close(fd);

	fd = fd_memfd("empty", "", 0);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf)), 0);
	fd_close(fd);

	char name[300];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(fd_memfd(name, "x", 1), -EINVAL);
	assert_int_equal(open_fds(), before);
}

TEST(pass_up_to_the_maximum)
{
	int before = open_fds();
	struct pair s = make_pair();
	int out[FD_PASS_MAX + 1], in[FD_PASS_MAX];
	struct stat want, got;

	assert_int_equal(fstat(s.a, &want), 0);
	for (size_t i = 0; i < ARRAY_SIZE(out); i++)
		out[i] = s.a;
	for (size_t n = 0; n <= FD_PASS_MAX; n++) {
		size_t n_in = FD_PASS_MAX;
		char buf[8];

		assert_int_equal(fd_send(s.a, "msg", 3, out, n), 0);
		assert_int_equal(fd_recv(s.b, buf, sizeof(buf), in, &n_in), 3);
		assert_int_equal(n_in, n);
		assert_memory_equal(buf, "msg", 3);
		for (size_t i = 0; i < n_in; i++) {
			assert_true(is_cloexec(in[i]));
			assert_int_equal(fstat(in[i], &got), 0);
			assert_int_equal(got.st_ino, want.st_ino);
			fd_close(in[i]);
		}
	}
	assert_int_equal(fd_send(s.a, "msg", 3, out, FD_PASS_MAX + 1), -EINVAL);
	assert_int_equal(fd_send(s.a, "msg", 3, (int[]){ -1 }, 1), -EBADF);
	fd_close(s.a);
	fd_close(s.b);
	assert_int_equal(open_fds(), before);
}

/* Every pair of how many come and how much room there is: refused ones leave nothing open. */
TEST(recv_too_many_fds_leaks_nothing)
{
	static const size_t counts[] = {
		1, 2, 3, FD_PASS_MAX - 1, FD_PASS_MAX, FD_PASS_MAX + 1, 2 * FD_PASS_MAX, 253
	};
	struct pair s = make_pair();
	int before = open_fds();

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		for (size_t room = 0; room <= FD_PASS_MAX; room++) {
			int fds[FD_PASS_MAX + 1];
			size_t n = room;
			char buf[4];

			memset(fds, 0x7f, sizeof(fds));
			raw_send(s.a, "x", 1, counts[i], s.a);
			ssize_t r = fd_recv(s.b, buf, sizeof(buf), fds, &n);

			assert_int_equal(fds[room], 0x7f7f7f7f);
			if (counts[i] <= room) {
				assert_int_equal(r, 1);
				assert_int_equal(n, counts[i]);
				for (size_t k = 0; k < n; k++)
					fd_close(fds[k]);
			} else {
				assert_int_equal(r, -EMSGSIZE);
				assert_int_equal(n, 0);
			}
			assert_int_equal(open_fds(), before);
		}
	}
	raw_send(s.a, "x", 1, 3, s.a);
	char c;

	assert_int_equal(fd_recv(s.b, &c, 1, NULL, NULL), -EMSGSIZE);
	assert_int_equal(open_fds(), before);
	fd_close(s.a);
	fd_close(s.b);
}

TEST(recv_short_buffer_leaks_nothing)
{
	struct pair s = make_pair();
	int before = open_fds();
	int fds[4];
	size_t n = 4;
	char buf[4] = "";

	assert_int_equal(fd_send(s.a, "12345", 5, &s.a, 1), 0);
	assert_int_equal(fd_recv(s.b, buf, 4, fds, &n), -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(open_fds(), before);

	/* The next message is whole: the rest of the long one did not spill into it. */
	assert_int_equal(fd_send(s.a, "6789", 4, NULL, 0), 0);
	n = 4;
	assert_int_equal(fd_recv(s.b, buf, 4, fds, &n), 4);
	assert_memory_equal(buf, "6789", 4);
	assert_int_equal(n, 0);
	fd_close(s.a);
	fd_close(s.b);
}

/* A peer may attach descriptors to an empty message, which looks like the end of file. */
TEST(recv_empty_message_with_fds_leaks_nothing)
{
	struct pair s = make_pair();
	int before = open_fds();
	int fds[4];
	size_t n = 4;
	char buf[4];

	raw_send(s.a, "", 0, 2, s.a);
	assert_true(fd_recv(s.b, buf, sizeof(buf), fds, &n) <= 0);
	assert_int_equal(n, 0);
	assert_int_equal(open_fds(), before);
	fd_close(s.a);
	fd_close(s.b);
}

/* At the descriptor limit the kernel delivers fewer than were sent; that is not success. */
TEST(recv_at_descriptor_limit)
{
	struct pair s = make_pair();
	int before = open_fds();
	struct rlimit old, low;
	int top = dup(0);
	int fds[4];
	size_t n = 4;
	char buf[4];

	fd_close(top);
	raw_send(s.a, "x", 1, 4, s.a);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)top + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	ssize_t r = fd_recv(s.b, buf, sizeof(buf), fds, &n);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(open_fds(), before);
	fd_close(s.a);
	fd_close(s.b);
}

TEST(end_of_file_and_full)
{
	struct pair s = make_pair();
	char buf[4];
	size_t n = 0;
	int r;

	assert_int_equal(fd_recv(s.b, buf, sizeof(buf), NULL, &n), -EAGAIN);
	do
		r = fd_send(s.a, "full", 4, NULL, 0);
	while (r == 0);
	assert_int_equal(r, -EAGAIN);
	while (fd_recv(s.b, buf, sizeof(buf), NULL, NULL) == 4)
		;
	s.a = fd_close(s.a);
	assert_int_equal(fd_recv(s.b, buf, sizeof(buf), NULL, NULL), 0);
	assert_int_equal(fd_send(s.b, "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
	fd_close(s.b);
	assert_int_equal(fd_recv(-1, buf, sizeof(buf), NULL, NULL), -EBADF);
}

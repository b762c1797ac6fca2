/* SPDX-License-Identifier: Apache-2.0 */
/* fd.c - Descriptor helpers. See fd.h for the contracts. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/foreign.h"

#define READ_PIECE (64u << 10)

int fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		(void)close(fd);
		errno = saved;
	}
	return -1;
}

void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}

void fd_close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
}

int fd_openat2(int dir, const char *path, int flags, uint64_t resolve)
{
	const struct open_how how = { .flags = (unsigned int)(flags | O_CLOEXEC),
				      .resolve = resolve };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

void mem_free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

int mem_grow(void *list, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap ? *cap : 64;
	void *old, *grown;

	if (n <= *cap)
		return 0;
	while (more < n)
		more *= 2;
	memcpy(&old, list, sizeof(old));
	grown = reallocarray(old, more, size);
	if (!grown)
		return -ENOMEM;
	memcpy(list, &grown, sizeof(grown));
	*cap = more;
	return 0;
}

/* @at: -1: where the file offset is. */
static ssize_t read_full(int fd, void *data, size_t size, off_t at)
{
	size_t len = 0;

	while (len < size) {
		char *to = (char *)data + len;
		ssize_t n = TEMP_FAILURE_RETRY(at < 0 ? read(fd, to, size - len) :
							pread(fd, to, size - len, at + (off_t)len));

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

ssize_t fd_read_full(int fd, void *data, size_t size)
{
	return read_full(fd, data, size, -1);
}

ssize_t fd_pread_full(int fd, void *data, size_t size, off_t at)
{
	return read_full(fd, data, size, at);
}

ssize_t fd_read_file(int dirfd, const char *path, char *buf, size_t size)
{
	_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -errno : fd_read_full(fd, buf, size);

	if (n < 0)
		return n;
	if ((size_t)n == size)
		return -E2BIG;
	buf[n] = '\0';
	return n;
}

int fd_read_buf(int fd, struct buf *b)
{
	for (;;) {
		size_t room = b->max - b->len, want = room < READ_PIECE ? room : READ_PIECE;
		char beyond = 0, *to = want ? buf_reserve(b, want) : &beyond;

		if (!to)
			return b->err;
		ssize_t n = TEMP_FAILURE_RETRY(read(fd, to, want ? want : 1));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (!want)
			return -EMSGSIZE;
		buf_commit(b, (size_t)n);
	}
}

char *fd_read_whole(int fd, size_t max, size_t *ret_len)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	if (st.st_size < 0 || (uint64_t)st.st_size > max) {
		errno = EFBIG;
		return NULL;
	}
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t len = text ? fd_pread_full(fd, text, (size_t)st.st_size, 0) : -ENOMEM;

	if (len < 0) {
		free(text);
		errno = (int)-len;
		return NULL;
	}
	text[len] = '\0';
	if (ret_len)
		*ret_len = (size_t)len;
	return text;
}

int fd_write_file(int dirfd, const char *path, const char *s)
{
	_fd_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;

	size_t len = strlen(s);
	ssize_t n = TEMP_FAILURE_RETRY(write(fd, s, len));

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = TEMP_FAILURE_RETRY(write(fd, p, len));

		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

DIR *dir_list(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		fd_close(fd);
	return d;
}

const char *dir_next(DIR *d)
{
	const struct dirent *en;

	do {
		errno = 0;
		en = readdir(d);
	} while (en && (strcmp(en->d_name, ".") == 0 || strcmp(en->d_name, "..") == 0));
	return en ? en->d_name : NULL;
}

void dir_closep(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int fd_signals(const int *signals, size_t n, sigset_t *ret_before)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		(void)sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void fd_many(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

int fd_memfd(const char *name, const void *data, size_t len)
{
	_fd_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;

	int r = fd_write_all(fd, data, len);

	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	/* An empty message could not be told from the end of file. */
	if (len == 0 || n_fds > FD_PASS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}

	ssize_t n = TEMP_FAILURE_RETRY(sendmsg(sock, &msg, MSG_NOSIGNAL));

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* Collect the descriptors of one received message; everything beyond the room given is closed. */
static int take_fds(struct msghdr *msg, int *fds, size_t room, size_t *ret_n)
{
	size_t n = 0;
	int r = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t k = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < k; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < room) {
				fds[n++] = fd;
			} else {
				foreign_close(fd);
				r = -EMSGSIZE;
			}
		}
	}
	*ret_n = n;
	return r;
}

ssize_t fd_recv(int sock, void *data, size_t size, int *fds, size_t *n_fds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	size_t room = n_fds ? *n_fds : 0, got = 0;

	if (n_fds)
		*n_fds = 0;
	ssize_t n = TEMP_FAILURE_RETRY(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC));

	if (n < 0)
		return -errno;

	int r = take_fds(&msg, fds, room, &got);

	/* A hostile peer can attach descriptors to an empty message, which looks like the end. */
	if (r < 0 || (n == 0 && got > 0) || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < got; i++)
			foreign_close(fds[i]);
		return -EMSGSIZE;
	}
	if (n_fds)
		*n_fds = got;
	return n;
}

size_t fd_iov_len(const struct iovec *iov, size_t n_iov)
{
	size_t len = 0;

	for (size_t i = 0; i < n_iov; i++)
		len += iov[i].iov_len;
	return len;
}

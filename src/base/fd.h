/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - Descriptors owned by scope, and the few whole-file and descriptor-passing helpers.
 *
 * `_fd_ int fd = ...` closes at the end of the scope; TAKE_FD(fd) is the only way to carry it out.
 * Every helper here is EINTR-safe and creates descriptors close-on-exec.
 */
#ifndef CAISSON_BASE_FD_H
#define CAISSON_BASE_FD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

void fd_closep(int *fd);
static inline void mem_freep(void *p)
{
	free(*(void **)p);
}

#define _fd_ __attribute__((cleanup(fd_closep)))
#define _mem_ __attribute__((cleanup(mem_freep)))

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

/* fd_close() - Close if not negative; keeps errno; always returns -1: `fd = fd_close(fd);` */
int fd_close(int fd);

/*
 * fd_read_file() - Read a small file below @dirfd into @buf, NUL-terminated.
 * Return: bytes read (without the NUL), -E2BIG when it does not fit in @size - 1, or -errno.
 */
ssize_t fd_read_file(int dirfd, const char *path, char *buf, size_t size);

/* fd_write_file() - Open an existing file for writing and write @s in one write(2). 0 or -errno. */
int fd_write_file(int dirfd, const char *path, const char *s);

/* fd_write_all() - Write all of @len bytes to a blocking descriptor. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t len);

/* fd_memfd() - A sealed read-only memfd with this content, offset 0. Descriptor or -errno. */
int fd_memfd(const char *name, const void *data, size_t len);

/* fd_many() - As many descriptors as may be had: the soft limit becomes the hard one. */
void fd_many(void);

#define FD_PASS_MAX 96

/*
 * fd_send() - One message with up to FD_PASS_MAX descriptors on a SEQPACKET socket.
 * Never raises SIGPIPE. Return: 0 or -errno (-EAGAIN when the socket is non-blocking and full).
 */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);

/*
 * fd_recv() - Receive one message and its descriptors (close-on-exec).
 * @n_fds: in: room in @fds; out: how many arrived.
 *
 * A message that is larger than @size, or carries more descriptors than there is room for, is an
 * error (-EMSGSIZE) and every descriptor that came with it is closed.
 * Return: message length, 0 at end of file, or -errno.
 */
ssize_t fd_recv(int sock, void *data, size_t size, int *fds, size_t *n_fds);

#endif

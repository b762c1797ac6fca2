/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - Descriptors owned by scope, and the few whole-file and descriptor-passing helpers.
 *
 * `_fd_ int fd = ...` closes at the end of the scope; TAKE_FD(fd) is the only way to carry it out.
 * Every helper here is EINTR-safe and creates descriptors close-on-exec.
 */
#ifndef CAISSON_BASE_FD_H
#define CAISSON_BASE_FD_H

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/select.h> /* sigset_t */
#include <sys/types.h>
#include <unistd.h>

struct buf;
struct iovec;

#ifndef TEMP_FAILURE_RETRY /* musl's <unistd.h> does not have it */
#define TEMP_FAILURE_RETRY(call)                                                                   \
	({                                                                                         \
		long result_;                                                                      \
		do                                                                                 \
			result_ = (long)(call);                                                    \
		while (result_ == -1 && errno == EINTR);                                           \
		result_;                                                                           \
	})
#endif

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

void fd_closep(int *fd);
static inline void mem_freep(void *p)
{
	free(*(void **)p);
}

/* mem_free_list() - A list of strings that ends with NULL, or NULL. */
void mem_free_list(char **list);

/*
 * mem_grow() - Make room for @n elements of @size bytes in an array.
 * @list: points to the pointer to its first element
 * @cap: elements that there is room for
 * Return: 0, or -ENOMEM and the array is as it was.
 */
int mem_grow(void *list, size_t *cap, size_t n, size_t size);

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

/* fd_close_all() - fd_close() of each. */
void fd_close_all(const int *fds, size_t n);

/* fd_openat2() - openat2(2), close-on-exec. @resolve: RESOLVE_ flags of <linux/openat2.h>.
 * Descriptor, or -1 with errno. */
int fd_openat2(int dir, const char *path, int flags, uint64_t resolve);

/* fd_read_full() - Read until @size bytes or the end of file. Return: bytes read, or -errno. */
ssize_t fd_read_full(int fd, void *data, size_t size);

/* fd_pread_full() - The same from the offset @at on, by pread(2). */
ssize_t fd_pread_full(int fd, void *data, size_t size, off_t at);

/*
 * fd_read_file() - Read a small file below @dirfd into @buf, NUL-terminated.
 * Return: bytes read (without the NUL), -E2BIG when it does not fit in @size - 1, or -errno.
 */
ssize_t fd_read_file(int dirfd, const char *path, char *buf, size_t size);

/* fd_read_whole() - The content of a file, read by pread(2) and NUL-terminated, for free(). NULL
 * with errno; EFBIG: it has more than @max bytes. @ret_len may be NULL. */
char *fd_read_whole(int fd, size_t max, size_t *ret_len);

/* fd_write_file() - Open an existing file for writing and write @s in one write(2). 0 or -errno. */
int fd_write_file(int dirfd, const char *path, const char *s);

/*
 * fd_read_buf() - Append everything up to the end of a blocking descriptor to @b.
 * Return: 0, -EMSGSIZE when it is more than @b may hold, or -errno.
 */
int fd_read_buf(int fd, struct buf *b);

/* fd_write_all() - Write all of @len bytes to a blocking descriptor. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t len);

/* fd_iov_len() - The bytes of all pieces. */
size_t fd_iov_len(const struct iovec *iov, size_t n_iov);

/* fd_memfd() - A sealed read-only memfd with this content, offset 0. Descriptor or -errno. */
int fd_memfd(const char *name, const void *data, size_t len);

/* fd_signals() - Block these signals, and read them from the descriptor (signalfd(2), non-blocking)
 * that is returned; -1 with errno. @ret_before: the mask until now; may be NULL. */
int fd_signals(const int *signals, size_t n, sigset_t *ret_before);

/* fd_many() - As many descriptors as may be had: the soft limit becomes the hard one. */
void fd_many(void);

/* dir_list() - The entries of the directory @fd; the stream owns @fd, on failure too. NULL with
 * errno, which stays as it is when @fd is negative. */
DIR *dir_list(int fd);
/* dir_next() - The next name except "." and ".."; NULL at the end (errno is 0) or on failure. */
const char *dir_next(DIR *d);
void dir_closep(DIR **d);
#define _dir_ __attribute__((cleanup(dir_closep)))

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

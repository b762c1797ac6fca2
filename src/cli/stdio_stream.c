/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_stream.c - Copy between a cell's pipe and our own stdio.
 *
 * Nothing here may block: the deadline of the run depends on the loop that calls us, and poll()
 * only reports a state of a moment ago (another reader of our stdin, or stderr into the same pipe
 * as stdout, may be faster). So every descriptor is one that does not wait; see stream_stdio(). One
 * chunk is in flight at a time; while it waits nothing more is read, so a slow reader outside slows
 * the program inside, and memory stays bounded.
 *
 * A reader that went away (EPIPE) closes the cell's pipe too: the program gets what it would have
 * got without us.
 */
#include "cli/stdio_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static mode_t type_of(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

int stream_stdio(int fd, int flags)
{
	mode_t type = type_of(fd);

	if (type == S_IFIFO || type == S_IFCHR) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		int again = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

		if (again >= 0)
			return again;
		/* No reader any more, or not ours to open: the plain copy fails when used. */
	}
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

void stream_open(struct stream *s, int from, int to, bool own_to, struct buf *keep)
{
	*s = (struct stream){ .from = from, .to = to, .own_to = own_to, .keep = keep };
	s->to_is_file = type_of(to) == S_IFREG;
	s->to_is_socket = type_of(to) == S_IFSOCK;
	s->from_is_socket = type_of(from) == S_IFSOCK;
}

static void end_to(struct stream *s)
{
	if (s->own_to)
		fd_close(s->to);
	s->to = -1;
}

void stream_close(struct stream *s)
{
	s->from = fd_close(s->from);
	end_to(s);
	free(s->pending);
	s->pending = NULL;
	s->off = s->len = 0;
}

bool stream_active(const struct stream *s)
{
	return s->from >= 0 || s->off < s->len;
}

void stream_poll(const struct stream *s, struct pollfd *p)
{
	*p = (struct pollfd){ .fd = -1 };
	if (s->off < s->len) {
		p->fd = s->to;
		p->events = POLLOUT;
	} else if (s->from >= 0) {
		p->fd = s->from;
		p->events = POLLIN;
	}
}

static void take(struct stream *s)
{
	if (!s->pending && !(s->pending = malloc(STREAM_CHUNK)))
		return;
	size_t want = STREAM_CHUNK;

	/* One byte more than is allowed distinguishes "exactly enough" from "too much". */
	if (s->budget && *s->budget < want)
		want = (size_t)*s->budget + 1;
	ssize_t n = s->from_is_socket ? recv(s->from, s->pending, want, MSG_DONTWAIT) :
					read(s->from, s->pending, want);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* a pty master reads EIO when its last user is gone */
		s->from = fd_close(s->from);
		end_to(s);
		return;
	}
	s->bytes += (uint64_t)n;
	if (s->budget && (uint64_t)n > *s->budget) {
		s->over = true;
		n = (ssize_t)*s->budget;
		s->from = fd_close(s->from);
	}
	if (s->budget)
		*s->budget -= (uint64_t)n;
	if (s->keep)
		(void)buf_append_some(s->keep, s->pending, (size_t)n);
	s->off = 0;
	s->len = s->to >= 0 ? (size_t)n : 0;
}

static void give(struct stream *s)
{
	size_t want = s->len - s->off;
	const char *at = s->pending + s->off;

	if (!s->to_is_file && want > PIPE_BUF)
		want = PIPE_BUF;
	ssize_t n = s->to_is_socket ? send(s->to, at, want, MSG_DONTWAIT | MSG_NOSIGNAL) :
				      write(s->to, at, want);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		s->error = errno;
		s->off = s->len = 0;
		s->from = fd_close(s->from);
		end_to(s);
		return;
	}
	s->off += (size_t)n;
}

void stream_step(struct stream *s, short revents)
{
	if (!revents)
		return;
	if (s->off < s->len)
		give(s);
	else if (s->from >= 0)
		take(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - Descriptors that another process made and may still hold.
 *
 * O_NONBLOCK belongs to the open file description, not to the descriptor: a peer that kept a copy
 * of the descriptor that it sent can clear the flag, take the bytes that epoll reported, and leave
 * a plain read(2) waiting for ever. A process that serves many peers therefore checks the kind of a
 * descriptor when it arrives, and reads and writes it through these functions alone. None of them
 * waits, whatever flags and options the peer sets:
 *
 *   pipes      RWF_NOWAIT is a property of the call (Linux 6.4 and later; older ones: as terminals)
 *   sockets    MSG_DONTWAIT, likewise; callers use it with send(2) and recv(2) themselves
 *   terminals, accept(2) and close(2) have no such flag: a timer interrupts them
 *
 * The timer bounds one wait (to FOREIGN_TICK_MS, twice that at most), not their number. So the time
 * that calls waited is added up for each peer, and a peer that has cost FOREIGN_STALL_MS gets
 * -ETIMEDOUT: the caller ends it. With pipes and listening sockets an honest peer costs nothing.
 * Reading a terminal can wait for a moment on a busy machine, with any peer: the Linux kernel moves
 * the bytes in a thread of its own. A process that reads one lets it rest in proportion to the time
 * that it took (front/sandbox/command_io.c), and ends no peer for it.
 *
 * Two waits are beyond this: a pipe or socket whose lock the peer holds while it waits for memory
 * (a file of a network or FUSE file system that hangs and was mapped), and closing a file of such a
 * file system. A cell can mount neither; the operator can hand one in.
 */
#ifndef CAISSON_BASE_FOREIGN_H
#define CAISSON_BASE_FOREIGN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FOREIGN_TICK_MS 5
#define FOREIGN_STALL_MS 100 /* in the life of a peer */

enum foreign_kind {
	FOREIGN_PIPE = 1,
	FOREIGN_TERMINAL, /* the master of a pseudo-terminal */
	FOREIGN_STREAM,   /* TCP, connected or connecting */
	FOREIGN_LISTENER, /* TCP, listening */
	FOREIGN_DATAGRAM, /* UDP */
	FOREIGN_MEMORY,   /* of memfd_create(2): pread(2) does not wait; content may change */
};

/*
 * foreign_init() - Once, before the first call of the others, which use SIGALRM from then on. 0 or
 * -errno. Without it the calls that need the timer can wait; foreign_close() is then for processes
 * that serve one peer alone.
 */
int foreign_init(void);

/*
 * foreign_check() - Whether @fd is of @kind; if so, it is made non-blocking. Makes no request to a
 * file system, which could wait. Return: 0, or -EPROTO.
 */
int foreign_check(int fd, enum foreign_kind kind);

/*
 * foreign_read(), foreign_write() - For pipes and terminals.
 * @stalled_ns: the time that this peer has cost so far; begins with 0.
 *
 * Return: as read(2) and write(2); -EAGAIN: not now; -ETIMEDOUT: the peer makes us wait; or another
 * -errno.
 */
ssize_t foreign_read(int fd, void *data, size_t size, uint64_t *stalled_ns);
ssize_t foreign_write(int fd, const void *data, size_t len, uint64_t *stalled_ns);

/* foreign_accept() - A connection, close-on-exec, non-blocking, ours alone; or -errno. Its options
 * are those of the listening socket, except SO_LINGER: close(2) does not wait. */
int foreign_accept(int fd, uint64_t *stalled_ns);

/*
 * foreign_close() - The last close(2) of a socket waits for as long as SO_LINGER says, which a peer
 * can set. For sockets, and for descriptors that were not checked or are refused. Keeps errno;
 * returns -1.
 */
int foreign_close(int fd);

#endif

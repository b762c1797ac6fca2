/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockdiag.h - Which user holds the other end of a TCP connection within this machine.
 *
 * The Linux kernel knows the user of every socket in its network namespace and reports it over
 * netlink (sock_diag(7)): one exact lookup in a hash table, without privileges.
 */
#ifndef CAISSON_NET_SOCKDIAG_H
#define CAISSON_NET_SOCKDIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct sockdiag {
	int fd; /* netlink; -1: not open */
	uint32_t seq;
	uid_t unnamed; /* reported for users without a number in our user namespace; -1: all have
			  one */
};

/*
 * sockdiag_open() - For the connections that @listener, a TCP socket on a loopback address,
 * accepts. Proves that the kernel answers by asking for @listener itself. From then on the kernel
 * drops all answers except those about a connection to its port, for every holder of the
 * descriptor. Return: 0, or -errno with the reason: a kernel without sock_diag, a filter on
 * socket(), a listener of another network namespace.
 */
int sockdiag_open(int listener, struct sockdiag *ret, struct err *e);

/*
 * sockdiag_peer() - The user who holds the other end of the accepted connection @fd. Never blocks;
 * takes about 2 microseconds. Return: 0, or -errno when the user is unknown. sockdiag_is_final()
 * tells two cases apart: the peer has closed its socket, is not on this machine or has no number in
 * our user namespace; or the kernel could not answer, for want of memory, and may do so later.
 */
int sockdiag_peer(struct sockdiag *d, int fd, uid_t *ret);
bool sockdiag_is_final(int error);

void sockdiag_close(struct sockdiag *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet.h - Messages between front and bridge: a head, and a body of any size up to a limit.
 *
 * One packet of a SEQPACKET socket is head, newline, body; a body that is too large for it comes as
 * a memfd. Only the callers read heads and bodies; docs/protocol/bridge.md has their format.
 */
#ifndef CAISSON_CLIENT_PACKET_H
#define CAISSON_CLIENT_PACKET_H

#include <stddef.h>

struct buf;

/* Packets that wait for a socket that is full. */
struct packet_queue {
	struct packet *first, **last;
	size_t bytes; /* of all that wait, bodies included */
};

void packet_queue_init(struct packet_queue *q);
void packet_queue_free(struct packet_queue *q);

/*
 * packet_put() - Send, or add to what waits. @head: without a newline. @body: may be NULL.
 * Return: 0, 1 when something waits now (call packet_flush() when the socket takes more), -ENOMEM,
 * -EMSGSIZE, or the error of the socket (-EPIPE: nobody is there).
 */
int packet_put(struct packet_queue *q, int sock, const char *head, size_t head_len,
	       const char *body, size_t body_len);

/* packet_flush() - 0: nothing waits any more; 1: something does; or -errno. */
int packet_flush(struct packet_queue *q, int sock);

/*
 * packet_recv() - The next message. Both buffers are cleared first; their maxima hold.
 * Return: 1, 0 at the end, -EAGAIN, -EPROTO: no packet of this kind, -EMSGSIZE: too large, -ENOMEM,
 * -errno.
 */
int packet_recv(int sock, struct buf *head, struct buf *body);

#endif

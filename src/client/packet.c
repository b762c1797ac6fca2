/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet.c - Head and body over a SEQPACKET socket.
 *
 * A body in a descriptor is read, not mapped: its sender could shorten a mapping while we read it.
 * Its size is asked for once, and no more than that is read.
 */
#include "client/packet.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "wire/bridge.h"

struct packet {
	struct packet *next;
	int fd; /* the body, when it is large; otherwise -1 */
	size_t len, bytes;
	char data[];
};

static struct packet *packet_free(struct packet *p)
{
	if (p)
		fd_close(p->fd);
	free(p);
	return NULL;
}

void packet_queue_init(struct packet_queue *q)
{
	*q = (struct packet_queue){ .last = &q->first };
}

void packet_queue_free(struct packet_queue *q)
{
	while (q->first) {
		struct packet *p = q->first;

		q->first = p->next;
		packet_free(p);
	}
	packet_queue_init(q);
}

/* ---- out ----------------------------------------------------------------------------------- */

static int make(const char *head, size_t head_len, const char *body, size_t body_len,
		struct packet **ret)
{
	size_t inside = head_len + 1 + body_len <= BRIDGE_PACKET_MAX ? body_len : 0;

	if (head_len > BRIDGE_HEAD_MAX || body_len > BRIDGE_BODY_MAX)
		return -EMSGSIZE;
	struct packet *p = malloc(sizeof(*p) + head_len + 1 + inside);

	if (!p)
		return -ENOMEM;
	*p = (struct packet){ .fd = -1, .len = head_len + 1 + inside };
	p->bytes = head_len + 1 + body_len;
	memcpy(p->data, head, head_len);
	p->data[head_len] = '\n';
	if (inside > 0)
		memcpy(p->data + head_len + 1, body, inside);
	if (inside < body_len) {
		p->fd = fd_memfd("caisson-body", body, body_len);
		if (p->fd < 0) {
			int r = p->fd;

			packet_free(p);
			return r;
		}
	}
	*ret = p;
	return 0;
}

int packet_flush(struct packet_queue *q, int sock)
{
	while (q->first) {
		struct packet *p = q->first;
		int r = fd_send(sock, p->data, p->len, &p->fd, p->fd >= 0 ? 1 : 0);

		/* Too many descriptors are on their way already: those have to be taken first. */
		if (r == -EAGAIN || r == -ETOOMANYREFS || r == -ENOBUFS)
			return 1;
		if (r < 0)
			return r;
		q->first = p->next;
		q->bytes -= p->bytes;
		if (!q->first)
			q->last = &q->first;
		packet_free(p);
	}
	return 0;
}

int packet_put(struct packet_queue *q, int sock, const char *head, size_t head_len,
	       const char *body, size_t body_len)
{
	struct packet *p = NULL;
	bool waits = q->first;
	int r = make(head, head_len, body, body_len, &p);

	if (r < 0)
		return r;
	*q->last = p;
	q->last = &p->next;
	q->bytes += p->bytes;
	return waits ? 1 : packet_flush(q, sock);
}

/* ---- in ------------------------------------------------------------------------------------ */

static int read_body(int fd, struct buf *body)
{
	struct stat st;

	if (foreign_check(fd, FOREIGN_MEMORY) < 0)
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > body->max)
		return -EMSGSIZE;
	size_t size = (size_t)st.st_size;
	char *to = buf_reserve(body, size);

	if (!to)
		return body->err;
	ssize_t n = fd_pread_full(fd, to, size, 0);

	if (n != (ssize_t)size)
		return n < 0 ? (int)n : -EPROTO;
	buf_commit(body, size);
	return 0;
}

int packet_recv(int sock, struct buf *head, struct buf *body)
{
	static char packet[BRIDGE_PACKET_MAX];
	int got = -1;
	size_t n_fds = 1;

	buf_clear(head);
	buf_clear(body);
	ssize_t n = fd_recv(sock, packet, sizeof(packet), &got, &n_fds);

	if (n <= 0)
		return (int)n;
	_fd_ int fd = n_fds > 0 ? got : -1;
	char *end = memchr(packet, '\n', (size_t)n);

	if (!end)
		return -EPROTO;
	size_t head_len = (size_t)(end - packet), rest = (size_t)n - head_len - 1;

	if (fd >= 0 && rest > 0)
		return -EPROTO;
	if (buf_append(head, packet, head_len) < 0)
		return head->err;
	if (rest > 0 && buf_append(body, end + 1, rest) < 0)
		return body->err;
	if (fd >= 0) {
		int r = read_body(fd, body);

		if (r < 0)
			return r;
	}
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_io.c - The bytes of a connection. See conn.h for the contract, conn.c for its life.
 *
 * Output: bytes that the Linux kernel takes at once never touch the queue. The rest waits in one
 * buffer that is sent from out_head on; the sent part is removed only when it is the larger part,
 * so every byte is moved at most once on average. Invariant: no more than config->queue_max bytes
 * wait, and the buffer's content is at most twice that. An empty queue holds no memory.
 *
 * Input: at most READ_BUDGET bytes per round, so that one fast sender does not starve the others;
 * epoll is level-triggered and reports the rest again. While paused nothing is read, and only
 * EPOLLRDHUP is requested, which reports the peer's end. That end is handed up at once when no
 * unread bytes are before it: so a client that has left is noticed. Otherwise it keeps its place
 * behind the unread bytes, and the event is not requested until the owner goes on reading.
 *
 * A hang-up (both directions have ended) and an error cannot be masked, so they must end the
 * connection: an error at once, a hang-up as soon as nothing more is going to be read.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/conn_int.h"
#include "net/tls.h"

#define READ_SIZE 16384
#define READ_BUDGET (4 * READ_SIZE)
#define DISCARD_MAX (UINT64_C(64) << 20)

/* Whether bytes are read from the socket in this state, to be handed up or discarded. */
static bool is_reading(const struct conn *c)
{
	switch (c->state) {
	case CONN_HANDSHAKE:
		return true;
	case CONN_OPEN:
		return !c->paused && !c->eof;
	case CONN_FLUSH:
	case CONN_DRAIN:
		return !c->fin;
	case CONN_CLOSED:
		break;
	}
	return false;
}

void conn_rearm(struct conn *c)
{
	uint32_t events = 0;

	if (c->state == CONN_CLOSED)
		return;
	if (is_reading(c))
		events = EPOLLIN | EPOLLRDHUP;
	else if (c->state == CONN_OPEN && !c->eof && !c->end_ahead)
		events = EPOLLRDHUP;
	if (conn_queued(c) > 0)
		events |= EPOLLOUT;
	loop_mod(&c->watch, events);
}

/* ---- output -------------------------------------------------------------------------------- */

/* Bytes that the Linux kernel took, 0 when it is full; an error ends the connection. */
static ssize_t send_now(struct conn *c, const struct iovec *iov, size_t n_iov)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n_iov };
	ssize_t n = TEMP_FAILURE_RETRY(sendmsg(c->watch.fd, &m, MSG_NOSIGNAL));

	if (n >= 0) {
		c->sent += (uint64_t)n;
		return n;
	}
	if (errno == EAGAIN)
		return 0;
	int r = -errno;

	conn_end(c, r);
	return r;
}

/* Queue the @len bytes of @iov after the first @skip. */
static int enqueue(struct conn *c, const struct iovec *iov, size_t n_iov, size_t skip, size_t len)
{
	size_t queued = conn_queued(c);

	/* After conn_finish() only a close_notify of some bytes is added. */
	if (c->state <= CONN_OPEN &&
	    (len > c->config->queue_max || queued > c->config->queue_max - len)) {
		conn_end(c, -ENOBUFS);
		return -ENOBUFS;
	}
	if (c->out_head >= queued) {
		buf_consume(&c->out, c->out_head);
		c->out_head = 0;
	}
	for (size_t i = 0; i < n_iov; i++) {
		size_t from = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		skip -= from;
		(void)buf_append(&c->out, (const char *)iov[i].iov_base + from,
				 iov[i].iov_len - from);
	}
	if (c->out.err) {
		conn_end(c, -ENOMEM);
		return -ENOMEM;
	}
	if (conn_queued(c) > c->config->queue_high)
		c->congested = true;
	conn_rearm(c);
	return 0;
}

static int send_or_queue(struct conn *c, const struct iovec *iov, size_t n_iov)
{
	size_t len = fd_iov_len(iov, n_iov);
	ssize_t n = 0;

	if (conn_queued(c) == 0)
		n = send_now(c, iov, n_iov);
	if (n < 0)
		return (int)n;
	return (size_t)n < len ? enqueue(c, iov, n_iov, (size_t)n, len - (size_t)n) : 0;
}

int conn_send_tls(struct conn *c)
{
	const char *data;
	size_t len = tls_output(c->tls, &data);
	struct iovec iov = { .iov_base = (char *)data, .iov_len = len };

	if (len == 0)
		return 0;
	int r = send_or_queue(c, &iov, 1);

	tls_sent(c->tls);
	return r;
}

/* Record by record: encrypted bytes stay bounded by the queue. */
static int write_tls(struct conn *c, const char *p, size_t len)
{
	while (len > 0) {
		size_t n = len < TLS_RECORD_MAX ? len : TLS_RECORD_MAX;
		int r = tls_write(c->tls, p, n);

		if (r == 0)
			r = conn_send_tls(c);
		if (r < 0) {
			conn_end(c, r);
			return r;
		}
		p += n;
		len -= n;
	}
	return 0;
}

int conn_writev(struct conn *c, const struct iovec *iov, size_t n_iov)
{
	int r = 0;

	if (c->state != CONN_OPEN)
		return c->state == CONN_CLOSED && c->why < 0 ? c->why : -EPIPE;
	if (!c->tls)
		return fd_iov_len(iov, n_iov) > 0 ? send_or_queue(c, iov, n_iov) : 0;
	for (size_t i = 0; i < n_iov && r == 0; i++)
		r = write_tls(c, iov[i].iov_base, iov[i].iov_len);
	return r;
}

int conn_write(struct conn *c, const void *data, size_t len)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };

	return conn_writev(c, &iov, 1);
}

static void flush(struct conn *c)
{
	while (conn_queued(c) > 0) {
		struct iovec rest = { .iov_base = c->out.data + c->out_head,
				      .iov_len = conn_queued(c) };
		ssize_t n = send_now(c, &rest, 1);

		if (n < 0)
			return;
		if (n == 0)
			break;
		c->out_head += (size_t)n;
	}
	if (conn_queued(c) == 0) {
		buf_free(&c->out);
		c->out_head = 0;
		if (c->state == CONN_FLUSH) {
			conn_flushed(c);
			return;
		}
	}
	if (c->congested && conn_queued(c) <= c->config->queue_low) {
		c->congested = false;
		if (c->state == CONN_OPEN && c->ops && c->ops->on_drain)
			c->ops->on_drain(c);
	}
}

/* ---- input --------------------------------------------------------------------------------- */

/* Bytes, 0 at the end of the stream, -EAGAIN; any other error ended the connection. */
static ssize_t receive(struct conn *c, char *data, size_t size, int flags)
{
	ssize_t n = TEMP_FAILURE_RETRY(recv(c->watch.fd, data, size, flags));

	if (n >= 0)
		return n;
	int r = -errno;

	if (r != -EAGAIN)
		conn_end(c, c->state == CONN_DRAIN ? 0 : r);
	return r;
}

static void hand_up_eof(struct conn *c)
{
	c->eof = true;
	if (c->ops && c->ops->on_eof)
		c->ops->on_eof(c);
	else
		conn_finish(c);
}

static void hand_up(struct conn *c, const char *data, size_t len)
{
	if (c->ops && c->ops->on_data)
		c->ops->on_data(c, data, len);
}

/* The socket's end. Under TLS it is a cut: the peer sent no close_notify. */
static void socket_ended(struct conn *c)
{
	c->fin = true;
	if (c->tls)
		conn_end(c, -ECONNRESET);
	else
		hand_up_eof(c);
}

/* Not TLS, or broken TLS: send the alert, as far as the socket takes it now. */
static void tls_broken(struct conn *c)
{
	(void)conn_send_tls(c);
	conn_end(c, -EPROTO);
}

static void hand_up_decrypted(struct conn *c)
{
	char data[TLS_RECORD_MAX];

	while (c->state == CONN_OPEN && is_reading(c)) {
		ssize_t n = tls_read(c->tls, data, sizeof(data));

		if (n == -EAGAIN)
			break;
		if (n < 0)
			tls_broken(c);
		else if (n == 0)
			hand_up_eof(c);
		else
			hand_up(c, data, (size_t)n);
	}
	if (c->state == CONN_OPEN)
		(void)conn_send_tls(c); /* the answer to a key update */
}

static void take_ciphertext(struct conn *c, const char *data, size_t len)
{
	int r = tls_feed(c->tls, data, len);

	if (r < 0) {
		conn_end(c, r);
		return;
	}
	if (c->state == CONN_HANDSHAKE) {
		r = tls_handshake(c->tls);
		if (r == -EPROTO) {
			if (c->config->plain_answer && data[0] >= 'A' && data[0] <= 'Z')
				conn_refuse_plain(c); /* "GET /": no record of TLS begins so */
			else
				tls_broken(c);
			return;
		}
		if (conn_send_tls(c) < 0 || r == -EAGAIN)
			return;
		conn_ready(c);
	}
	hand_up_decrypted(c);
}

void conn_pump(struct deferred *d)
{
	struct conn *c = d->arg;

	hand_up_decrypted(c);
	conn_rearm(c);
}

static void read_some(struct conn *c)
{
	char data[READ_SIZE];

	for (size_t got = 0; got < READ_BUDGET && c->state <= CONN_OPEN && is_reading(c);) {
		ssize_t n = receive(c, data, sizeof(data), 0);

		if (n < 0)
			return;
		if (n == 0) {
			socket_ended(c);
			return;
		}
		if (c->tls)
			take_ciphertext(c, data, (size_t)n);
		else
			hand_up(c, data, (size_t)n);
		/* A short read has emptied the socket; if not, epoll reports it again. */
		if ((size_t)n < sizeof(data))
			return;
		got += (size_t)n;
	}
}

static void discard_some(struct conn *c)
{
	char data[READ_SIZE];

	for (size_t got = 0; got < READ_BUDGET && !c->fin;) {
		ssize_t n = receive(c, data, sizeof(data), 0);

		if (n < 0)
			return;
		got += (size_t)n;
		c->discarded += (size_t)n;
		if (n == 0 || c->discarded > DISCARD_MAX)
			c->fin = true;
	}
	if (c->fin && c->state == CONN_DRAIN)
		conn_end(c, 0);
}

/*
 * Paused, and the peer has ended its stream. Is that end the next thing in the stream? With TLS the
 * records have to be decrypted, since close_notify is a record: bytes are taken from the socket
 * only as long as they are no data.
 */
static void look_for_end(struct conn *c)
{
	char data[READ_SIZE];

	for (;;) {
		ssize_t n = c->tls ? tls_peek(c->tls) : receive(c, data, 1, MSG_PEEK);

		if (n > 0) {
			c->end_ahead = true;
			return;
		}
		if (n == 0) {
			c->fin = !c->tls;
			hand_up_eof(c);
			return;
		}
		if (!c->tls)
			return;
		if (n != -EAGAIN) {
			tls_broken(c);
			return;
		}
		n = receive(c, data, sizeof(data), 0);
		if (n == 0)
			socket_ended(c);
		if (n <= 0)
			return;
		if (tls_feed(c->tls, data, (size_t)n) < 0) {
			conn_end(c, -ENOMEM);
			return;
		}
	}
}

static int socket_error(const struct conn *c)
{
	int code = 0;
	socklen_t len = sizeof(code);

	(void)getsockopt(c->watch.fd, SOL_SOCKET, SO_ERROR, &code, &len);
	return code > 0 ? -code : -ECONNRESET;
}

void conn_event(struct watch *w, uint32_t events)
{
	struct conn *c = w->arg;

	if (events & EPOLLERR) {
		conn_end(c, c->state == CONN_DRAIN ? 0 : socket_error(c));
		return;
	}
	if (events & EPOLLOUT)
		flush(c);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) {
		if (c->state == CONN_FLUSH || c->state == CONN_DRAIN)
			discard_some(c);
		else if (is_reading(c))
			read_some(c);
		else if (events & EPOLLRDHUP && c->state == CONN_OPEN && !c->eof)
			look_for_end(c);
	}
	/* The peer reads no more, and nothing is left to be read. */
	if (events & EPOLLHUP && !is_reading(c))
		conn_end(c, c->state == CONN_DRAIN ? 0 : -EPIPE);
	conn_rearm(c);
}

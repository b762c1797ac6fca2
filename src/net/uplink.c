/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink.c - A connection to a server, on a stream socket that another process began to connect.
 *
 * The front may not connect; sockets are sent to it. Output is queued up to UPLINK_MAX; a producer
 * stops when uplink_full() is true and goes on at drain. With TLS, the bytes at this interface are
 * plain, an end without close_notify is a break, and nothing may be written before connected. When
 * the peer takes no more (it has closed), further output is dropped, and input is still read: a
 * server may answer before it has read the whole request.
 *
 * The struct is the owner's and may be freed at the end of the round in which it was closed. Every
 * function may be called from every callback.
 *
 * A watch without requested events is taken out of the loop: a hang-up cannot be masked, and epoll
 * would report it again and again. It is found when events are requested again.
 *
 * The socket may be one that another process made and still holds (base/foreign.h): no call waits,
 * whatever its flags are.
 *
 * Why conn.h does not fit. A client that is gone has to be noticed at once, also while it is
 * paused, so that no work is done for it: there an error or a hang-up ends the connection. A server
 * that is gone may have sent its answer before: here all bytes that it sent are read first, at the
 * pace of the client, and only then its end counts.
 */
#include "net/http_relay.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/foreign.h"
#include "net/tls.h"

#define READ_SIZE (16u << 10)
#define ROUNDS 4u

bool uplink_is_open(const struct uplink *u)
{
	return u->loop != NULL;
}

void uplink_close(struct uplink *u)
{
	if (!uplink_is_open(u))
		return;
	loop_del(&u->watch);
	u->watch.fd = foreign_close(u->watch.fd);
	buf_free(&u->out);
	loop_undefer(u->loop, &u->pump);
	tls_free(u->tls);
	u->tls = NULL;
	u->loop = NULL;
}

static void broken(struct uplink *u, int why)
{
	uplink_close(u);
	u->ops->broken(u, why);
}

/* Request exactly the events that are needed. */
static void arm(struct uplink *u)
{
	uint32_t want = 0;

	if (!uplink_is_open(u))
		return;
	if (!u->connected)
		want = EPOLLOUT;
	else if (!u->paused && !u->eof)
		want = EPOLLIN;
	if (u->connected && u->out.len > 0)
		want |= EPOLLOUT;
	if (want == 0) {
		loop_del(&u->watch);
	} else if (u->watch.loop) {
		loop_mod(&u->watch, want);
	} else {
		u->watch.events = want;
		int r = loop_add(u->loop, &u->watch, NULL);

		if (r < 0)
			broken(u, r);
	}
}

/* ---- out ----------------------------------------------------------------------------------- */

static void flush(struct uplink *u)
{
	size_t at = 0;

	while (at < u->out.len && !u->deaf) {
		ssize_t n = TEMP_FAILURE_RETRY(send(u->watch.fd, u->out.data + at, u->out.len - at,
						    MSG_NOSIGNAL | MSG_DONTWAIT));

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			u->deaf = true;
			break;
		}
		at += (size_t)n;
		u->given += (size_t)n;
		u->moved_ns = u->loop->now_ns;
	}
	if (u->deaf)
		buf_free(&u->out);
	else
		buf_consume(&u->out, at);
	if (u->out.len > 0)
		return;
	buf_free(&u->out);
	if (u->ending && !u->ended) {
		u->ended = true;
		(void)shutdown(u->watch.fd, SHUT_WR);
	}
}

/* The output of TLS joins the queue. */
static int queue_tls(struct uplink *u)
{
	const char *text;
	size_t n = tls_output(u->tls, &text);
	int r = n > 0 ? buf_append(&u->out, text, n) : 0;

	tls_sent(u->tls);
	return r < 0 ? -ENOBUFS : 0;
}

static int encrypt(struct uplink *u, const char *data, size_t len)
{
	int r = 0;

	while (len > 0 && r == 0) {
		size_t n = len < TLS_RECORD_MAX ? len : TLS_RECORD_MAX;

		r = u->shaking ? -EPROTO : tls_write(u->tls, data, n);
		if (r == 0)
			r = queue_tls(u);
		data += n;
		len -= n;
	}
	return r;
}

int uplink_write(struct uplink *u, const void *data, size_t len)
{
	if (!uplink_is_open(u) || u->deaf || u->ending)
		return 0;
	int r = u->tls ? encrypt(u, data, len) : buf_append(&u->out, data, len);

	if (r < 0)
		return -ENOBUFS;
	if (u->connected)
		flush(u);
	arm(u);
	return 0;
}

bool uplink_full(struct uplink *u)
{
	if (u->out.len >= UPLINK_HIGH)
		u->full = true;
	return u->full;
}

void uplink_finish(struct uplink *u)
{
	if (!uplink_is_open(u) || u->ending)
		return;
	u->ending = true;
	if (u->tls && !u->shaking) {
		tls_shutdown(u->tls);
		(void)queue_tls(u);
	}
	if (u->connected)
		flush(u);
	arm(u);
}

/* ---- in ------------------------------------------------------------------------------------ */

void uplink_pause(struct uplink *u, bool pause)
{
	if (u->paused == pause)
		return;
	u->paused = pause;
	if (!pause && u->tls && uplink_is_open(u))
		loop_defer(u->loop, &u->pump);
	arm(u);
}

/* Hand up all decrypted bytes, until the owner pauses. */
static void hand_up_decrypted(struct uplink *u)
{
	char data[TLS_RECORD_MAX];

	while (uplink_is_open(u) && !u->paused && !u->eof) {
		ssize_t n = tls_read(u->tls, data, sizeof(data));

		if (n == -EAGAIN) {
			(void)queue_tls(u); /* the answer to a key update */
			return;
		}
		if (n < 0) {
			broken(u, -EPROTO);
		} else if (n == 0) {
			u->eof = true;
			u->ops->eof(u);
		} else {
			u->ops->data(u, data, (size_t)n);
		}
	}
}

static void on_pump(struct deferred *d)
{
	struct uplink *u = d->arg;

	hand_up_decrypted(u);
	if (uplink_is_open(u))
		flush(u);
	arm(u);
}

static void shake_hands(struct uplink *u)
{
	int r = tls_handshake(u->tls);

	if (queue_tls(u) < 0 || (r < 0 && r != -EAGAIN)) {
		flush(u); /* the alert, as far as the socket takes it */
		u->problem = tls_problem(u->tls);
		broken(u, -EPROTO);
		return;
	}
	flush(u);
	if (r == 0) {
		u->shaking = false;
		u->ops->connected(u);
	}
}

static void take_ciphertext(struct uplink *u, const char *data, size_t len)
{
	if (tls_feed(u->tls, data, len) < 0) {
		broken(u, -ENOMEM);
		return;
	}
	if (u->shaking)
		shake_hands(u);
	if (uplink_is_open(u) && !u->shaking)
		hand_up_decrypted(u);
}

static void take(struct uplink *u)
{
	char data[READ_SIZE];

	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (!uplink_is_open(u) || u->paused || u->eof)
			return;
		ssize_t n = recv(u->watch.fd, data, sizeof(data), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			broken(u, -errno);
			return;
		}
		if (n == 0 && u->tls) {
			u->problem = "the connection was cut";
			broken(u, -ECONNRESET);
			return;
		}
		if (n == 0) {
			u->eof = true;
			u->ops->eof(u);
			return;
		}
		u->taken += (size_t)n;
		u->moved_ns = u->loop->now_ns;
		if (u->tls)
			take_ciphertext(u, data, (size_t)n);
		else
			u->ops->data(u, data, (size_t)n);
	}
}

/* ---- life ---------------------------------------------------------------------------------- */

static void settle_connect(struct uplink *u)
{
	int code = 0;
	socklen_t len = sizeof(code);

	if (getsockopt(u->watch.fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code) {
		broken(u, -code);
		return;
	}
	u->connected = true;
	u->moved_ns = u->loop->now_ns;
	if (u->tls)
		shake_hands(u);
	else
		u->ops->connected(u);
	if (uplink_is_open(u))
		flush(u);
}

static void on_event(struct watch *w, uint32_t events)
{
	struct uplink *u = w->arg;

	if (!u->connected) {
		settle_connect(u);
		arm(u);
		return;
	}
	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		flush(u);
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		take(u);
	if (uplink_is_open(u) && u->full && u->out.len == 0) {
		u->full = false;
		u->ops->drain(u);
	}
	arm(u);
}

int uplink_open(struct uplink *u, struct loop *l, int fd, const struct uplink_ops *ops, void *arg)
{
	*u = (struct uplink){ .loop = l, .ops = ops, .arg = arg, .moved_ns = l->now_ns };
	u->watch = (struct watch){ .fd = fd, .events = EPOLLOUT, .fn = on_event, .arg = u };
	buf_init(&u->out, UPLINK_MAX);
	int r = loop_add(l, &u->watch, NULL);

	if (r < 0)
		uplink_close(u);
	return r;
}

void uplink_tls(struct uplink *u, struct tls *session)
{
	u->tls = session;
	u->shaking = true;
	u->pump = (struct deferred){ .fn = on_pump, .arg = u };
}

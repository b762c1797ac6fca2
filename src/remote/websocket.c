/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.c - Handshake and frames. The distributions build libcurl without WebSockets; it opens
 * the connection (tunnel.h), and wslay reads and writes the frames.
 */
#include "remote/websocket.h"

#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "remote/api.h"
#include "remote/tunnel.h"

#define MESSAGE_MAX (16u << 20)

struct websocket {
	struct tunnel tunnel;
	wslay_event_context_ptr ctx;
	websocket_on_message *on_message;
	void *arg;
	bool broken;
};

/* ---- bytes --------------------------------------------------------------------------------- */

/* The result of a call of the tunnel, in the form that wslay expects. */
static ssize_t io_result(struct websocket *w, wslay_event_context_ptr ctx, ssize_t n)
{
	if (n > 0)
		return n;
	w->broken |= n != -EAGAIN;
	wslay_event_set_error(ctx, w->broken ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket *w = arg;

	(void)flags;
	return io_result(w, ctx, tunnel_recv(&w->tunnel, data, len));
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags,
		       void *arg)
{
	struct websocket *w = arg;

	(void)flags;
	return io_result(w, ctx, tunnel_send(&w->tunnel, data, len));
}

static int on_mask(wslay_event_context_ptr ctx, uint8_t *data, size_t len, void *arg)
{
	(void)ctx;
	(void)arg;
	return getrandom(data, len, 0) == (ssize_t)len ? 0 : -1;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
		       void *arg)
{
	struct websocket *w = arg;

	(void)ctx;
	if (m->opcode == WSLAY_TEXT_FRAME || m->opcode == WSLAY_BINARY_FRAME)
		w->on_message(w->arg, m->opcode == WSLAY_TEXT_FRAME, (const char *)m->msg,
			      m->msg_length);
}

/* ---- the handshake ------------------------------------------------------------------------- */

void websocket_accept(const char *key, char ret[29])
{
	static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char digest[EVP_MAX_MD_SIZE];
	char text[128];
	int n = snprintf(text, sizeof(text), "%.60s%s", key, magic);

	if (EVP_Digest(text, (size_t)n, digest, NULL, EVP_sha1(), NULL) != 1)
		memset(digest, 0, sizeof(digest));
	(void)EVP_EncodeBlock((unsigned char *)ret, digest, 20);
}

/* The headers of the handshake; @want: 29 bytes, the value that the answer must have. */
static int make_key(struct buf *headers, char want[29])
{
	unsigned char raw[16];
	char key[25];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -EIO;
	(void)EVP_EncodeBlock((unsigned char *)key, raw, sizeof(raw));
	websocket_accept(key, want);
	return buf_printf(headers, "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", key);
}

static int shake(struct websocket *w, const struct api *a, const char *path, struct problem *p)
{
	_buf_ struct buf headers = BUF_INIT(256);
	char want[29];

	if (make_key(&headers, want) < 0)
		return problem_say(p, EXIT_OURS, "EIO", "no random numbers");
	if (tunnel_open(&w->tunnel, a, path, "websocket", buf_str(&headers), "Sec-WebSocket-Accept",
			p) < 0)
		return -1;
	if (strcmp(w->tunnel.answer, want) != 0)
		return problem_say(p, EXIT_OTHER, "bad_answer",
				   "the answer %s is not that of a caisson daemon", a->where);
	return 0;
}

struct websocket *websocket_open(const struct api *a, const char *path,
				 websocket_on_message *on_msg, void *arg, struct problem *p)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_recv,
		.send_callback = on_send,
		.genmask_callback = on_mask,
		.on_msg_recv_callback = on_message,
	};
	struct websocket *w = calloc(1, sizeof(*w));

	if (!w) {
		(void)problem_no_memory(p);
		return NULL;
	}
	w->on_message = on_msg;
	w->arg = arg;
	int r = shake(w, a, path, p);

	if (r == 0 && wslay_event_context_client_init(&w->ctx, &callbacks, w) != 0)
		r = problem_no_memory(p);
	if (r < 0) {
		websocket_close(w);
		return NULL;
	}
	wslay_event_config_set_max_recv_msg_length(w->ctx, MESSAGE_MAX);
	return w;
}

/* ---- use ----------------------------------------------------------------------------------- */

void websocket_close(struct websocket *w)
{
	if (!w)
		return;
	if (w->ctx) {
		(void)wslay_event_queue_close(w->ctx, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
		(void)wslay_event_send(w->ctx);
		wslay_event_context_free(w->ctx);
	}
	tunnel_close(&w->tunnel);
	free(w);
}

int websocket_fd(const struct websocket *w)
{
	return w->tunnel.fd;
}

short websocket_events(const struct websocket *w)
{
	return (short)(POLLIN | (wslay_event_want_write(w->ctx) ? POLLOUT : 0));
}

bool websocket_step(struct websocket *w)
{
	bool ok = wslay_event_recv(w->ctx) == 0;

	ok = wslay_event_send(w->ctx) == 0 && ok;
	return ok && !w->broken && wslay_event_want_read(w->ctx) &&
	       !wslay_event_get_close_received(w->ctx);
}

bool websocket_send(struct websocket *w, bool text, const void *data, size_t len)
{
	struct wslay_event_msg m = { .opcode = text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
				     .msg = data,
				     .msg_length = len };

	return !w->broken && wslay_event_queue_msg(w->ctx, &m) == 0 &&
	       wslay_event_send(w->ctx) == 0 && !w->broken;
}

size_t websocket_queued(const struct websocket *w)
{
	return wslay_event_get_queued_msg_length(w->ctx);
}

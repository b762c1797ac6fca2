/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunnel.c - Connect, and send the one request that upgrades the connection; frames of WebSockets.
 *
 * The distributions build libcurl without WebSockets, so wslay reads and writes the frames.
 */
#include "remote/tunnel.h"

#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#include "base/clock.h"
#include "remote/api.h"

#define MESSAGE_MAX (16u << 20)
#define HEAD_MAX (64u << 10)
#define EARLY_MAX (1u << 20)
#define HANDSHAKE_NS (15 * CLOCK_NS_PER_S)

static bool wait_io(const struct tunnel *l, short events, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	struct pollfd p = { .fd = l->fd, .events = events };

	return now < until_ns && poll(&p, 1, (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1) >= 0;
}

static CURLcode send_all(struct tunnel *l, const char *data, size_t len, uint64_t until_ns)
{
	while (len > 0) {
		size_t n = 0;
		CURLcode r = curl_easy_send(l->http.easy, data, len, &n);

		if (r == CURLE_AGAIN && !wait_io(l, POLLOUT, until_ns))
			return CURLE_OPERATION_TIMEDOUT;
		if (r != CURLE_OK && r != CURLE_AGAIN)
			return r;
		data += n;
		len -= n;
	}
	return CURLE_OK;
}

static CURLcode ask(struct tunnel *l, const struct api *a, const char *path, const char *protocol,
		    const char *headers, uint64_t until_ns)
{
	_secret_ struct buf head = BUF_INIT(HEAD_MAX);
	const char *after = strstr(a->url.base, "://") + 3;
	const char *prefix = strchr(after, '/');

	(void)buf_printf(&head, "GET %s%s HTTP/1.1\r\nHost: %.*s\r\n", prefix ? prefix : "", path,
			 (int)(prefix ? prefix - after : (ptrdiff_t)strlen(after)), after);
	(void)buf_printf(
		&head,
		"Upgrade: %s\r\nConnection: Upgrade\r\n%sUser-Agent: caisson/" CAISSON_VERSION
		"\r\n",
		protocol, headers);
	if (a->token)
		(void)buf_printf(&head, "Authorization: Bearer %s\r\n", a->token);
	(void)buf_puts(&head, "\r\n");
	return head.err ? CURLE_OUT_OF_MEMORY : send_all(l, buf_str(&head), head.len, until_ns);
}

/* More of the answer into l->early. CURLE_GOT_NOTHING at its end. */
static CURLcode read_more(struct tunnel *l, uint64_t until_ns)
{
	char *room = buf_reserve(&l->early, 4096);
	size_t n = 0;

	if (!room)
		return CURLE_OUT_OF_MEMORY;
	CURLcode r = curl_easy_recv(l->http.easy, room, 4096, &n);

	if (r == CURLE_AGAIN)
		return wait_io(l, POLLIN, until_ns) ? CURLE_OK : CURLE_OPERATION_TIMEDOUT;
	if (r == CURLE_OK && n == 0)
		return CURLE_GOT_NOTHING;
	buf_commit(&l->early, n);
	return r;
}

/* The value of a header in the head, into @ret. */
static bool header(const char *head, const char *end, const char *name, char *ret, size_t size)
{
	size_t len = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line && line < end;
	     line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, len) != 0 || line[len] != ':')
			continue;
		const char *v = line + len + 1 + strspn(line + len + 1, " \t");

		(void)snprintf(ret, size, "%.*s", (int)strcspn(v, " \t\r\n"), v);
		return true;
	}
	return false;
}

/* An answer other than "switching protocols": its body has the reason. */
static int refused(struct tunnel *l, unsigned int status, size_t head_len, uint64_t until_ns,
		   struct problem *p)
{
	char length[24] = "0", retry[24] = "0";
	const char *head = buf_str(&l->early);

	(void)header(head, head + head_len, "Content-Length", length, sizeof(length));
	(void)header(head, head + head_len, "Retry-After", retry, sizeof(retry));
	size_t want = (size_t)strtoul(length, NULL, 10);

	while (l->early.len < head_len + want && read_more(l, until_ns) == CURLE_OK)
		;
	return problem_answer(p, status, buf_str(&l->early) + head_len, l->early.len - head_len,
			      (unsigned int)strtoul(retry, NULL, 10));
}

/* Read the answer's head; it stays in l->early. Its length, or -1 with @p. */
static ssize_t read_head(struct tunnel *l, const struct api *a, uint64_t until_ns,
			 struct problem *p)
{
	const char *end = NULL;
	CURLcode r = CURLE_OK;

	while (r == CURLE_OK && !(end = strstr(buf_str(&l->early), "\r\n\r\n")))
		r = read_more(l, until_ns);
	if (r != CURLE_OK)
		return api_explain(a, r, &l->http, p);
	return end - buf_str(&l->early) + 4;
}

static int shake(struct tunnel *l, const struct api *a, const char *path, const char *protocol,
		 const char *headers, const char *answer, struct problem *p)
{
	uint64_t until = clock_now_ns() + HANDSHAKE_NS;
	CURLcode r = ask(l, a, path, protocol, headers, until);
	ssize_t head_len = r == CURLE_OK ? read_head(l, a, until, p) :
					   api_explain(a, r, &l->http, p);
	unsigned int status = 0;

	if (head_len < 0)
		return -1;
	const char *head = buf_str(&l->early);

	if (strncmp(head, "HTTP/1.1 ", 9) == 0)
		status = (unsigned int)strtoul(head + 9, NULL, 10);
	if (status != 101)
		return refused(l, status, (size_t)head_len, until, p);
	if (answer)
		(void)header(head, head + head_len, answer, l->answer, sizeof(l->answer));
	buf_consume(&l->early, (size_t)head_len);
	return 0;
}

int tunnel_open(struct tunnel *l, const struct api *a, const char *path, const char *protocol,
		const char *headers, const char *answer, struct problem *p)
{
	*l = (struct tunnel){ .fd = -1, .tls = a->url.tls };
	buf_init(&l->early, EARLY_MAX);
	api_begin(a, &l->http, "GET", path);
	CURLcode r = http_call_connect(&l->http, &l->fd);

	if (r != CURLE_OK)
		return api_explain(a, r, &l->http, p);
	return shake(l, a, path, protocol, headers, answer, p);
}

void tunnel_close(struct tunnel *l)
{
	http_call_free(&l->http);
	buf_free(&l->early);
}

ssize_t tunnel_recv(struct tunnel *l, void *data, size_t size)
{
	size_t n = l->early.len < size ? l->early.len : size;

	if (n > 0) {
		memcpy(data, buf_str(&l->early), n);
		buf_consume(&l->early, n);
		return (ssize_t)n;
	}
	CURLcode r = curl_easy_recv(l->http.easy, data, size, &n);

	if (r == CURLE_AGAIN)
		return -EAGAIN;
	return r == CURLE_OK ? (ssize_t)n : -EPIPE;
}

ssize_t tunnel_send(struct tunnel *l, const void *data, size_t len)
{
	size_t n = 0;
	CURLcode r = curl_easy_send(l->http.easy, data, len, &n);

	if (r == CURLE_AGAIN || (r == CURLE_OK && n == 0))
		return -EAGAIN;
	return r == CURLE_OK ? (ssize_t)n : -EPIPE;
}

void tunnel_finish(struct tunnel *l)
{
	if (!l->tls)
		(void)shutdown(l->fd, SHUT_WR);
}

/* ---- WebSocket --------------------------------------------------------------------------- */

struct websocket {
	struct tunnel tunnel;
	wslay_event_context_ptr ctx;
	websocket_on_message *on_message;
	void *arg;
	bool broken;
};

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

static int shake_websocket(struct websocket *w, const struct api *a, const char *path,
			   struct problem *p)
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
	int r = shake_websocket(w, a, path, p);

	if (r == 0 && wslay_event_context_client_init(&w->ctx, &callbacks, w) != 0)
		r = problem_no_memory(p);
	if (r < 0) {
		websocket_close(w);
		return NULL;
	}
	wslay_event_config_set_max_recv_msg_length(w->ctx, MESSAGE_MAX);
	return w;
}

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

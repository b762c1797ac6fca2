/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.c - Handshake and frames.
 *
 * libcurl of the distributions comes without its own WebSockets, but it can open a connection, TLS and
 * all, and hand it over (CURLOPT_CONNECT_ONLY): so certificates are checked as for every other call.
 */
#include "remote/websocket.h"

#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#include "base/clock.h"
#include "remote/api.h"

#define HEAD_MAX (64u << 10)
#define MESSAGE_MAX (16u << 20)
#define HANDSHAKE_NS (15 * CLOCK_NS_PER_S)

struct websocket {
	CURL *curl;
	curl_socket_t fd;
	wslay_event_context_ptr ctx;
	const struct websocket_ops *ops;
	void *arg;
	struct buf early; /* came behind the handshake */
	bool broken;
};

/* ---- bytes ------------------------------------------------------------------------------------------- */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket *w = arg;
	size_t n = w->early.len < len ? w->early.len : len;

	(void)flags;
	if (n > 0) {
		memcpy(data, buf_str(&w->early), n);
		buf_consume(&w->early, n);
		return (ssize_t)n;
	}
	CURLcode r = curl_easy_recv(w->curl, data, len, &n);

	if (r == CURLE_OK && n > 0)
		return (ssize_t)n;
	w->broken = r != CURLE_AGAIN;
	wslay_event_set_error(ctx, w->broken ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags,
		       void *arg)
{
	struct websocket *w = arg;
	size_t n = 0;
	CURLcode r = curl_easy_send(w->curl, data, len, &n);

	(void)flags;
	if (r == CURLE_OK && n > 0)
		return (ssize_t)n;
	w->broken |= r != CURLE_AGAIN && r != CURLE_OK;
	wslay_event_set_error(ctx, w->broken ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
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
		w->ops->on_message(w->arg, m->opcode == WSLAY_TEXT_FRAME, (const char *)m->msg,
				   m->msg_length);
}

/* ---- the handshake ------------------------------------------------------------------------------------- */

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

static bool wait_io(const struct websocket *w, short events, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	struct pollfd p = { .fd = w->fd, .events = events };

	return now < until_ns && poll(&p, 1, (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1) >= 0;
}

static CURLcode send_all(struct websocket *w, const char *data, size_t len, uint64_t until_ns)
{
	while (len > 0) {
		size_t n = 0;
		CURLcode r = curl_easy_send(w->curl, data, len, &n);

		if (r == CURLE_AGAIN && !wait_io(w, POLLOUT, until_ns))
			return CURLE_OPERATION_TIMEDOUT;
		if (r != CURLE_OK && r != CURLE_AGAIN)
			return r;
		data += n;
		len -= n;
	}
	return CURLE_OK;
}

static CURLcode ask(struct websocket *w, const struct api *a, const char *path, const char *key,
		    uint64_t until_ns)
{
	_buf_ struct buf head = BUF_INIT(HEAD_MAX);
	const char *after = strstr(a->url.base, "://") + 3;
	const char *prefix = strchr(after, '/');

	(void)buf_printf(&head, "GET %s%s HTTP/1.1\r\nHost: %.*s\r\n", prefix ? prefix : "", path,
			 (int)(prefix ? prefix - after : (ptrdiff_t)strlen(after)), after);
	(void)buf_printf(
		&head,
		"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: %s\r\nUser-Agent: caisson/" CAISSON_VERSION "\r\n",
		key);
	if (a->token)
		(void)buf_printf(&head, "Authorization: Bearer %s\r\n", a->token);
	(void)buf_puts(&head, "\r\n");
	CURLcode r = head.err ? CURLE_OUT_OF_MEMORY :
				send_all(w, buf_str(&head), head.len, until_ns);

	if (head.data)
		explicit_bzero(head.data, head.len);
	return r;
}

/* More of the answer into w->early. CURLE_GOT_NOTHING at its end. */
static CURLcode read_more(struct websocket *w, uint64_t until_ns)
{
	char *room = buf_reserve(&w->early, 4096);
	size_t n = 0;

	if (!room)
		return CURLE_OUT_OF_MEMORY;
	CURLcode r = curl_easy_recv(w->curl, room, 4096, &n);

	if (r == CURLE_AGAIN)
		return wait_io(w, POLLIN, until_ns) ? CURLE_OK : CURLE_OPERATION_TIMEDOUT;
	if (r == CURLE_OK && n == 0)
		return CURLE_GOT_NOTHING;
	buf_commit(&w->early, n);
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

/* An answer other than "switching protocols": its body says why. */
static int refused(struct websocket *w, unsigned int status, size_t head_len, uint64_t until_ns,
		   struct problem *p)
{
	char length[24] = "0", retry[24] = "0";
	const char *head = buf_str(&w->early);

	(void)header(head, head + head_len, "Content-Length", length, sizeof(length));
	(void)header(head, head + head_len, "Retry-After", retry, sizeof(retry));
	size_t want = (size_t)strtoul(length, NULL, 10);

	while (w->early.len < head_len + want && read_more(w, until_ns) == CURLE_OK)
		;
	return problem_answer(p, status, buf_str(&w->early) + head_len, w->early.len - head_len,
			      (unsigned int)strtoul(retry, NULL, 10));
}

static int shake(struct websocket *w, const struct api *a, const char *path, struct problem *p)
{
	uint64_t until = clock_now_ns() + HANDSHAKE_NS;
	unsigned char raw[16];
	char key[25], want[29], got[64] = "";
	const char *end = NULL;

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return problem_say(p, EXIT_OURS, "EIO", "no random numbers");
	(void)EVP_EncodeBlock((unsigned char *)key, raw, sizeof(raw));
	CURLcode r = ask(w, a, path, key, until);

	while (r == CURLE_OK && !(end = strstr(buf_str(&w->early), "\r\n\r\n")))
		r = read_more(w, until);
	if (r != CURLE_OK)
		return api_explain(a, r, w->curl, curl_easy_strerror(r), p);
	const char *head = buf_str(&w->early);
	size_t head_len = (size_t)(end - head) + 4;
	unsigned int status = 0;

	if (strncmp(head, "HTTP/1.1 ", 9) == 0)
		status = (unsigned int)strtoul(head + 9, NULL, 10);
	if (status != 101)
		return refused(w, status, head_len, until, p);
	websocket_accept(key, want);
	if (!header(head, end, "Sec-WebSocket-Accept", got, sizeof(got)) || strcmp(got, want) != 0)
		return problem_say(p, EXIT_OTHER, "bad_answer",
				   "the answer %s is not what a caisson daemon says", a->where);
	buf_consume(&w->early, head_len);
	return 0;
}

struct websocket *websocket_open(const struct api *a, const char *path,
				 const struct websocket_ops *ops, void *arg, struct problem *p)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_recv,
		.send_callback = on_send,
		.genmask_callback = on_mask,
		.on_msg_recv_callback = on_message,
	};
	struct websocket *w = calloc(1, sizeof(*w));
	char detail[CURL_ERROR_SIZE] = "";

	if (!w) {
		(void)problem_say(p, EXIT_OURS, "ENOMEM", "no memory");
		return NULL;
	}
	w->ops = ops;
	w->arg = arg;
	buf_init(&w->early, MESSAGE_MAX);
	w->curl = api_easy(a, path, p);
	if (!w->curl)
		goto fail;
	(void)curl_easy_setopt(w->curl, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(w->curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
	(void)curl_easy_setopt(w->curl, CURLOPT_ERRORBUFFER, detail);
	CURLcode r = curl_easy_perform(w->curl);

	if (r == CURLE_OK)
		r = curl_easy_getinfo(w->curl, CURLINFO_ACTIVESOCKET, &w->fd);
	(void)curl_easy_setopt(w->curl, CURLOPT_ERRORBUFFER, NULL);
	if (r != CURLE_OK) {
		(void)api_explain(a, r, w->curl, detail[0] ? detail : curl_easy_strerror(r), p);
		goto fail;
	}
	if (shake(w, a, path, p) < 0)
		goto fail;
	if (wslay_event_context_client_init(&w->ctx, &callbacks, w) != 0) {
		(void)problem_say(p, EXIT_OURS, "ENOMEM", "no memory");
		goto fail;
	}
	wslay_event_config_set_max_recv_msg_length(w->ctx, MESSAGE_MAX);
	return w;
fail:
	websocket_close(w);
	return NULL;
}

/* ---- use ----------------------------------------------------------------------------------------------- */

void websocket_close(struct websocket *w)
{
	if (!w)
		return;
	if (w->ctx) {
		(void)wslay_event_queue_close(w->ctx, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
		(void)wslay_event_send(w->ctx);
		wslay_event_context_free(w->ctx);
	}
	if (w->curl)
		curl_easy_cleanup(w->curl);
	buf_free(&w->early);
	free(w);
}

int websocket_fd(const struct websocket *w)
{
	return w->fd;
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upgrade.c - Leaving HTTP: the opening handshake of a WebSocket (RFC 6455, section 4.2), from the
 * server's side, and the switch of a relay to a protocol that client and server agreed on.
 *
 * No extension is negotiated. A handler that chooses a subprotocol adds the header before it
 * upgrades.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "net/exchange.h"
#include "net/http_header.h"
#include "net/ws.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_LEN 24 /* 16 bytes in base64 */

/* Sixteen bytes in base64: 22 digits, the last of which has four bits to spare, and "==". */
static bool key_valid(const char *key)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return strlen(key) == KEY_LEN && strspn(key, digits) == KEY_LEN - 2 &&
	       strchr("AQgw", key[KEY_LEN - 3]) && strcmp(key + KEY_LEN - 2, "==") == 0;
}

/* Return: 0 for a handshake that can be accepted, or a status with *ret_why set. */
static int check(const struct http_exchange *x, const char **ret_why)
{
	const char *key = http_header(x, "sec-websocket-key");
	const char *version = http_header(x, "sec-websocket-version");

	if (!header_has_token(http_header(x, "upgrade"), "websocket") ||
	    !header_has_token(http_header(x, "connection"), "upgrade")) {
		*ret_why = "this is for WebSocket: 'Connection: Upgrade' and 'Upgrade: websocket'";
		return 426;
	}
	if (strcmp(x->req.method, "GET") != 0 || x->req.http10 || x->has_body) {
		*ret_why = "a WebSocket begins with a GET in HTTP/1.1, without a body";
		return 400;
	}
	if (!version || strcmp(version, "13") != 0) {
		*ret_why = "only version 13 of WebSocket is supported";
		return 426;
	}
	if (!key || !key_valid(key)) {
		*ret_why = "Sec-WebSocket-Key is not 16 bytes in base64";
		return 400;
	}
	return 0;
}

bool http_is_ws(const struct http_exchange *x)
{
	const char *why;

	return check(x, &why) == 0;
}

/* base64(SHA-1(key GUID)); @out: room for 29 bytes. */
static int accept_value(const char *key, char out[static 32])
{
	char text[KEY_LEN + sizeof(GUID)];
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned int len = 0;

	memcpy(text, key, KEY_LEN);
	memcpy(text + KEY_LEN, GUID, sizeof(GUID));
	if (!EVP_Digest(text, sizeof(text) - 1, hash, &len, EVP_sha1(), NULL) || len != 20)
		return -EIO;
	(void)EVP_EncodeBlock((unsigned char *)out, hash, (int)len);
	return 0;
}

/* 101 with the headers that were added; the exchange is over, and its connection without owner. */
static void switch_over(struct http_exchange *x, const char *protocol, struct buf *ret_early)
{
	struct http_conn *h = x->h;

	buf_clear(&h->out);
	(void)buf_printf(&h->out,
			 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\n"
			 "Connection: Upgrade\r\n",
			 protocol);
	(void)buf_append(&h->out, x->extra.data, x->extra.len);
	(void)buf_puts(&h->out, "\r\n");
	x->status = 101;
	http_pause(h, false);
	if (h->out.err || x->extra.err || response_write(x, h->out.data, h->out.len) < 0)
		conn_close(h->conn, -ENOBUFS); /* the next owner gets on_close */
	http_deadline(h, 0);
	h->x = NULL;
	h->config->on_done(x);
	exchange_free(x);
	http_detach(h, ret_early);
}

struct ws *http_upgrade_ws(struct http_exchange *x, const struct ws_ops *ops, void *user,
			   size_t message_max)
{
	struct http_conn *h = x->h;
	struct conn *c = h->conn;
	const char *why = NULL;
	char accept[32];

	if (x->gone || x->status != 0)
		return NULL;

	int r = check(x, &why);

	if (r == 0 && accept_value(http_header(x, "sec-websocket-key"), accept) < 0) {
		why = "SHA-1 is not available";
		r = 500;
	}
	if (r != 0) {
		http_add_header(x, "Upgrade", "websocket");
		http_add_header(x, "Sec-WebSocket-Version", "13");
		http_fail(h, r, why);
		return NULL;
	}

	struct ws *w = ws_new(c, ops, user, message_max);

	if (!w) {
		http_fail(h, 503, "out of memory");
		return NULL;
	}
	(void)buf_printf(&x->extra, "Sec-WebSocket-Accept: %s\r\n", accept);

	struct buf early = BUF_INIT(0);

	switch_over(x, "websocket", &early);
	ws_start(w, &early);
	return w;
}

struct conn *http_upgrade(struct http_exchange *x, const char *protocol, struct buf *ret_early)
{
	struct conn *c = x->h->conn;

	if (x->gone || x->status != 0)
		return NULL;
	switch_over(x, protocol, ret_early);
	return c;
}

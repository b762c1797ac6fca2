/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff_tls.c - The server name of a TLS ClientHello.
 *
 * A ClientHello may come in several records, whose payloads are put together first. Every length is
 * checked against the rest of the vector around it.
 */
#include "gate/sniff.h"

#include <stdbool.h>
#include <string.h>

#define RECORD_HANDSHAKE 22
#define RECORD_HEADER 5u
#define RECORD_MAX 16384u
#define CLIENT_HELLO 1
#define EXT_SERVER_NAME 0
#define NAME_DNS 0

/* A part of the message. */
struct view {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static unsigned int take(struct view *v, unsigned int bytes)
{
	unsigned int n = 0;

	if (v->left < bytes) {
		v->bad = true;
		v->left = 0;
		return 0;
	}
	for (; bytes > 0; bytes--, v->left--)
		n = n << 8 | *v->p++;
	return n;
}

/* A vector with its length in so many bytes. */
static struct view take_vector(struct view *v, unsigned int bytes)
{
	size_t len = take(v, bytes);
	struct view in = { .p = v->p, .left = len };

	if (v->bad || v->left < len) {
		v->bad = true;
		v->left = 0;
		return (struct view){ .bad = true };
	}
	v->p += len;
	v->left -= len;
	return in;
}

static void set_bad(struct sniff *h, const char *why)
{
	h->kind = SNIFF_BAD;
	h->like = SNIFF_TLS;
	h->why = why;
}

static void read_name(struct view ext, struct sniff *h)
{
	struct view list = take_vector(&ext, 2);
	unsigned int type = take(&list, 1);
	struct view name = take_vector(&list, 2);

	if (ext.bad || list.bad || name.bad || type != NAME_DNS || list.left > 0 || ext.left > 0 ||
	    name.left == 0 || name.left >= sizeof(h->host)) {
		set_bad(h, "its server name cannot be read");
		return;
	}
	for (size_t i = 0; i < name.left; i++) {
		uint8_t c = name.p[i];

		if (c <= ' ' || c >= 0x7f) {
			set_bad(h, "its server name has invalid bytes");
			return;
		}
		h->host[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	h->host[name.left] = '\0';
}

static void read_hello(struct view v, struct sniff *h)
{
	bool named = false;

	h->kind = SNIFF_TLS;
	(void)take(&v, 2); /* version */
	for (int i = 0; i < 32; i++)
		(void)take(&v, 1); /* random */
	(void)take_vector(&v, 1);  /* session */
	(void)take_vector(&v, 2);  /* ciphers */
	(void)take_vector(&v, 1);  /* compression */
	if (v.left == 0 && !v.bad)
		return; /* without extensions */
	struct view exts = take_vector(&v, 2);

	while (exts.left > 0 && h->kind == SNIFF_TLS) {
		unsigned int type = take(&exts, 2);
		struct view ext = take_vector(&exts, 2);

		if (exts.bad || type != EXT_SERVER_NAME)
			continue;
		if (named)
			set_bad(h, "it names the server twice");
		else
			read_name(ext, h);
		named = true;
	}
	if (v.bad || exts.bad)
		set_bad(h, "its first message cannot be read");
}

void sniff_tls(const uint8_t *p, size_t len, struct sniff *ret)
{
	static uint8_t whole[SNIFF_MAX];
	size_t have = 0, want = 4;

	*ret = (struct sniff){ .kind = SNIFF_MORE, .like = SNIFF_TLS };
	while (len > 0) {
		if (p[0] != RECORD_HANDSHAKE || (len > 1 && p[1] != 3)) {
			set_bad(ret, "other records interrupt its first message");
			return;
		}
		if (len < RECORD_HEADER)
			return;
		size_t n = (size_t)(p[3] << 8 | p[4]);
		size_t here = n < len - RECORD_HEADER ? n : len - RECORD_HEADER;

		if (n == 0 || n > RECORD_MAX || have + here > sizeof(whole)) {
			set_bad(ret, "its first message is too large, or empty");
			return;
		}
		memcpy(whole + have, p + RECORD_HEADER, here);
		have += here;
		if (whole[0] != CLIENT_HELLO) {
			set_bad(ret, "it does not begin with a ClientHello");
			return;
		}
		if (have >= 4)
			want = 4 + ((size_t)whole[1] << 16 | (size_t)whole[2] << 8 | whole[3]);
		if (want > sizeof(whole)) {
			set_bad(ret, "its first message is too large");
			return;
		}
		if (have >= want) {
			read_hello((struct view){ .p = whole + 4, .left = want - 4 }, ret);
			return;
		}
		if (here < n)
			return;
		p += RECORD_HEADER + n;
		len -= RECORD_HEADER + n;
	}
}

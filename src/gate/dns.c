/* SPDX-License-Identifier: Apache-2.0 */
/* dns.c - Parse DNS questions of cells, and write the answers. See dns.h. */
#include "gate/dns.h"

#include <errno.h>
#include <string.h>

#define HEADER 12u
#define FLAG_RESPONSE 0x8000u
#define FLAG_AUTHORITY 0x0400u
#define FLAG_RECURSE 0x0100u
#define FLAG_CAN_RECURSE 0x0080u
#define OPCODE_MASK 0x7800u
#define LABEL_MAX 63u
#define CLASS_IN 1u
#define TTL_S 60u
#define POINTER_TO_QUESTION 0xc00cu

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* The form that is shown and compared. */
static char canonical_byte(uint8_t c, bool *is_host)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
		return (char)c;
	*is_host = false;
	return '?';
}

/* Return: the length of the encoded name, or 0. */
static size_t parse_name(const uint8_t *p, size_t len, struct dns_question *q)
{
	size_t at = 0, out = 0;

	q->is_host = true;
	while (at < len && p[at]) {
		size_t n = p[at++];

		if (n > LABEL_MAX || n >= len - at || out + n + 2 > sizeof(q->name))
			return 0;
		if (out > 0)
			q->name[out++] = '.';
		for (size_t i = 0; i < n; i++)
			q->name[out++] = canonical_byte(p[at + i], &q->is_host);
		at += n;
	}
	q->name[out] = '\0';
	return at < len ? at + 1 : 0;
}

int dns_parse(const uint8_t *msg, size_t len, struct dns_question *ret)
{
	*ret = (struct dns_question){ 0 };
	if (len < HEADER)
		return -EPROTO;
	ret->id = get16(msg);
	ret->flags = get16(msg + 2);
	ret->wire_len = HEADER;
	if (ret->flags & FLAG_RESPONSE)
		return -EPROTO;
	if (ret->flags & OPCODE_MASK)
		return -EOPNOTSUPP;
	size_t n = get16(msg + 4) == 1 ? parse_name(msg + HEADER, len - HEADER, ret) : 0;

	if (n == 0 || len - HEADER - n < 4)
		return -EBADMSG;
	ret->type = get16(msg + HEADER + n);
	ret->class = get16(msg + HEADER + n + 2);
	ret->wire_len = HEADER + n + 4;
	return ret->class == CLASS_IN ? 0 : -EOPNOTSUPP;
}

size_t dns_answer(const uint8_t *msg, const struct dns_question *q, enum dns_rcode rcode,
		  const void *address, size_t n, uint8_t *out, size_t size)
{
	bool question = q->wire_len > HEADER;
	unsigned int flags = FLAG_RESPONSE | FLAG_AUTHORITY | FLAG_CAN_RECURSE |
			     (q->flags & (OPCODE_MASK | FLAG_RECURSE)) | (unsigned int)rcode;
	uint8_t *p = out;

	if (q->wire_len + (n ? 12 + n : 0) > size)
		return 0;
	memcpy(out, msg, q->wire_len); /* the name in its original spelling */
	p = put16(p, q->id);
	p = put16(p, flags);
	p = put16(p, question);
	p = put16(p, n > 0);
	p = put16(p, 0);
	(void)put16(p, 0);
	p = out + q->wire_len;
	if (n > 0) {
		p = put16(p, POINTER_TO_QUESTION);
		p = put16(p, q->type);
		p = put16(p, CLASS_IN);
		p = put16(p, 0);
		p = put16(p, TTL_S);
		p = put16(p, (unsigned int)n);
		memcpy(p, address, n);
		p += n;
	}
	return (size_t)(p - out);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

bool dns_is_reverse(const char *name)
{
	return ends_with(name, ".in-addr.arpa") || ends_with(name, ".ip6.arpa");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunks.c - The framing of a chunked body, checked before the parser sees it.
 *
 * The counterpart of prescan.h for the body: it finds the end of the body, so that the parser never
 * sees a byte of the next request, and refuses framing that parsers disagree about. A chunk line is
 * 1*HEXDIG, optionally extensions (;name, ;name=value, ;name="value", no spaces), CRLF, at most
 * CHUNK_LINE_MAX bytes in all. Extensions are ignored; long and malformed ones are refused.
 * Trailers are refused (400). A body over its maximum is refused (413) when the chunk is announced,
 * not when it has arrived.
 *
 * Pure, incremental and bounded, like prescan.h.
 *
 * Theory of operation: a state per place in `size [;extension] CRLF data CRLF`, until a chunk of
 * size zero, which only an empty line may follow. Data is skipped. Invariant: total and size <=
 * max, which is clamped so that one more digit never overflows; a digit that makes the size exceed
 * the rest is refused at once.
 */
#include "net/prescan.h"

#include "base/num.h"
#include "net/http_header.h"

enum state {
	S_SIZE_FIRST,
	S_SIZE,
	S_NAME_FIRST, /* of an extension, behind a semicolon */
	S_NAME,
	S_VALUE_FIRST, /* behind an equals sign */
	S_VALUE,
	S_QUOTED,
	S_QUOTE_END,
	S_SIZE_LF,
	S_DATA,
	S_DATA_CR,
	S_DATA_LF,
	S_LAST_CR,
	S_LAST_LF,
	S_DONE,
	S_BAD,
};

static enum chunks_result bad(struct chunks *c, int status, const char *message)
{
	c->state = S_BAD;
	c->status = status;
	c->message = message;
	return CHUNKS_BAD;
}

static enum chunks_result next(struct chunks *c, enum state s)
{
	c->state = s;
	return CHUNKS_MORE;
}

static enum chunks_result in_size(struct chunks *c, unsigned char b)
{
	int digit = hex_digit((char)b);

	if (++c->line > CHUNK_LINE_MAX)
		return bad(c, 400, "a chunk line is too long");
	if (digit >= 0) {
		c->state = S_SIZE;
		c->size = c->size * 16 + (unsigned int)digit;
		if (c->size > c->max - c->total)
			return bad(c, 413, "the request body is too large");
		return CHUNKS_MORE;
	}
	if (c->state == S_SIZE && b == ';')
		return next(c, S_NAME_FIRST);
	if (c->state == S_SIZE && b == '\r')
		return next(c, S_SIZE_LF);
	return bad(c, 400, "a chunk does not begin with its size in hexadecimal");
}

/*
 * *( ";" token [ "=" ( token / quoted-string ) ] ), without spaces, without escapes in quotes, and
 * with nothing after an unquoted value: exactly the extensions that llhttp accepts as well.
 */
static int next_of_extension(unsigned int state, unsigned char b)
{
	switch ((enum state)state) {
	case S_NAME_FIRST:
		return header_is_tchar(b) ? S_NAME : S_BAD;
	case S_NAME:
		if (b == '=')
			return S_VALUE_FIRST;
		if (b == ';')
			return S_NAME_FIRST;
		return header_is_tchar(b) ? S_NAME : b == '\r' ? S_SIZE_LF : S_BAD;
	case S_VALUE_FIRST:
		return b == '"' ? S_QUOTED : header_is_tchar(b) ? S_VALUE : S_BAD;
	case S_VALUE:
		return header_is_tchar(b) ? S_VALUE : b == '\r' ? S_SIZE_LF : S_BAD;
	case S_QUOTED:
		if (b == '"')
			return S_QUOTE_END;
		return (b >= ' ' || b == '\t') && b < 0x7f && b != '\\' ? S_QUOTED : S_BAD;
	case S_QUOTE_END:
		return b == ';' ? S_NAME_FIRST : b == '\r' ? S_SIZE_LF : S_BAD;
	default:
		return S_BAD;
	}
}

static enum chunks_result in_extension(struct chunks *c, unsigned char b)
{
	int state = next_of_extension(c->state, b);

	if (state == S_BAD)
		return bad(c, 400, "a chunk extension is malformed");
	if (++c->line > CHUNK_LINE_MAX)
		return bad(c, 400, "a chunk extension is too long");
	return next(c, (enum state)state);
}

static enum chunks_result size_done(struct chunks *c, unsigned char b)
{
	if (b != '\n')
		return bad(c, 400, "a chunk line does not end with CRLF");
	c->total += c->size;
	c->line = 0;
	return next(c, c->size == 0 ? S_LAST_CR : S_DATA);
}

static enum chunks_result scan_byte(struct chunks *c, unsigned char b)
{
	switch ((enum state)c->state) {
	case S_SIZE_FIRST:
	case S_SIZE:
		return in_size(c, b);
	case S_NAME_FIRST:
	case S_NAME:
	case S_VALUE_FIRST:
	case S_VALUE:
	case S_QUOTED:
	case S_QUOTE_END:
		return in_extension(c, b);
	case S_SIZE_LF:
		return size_done(c, b);
	case S_DATA_CR:
		return b == '\r' ? next(c, S_DATA_LF) :
				   bad(c, 400, "a chunk is longer than its size");
	case S_DATA_LF:
		return b == '\n' ? next(c, S_SIZE_FIRST) :
				   bad(c, 400, "a chunk does not end with CRLF");
	case S_LAST_CR:
		return b == '\r' ? next(c, S_LAST_LF) :
				   bad(c, 400, "trailers after a chunked body are not accepted");
	case S_LAST_LF:
		if (b != '\n')
			return bad(c, 400, "a chunked body does not end with CRLF");
		c->state = S_DONE;
		return CHUNKS_DONE;
	case S_DATA:
	case S_DONE:
	case S_BAD:
		break;
	}
	return CHUNKS_BAD;
}

void chunks_init(struct chunks *c, uint64_t body_max)
{
	*c = (struct chunks){ .max = body_max < UINT64_MAX / 32 ? body_max : UINT64_MAX / 32 };
}

enum chunks_result chunks_feed(struct chunks *c, const char *data, size_t len, size_t *ret_used)
{
	enum chunks_result r = c->state == S_DONE ? CHUNKS_DONE :
			       c->state == S_BAD  ? CHUNKS_BAD :
						    CHUNKS_MORE;
	size_t i = 0;

	while (r == CHUNKS_MORE && i < len) {
		if (c->state == S_DATA) {
			size_t n = len - i < c->size ? len - i : (size_t)c->size;

			i += n;
			c->size -= n;
			if (c->size == 0)
				c->state = S_DATA_CR;
		} else {
			r = scan_byte(c, (unsigned char)data[i++]);
		}
	}
	*ret_used = i;
	return r;
}

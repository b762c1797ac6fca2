/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunks.c - The framing of a chunked body, checked before the parser sees it.
 *
 * The counterpart of prescan.h for the body: it finds the end of the body, so that the parser never
 * sees a byte of the next request, and refuses framing that parsers disagree about. A chunk line is
 * 1*HEXDIG, optionally extensions (;name, ;name=value, ;name="value", no spaces), CRLF, at most
 * CHUNK_LINE_MAX bytes in all. Extensions are ignored; long and malformed ones are refused.
 *
 * Trailers are ignored, too: `name: value` lines in the grammar of a head, CHUNK_TRAILERS_MAX bytes
 * in all (431). A trailer that would frame or route a message (Content-Length, Transfer-Encoding,
 * Host) is refused: RFC 9110 (6.5.1) forbids it, and a parser that believed it would find another
 * end.
 *
 * A body over its maximum is refused (413) when the chunk is announced, not when it has arrived.
 *
 * Pure, incremental and bounded, like prescan.h.
 *
 * Theory of operation: a state per place in `size [;extension] CRLF data CRLF`, until a chunk of
 * size zero, which trailers and an empty line follow. Data is skipped. Invariant: total and size <=
 * max, which is clamped so that one more digit never overflows; a digit that makes the size exceed
 * the rest is refused at once. line counts the bytes of the current line, then those of all
 * trailers.
 */
#include "net/prescan.h"

#include <string.h>

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
	S_TRAILER, /* the first byte of a trailer, or the CR of the last line */
	S_TRAILER_NAME,
	S_TRAILER_VALUE,
	S_TRAILER_LF,
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
	return next(c, c->size == 0 ? S_TRAILER : S_DATA);
}

static bool frames(const char *name, size_t len)
{
	static const char *const names[] = { "content-length", "transfer-encoding", "host" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return true;
	return false;
}

static enum chunks_result in_trailer_name(struct chunks *c, unsigned char b)
{
	if (b == ':' && c->name_len > 0) {
		if (c->name_len <= sizeof(c->name) && frames(c->name, c->name_len))
			return bad(c, 400, "a trailer that frames or routes a message");
		return next(c, S_TRAILER_VALUE);
	}
	if (!header_is_tchar(b))
		return bad(c, 400, "a trailer after a chunked body is malformed");
	if (c->name_len < sizeof(c->name))
		c->name[c->name_len] = (char)(b >= 'A' && b <= 'Z' ? b | 0x20 : b);
	c->name_len++;
	return next(c, S_TRAILER_NAME);
}

static enum chunks_result in_trailer(struct chunks *c, unsigned char b)
{
	if (++c->line > CHUNK_TRAILERS_MAX)
		return bad(c, 431, "the trailers after a chunked body are too large");
	switch ((enum state)c->state) {
	case S_TRAILER:
		c->name_len = 0;
		return b == '\r' ? next(c, S_LAST_LF) : in_trailer_name(c, b);
	case S_TRAILER_NAME:
		return in_trailer_name(c, b);
	case S_TRAILER_VALUE:
		if (b == '\r')
			return next(c, S_TRAILER_LF);
		if ((b < ' ' && b != '\t') || b == 0x7f)
			return bad(c, 400, "a control byte in a trailer");
		return CHUNKS_MORE;
	default:
		return b == '\n' ? next(c, S_TRAILER) :
				   bad(c, 400, "a trailer does not end with CRLF");
	}
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
	case S_TRAILER:
	case S_TRAILER_NAME:
	case S_TRAILER_VALUE:
	case S_TRAILER_LF:
		return in_trailer(c, b);
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

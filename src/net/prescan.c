/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prescan.c - The head scanner. See prescan.h for what it accepts.
 *
 * Theory of operation: one state per place in the grammar, one byte at a time. It keeps only the
 * first bytes of the current name and the running values of the three headers that frame a message
 * (Host, Content-Length, Transfer-Encoding). Every state lists the bytes that may come; all others
 * are errors, and the two errors that may hide in any place, a bare CR and a bare LF, have messages
 * of their own.
 *
 * Invariants: head_len <= head_max; after DONE or BAD the state does not change any more. The
 * result does not depend on how the bytes are split.
 */
#include "net/prescan.h"

#include <string.h>

#include "net/http.h"
#include "net/http_header.h"

_Static_assert(PRESCAN_HEADERS_MAX == HTTP_HEADERS_MAX, "one limit, two names");

enum state {
	S_START,
	S_SKIP_LF, /* the LF of an empty line before the request line */
	S_METHOD,
	S_TARGET,
	S_VERSION,
	S_LINE_LF, /* the LF that ends the request line */
	S_HEADER,  /* the first byte of a header line, or the CR of the last line */
	S_NAME,
	S_BLANK, /* optional space before a value */
	S_VALUE,
	S_VALUE_LF,
	S_END_LF,
	S_DONE,
	S_BAD,
};

enum kind { KIND_OTHER, KIND_HOST, KIND_LENGTH, KIND_CODING };

/* How far the value of Content-Length or Transfer-Encoding has come. */
enum value { VALUE_NONE, VALUE_SOME, VALUE_AFTER, VALUE_WRONG, VALUE_UNKNOWN };

static const char coding[] = "chunked";

static enum prescan_result bad(struct prescan *p, int status, const char *message)
{
	p->state = S_BAD;
	p->status = status;
	p->message = message;
	return PRESCAN_BAD;
}

static enum prescan_result next(struct prescan *p, enum state s)
{
	p->state = s;
	p->at = 0;
	return PRESCAN_MORE;
}

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

/* A byte that its state does not allow; those that are invalid everywhere have their own
 * message. */
static enum prescan_result unexpected(struct prescan *p, unsigned char c, const char *message)
{
	if (c == '\n')
		return bad(p, 400, "a line ends with a bare LF, lines end with CRLF");
	if (c == '\r')
		return bad(p, 400, "a CR in the head is not the end of a line");
	if (c == '\0')
		return bad(p, 400, "NUL byte in the head");
	return bad(p, 400, message);
}

/* The LF after a CR, where no other byte may be. */
static enum prescan_result expect_lf(struct prescan *p, unsigned char c, enum state then)
{
	if (c != '\n')
		return bad(p, 400, "a CR in the head is not followed by LF");
	return next(p, then);
}

static enum prescan_result in_method(struct prescan *p, unsigned char c)
{
	if (c == ' ' && p->at > 0)
		return next(p, S_TARGET);
	if (!header_is_tchar(c))
		return unexpected(p, c, "the request does not begin with a method");
	if (++p->at > PRESCAN_METHOD_MAX)
		return bad(p, 400, "the method is too long");
	return PRESCAN_MORE;
}

static enum prescan_result in_target(struct prescan *p, unsigned char c)
{
	if (c == ' ' && p->target_len > 0)
		return next(p, S_VERSION);
	if (c <= ' ' || c >= 0x7f)
		return unexpected(p, c,
				  "a byte in the request target that must be percent-encoded");
	if (++p->target_len > p->target_max)
		return bad(p, 414, "the request target is too long");
	return PRESCAN_MORE;
}

static enum prescan_result in_version(struct prescan *p, unsigned char c)
{
	static const char shape[] = "HTTP/0.0\r"; /* 0: any digit */

	if (shape[p->at] == '0' ? !is_digit(c) : c != (unsigned char)shape[p->at])
		return unexpected(p, c, "the request line does not end with one HTTP version");
	p->word[p->at++] = (char)c;
	if (c != '\r')
		return PRESCAN_MORE;
	if (p->word[5] != '1' || p->word[7] > '1')
		return bad(p, 505, "only HTTP/1.0 and HTTP/1.1 are supported");
	p->minor = (unsigned int)(p->word[7] - '0');
	return next(p, S_LINE_LF);
}

/* The name is complete: is it one of those that frame the message? */
static enum prescan_result name_done(struct prescan *p)
{
	size_t len = p->at < sizeof(p->word) ? p->at : 0; /* no longer name matters */

	p->kind = KIND_OTHER;
	p->value = VALUE_NONE;
	if (len == 4 && memcmp(p->word, "host", len) == 0) {
		p->kind = KIND_HOST;
		if (++p->hosts > 1)
			return bad(p, 400, "more than one Host header");
	} else if (len == 14 && memcmp(p->word, "content-length", len) == 0) {
		p->kind = KIND_LENGTH;
		if (p->has_length)
			return bad(p, 400, "more than one Content-Length header");
		p->has_length = true;
	} else if (len == 17 && memcmp(p->word, "transfer-encoding", len) == 0) {
		p->kind = KIND_CODING;
		if (p->chunked)
			return bad(p, 400, "more than one Transfer-Encoding header");
		if (p->minor == 0)
			return bad(p, 400, "Transfer-Encoding in an HTTP/1.0 request");
		p->chunked = true;
	}
	if (p->has_length && p->chunked)
		return bad(p, 400, "both Content-Length and Transfer-Encoding");
	return next(p, S_BLANK);
}

static enum prescan_result in_name(struct prescan *p, unsigned char c)
{
	if (c == ':')
		return name_done(p);
	if (c == ' ' || c == '\t')
		return bad(p, 400, "space between a header's name and its colon");
	if (!header_is_tchar(c))
		return unexpected(p, c, "a byte in a header's name that is not allowed there");
	if (p->at < sizeof(p->word))
		p->word[p->at++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	return PRESCAN_MORE;
}

static enum prescan_result at_header(struct prescan *p, unsigned char c)
{
	if (c == '\r')
		return next(p, S_END_LF);
	if (c == ' ' || c == '\t')
		return bad(p, 400, "a header line begins with space (line folding is obsolete)");
	if (c == ':')
		return bad(p, 400, "a header without a name");
	if (++p->n_headers > PRESCAN_HEADERS_MAX)
		return bad(p, 431, "too many headers");
	p->state = S_NAME;
	return in_name(p, c);
}

/* One byte of the value of Content-Length. */
static enum prescan_result length_byte(struct prescan *p, unsigned char c)
{
	if (c == ' ' || c == '\t') {
		p->value = VALUE_AFTER;
		return PRESCAN_MORE;
	}
	if (!is_digit(c) || p->value == VALUE_AFTER)
		return bad(p, 400, "Content-Length is not a plain decimal number");
	p->value = VALUE_SOME;
	if (__builtin_mul_overflow(p->length, 10, &p->length) ||
	    __builtin_add_overflow(p->length, c - '0', &p->length))
		return bad(p, 400, "Content-Length is too large for any message");
	return PRESCAN_MORE;
}

/* One byte of the value of Transfer-Encoding; value_done() judges the whole. */
static void coding_byte(struct prescan *p, unsigned char c)
{
	if (p->value == VALUE_WRONG)
		return;
	if (c == ' ' || c == '\t') {
		if (p->value == VALUE_SOME && p->at == sizeof(coding) - 1)
			p->value = VALUE_AFTER;
		else if (p->value != VALUE_AFTER)
			p->value = VALUE_WRONG;
	} else if (!header_is_tchar(c) || p->value == VALUE_AFTER) {
		p->value = VALUE_WRONG;
	} else if (p->value != VALUE_UNKNOWN) {
		p->value = p->at < sizeof(coding) - 1 && (c | 0x20) == coding[p->at] ?
				   VALUE_SOME :
				   VALUE_UNKNOWN;
		p->at++;
	}
}

static enum prescan_result value_done(struct prescan *p)
{
	if (p->kind == KIND_LENGTH && p->value == VALUE_NONE)
		return bad(p, 400, "Content-Length without a number");
	if (p->kind == KIND_CODING) {
		bool whole = p->at == sizeof(coding) - 1;

		if (p->value == VALUE_UNKNOWN || (p->value == VALUE_SOME && !whole))
			return bad(p, 501, "a transfer coding other than chunked");
		if (p->value == VALUE_NONE || p->value == VALUE_WRONG)
			return bad(p, 400, "Transfer-Encoding is not exactly 'chunked'");
	}
	return next(p, S_VALUE_LF);
}

static enum prescan_result in_value(struct prescan *p, unsigned char c)
{
	if (c == '\r')
		return value_done(p);
	if ((c < ' ' && c != '\t') || c == 0x7f)
		return unexpected(p, c, "a control byte in a header's value");
	if (p->state == S_BLANK && (c == ' ' || c == '\t'))
		return PRESCAN_MORE;
	p->state = S_VALUE;
	if (p->kind == KIND_LENGTH)
		return length_byte(p, c);
	if (p->kind == KIND_CODING)
		coding_byte(p, c);
	return PRESCAN_MORE;
}

static enum prescan_result at_end(struct prescan *p, unsigned char c)
{
	if (c != '\n')
		return bad(p, 400, "a CR in the head is not followed by LF");
	if (p->minor == 1 && p->hosts == 0)
		return bad(p, 400, "an HTTP/1.1 request without a Host header");
	p->state = S_DONE;
	return PRESCAN_DONE;
}

static enum prescan_result scan_byte(struct prescan *p, unsigned char c)
{
	switch ((enum state)p->state) {
	case S_START:
		if (c == '\r' && !p->skipped)
			return next(p, S_SKIP_LF);
		p->state = S_METHOD;
		return in_method(p, c);
	case S_SKIP_LF:
		p->skipped = 2;
		return expect_lf(p, c, S_START);
	case S_METHOD:
		return in_method(p, c);
	case S_TARGET:
		return in_target(p, c);
	case S_VERSION:
		return in_version(p, c);
	case S_LINE_LF:
	case S_VALUE_LF:
		return expect_lf(p, c, S_HEADER);
	case S_HEADER:
		return at_header(p, c);
	case S_NAME:
		return in_name(p, c);
	case S_BLANK:
	case S_VALUE:
		return in_value(p, c);
	case S_END_LF:
		return at_end(p, c);
	case S_DONE:
		return PRESCAN_DONE;
	case S_BAD:
		break;
	}
	return PRESCAN_BAD;
}

void prescan_init(struct prescan *p, size_t head_max, size_t target_max)
{
	*p = (struct prescan){ .head_max = head_max, .target_max = target_max };
}

enum prescan_result prescan_feed(struct prescan *p, const char *data, size_t len, size_t *ret_used)
{
	enum prescan_result r = p->state == S_DONE ? PRESCAN_DONE :
				p->state == S_BAD  ? PRESCAN_BAD :
						     PRESCAN_MORE;
	size_t i = 0;

	while (r == PRESCAN_MORE && i < len) {
		if (p->head_len == p->head_max) {
			r = bad(p, 431, "the request line and headers are too large");
			break;
		}
		p->head_len++;
		r = scan_byte(p, (unsigned char)data[i++]);
	}
	*ret_used = i;
	return r;
}

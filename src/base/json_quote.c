/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_quote.c - The bytes of a JSON string, as fast as a stream of output needs it.
 *
 * Theory of operation: most bytes are ASCII that stays as it is, so sixteen at a time are copied,
 * and checked while they are copied: they count up to the first one that needs an escape. From
 * there on one character at a time is written, until the next sixteen are likely to be plain again.
 *
 * No write is checked for room. Input goes in blocks, and before each the room for the worst case
 * is reserved: six bytes for one. Where the buffer's maximum does not leave so much, the block goes
 * through a buffer of its own, and the append of its real length succeeds or fails.
 */
#include "base/json.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define LANES 16u
#define BLOCK 1024u
#define WORST 6u /* \u001f */
/* A character may end behind its block, and lanes are stored whole. */
#define ROOM(n) (((n) + 4) * WORST + LANES)

typedef unsigned char lanes __attribute__((vector_size(LANES)));
typedef uint64_t halves __attribute__((vector_size(LANES)));

/* How ASCII is written: 0: as itself; 'u': \u00..; another: a backslash and that letter. */
static const char kinds[128] = {
	[0 ... 7] = 'u', ['\b'] = 'b',  ['\t'] = 't', ['\n'] = 'n',
	[0x0b] = 'u',    ['\f'] = 'f',  ['\r'] = 'r', [0x0e ... 0x1f] = 'u',
	['"'] = '"',     ['\\'] = '\\', [0x7f] = 'u',
};

static char *put_unicode(char *to, unsigned int c)
{
	static const char hex[] = "0123456789abcdef";

	*to++ = '\\';
	*to++ = 'u';
	*to++ = hex[c >> 12 & 15];
	*to++ = hex[c >> 8 & 15];
	*to++ = hex[c >> 4 & 15];
	*to++ = hex[c & 15];
	return to;
}

static char *put_ascii(char *to, unsigned char c)
{
	char kind = kinds[c];

	if (!kind) {
		*to++ = (char)c;
	} else if (kind == 'u') {
		to = put_unicode(to, c);
	} else {
		*to++ = '\\';
		*to++ = kind;
	}
	return to;
}

/*
 * Characters beyond ASCII that control the program that shows them: U+0080 to U+009F, which some
 * terminals obey; U+2028 and U+2029, which some programs take for line ends; U+202A to U+202E and
 * U+2066 to U+2069, which reverse the order of the text after them. Return: such a character at @s,
 * all of whose bytes are there; or 0.
 */
static unsigned int loud(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	if (len >= 2 && p[0] == 0xc2 && (p[1] & 0xe0) == 0x80)
		return p[1];
	if (len < 3 || p[0] != 0xe2)
		return 0;
	bool is = (p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
		  (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);

	/* 0xe2: the bits of U+2000, and then six and six. */
	return is ? 0x2000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu) : 0;
}

/* Store LANES bytes of @s. Return: how many of the first are ASCII without an escape. */
static size_t copy_lanes(char *to, const char *s)
{
	lanes v;

	memcpy(&v, s, LANES);
	memcpy(to, &v, LANES);
	halves odd = (halves)((v < 0x20) | (v > 0x7e) | (v == '"') | (v == '\\'));

	if (odd[0])
		return (size_t)__builtin_ctzll(le64toh(odd[0])) / 8;
	return odd[1] ? 8 + (size_t)__builtin_ctzll(le64toh(odd[1])) / 8 : LANES;
}

/* The character at @s, which is not ASCII. Return: how many bytes of @s it has; *@to moves. */
static size_t put_wide(char **to, const char *s, size_t len, bool *replaced)
{
	unsigned int c = loud(s, len);
	size_t n;

	if (c) {
		*to = put_unicode(*to, c);
		return c < 0x100 ? 2 : 3;
	}
	n = utf8_next(s, len);
	memcpy(*to, n ? s : "\xef\xbf\xbd", n ? n : 3); /* U+FFFD */
	*to += n ? n : 3;
	*replaced |= n == 0;
	return n ? n : 1;
}

/*
 * At least @block bytes of @s, which has @len. ROOM(@block) bytes fit at *@ret, which moves.
 * Return: how many it was.
 */
static size_t put_block(char **ret, const char *s, size_t block, size_t len, bool *replaced)
{
	char *to = *ret;
	size_t i = 0;

	while (i < block) {
		size_t n = len - i >= LANES ? copy_lanes(to, s + i) : 0;

		to += n;
		i += n;
		if (n == LANES)
			continue;
		/* The next sixteen would stop early, too: after a short run, in other scripts. */
		size_t until = i + (n < LANES / 2 ? LANES / 2 : 1);

		do {
			unsigned char c = (unsigned char)s[i];

			if (c < 0x80) {
				to = put_ascii(to, c);
				i++;
			} else {
				i += put_wide(&to, s + i, len - i, replaced);
			}
		} while (i < block && (i < until || (unsigned char)s[i] >= 0x80));
	}
	*ret = to;
	return i;
}

static bool fits(const struct buf *b, size_t n)
{
	return b->max - b->len >= n;
}

/* A block that may not fit. In a function of its own: its buffer is large, and seldom needed. */
static __attribute__((noinline)) size_t quote_tight(struct buf *out, const char *s, size_t block,
						    size_t len, bool *replaced)
{
	char scratch[ROOM(BLOCK)], *to = scratch;
	size_t n = put_block(&to, s, block, len, replaced);

	(void)buf_append(out, scratch, (size_t)(to - scratch));
	return n;
}

bool json_quote(struct buf *out, const char *s, size_t len)
{
	bool replaced = false;

	(void)buf_append(out, "\"", 1);
	/* Grow once, for text as it mostly is; of what is short the blocks take care. */
	if (len > BLOCK && fits(out, len + len / 16 + ROOM(BLOCK)))
		(void)buf_reserve(out, len + len / 16 + ROOM(BLOCK));
	for (size_t i = 0; i < len && !out->err;) {
		size_t block = len - i < BLOCK ? len - i : BLOCK;
		char *begin = fits(out, ROOM(block)) ? buf_reserve(out, ROOM(block)) : NULL;
		char *to = begin;

		if (begin) {
			i += put_block(&to, s + i, block, len - i, &replaced);
			buf_commit(out, (size_t)(to - begin));
		} else {
			i += quote_tight(out, s + i, block, len - i, &replaced);
		}
	}
	(void)buf_append(out, "\"", 1);
	return replaced;
}

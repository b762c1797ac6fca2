/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num.c - Parse and format sizes, durations, processor shares and counts.
 *
 * Every parser does the same three steps: scan digits and fraction, look the rest of the text up as
 * a unit, scale exactly. The parsers differ only in their table of units and in the words of their
 * messages. libc's strto*() are not used: they skip space, take signs, hexadecimal and exponents,
 * and follow the locale.
 */
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

#define FRACTION_DIGITS_MAX 6
#define QUOTE_CHARS_MAX 32

/* An unscaled number: whole + fraction / 10^digits, then the text after it. */
struct scanned {
	uint64_t whole;
	uint64_t fraction;
	unsigned int digits;
	bool overflow; /* whole did not fit; known only as "too large" */
	const char *rest;
};

struct unit {
	const char *name;
	uint64_t scale;
};

/* The words with which one kind of number is refused. */
struct kind {
	const char *noun;
	const char *accepted;
	const char *least;
	const char *unit_most;
};

static const struct kind kind_size = {
	.noun = "size",
	.accepted =
		"bytes, or a number with K, M, G or T (powers of 1024), such as 1000, 256M or 1.5G",
	.least = "1 byte",
	.unit_most = "bytes",
};

static const struct kind kind_duration = {
	.noun = "duration",
	.accepted = "seconds, or a number with ms, s, m or h, such as 10, 1.5, 500ms, 2m or 1h",
	.least = "1 ms",
	.unit_most = "ms",
};

static const struct kind kind_cpus = {
	.noun = "number of cpus",
	.accepted = "a plain number, such as 0.5 or 2",
	.least = "0.001",
	.unit_most = "thousandths",
};

static const uint64_t power_of_ten[FRACTION_DIGITS_MAX + 1] = {
	1, 10, 100, 1000, 10000, 100000, 1000000,
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Messages end on terminals and in logs, so what they quote must not carry control characters, bad
 * encoding or a megabyte.
 */
static const char *quote(const char *s, char out[4 * QUOTE_CHARS_MAX + 4])
{
	size_t len = strnlen(s, 4 * (QUOTE_CHARS_MAX + 1));
	size_t cut = utf8_truncate(s, len, QUOTE_CHARS_MAX), o = 0;

	for (size_t i = 0; i < cut;) {
		size_t n = utf8_next(s + i, len - i);
		unsigned char c = (unsigned char)s[i];
		/* C0, DEL, and C1 (c2 80 to c2 9f) */
		bool control = c < 0x20 || c == 0x7f ||
			       (n == 2 && c == 0xc2 && (unsigned char)s[i + 1] < 0xa0);

		if (n == 0 || control) {
			out[o++] = '?';
		} else {
			memcpy(out + o, s + i, n);
			o += n;
		}
		i += n ? n : 1;
	}
	memcpy(out + o, cut < len ? "..." : "", cut < len ? 4 : 1);
	return out;
}

static int refuse(struct err *e, const struct kind *k, const char *s)
{
	char quoted[4 * QUOTE_CHARS_MAX + 4];

	return err_say(e, -EINVAL, "'%s' is not a %s: expected %s", quote(s, quoted), k->noun,
		       k->accepted);
}

/* Digits, and optionally a point and more digits; -EINVAL when the text starts otherwise. */
static int scan(const char *s, struct scanned *ret)
{
	struct scanned n = { 0 };

	if (!is_digit(*s))
		return -EINVAL;
	for (; is_digit(*s); s++)
		if (__builtin_mul_overflow(n.whole, 10, &n.whole) ||
		    __builtin_add_overflow(n.whole, (uint64_t)(*s - '0'), &n.whole))
			n.overflow = true;
	if (*s == '.') {
		s++;
		for (; is_digit(*s); s++) {
			if (n.digits == FRACTION_DIGITS_MAX)
				return -EINVAL;
			n.fraction = n.fraction * 10 + (uint64_t)(*s - '0');
			n.digits++;
		}
		if (n.digits == 0)
			return -EINVAL;
	}
	n.rest = s;
	*ret = n;
	return 0;
}

/*
 * The one place where a number gets its value. @s is the whole input, for the message; @scale is at
 * most 2^40, so that fraction * scale (below 10^6 * 2^40) fits.
 */
static int finish(const char *s, const struct scanned *n, uint64_t scale, const struct kind *k,
		  uint64_t *ret, struct err *e)
{
	char quoted[4 * QUOTE_CHARS_MAX + 4];
	uint64_t v;

	if (n->digits > 0 && scale == 1)
		return err_say(e, -EINVAL, "'%s' is not a %s: the smallest unit is %s; expected %s",
			       quote(s, quoted), k->noun, k->least, k->accepted);
	if (n->overflow || __builtin_mul_overflow(n->whole, scale, &v) ||
	    __builtin_add_overflow(v, n->fraction * scale / power_of_ten[n->digits], &v))
		return err_say(e, -ERANGE, "%s '%s' is too large: at most %" PRIu64 " %s", k->noun,
			       quote(s, quoted), UINT64_MAX, k->unit_most);
	if (v == 0 && n->fraction > 0)
		return err_say(e, -ERANGE, "%s '%s' is too small: at least %s, or 0", k->noun,
			       quote(s, quoted), k->least);
	*ret = v;
	return 0;
}

/* "", "B", or one of K M G T in either case and then "", "B", "i" or "iB". */
static bool size_unit(const char *s, uint64_t *ret_scale)
{
	static const struct unit units[] = {
		{ "kK", UINT64_C(1) << 10 },
		{ "mM", UINT64_C(1) << 20 },
		{ "gG", UINT64_C(1) << 30 },
		{ "tT", UINT64_C(1) << 40 },
	};
	uint64_t scale = 1;

	for (size_t i = 0; *s && i < sizeof(units) / sizeof(units[0]); i++)
		if (*s == units[i].name[0] || *s == units[i].name[1])
			scale = units[i].scale;
	if (scale > 1) {
		s++;
		if (*s == 'i')
			s++;
	}
	if (*s == 'B' || *s == 'b')
		s++;
	*ret_scale = scale;
	return *s == '\0';
}

int num_parse_size(const char *s, uint64_t *ret_bytes, struct err *e)
{
	struct scanned n;
	uint64_t scale;

	if (scan(s, &n) < 0 || !size_unit(n.rest, &scale))
		return refuse(e, &kind_size, s);
	return finish(s, &n, scale, &kind_size, ret_bytes, e);
}

int num_parse_duration_ms(const char *s, uint64_t *ret_ms, struct err *e)
{
	static const struct unit units[] = {
		{ "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 },
	};
	struct scanned n;

	if (scan(s, &n) < 0)
		return refuse(e, &kind_duration, s);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(n.rest, units[i].name) == 0)
			return finish(s, &n, units[i].scale, &kind_duration, ret_ms, e);
	return refuse(e, &kind_duration, s);
}

int num_parse_cpus_milli(const char *s, uint64_t *ret_milli, struct err *e)
{
	struct scanned n;

	if (scan(s, &n) < 0 || *n.rest != '\0')
		return refuse(e, &kind_cpus, s);
	return finish(s, &n, 1000, &kind_cpus, ret_milli, e);
}

int num_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	char quoted[4 * QUOTE_CHARS_MAX + 4];
	struct scanned n;

	if (scan(s, &n) < 0 || n.digits > 0 || *n.rest != '\0')
		return err_say(e, -EINVAL,
			       "'%s' is not a whole number: expected %" PRIu64 " to %" PRIu64,
			       quote(s, quoted), min, max);
	if (n.overflow || n.whole < min || n.whole > max)
		return err_say(e, -ERANGE, "%s is out of range: expected %" PRIu64 " to %" PRIu64,
			       quote(s, quoted), min, max);
	*ret = n.whole;
	return 0;
}

bool num_digits(const char *s, size_t len, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++)
		if (!is_digit(s[i]) || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			return false;
	if (len > 0)
		*ret = v;
	return len > 0;
}

char *num_format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int u = 0;

	while (u < 6 && bytes >> (10 * (u + 1)))
		u++;

	unsigned int shift = 10 * u;
	uint64_t unit = UINT64_C(1) << shift;
	uint64_t whole = bytes >> shift;
	/* At most (2^60 - 1) * 10 + 2^59, which fits. */
	uint64_t tenths = ((bytes & (unit - 1)) * 10 + unit / 2) >> shift;

	if (tenths == 10) {
		tenths = 0;
		whole++;
	}
	if (whole == 1024 && u < 6) {
		whole = 1;
		u++;
	}
	if (tenths)
		(void)snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " %s", whole, tenths, units[u]);
	else
		(void)snprintf(buf, size, "%" PRIu64 " %s", whole, units[u]);
	return buf;
}

/* "1.5 s": thousandths without their trailing zeros. */
static void format_seconds(uint64_t ms, char *buf, size_t size)
{
	uint64_t fraction = ms % 1000;
	int width = 3;

	while (fraction && fraction % 10 == 0) {
		fraction /= 10;
		width--;
	}
	if (fraction)
		(void)snprintf(buf, size, "%" PRIu64 ".%0*" PRIu64 " s", ms / 1000, width,
			       fraction);
	else
		(void)snprintf(buf, size, "%" PRIu64 " s", ms / 1000);
}

/* "2 min 5 s": two neighbouring units, the second only when it is not zero. */
static void format_two(uint64_t big, const char *big_name, uint64_t small, const char *small_name,
		       char *buf, size_t size)
{
	if (small)
		(void)snprintf(buf, size, "%" PRIu64 " %s %" PRIu64 " %s", big, big_name, small,
			       small_name);
	else
		(void)snprintf(buf, size, "%" PRIu64 " %s", big, big_name);
}

char *num_format_ms(uint64_t ms, char *buf, size_t size)
{
	if (ms < 1000)
		(void)snprintf(buf, size, "%" PRIu64 " ms", ms);
	else if (ms < 60000)
		format_seconds(ms, buf, size);
	else if (ms < 3600000)
		format_two(ms / 60000, "min", ms / 1000 % 60, "s", buf, size);
	else
		format_two(ms / 3600000, "h", ms / 60000 % 60, "min", buf, size);
	return buf;
}

void hex_text(const unsigned char *bytes, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int hex_escape(const char *s, size_t len)
{
	int high, low;

	if (len < 3 || s[0] != '%' || (high = hex_digit(s[1])) < 0 || (low = hex_digit(s[2])) < 0)
		return -1;
	return high << 4 | low;
}

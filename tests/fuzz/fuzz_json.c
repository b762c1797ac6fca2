/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json.c - The JSON writer driven by arbitrary bytes.
 *
 * The input is a program: the first byte bounds the buffer, then each byte is one call (so misuse
 * is common), with strings taken from the input as well. Whatever the calls were, either
 * json_finish() fails or the output passes the validator below, which is a plain reading of RFC
 * 8259 and shares no code with the writer.
 */
#include "base/buf.h"
#include "base/json.h"
#include "fuzz.h"

struct reader {
	const unsigned char *p, *end;
};

static bool take(struct reader *r, unsigned char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static bool take_word(struct reader *r, const char *word)
{
	for (; *word; word++)
		if (!take(r, (unsigned char)*word))
			return false;
	return true;
}

static bool take_digits(struct reader *r)
{
	const unsigned char *start = r->p;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	return r->p > start;
}

static bool read_number(struct reader *r)
{
	(void)take(r, '-');
	if (!take(r, '0') && !take_digits(r))
		return false;
	return !take(r, '.') || take_digits(r);
}

static bool read_escape(struct reader *r)
{
	if (take(r, 'u')) {
		for (int i = 0; i < 4; i++, r->p++)
			if (r->p == r->end || !*r->p || !strchr("0123456789abcdef", *r->p))
				return false;
		return true;
	}
	if (r->p == r->end || !*r->p || !strchr("\"\\/bfnrt", *r->p))
		return false;
	r->p++;
	return true;
}

/* One character of more than one byte, decoded and then checked. */
static bool read_multibyte(struct reader *r)
{
	unsigned char c = *r->p++;
	int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
	uint32_t v = c & (0x3fu >> more);

	if (c < 0xc2 || c > 0xf4)
		return false;
	for (int i = 0; i < more; i++) {
		if (r->p == r->end || (*r->p & 0xc0) != 0x80)
			return false;
		v = v << 6 | (*r->p++ & 0x3f);
	}
	return v >= (more == 3 ? 0x10000u :
		     more == 2 ? 0x800u :
				 0x80u) &&
	       v <= 0x10ffff && (v < 0xd800 || v > 0xdfff);
}

static bool read_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->p < r->end) {
		if (take(r, '"'))
			return true;
		if (take(r, '\\')) {
			if (!read_escape(r))
				return false;
		} else if (*r->p >= 0x80) {
			if (!read_multibyte(r))
				return false;
		} else if (*r->p++ < 0x20) {
			return false;
		}
	}
	return false;
}

/* Bounded by JSON_DEPTH_MAX, which is checked as well. NOLINTNEXTLINE(misc-no-recursion) */
static bool read_value(struct reader *r, int depth)
{
	if (depth > JSON_DEPTH_MAX || r->p == r->end)
		return false;

	unsigned char open = *r->p;

	if (open == '"')
		return read_string(r);
	if (open == 't')
		return take_word(r, "true");
	if (open == 'f')
		return take_word(r, "false");
	if (open == 'n')
		return take_word(r, "null");
	if (open != '{' && open != '[')
		return read_number(r);

	unsigned char close = open == '{' ? '}' : ']';

	r->p++;
	if (take(r, close))
		return true;
	do {
		if (open == '{' && (!read_string(r) || !take(r, ':')))
			return false;
		if (!read_value(r, depth + 1))
			return false;
	} while (take(r, ','));
	return take(r, close);
}

/* Up to 15 bytes of the program as the argument of one call, in an allocation of its own. */
static char *argument(const uint8_t **p, const uint8_t *end, size_t *ret_len)
{
	size_t len = *p < end ? *(*p)++ % 16 : 0;

	if (len > (size_t)(end - *p))
		len = (size_t)(end - *p);

	char *s = malloc(len + 1);

	require(s);
	memcpy(s, *p, len);
	s[len] = '\0';
	*p += len;
	*ret_len = len;
	return s;
}

static void call(struct json *j, uint8_t op, char *s, size_t len)
{
	uint64_t bits = 0;
	double d;

	memcpy(&bits, s, len < sizeof(bits) ? len : sizeof(bits));
	memcpy(&d, &bits, sizeof(d));
	switch (op) {
	case 4:
		json_key(j, s);
		break;
	case 5:
		if (json_strn(j, s, len) && !j->out->err &&
		    !memchr(j->out->data, 0xef, j->out->len))
			abort();
		break;
	case 6:
		json_base64(j, s, len);
		break;
	case 7:
		json_int(j, (int64_t)bits);
		break;
	case 8:
		json_uint(j, bits);
		break;
	case 9:
		json_double(j, d, op + (unsigned int)len);
		break;
	case 10:
		json_member_str(j, "k", s);
		break;
	case 11:
		json_bool(j, len & 1);
		break;
	default:
		json_none(j);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data, *end = data + size;

	if (size == 0)
		return 0;

	/* Mostly roomy, sometimes too small: every call must cope with both. */
	_buf_ struct buf b = BUF_INIT(*p < 200 ? 1 << 20 : *p - 200u);
	struct json j;

	p++;
	json_init(&j, &b);
	while (p < end) {
		uint8_t op = *p++ % 13;

		if (op == 0) {
			json_object_begin(&j);
		} else if (op == 1) {
			json_object_end(&j);
		} else if (op == 2) {
			json_array_begin(&j);
		} else if (op == 3) {
			json_array_end(&j);
		} else {
			size_t len;
			char *s = argument(&p, end, &len);

			call(&j, op, s, len);
			free(s);
		}
	}
	/* Close what is open, so that long programs are judged too; a wrong guess writes nothing.
	 */
	while (!j.err && j.depth > 0) {
		struct json before = j;

		json_object_end(&j);
		if (j.err) {
			j = before;
			json_array_end(&j);
		}
	}
	require(b.len <= b.max);
	if (json_finish(&j) == 0) {
		struct reader r = { (const unsigned char *)b.data,
				    (const unsigned char *)b.data + b.len };

		require(read_value(&r, 0) && r.p == r.end);
	}
	return 0;
}

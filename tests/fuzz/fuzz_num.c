/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_num.c - The number parsers over arbitrary text.
 *
 * Checked for every input: failure leaves the result unchanged and gives a printable message, and
 * an accepted number agrees with the same number computed in floating point by libc.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/err.h"
#include "base/num.h"
#include "base/utf8.h"
#include "fuzz.h"

#define UNTOUCHED UINT64_C(0xdeadbeefdeadbeef)

static void check_message(int r, uint64_t v, const struct err *e)
{
	if (r == 0) {
		require(e->code == 0 && e->msg[0] == '\0');
		return;
	}
	require(r == -EINVAL || r == -ERANGE);
	require(e->code == r && v == UNTOUCHED);
	require(e->msg[0] != '\0' && utf8_valid(e->msg, strlen(e->msg)));
	for (const char *s = e->msg; *s; s++)
		require((unsigned char)*s >= 0x20 && *s != 0x7f);
}

/* @v is @s scaled, up to one unit of rounding down and the precision of long double. */
static void check_value(const char *s, long double scale, uint64_t v)
{
	require(s[0] >= '0' && s[0] <= '9');
	require(!strpbrk(s, "xX+-, \t\n"));

	long double want = strtold(s, NULL) * scale;
	long double slack = 1.001L + want * 1e-15L;

	require(fabsl(want - (long double)v) <= slack);
}

static long double size_scale(const char *s)
{
	switch (s[strspn(s, "0123456789.")]) {
	case 'k':
	case 'K':
		return 0x1p10L;
	case 'm':
	case 'M':
		return 0x1p20L;
	case 'g':
	case 'G':
		return 0x1p30L;
	case 't':
	case 'T':
		return 0x1p40L;
	default:
		return 1;
	}
}

static long double duration_scale(const char *s)
{
	const char *unit = s + strspn(s, "0123456789.");

	if (strcmp(unit, "ms") == 0)
		return 1;
	return *unit == 'm' ? 60000 : *unit == 'h' ? 3600000 : 1000;
}

/* The output of the formatters is bounded, and small exact values parse back. */
static void check_formatters(uint64_t v)
{
	char text[NUM_FORMAT_MAX];

	require(strlen(num_format_ms(v, text, sizeof(text))) < sizeof(text) - 1);
	require(strlen(num_format_size(v, text, sizeof(text))) < sizeof(text) - 1);
	char *space = strchr(text, ' ');

	require(space != NULL);
	if (v < UINT64_C(1) << 50) {
		uint64_t back;

		memmove(space, space + 1, strlen(space));
		require(num_parse_size(text, &back, NULL) == 0);
		require((v > back ? v - back : back - v) <= v / 20);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_text(data, size);
	uint64_t v = UNTOUCHED;

	struct err e = { 0 };
	int r = num_parse_size(s, &v, &e);

	check_message(r, v, &e);
	if (r == 0) {
		check_value(s, size_scale(s), v);
		check_formatters(v);
	}

	e = (struct err){ 0 };
	v = UNTOUCHED;
	r = num_parse_duration_ms(s, &v, &e);
	check_message(r, v, &e);
	if (r == 0)
		check_value(s, duration_scale(s), v);

	e = (struct err){ 0 };
	v = UNTOUCHED;
	r = num_parse_cpus_milli(s, &v, &e);
	check_message(r, v, &e);
	if (r == 0)
		check_value(s, 1000, v);

	e = (struct err){ 0 };
	v = UNTOUCHED;
	r = num_parse_u64(s, 10, 1000000, &v, &e);
	check_message(r, v, &e);
	if (r == 0) {
		require(v >= 10 && v <= 1000000);
		check_value(s, 1, v);
	}
	free(s);
	return 0;
}

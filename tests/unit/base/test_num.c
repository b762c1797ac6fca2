/* SPDX-License-Identifier: Apache-2.0 */
/* test_num.c - Number parsers and formatters: tables of what is accepted, refused and printed. */
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"

#define KI (UINT64_C(1) << 10)
#define MI (UINT64_C(1) << 20)
#define GI (UINT64_C(1) << 30)
#define TI (UINT64_C(1) << 40)
#define UNTOUCHED UINT64_C(0xdeadbeefdeadbeef)

typedef int parser(const char *s, uint64_t *ret, struct err *e);

struct parse_case {
	const char *text;
	int code; /* 0, or the error */
	uint64_t value;
};

static void check(parser *parse, const struct parse_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct parse_case *c = &cases[i];
		uint64_t v = UNTOUCHED;
		struct err e = { 0 };
		int r = parse(c->text, &v, &e);

		if (r != c->code || v != (c->code ? UNTOUCHED : c->value))
			fail_msg("'%s': got %d and %" PRIu64 " (%s)", c->text, r, v, e.msg);
		assert_int_equal(e.code, c->code);
		assert_true((e.msg[0] != '\0') == (c->code != 0));
		/* The message is optional. */
		assert_int_equal(parse(c->text, &v, NULL), c->code);
	}
}

TEST(size)
{
	static const struct parse_case cases[] = {
		{ "0", 0, 0 },
		{ "1000", 0, 1000 },
		{ "007", 0, 7 },
		{ "1B", 0, 1 },
		{ "1b", 0, 1 },
		{ "100k", 0, 100 * KI },
		{ "100K", 0, 100 * KI },
		{ "1Ki", 0, KI },
		{ "1KB", 0, KI },
		{ "1kib", 0, KI },
		{ "256M", 0, 256 * MI },
		{ "512MiB", 0, 512 * MI },
		{ "1G", 0, GI },
		{ "1.5G", 0, GI + GI / 2 },
		{ "0.5k", 0, 512 },
		{ "0.001K", 0, 1 },
		{ "0.000001T", 0, 1099511 },
		{ "0.999999T", 0, UINT64_C(1099510528264) },
		{ "0.0K", 0, 0 },
		{ "2T", 0, 2 * TI },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999999999999", -ERANGE, 0 },
		{ "16777215.999999T", 0, UINT64_C(18446744073708452104) },
		{ "16777215T", 0, UINT64_MAX - TI + 1 },
		{ "16777216T", -ERANGE, 0 },
		{ "17179869183.999G", 0, UINT64_C(18446744073708477874) },
		{ "18014398509481984K", -ERANGE, 0 },
		{ "0.0001K", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ " ", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "1 M", -EINVAL, 0 },
		{ "1\n", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "-0", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 },
		{ "1.5B", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ "1.M", -EINVAL, 0 },
		{ ".5M", -EINVAL, 0 },
		{ ".", -EINVAL, 0 },
		{ "1,5G", -EINVAL, 0 },
		{ "1.5.5G", -EINVAL, 0 },
		{ "1.0000000G", -EINVAL, 0 },
		{ "M", -EINVAL, 0 },
		{ "1P", -EINVAL, 0 },
		{ "1MM", -EINVAL, 0 },
		{ "1MIB", -EINVAL, 0 },
		{ "1iB", -EINVAL, 0 },
		{ "1BB", -EINVAL, 0 },
		{ "1Mi B", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "NaN", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
		{ "infinity", -EINVAL, 0 },
		{ "max", -EINVAL, 0 },
		{ "\xd9\xa1", -EINVAL, 0 }, /* ARABIC-INDIC DIGIT ONE */
		{ "99999999999999999999999x", -EINVAL, 0 },
	};

	check(num_parse_size, cases, ARRAY_SIZE(cases));
}

TEST(duration)
{
	static const struct parse_case cases[] = {
		{ "0", 0, 0 },
		{ "10", 0, 10000 },
		{ "1.5", 0, 1500 },
		{ "0.001", 0, 1 },
		{ "0.0019", 0, 1 },
		{ "500ms", 0, 500 },
		{ "30s", 0, 30000 },
		{ "0.5s", 0, 500 },
		{ "2m", 0, 120000 },
		{ "1h", 0, 3600000 },
		{ "1.5h", 0, 5400000 },
		{ "24h", 0, 86400000 },
		{ "18446744073709551615ms", 0, UINT64_MAX },
		{ "18446744073709551616ms", -ERANGE, 0 },
		{ "18446744073709551.615", 0, UINT64_MAX },
		{ "18446744073709551.616", -ERANGE, 0 },
		{ "5124095576030h", 0, UINT64_C(18446744073708000000) },
		{ "5124095576031h", -ERANGE, 0 },
		{ "0.0001", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "ms", -EINVAL, 0 },
		{ "1.5ms", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "-1s", -EINVAL, 0 },
		{ "1 s", -EINVAL, 0 },
		{ "1S", -EINVAL, 0 },
		{ "1M", -EINVAL, 0 },
		{ "1m30s", -EINVAL, 0 },
		{ "1d", -EINVAL, 0 },
		{ "1sec", -EINVAL, 0 },
		{ "1:30", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
		{ "1e9", -EINVAL, 0 },
	};

	check(num_parse_duration_ms, cases, ARRAY_SIZE(cases));
}

TEST(cpus)
{
	static const struct parse_case cases[] = {
		{ "0", 0, 0 },
		{ "0.5", 0, 500 },
		{ "2", 0, 2000 },
		{ "1.25", 0, 1250 },
		{ "0.3333", 0, 333 },
		{ "0.001", 0, 1 },
		{ "0.000000", 0, 0 },
		{ "18446744073709551.615", 0, UINT64_MAX },
		{ "18446744073709551.616", -ERANGE, 0 },
		{ "18446744073709552", -ERANGE, 0 },
		{ "0.0009", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-0.5", -EINVAL, 0 },
		{ "0,5", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "500m", -EINVAL, 0 },
		{ "50%", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
	};

	check(num_parse_cpus_milli, cases, ARRAY_SIZE(cases));
}

static int parse_pids(const char *s, uint64_t *ret, struct err *e)
{
	return num_parse_u64(s, 1, 4096, ret, e);
}

static int parse_any(const char *s, uint64_t *ret, struct err *e)
{
	return num_parse_u64(s, 0, UINT64_MAX, ret, e);
}

TEST(u64)
{
	static const struct parse_case pids[] = {
		{ "1", 0, 1 },          { "4096", 0, 4096 },  { "0", -ERANGE, 0 },
		{ "4097", -ERANGE, 0 }, { "", -EINVAL, 0 },   { "-1", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },  { "1k", -EINVAL, 0 }, { "0x1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },   { "1 ", -EINVAL, 0 },
	};
	static const struct parse_case any[] = {
		{ "0", 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "28446744073709551615", -ERANGE, 0 },
		{ "000000000000000000000000000001", 0, 1 },
	};
	struct err e;
	uint64_t v;

	check(parse_pids, pids, ARRAY_SIZE(pids));
	check(parse_any, any, ARRAY_SIZE(any));
	assert_int_equal(num_parse_u64("9", 1, 8, &v, &e), -ERANGE);
	assert_string_equal(e.msg, "9 is out of range: expected 1 to 8");
	assert_int_equal(num_parse_u64("x", 1, 8, &v, &e), -EINVAL);
	assert_string_equal(e.msg, "'x' is not a whole number: expected 1 to 8");
}

TEST(messages_name_the_accepted_forms)
{
	struct err e;
	uint64_t v;

	(void)num_parse_size("lots", &v, &e);
	assert_string_equal(e.msg,
			    "'lots' is not a size: expected bytes, or a number with K, M, G or T "
			    "(powers of 1024), such as 1000, 256M or 1.5G");
	(void)num_parse_size("1.5", &v, &e);
	assert_non_null(
		strstr(e.msg, "'1.5' is not a size: the smallest unit is 1 byte; expected"));
	(void)num_parse_size("99999999T", &v, &e);
	assert_string_equal(e.msg,
			    "size '99999999T' is too large: at most 18446744073709551615 bytes");
	(void)num_parse_size("0.0001K", &v, &e);
	assert_string_equal(e.msg, "size '0.0001K' is too small: at least 1 byte, or 0");
	(void)num_parse_duration_ms("soon", &v, &e);
	assert_non_null(strstr(e.msg, "'soon' is not a duration: expected seconds"));
	(void)num_parse_cpus_milli("all", &v, &e);
	assert_non_null(strstr(e.msg, "'all' is not a number of cpus: expected a plain number"));
}

/* The quoted input is bounded and printable whatever it was. */
TEST(messages_quote_safely)
{
	static const unsigned char crab[4] = { 0xf0, 0x9f, 0xa6, 0x80 };
	static char huge[100000];
	struct err e;
	uint64_t v;

	(void)num_parse_size("\x1b[31m\n\x7f\xc2\x9b\xff", &v, &e);
	assert_non_null(strstr(e.msg, "'?[31m???\?' is not"));
	memset(huge, '9', sizeof(huge) - 1);
	assert_int_equal(num_parse_size(huge, &v, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "'99999999999999999999999999999999...' is too large"));
	/* Four-byte characters are the longest there are; none may be split. */
	for (size_t i = 0; i + sizeof(crab) < sizeof(huge); i += sizeof(crab))
		memcpy(huge + i, crab, sizeof(crab));
	assert_int_equal(num_parse_size(huge, &v, &e), -EINVAL);
	assert_true(utf8_valid(e.msg, strlen(e.msg)));
	assert_non_null(strstr(e.msg, "\xf0\x9f\xa6\x80...' is not a size: expected bytes"));
	for (size_t i = 1; i < 256; i++) {
		(void)num_parse_size((char[]){ (char)i, (char)i, 'z', '\0' }, &v, &e);
		assert_true(utf8_valid(e.msg, strlen(e.msg)));
		for (const char *s = e.msg; *s; s++)
			assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
	}
}

TEST(format_size)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1, "1 B" },
		{ 1023, "1023 B" },
		{ 1024, "1 KiB" },
		{ 1025, "1 KiB" },
		{ 1536, "1.5 KiB" },
		{ MI - 1, "1 MiB" },
		{ MI - 52, "1023.9 KiB" },
		{ 256 * MI, "256 MiB" },
		{ GI + GI / 2, "1.5 GiB" },
		{ 1023 * GI + 1023 * MI, "1 TiB" },
		{ 2 * TI, "2 TiB" },
		{ UINT64_C(1) << 60, "1 EiB" },
		{ UINT64_MAX, "16 EiB" },
		{ UINT64_C(15) << 60 | UINT64_C(1) << 59, "15.5 EiB" },
	};
	char buf[NUM_FORMAT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_ptr_equal(num_format_size(cases[i].bytes, buf, sizeof(buf)), buf);
		assert_string_equal(buf, cases[i].text);
	}
	char small[4] = "zzz";

	assert_string_equal(num_format_size(256 * MI, small, 3), "25");
	assert_int_equal(small[3], '\0');
	assert_string_equal(num_format_size(256 * MI, small, 1), "");
}

TEST(format_ms)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "0 ms" },           { 999, "999 ms" },
		{ 1000, "1 s" },         { 1001, "1.001 s" },
		{ 1010, "1.01 s" },      { 1500, "1.5 s" },
		{ 59999, "59.999 s" },   { 60000, "1 min" },
		{ 125999, "2 min 5 s" }, { 3599999, "59 min 59 s" },
		{ 3600000, "1 h" },      { 5400000, "1 h 30 min" },
		{ 86400000, "24 h" },    { UINT64_MAX, "5124095576030 h 25 min" },
	};
	char buf[NUM_FORMAT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(num_format_ms(cases[i].ms, buf, sizeof(buf)), cases[i].text);
	assert_string_equal(num_format_ms(UINT64_MAX, buf, 4), "512");
}

TEST(hex)
{
	static const struct {
		const char *text;
		int byte;
	} escapes[] = {
		{ "%00", 0 }, { "%41", 0x41 }, { "%fF", 0xff }, { "%a0tail", 0xa0 }, { "", -1 },
		{ "%4", -1 }, { "%g0", -1 },   { "%0g", -1 },   { "441", -1 },       { "%%41", -1 },
	};
	char text[7];

	hex_text((const unsigned char *)"\x00\xaf\x10", 3, text);
	assert_string_equal(text, "00af10");
	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++)
		assert_int_equal(hex_escape(escapes[i].text, strlen(escapes[i].text)),
				 escapes[i].byte);
	assert_int_equal(hex_escape("%41", 2), -1);
	assert_int_equal(hex_digit('/'), -1);
	assert_int_equal(hex_digit(':'), -1);
	assert_int_equal(hex_digit('@'), -1);
	assert_int_equal(hex_digit('G'), -1);
	assert_int_equal(hex_digit('f'), 15);
}
